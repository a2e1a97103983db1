#!/usr/bin/env python3
"""The trace of a run on a device: kernels and copies in a row per stream, with what Kineto's readers look for; records that the
device lost are told.

    device_trace_test.py STEPSCOPE SAMPLES_FOLDER
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"expected {what}")


def trace_of(stepscope, model, folder, device, *more):
    project, trace = folder / f"{device.replace(':', '_')}.stepscope", folder / "run.trace.json"
    run(stepscope, "train", model / "model.onnx", "--data", model / "batches.npz", "--steps", 3, "--device", device, "--project", project, *more)
    run(stepscope, "report", project, "-o", trace)
    lost = run(stepscope, "sql", project, "SELECT amount FROM lost WHERE what = 'device records'").split()[1:]
    return json.loads(trace.read_text()), [int(amount) for amount in lost]


def check(events):
    steps = [e for e in events if e.get("name", "").startswith("ProfilerStep#")]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    expect(len(steps) == 3, f"three steps, found {len(steps)}")
    expect(len(kernels) > 30, f"more than thirty kernels, found {len(kernels)}")
    expect(copies, "copies between host and device")
    expect({e["name"] for e in copies} <= {"Memcpy DtoH", "Memcpy HtoD", "Memcpy DtoD"}, "copies named by their direction")
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    for event in kernels + copies:
        expect(names[event["tid"]] == f"stream {event['args']['stream']}", f"the row of the stream: {event}")
        expect(event["args"]["correlation"] > 0 and event["dur"] >= 0, f"a correlation and a time: {event}")
        within = any(s["ts"] - 100 <= event["ts"] and event["ts"] + event["dur"] <= s["ts"] + s["dur"] + 100 for s in steps)
        expect(within, f"a time within a step (microseconds, by the host's clock): {event}")
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    work = kernels + copies + [e for e in events if e.get("cat") == "gpu_memset"]
    expect(len(calls) == len(work) == len({e["args"]["correlation"] for e in work}), f"a call for each of {len(work)} pieces of work, found {len(calls)}")
    begun = {e["id"]: e for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}
    ended = {e["id"]: e for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"}
    operators = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op"}
    for event in work:
        call = calls[event["args"]["correlation"]]
        arrow = (begun[event["args"]["correlation"]], ended[event["args"]["correlation"]])
        expect((arrow[0]["tid"], arrow[0]["ts"]) == (call["tid"], call["ts"]), f"an arrow from the call: {call}")
        expect((arrow[1]["tid"], arrow[1]["ts"]) == (event["tid"], event["ts"]), f"an arrow to the work: {event}")
        operator = operators[event["args"]["External id"]]
        expect(operator["args"]["instruction"] == event["args"]["instruction"], f"the operator of the work: {event}")
        expect(operator["ts"] <= call["ts"] and call["ts"] + call["dur"] <= operator["ts"] + operator["dur"] + 0.01, f"the call within its operator: {call}")
        expect(event["args"]["queue delay ns"] >= 0, f"a delay in the queue: {event}")
    for event in kernels:
        expect(event["args"]["block"][0] > 0 and event["args"]["grid"][0] > 0, f"the shape of the launch: {event}")
        expect(0 < event["args"]["est. achieved occupancy %"] <= 100, f"an occupancy: {event}")
    waits, overheads = ([e for e in events if e.get("cat") == cat] for cat in ("cuda_sync", "overhead"))
    expect({"Stream Wait Event", "Context Sync"} <= {e["name"] for e in waits}, f"waits of streams and of the host, found {waits[:3]}")
    expect(overheads, "overhead of recording")
    for row, beside in (("waits", waits), ("overhead", overheads)):
        for event in beside:
            expect(names[event["tid"]] == row and "stream" not in event["args"], f"the row {row}, no stream: {event}")
            expect(any(s["ts"] - 100 <= event["ts"] and event["ts"] + event["dur"] <= s["ts"] + s["dur"] + 100 for s in steps), f"a time within a step: {event}")
    for tid in {e["tid"] for e in kernels}:
        row = sorted((e["ts"], e["ts"] + e["dur"]) for e in kernels + copies if e["tid"] == tid)
        expect(all(a[1] <= b[0] + 1 for a, b in zip(row, row[1:])), "no two kernels of a stream at once")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    stepscope, model = sys.argv[1], pathlib.Path(sys.argv[2]) / "digits"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        content, lost = trace_of(stepscope, model, folder, "emulated:seed=31")
        expect(lost == [], f"no lost records, found {lost}")
        project = folder / "emulated_seed=31.stepscope"
        rungs = run(stepscope, "sql", project, "SELECT DISTINCT rung, rung_reason FROM device_work").splitlines()[1:]
        expect([r.strip() for r in rungs] == ["activity"], f"the rung of the times, found {rungs}")
        sums = run(stepscope, "sql", project, "SELECT sum(launches), sum(ns) > 0, sum(queue_ns) > 0, min(occupancy) > 0 FROM device_kernels").split()[-4:]
        launches = len([e for e in content["traceEvents"] if e.get("cat") == "kernel"])
        expect(sums == [str(launches), "1", "1", "1"], f"{launches} launches with time, delay and occupancy, found {sums}")
        check(content["traceEvents"])
        categories = [e.get("cat") for e in content["traceEvents"]]
        counts = run(stepscope, "sql", project, "SELECT sum(kind IN ('stream wait', 'host wait')), sum(kind = 'overhead'), sum(kind = 'kernel') FROM device_records").split()[-3:]
        wanted = [str(categories.count(cat)) for cat in ("cuda_sync", "overhead", "kernel")]
        expect(counts == wanted, f"{wanted} waits, overheads and kernels in the project, found {counts}")
        content, lost = trace_of(stepscope, model, folder, "emulated:seed=32", "--set", "record.rung=counters")
        expect(lost == [], f"no lost records, found {lost}")
        counted = [e["args"] for e in content["traceEvents"] if e.get("cat") == "kernel"]
        expect(all(a["counted"] == "bytes that threads load and store, without caches" and a["written bytes"] > 0 for a in counted), f"bytes of each kernel, found {counted[:1]}")
        project = folder / "emulated_seed=32.stepscope"
        sums = run(stepscope, "sql", project, "SELECT sum(counted) = sum(launches), sum(read_bytes), sum(written_bytes) FROM device_kernels").split()[-3:]
        wanted = ["1", str(sum(a["read bytes"] for a in counted)), str(sum(a["written bytes"] for a in counted))]
        expect(sums == wanted, f"the bytes of the trace in the project, {wanted}, found {sums}")
        _, lost = trace_of(stepscope, model, folder, "emulated:seed=31,drop-records=4")
        expect(len(lost) == 1 and lost[0] > 10, f"one row of lost records, found {lost}")


if __name__ == "__main__":
    main()

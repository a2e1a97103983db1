#!/usr/bin/env python3
"""Step time and peak memory of real architectures, beside PyTorch's where --python names an interpreter that has torch.

    python3 tests/bench/step_bench.py --stepscope BUILD/bin/stepscope [--python PATH] [--rounds 4] [--profile] [MODEL …]
    python3 tests/bench/step_bench.py --stepscope BUILD/bin/stepscope [--python PATH] [--rounds 4] --load 2 [--real-time] [CASE …]

One interleaved run: A B A B …, so that a machine that drifts hits both. Every round keeps the steps after two of warm-up; the table
shows medians over all kept steps, how many there were, and the ratio. Memory is the resident peak of the whole process on both sides, with what the plan says beside ours. Weights are random (external data is not there); the
models are ../shared/corpus/large beside the source tree, the peer is ../shared/peers/torch_step.py.

--profile sets profile beside profile instead: milliseconds of one step by phase (forward, backward, optimizer) and kind of op (op_kinds.py),
ours from the medians of a recorded run, PyTorch's from its profiler (own time of each operator), and under it our instructions beside the
roofline: how much of the least time that this machine allows each kind reaches. PyTorch's fused attention is a kind of its own; on our side
its parts are matmul and softmax. Last, what a step costs beside its kernels: the time between one kernel's end and the next one's
begin, over a whole step, and the time from one step to the next (batch, record, commit). Both step times are measured without a profiler in PyTorch and with recording on in ours (at most 2 %).

--load N times 200 steps of small models of ../shared/corpus (default gpt2_lm) with and without N processes that keep a processor busy each,
in turn: the mean step with all processors busy beside the quiet one. The mean, because a step that waits for a processor is rare and long.
On a machine that others use, --real-time gives the quiet steps the processors they ask for (chrt -f, needs the right to).
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from op_kinds import KINDS, kind_of_ours, phase_of_ours, side_by_side

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"bert_base": ["--dim", "batch=2", "--dim", "sequence=128"],
          "gpt2": ["--dim", "batch=2", "--dim", "sequence=128"],
          "resnet50": ["--dim", "batch=4"]}
WARM_UP, KEPT = 2, 2
PROFILED = 4  # steps after warm-up


SMALL = ["gpt2_lm"]
SMALL_STEPS = 200


def run_and_peak(command):
    """Standard output of a program that must succeed, and the resident peak of its process in MiB."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}: {errors.read().strip().splitlines()[-1:]}")
    return output, usage.ru_maxrss / 1024


def ours(stepscope, shared, name):
    command = [stepscope, "train", str(shared / "corpus" / "large" / f"{name}.onnx"), "--missing-weights", "random", "--optimizer", "adamw", "--lr", "1e-4",
               "--steps", str(WARM_UP + KEPT), "--json", *MODELS[name]]
    output, peak = run_and_peak(["/usr/bin/env", *command])
    events = [json.loads(line) for line in output.splitlines()]
    steps = [e for e in events if e["event"] == "step"]
    return [s["ns"] / 1e6 for s in steps[WARM_UP:]], peak, max(s["planned_bytes"] for s in steps) / 2**20


def peer(python, shared, name):
    batch = "4" if name == "resnet50" else "2"
    done = subprocess.run([python, str(shared / "peers" / "torch_step.py"), name, "--batch", batch, "--steps", str(KEPT)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{name} in PyTorch: {done.stderr.strip().splitlines()[-1]}")
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    return [figures["median_ms"]], figures["peak_rss_mib"]


def recorded(stepscope, shared, name):
    """The report of a recorded run and its trace, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        project, report, trace = (pathlib.Path(folder) / name for name in ("run.stepscope", "run.json", "run.trace.json"))
        for command in ([stepscope, "train", str(shared / "corpus" / "large" / f"{name}.onnx"), "--missing-weights", "random", "--optimizer", "adamw", "--lr", "1e-4", "--steps",
                         str(1 + PROFILED), "--roofline", "on", "--project", str(project), *MODELS[name]], [stepscope, "report", str(project), "-o", str(report)],
                        [stepscope, "report", str(project), "-o", str(trace)]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        return json.loads(report.read_text()), json.loads(trace.read_text())


def steps_of(trace):
    """The instructions of each step, in order."""
    steps = []
    for event in sorted((e for e in trace["traceEvents"] if e.get("ph") == "X" and "instruction" in e.get("args", {})), key=lambda e: (e["ts"], e["args"]["instruction"])):
        if event["args"]["instruction"] == 0:
            steps.append([])
        if steps:
            steps[-1].append(event)
    return steps


def end_of(event):
    return event["ts"] + event["dur"]


def between_kernels(trace):
    """Microseconds between the instructions of each of the last PROFILED steps."""
    return [end_of(step[-1]) - step[0]["ts"] - sum(e["dur"] for e in step) for step in steps_of(trace)[-PROFILED:]]


def between_steps(trace):
    """Microseconds from one of the last PROFILED steps to the next."""
    steps = steps_of(trace)[-PROFILED:]
    return [following[0]["ts"] - end_of(step[-1]) for step, following in zip(steps, steps[1:])]


def our_profile(report):
    """{phase: {kind: ms}} with "step", and {kind: [ms, ms at the roof]} of the instructions that have one."""
    profile, roofs = {"step": report["timing"]["step"]["median_ns"] / 1e6}, {}
    least = {r["position"]: r for r in report["roofline"]["instructions"]}
    for i in report["timing"]["instructions"]:
        if i["view"] or i["time"]["n"] == 0:
            continue
        kind, phase, ms = kind_of_ours(i["op"], i["category"]), phase_of_ours(i["phase"]), i["time"]["median_ns"] / 1e6
        kinds = profile.setdefault(phase, {})
        kinds[kind] = kinds.get(kind, 0.0) + ms
        if i["position"] in least:
            sums = roofs.setdefault(kind, [0.0, 0.0])
            sums[0] += ms
            sums[1] += least[i["position"]]["roof_ns"] / 1e6
    return profile, roofs


def print_profile(a, shared, name):
    report, trace = recorded(a.stepscope, shared, name)
    mine, roofs = our_profile(report)
    theirs = {"step": 0.0}
    if a.python:
        here = pathlib.Path(__file__).resolve().parent
        done = subprocess.run([a.python, str(here / "torch_profile.py"), str(shared / "peers" / "torch_step.py"), name, "--batch", "4" if name == "resnet50" else "2", "--steps",
                               str(PROFILED)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{name} in PyTorch: {done.stderr.strip().splitlines()[-1]}")
        theirs = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{name}: medians over {PROFILED} steps")
    print("\n".join(side_by_side(mine, theirs)))
    peaks = ", ".join(f"{p['name']} {p['per_second'] / 1e9:.1f} {'GF/s' if p['name'] == 'compute' else 'GB/s'}" for p in report["roofline"]["peaks"])
    print(f"\nof the roof ({peaks})")
    for kind in KINDS:
        if kind in roofs:
            ms, least = roofs[kind]
            print(f"{kind:14} {ms:9.2f} ms, at least {least:9.2f} ms: {100 * least / ms:5.1f} %")
    gaps = between_kernels(trace)
    print(f"\nbeside its kernels a step costs {statistics.median(gaps):.0f} us: {len(report['timing']['instructions'])} instructions, median of {len(gaps)} steps, recording on; "
          f"from one step to the next {statistics.median(between_steps(trace)):.0f} us")
    print(flush=True)


@contextlib.contextmanager
def busy(processes):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def small_ours(prefix, stepscope, shared, name):
    """Milliseconds of each step after the warm-up."""
    case = shared / "corpus" / name
    arguments = json.loads((case / "case.json").read_text())["arguments"]
    output, _ = run_and_peak([*prefix, stepscope, "train", str(case / "model.onnx"), "--data", str(case / "batches.npz"), *arguments, "--steps", str(WARM_UP + SMALL_STEPS), "--json"])
    return [e["ns"] / 1e6 for e in map(json.loads, output.splitlines()) if e["event"] == "step"][WARM_UP:]


def small_peer(prefix, python, name):
    output, _ = run_and_peak([*prefix, python, str(pathlib.Path(__file__).resolve().parent / "torch_small.py"), name, "--steps", str(SMALL_STEPS)])
    return json.loads(output.splitlines()[-1])["ms"]


def print_load(a, shared):
    prefix = ["chrt", "-f", "1"] if a.real_time else []
    print(f"{a.rounds} rounds of {SMALL_STEPS} steps, quiet and with {a.load} busy processes in turn; mean steps")
    print(f"{'model':12} {'program':9} {'quiet':>10} {'busy':>10} {'ratio':>6}")
    for name in a.models or SMALL:
        runs = {"ours": lambda p: small_ours(p, a.stepscope, shared, name)}
        if a.python:
            runs["PyTorch"] = lambda p: small_peer(p, a.python, name)
        quiet, loaded = {k: [] for k in runs}, {k: [] for k in runs}
        for _ in range(a.rounds):
            for program, run in runs.items():
                quiet[program] += run(prefix)
                with busy(a.load):
                    loaded[program] += run([])
        for program in runs:
            q, l = statistics.mean(quiet[program]), statistics.mean(loaded[program])
            print(f"{name:12} {program:9} {q:7.3f} ms {l:7.3f} ms {l / q:6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--python", help="an interpreter with torch, torchvision and transformers")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--profile", action="store_true", help="per phase and kind of op instead, profile beside profile")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="small models instead, with N busy processes and without")
    parser.add_argument("--real-time", action="store_true", help="with --load: quiet steps run at real-time priority")
    parser.add_argument("models", nargs="*")
    a = parser.parse_args()
    shared = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
    if not (shared / "corpus" / "large").is_dir():
        print("skipped: ../shared/corpus/large is not beside the source tree, nor in $STEPSCOPE_SHARED")
        return 0
    if a.load:
        print_load(a, shared)
        return 0
    a.models = a.models or list(MODELS)
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(": ")[1].strip() for line in file if line.startswith("model name")), "unknown")
    if a.profile:
        print(cpu)
        for name in a.models:
            print_profile(a, shared, name)
        return 0
    print(f"{cpu}; {a.rounds} rounds, interleaved; memory: resident peak of the process (ours: and what the plan says)")
    print(f"{'model':12} {'ours':>12} {'n':>3} {'memory':>10} {'plan':>12}  {'PyTorch':>12} {'n':>3} {'memory':>10}  {'time ratio':>10}")
    for name in a.models:
        times, memory, planned, peer_times, peer_memory = [], 0, 0, [], 0
        for _ in range(a.rounds):
            kept, peak, planned = ours(a.stepscope, shared, name)
            times += kept
            memory = max(memory, peak)
            if a.python:
                kept, peak = peer(a.python, shared, name)
                peer_times += kept
                peer_memory = max(peer_memory, peak)
        mine = statistics.median(times)
        row = f"{name:12} {mine:9.0f} ms {len(times):3} {memory:6.0f} MiB ({planned:6.0f} MiB)"
        if peer_times:
            theirs = statistics.median(peer_times)
            row += f"  {theirs:9.0f} ms {len(peer_times):3} {peer_memory:6.0f} MiB  {mine / theirs:10.2f}"
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

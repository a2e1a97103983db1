#!/usr/bin/env python3
"""Holistic Trace Analysis reads the trace of a run on the emulated device: its temporal breakdown and its breakdown of kernels
answer, and say what the trace says.

    hta_test.py STEPSCOPE SAMPLES_FOLDER

Exit code 77 where this Python has no hta (pip install HolisticTraceAnalysis; configure with -DSS_HTA_PYTHON=…).
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")


def expect(holds, what):
    if not holds:
        sys.exit(f"expected {what}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if importlib.util.find_spec("hta") is None:
        print("skipped: this Python has no hta (pip install HolisticTraceAnalysis; configure with -DSS_HTA_PYTHON=…)")
        return SKIPPED
    from hta.trace_analysis import TraceAnalysis

    model = pathlib.Path(sys.argv[2]) / "digits"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        project, trace = folder / "run.stepscope", folder / "traces" / "rank0.json"
        trace.parent.mkdir()
        run(sys.argv[1], "train", model / "model.onnx", "--data", model / "batches.npz", "--steps", 3, "--device", "emulated:seed=41", "--project", project)
        run(sys.argv[1], "report", project, "-o", folder / "run.trace.json")
        (folder / "run.trace.json").rename(trace)
        events = json.loads(trace.read_text())["traceEvents"]
        kernels = [e for e in events if e.get("cat") == "kernel"]
        analysis = TraceAnalysis(trace_dir=str(trace.parent), include_last_profiler_step=True)
        times = analysis.get_temporal_breakdown(visualize=False)
        print(times.to_string())
        expect(len(times) == 1, f"one rank, found {len(times)}")
        row = times.iloc[0]
        expect(row["compute_time(us)"] > 0, "time of computing kernels")
        parts = row["idle_time(us)"] + row["compute_time(us)"] + row["non_compute_time(us)"]
        expect(abs(parts - row["kernel_time(us)"]) <= 1, f"idle, compute and other time to be all of it: {parts}")
        types, table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
        print(types.to_string())
        print(table.head(8).to_string())
        expect("COMPUTATION" in set(types["kernel_type"]), "computation among the types of kernels")
        table = table[table["kernel_type"] == "COMPUTATION"]
        found, names = set(table["name"]), {e["name"] for e in kernels}
        expect(found and found - {"others"} <= names, f"names of kernels of the trace, found {sorted(found - names)[:3]}")
        total, theirs = sum(e["dur"] for e in kernels), table["sum (us)"].sum()
        expect(abs(total - theirs) <= 0.05 * total + len(kernels), f"{total:.0f} us of kernels, found {theirs:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

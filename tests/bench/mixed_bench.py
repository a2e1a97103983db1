#!/usr/bin/env python3
"""Step time in fp32 and bf16 of real architectures, beside PyTorch's, eager and compiled, in one interleaved run.

    python3 tests/bench/mixed_bench.py --stepscope BUILD/bin/stepscope --python PATH [--rounds 3] [--real-time] [--no-compile] [MODEL …]

PATH is an interpreter that has torch, torchvision and transformers. A round runs every program once, so that a machine that drifts hits all;
each run keeps its steps after two of warm-up (a compiled one has compiled by then). The table shows medians over all kept steps, bf16 divided by fp32 of the
same program, and ours divided by the better of PyTorch's two. PyTorch's bf16 is autocast, ours `--precision bf16`; both keep the weights in float32.
Models are ../shared/corpus/large beside the source tree (or $STEPSCOPE_SHARED), the peer is ../shared/peers/torch_step.py.

--real-time gives every program the processors it asks for (chrt -f, needs the right to), on a machine that others use.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"bert_base": ["--dim", "batch=2", "--dim", "sequence=128"],
          "gpt2": ["--dim", "batch=2", "--dim", "sequence=128"],
          "resnet50": ["--dim", "batch=4"]}
WARM_UP, KEPT = 2, 5


def last_line_of(command, what):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{what}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return done.stdout.strip().splitlines()


def ours(prefix, stepscope, shared, name, precision):
    """Milliseconds of the kept steps."""
    lines = last_line_of([*prefix, stepscope, "train", str(shared / "corpus" / "large" / f"{name}.onnx"), "--missing-weights", "random", "--optimizer", "adamw",
                          "--lr", "1e-4", "--precision", precision, "--steps", str(WARM_UP + KEPT), "--json", *MODELS[name]], name)
    return [e["ns"] / 1e6 for e in map(json.loads, lines) if e["event"] == "step"][WARM_UP:]


def peer(prefix, python, shared, name, precision, compiled):
    """The median of the kept steps, in milliseconds."""
    batch = "4" if name == "resnet50" else "2"
    lines = last_line_of([*prefix, python, str(shared / "peers" / "torch_step.py"), name, "--batch", batch, "--steps", str(KEPT), "--dtype", precision,
                          *(["--compile"] if compiled else [])], f"{name} in PyTorch")
    return [json.loads(lines[-1])["median_ms"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--python", required=True, help="an interpreter with torch, torchvision and transformers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--real-time", action="store_true", help="every program at real-time priority")
    parser.add_argument("--no-compile", action="store_true", help="PyTorch eager only")
    parser.add_argument("models", nargs="*")
    a = parser.parse_args()
    shared = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
    if not (shared / "corpus" / "large").is_dir():
        print("skipped: ../shared/corpus/large is not beside the source tree, nor in $STEPSCOPE_SHARED")
        return 0
    prefix = ["chrt", "-f", "1"] if a.real_time else []
    peers = {"PyTorch eager": False} | ({} if a.no_compile else {"PyTorch compiled": True})
    print(f"{a.rounds} rounds, interleaved, medians")
    print(f"{'model':12} {'program':18} {'fp32':>10} {'bf16':>10} {'bf16/fp32':>10} {'ours/theirs':>12}")
    for name in a.models or list(MODELS):
        times = {}
        for _ in range(a.rounds):
            for precision in ("fp32", "bf16"):
                times.setdefault(("Stepscope", precision), []).extend(ours(prefix, a.stepscope, shared, name, precision))
                for program, compiled in peers.items():
                    times.setdefault((program, precision), []).extend(peer(prefix, a.python, shared, name, precision, compiled))
        median = {key: statistics.median(values) for key, values in times.items()}
        best = {p: min(median[program, p] for program in peers) for p in ("fp32", "bf16")}
        for program in ("Stepscope", *peers):
            fp32, bf16 = median[program, "fp32"], median[program, "bf16"]
            ratio = f"{fp32 / best['fp32']:.2f}, {bf16 / best['bf16']:.2f}" if program == "Stepscope" else ""
            print(f"{name:12} {program:18} {fp32:7.0f} ms {bf16:7.0f} ms {bf16 / fp32:10.3f} {ratio:>12}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

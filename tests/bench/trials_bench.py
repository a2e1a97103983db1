#!/usr/bin/env python3
"""How far trials can be trusted on this machine: a plan with itself, and a plan with itself that waits for 5 % of every step.

    python3 tests/bench/trials_bench.py --stepscope BUILD/bin/stepscope [--pairs 100] [--rounds 40] [--load N] [MODEL …]

Of 100 pairs that differ in nothing at most 5 may be called different, of 100 that are 5 % slower at least 95 must be called slower (on a quiet
machine). --load N keeps N processes busy meanwhile: then only the first figure is a goal. Exit code 1: a goal is missed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
DEFAULT = ["mlp", "bert_mlm", "resnet"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("models", nargs="*", default=DEFAULT)
    arguments = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.load)]
    missed = False
    print("| model | pairs | a step | nothing called different | 5 % called slower | median ratio of those |\n|---|---|---|---|---|---|", flush=True)
    try:
        for name in arguments.models:
            folder = SHARED / "corpus" / name
            case = json.loads((folder / "case.json").read_text())
            done = subprocess.run(
                [arguments.stepscope, "trials", folder / "model.onnx", "--data", folder / "batches.npz", *case["arguments"],
                 "--only", "^pass.cse=", "--rounds", str(arguments.rounds), "--nothing", str(arguments.pairs),
                 "--planted", str(arguments.pairs), "--json"], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            report = next(e for e in events if e["event"] == "trials")
            slowed = sorted(e["ratio"] for e in events if e["event"] == "trial" and e["option"] == "(5 % slower)")
            step = next(e["median_ns_before"] for e in events if e["event"] == "trial" and e["option"] == "(nothing)")
            false, found = report["nothing_found"], report["planted_found"]
            missed |= false * 20 > report["nothing"] or (not busy and found * 20 < report["planted"] * 19)
            print(f"| {name} | {arguments.pairs} | {step / 1e6:.2f} ms | {false} of {report['nothing']} | {found} of {report['planted']} | "
                  f"{slowed[len(slowed) // 2]:.3f} |", flush=True)
    finally:
        for process in busy:
            process.kill()
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

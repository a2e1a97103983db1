#!/usr/bin/env python3
"""What the flight recorder takes of a step, by its own clock and, with --pairs, beside a run without it.

    python3 tests/bench/flight_bench.py --stepscope BUILD/bin/stepscope [--steps 40] [--pairs ROUNDS] [MODEL …]

Its own clock: flight_ns of every step (its looks, and 150 ns for each instruction that it listens to) as a share of the step, over all steps
but the first, which is read whole. What else runs on the machine lengthens both, so this figure needs no quiet machine. Pairs are those of `stepscope trials --only record.flight`, which do. Exit code 1: more than 2 %.
Models: names of ../shared/corpus (with its data) and ../shared/corpus/large (with random weights); by default some of both.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
GOAL = 0.02
DEFAULT = ["mlp", "bert_mlm", "gpt2_lm", "resnet", "bert_base", "gpt2", "resnet50"]


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(c) for c in command)}: {done.stderr.strip().splitlines()[-1:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def options_of(name):
    small, large = SHARED / "corpus" / name, SHARED / "corpus" / "large" / f"{name}.onnx"
    if (small / "model.onnx").exists():
        case = json.loads((small / "case.json").read_text())
        return [small / "model.onnx", "--data", small / "batches.npz", *case["arguments"]], False
    if large.exists():
        return [large, "--missing-weights", "random", "--optimizer", "adamw"], True
    raise SystemExit(f"{name}: no such model in {SHARED / 'corpus'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("models", nargs="*", default=DEFAULT)
    arguments = parser.parse_args()
    missed = False
    print("| model | steps | a step | flight recorder | share | |\n|---|---|---|---|---|---|", flush=True)
    for name in arguments.models:
        options, large = options_of(name)
        steps = max(8, arguments.steps // 40) if large else arguments.steps
        events = [e for e in run([arguments.stepscope, "train", *options, "--steps", steps, "--json"]) if e.get("event") == "step"][1:]
        ns, flight = sum(e["ns"] for e in events), sum(e["flight_ns"] for e in events)
        looked = sum(e["flight_ns"] > 0 for e in events)
        missed |= flight / ns > GOAL
        more = f"{looked} of {len(events)} steps looked at"
        if arguments.pairs:
            trials = run([arguments.stepscope, "trials", *options, "--only", "record.flight", "--rounds", arguments.pairs, "--json"])
            pair = next(e for e in trials if e.get("event") == "trial" and e["option"] == "record.flight")
            more += f"; without it {pair['ratio']:.4f} ({pair['low']:.4f} .. {pair['high']:.4f})"
        print(f"| {name} | {len(events)} | {ns / len(events) / 1e6:.2f} ms | {flight / len(events) / 1e6:.3f} ms | {100 * flight / ns:.2f} % | {more} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

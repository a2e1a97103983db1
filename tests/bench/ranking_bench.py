#!/usr/bin/env python3
"""What every option gives on BERT-base, GPT-2 and ResNet-50: the ranking of `stepscope trials`, as a table for the README.

    python3 tests/bench/ranking_bench.py --stepscope BUILD/bin/stepscope [--seconds 600] [--only REGEX] [MODEL …]

Needs a quiet machine: the plan with itself stands under each table. Weights are random; the models are ../shared/corpus/large beside the
source tree, or $STEPSCOPE_SHARED/corpus/large. Rows: changes that were called faster or slower, then those that need less memory.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
MODELS = {
    "bert_base": ["--dim", "batch=1", "--dim", "sequence=128"],
    "gpt2": ["--dim", "batch=1", "--dim", "sequence=128"],
    "resnet50": ["--dim", "batch=2"],
}


def numbers(parity):
    if parity["bits"]:
        return "same bits"
    return f"gradients within {parity['gradient_relative']:.1e}" if parity["compared"] else "not compared"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--seconds", default="600")
    parser.add_argument("--only", default="^(pass|memory|precision)")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    for name in arguments.models:
        command = [arguments.stepscope, "trials", SHARED / "corpus" / "large" / f"{name}.onnx", "--missing-weights", "random", "--optimizer", "adamw",
                   *MODELS[name], "--only", arguments.only, "--seconds", arguments.seconds, "--json"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        trials = [e for e in events if e["event"] == "trial" and e["rounds"] > 0]
        summary = next(e for e in events if e["event"] == "trials")
        nothing = [t for t in trials if t["option"] == "(nothing)"]
        print(f"\n{name}, step {nothing[0]['median_ns_before'] / 1e6:.0f} ms, {nothing[0]['rounds']} rounds\n")
        print("| change | time | 95 % | planned peak | numbers |\n|---|---|---|---|---|")
        told = [t for t in trials if t not in nothing and (t["verdict"] in ("faster", "slower") or t["peak_after"] < 0.99 * t["peak_before"])]
        for t in told:
            print(f"| {t['option']} {t['from']} → {t['to']} | {t['ratio']:.3f} {t['verdict']} | {t['low']:.3f} .. {t['high']:.3f} | "
                  f"{100 * (t['peak_after'] / t['peak_before'] - 1):+.1f} % | {numbers(t['parity'])} |")
        itself = ", ".join(format(t["ratio"], ".3f") for t in nothing)
        print(f"\n{len(trials) - len(nothing)} changes measured, {len(told)} told; the plan with itself {itself}, {summary['nothing_found']} called different",
              flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How far right plans are from the reference, in units of what `stepscope bisect` measures of rounding: calibrates kNoiseFactor.

    python3 tests/bench/bisect_noise.py --stepscope BUILD/bin/stepscope [CASE …]

For every model of ../shared/corpus with its default options: the largest error of a loss, gradient or new parameter as a share of its bound
(engine/lab/noise_bounds.h). Plans that are right stay below 1; with a good margin the factor is well chosen. Exit code 1: one does not.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    folders = sorted(p.parent for p in (SHARED / "corpus").glob("*/case.json") if not arguments.cases or p.parent.name in arguments.cases)
    missed = False
    print("| model | median noise of gradients | largest error | of | bound | share |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            case = json.loads((folder / "case.json").read_text())
            done = subprocess.run([arguments.stepscope, "bisect", folder / "model.onnx", "--data", folder / "batches.npz", *case["arguments"],
                                   "-o", pathlib.Path(scratch) / "part.onnx", "--json"], capture_output=True, text=True)
            events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            found = next((e for e in events if e.get("event") == "bisect"), None)
            if found is None:
                raise SystemExit(f"{folder.name}: {done.stderr.strip().splitlines()[-1:]}")
            missed |= found["differs"]
            share = found["error"] / found["bound"] if found["bound"] else 0
            print(f"| {folder.name} | {found['noise']:.1e} | {found['error']:.1e} | {found['worst']} | {found['bound']:.1e} | {share:.2f} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Training in bfloat16 and float16, compared with PyTorch's autocast and with PyTorch training files of a low type.

    mixed_test.py STEPSCOPE [CASE…]

A case is a folder of mixed/ (see mixed/make_mixed.py). How far PyTorch's own losses of a low type leave those of its float32,
over all steps and starts, is the measure: ours may leave them by twice as much.
"""

import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent / "mixed"
LEAST_CASES = 9
FACTOR = 2


def losses_of(stepscope, folder, case, extra):
    command = [stepscope, "train", str(folder / "model.onnx"), "--data", str(folder / "batches.npz"), *case["arguments"], *extra, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(extra)}: exit code {done.returncode}: {done.stderr.strip()[:500]}")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [event["loss"] for event in events if event.get("event") == "step"]


def farthest(losses, exact):
    return max(abs(a - b) for a, b in zip(losses, exact))


def problems_of(stepscope, folder):
    case = json.loads((folder / "case.json").read_text())
    exact = case["fp32"][0]
    scale = ["--set", f"loss-scale={case['loss_scale']}"]
    if case["file"] == "fp32":
        runs = {"fp32": (case["fp32"], []), "bf16": (case["bf16"], ["--precision", "bf16"]),
                "fp16": (case["fp16"], ["--precision", "fp16", *scale]),
                "bf16 without masters": (case["bf16"], ["--precision", "bf16", "--set", "master-weights=off"])}
    else:
        runs = {"as it is": (case["low"], []), "with masters": (case["low"], ["--set", "master-weights=fp32"])}
    found = []
    for name, (theirs, extra) in runs.items():
        try:
            ours = losses_of(stepscope, folder, case, extra)
        except RuntimeError as error:
            found.append(f"{name}: {error}")
            continue
        if len(ours) != len(exact):
            found.append(f"{name}: {len(ours)} losses; expected {len(exact)}")
            continue
        bound = max(FACTOR * max(farthest(run, exact) for run in theirs), 1e-5 * max(exact))
        if name == "bf16 without masters":  # weights of 8 digits, which autocast does not have
            bound = max(bound, 0.02 * max(exact))
        error = farthest(ours, exact)
        print(f"{folder.name:12} {name:22} {error:.2e} from float32, PyTorch {max(farthest(run, exact) for run in theirs):.2e}")
        if error > bound:
            found.append(f"{name}: {error:.3e} from float32; expected at most {bound:.3e}")
    return found


def main():
    stepscope, names = sys.argv[1], sys.argv[2:]
    folders = [folder for folder in sorted(FOLDER.iterdir()) if (folder / "case.json").exists() and (not names or folder.name in names)]
    if not names and len(folders) < LEAST_CASES:
        sys.exit(f"{len(folders)} cases in {FOLDER}; expected at least {LEAST_CASES}")
    failed = 0
    for folder in folders:
        for problem in problems_of(stepscope, folder):
            print(f"FAILED {folder.name}: {problem}")
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

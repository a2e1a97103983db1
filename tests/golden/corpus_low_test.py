#!/usr/bin/env python3
"""One case of the corpus in a low precision, through its own check.py.

    corpus_low_test.py STEPSCOPE CORPUS_FOLDER CASE bf16|fp16 [DEVICE]

The resnet is judged by PyTorch instead (corpus_low.json, written by make_corpus_low.py): no computation with low weights reaches
the bounds of check.py there, float64 with rounded weights included. Ours may be twice as far from the golden as the farthest of
PyTorch's autocast. Exit code 77 where the corpus, the case or NumPy is missing.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED, FACTOR = 77, 2
BOUNDS = {"first_loss": 5e-3, "worst_loss": 1e-2, "cosine": 0.99, "norms": 0.03}  # of check.py


def distance(name, value):
    return 1 - value if name == "cosine" else value


def load_check(corpus):
    spec = importlib.util.spec_from_file_location("check", corpus / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judge(golden, case, grads, losses):
    """What check_low_precision of check.py looks at, as numbers."""
    import numpy as np

    exact = {name[5:]: golden[name].astype(np.float64).ravel() for name in case["tolerances"] if name.startswith("grad/")}
    largest = max(np.linalg.norm(g) for g in exact.values())
    cosine, norms = 1.0, 0.0
    for name, g in exact.items():
        found, norm = np.asarray(grads[name], np.float64).ravel(), np.linalg.norm(g)
        if norm < 1e-3 * largest:
            continue
        cosine = min(cosine, float(g @ found / max(norm * np.linalg.norm(found), 1e-300)))
        norms = max(norms, abs(float(np.linalg.norm(found) / norm) - 1))
    off = [abs(a - b) / abs(b) for a, b in zip(losses, case["losses"])]
    return {"first_loss": off[0], "worst_loss": max(off), "cosine": cosine, "norms": norms}


def compare_with_autocast(stepscope, folder, precision, device):
    here = pathlib.Path(__file__).parent
    check = load_check(folder.parent)
    known = json.loads((here / "corpus_low.json").read_text())
    case, golden = json.loads((folder / "case.json").read_text()), check.load_safetensors(folder / "golden.safetensors")
    with tempfile.TemporaryDirectory() as out:
        out = pathlib.Path(out)
        extra = ["--precision", precision, "--device", device]
        check.run(stepscope, case, folder, extra, 1, out)
        grads = {name: g.copy() for name, g in check.load_safetensors(out / "grads.safetensors").items()}
        losses = check.run(stepscope, case, folder, extra, case["steps"], out)
    ours = judge(golden, case, grads, losses)
    floor, problems = known["floor"][precision], []
    if all(distance(name, floor[name]) <= distance(name, bound) for name, bound in BOUNDS.items()):
        problems.append("float64 with rounded weights reaches the bounds of check.py; expected that nothing does")
    for name, value in ours.items():
        theirs = max(distance(name, run[name]) for run in known[precision])
        allowed = max(FACTOR * theirs, distance(name, BOUNDS[name]))
        print(f"{folder.name} {precision} {name}: {distance(name, value):.4f} from the golden, PyTorch {theirs:.4f}, "
              f"float64 with rounded weights {distance(name, floor[name]):.4f}")
        if not distance(name, value) <= allowed:
            problems.append(f"{name}: {distance(name, value):.4f} from the golden; expected at most {allowed:.4f}")
    for problem in problems:
        print(f"FAILED {folder.name}: {problem}")
    return 1 if problems else 0


def main():
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    stepscope, folder, precision = sys.argv[1], pathlib.Path(sys.argv[2]) / sys.argv[3], sys.argv[4]
    device = sys.argv[5] if len(sys.argv) > 5 else "cpu"
    if not (folder.parent / "check.py").is_file() or not (folder / "case.json").is_file():
        print(f"skipped: no case {folder}; set STEPSCOPE_SHARED to the folder that holds corpus/ and configure again")
        return SKIPPED
    if importlib.util.find_spec("numpy") is None:
        print("skipped: this Python has no numpy, which check.py needs")
        return SKIPPED
    if folder.name == "resnet":
        return compare_with_autocast(stepscope, folder, precision, device)
    command = [sys.executable, str(folder.parent / "check.py"), "--stepscope", stepscope, "--precision", precision, "--device", device]
    command.append(str(folder))
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

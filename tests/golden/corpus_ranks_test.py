#!/usr/bin/env python3
"""One case of the corpus, trained by N ranks, beside one process with --accumulate N: the same parameters and gradients to rounding.

    corpus_ranks_test.py STEPSCOPE CORPUS_FOLDER CASE RANKS local|mpi [OPTION ...]

The case's own options come first; of its accumulation each rank takes its share where it has one. Differences are measured as a
share of the largest gradient of the case, and of the largest element of a parameter. Exit code 77 where the corpus, NumPy or
mpirun is missing.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROUNDS = 2  # updates
# Two orders of float32 sums differ by about 1e-6 of the terms. Adam divides by the size of a gradient, so that noise in tiny
# ones moves a parameter by up to a learning rate.
GRADIENTS, PARAMETERS = 5e-5, 5e-3
NOISE = 1e-4  # of the largest gradient: what is below, as that of a key's bias, is rounding, and so is where Adam moves by it


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def load_check(corpus):
    spec = importlib.util.spec_from_file_location("check", corpus / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_accumulate(arguments):
    """The options without --accumulate, and its value."""
    if "--accumulate" not in arguments:
        return list(arguments), 1
    at = arguments.index("--accumulate")
    return arguments[:at] + arguments[at + 2 :], int(arguments[at + 1])


def train(launcher, stepscope, folder, out, name, options, environment):
    command = launcher + [stepscope, "train", str(folder / "model.onnx"), "--data", str(folder / "batches.npz"), *options, "--threads", "1"]
    command += ["--verify", "off", "--dump-grads", str(out / f"{name}.grads"), "--dump-params", str(out / f"{name}.params")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    if done.returncode != 0:
        sys.exit(f"{name}: exit code {done.returncode}: {' | '.join((done.stderr.strip() or done.stdout.strip()).splitlines()[-4:])}")


def main():
    stepscope, corpus, case, ranks, transport, *more = sys.argv[1:]
    corpus, ranks = pathlib.Path(corpus), int(ranks)
    try:
        import numpy as np
    except ImportError:
        skip("NumPy is not installed")
    folder = corpus / case
    if not (folder / "case.json").exists():
        skip(f"the corpus is not there: {folder}")
    environment = dict(os.environ)
    launcher, together = [], ["--distributed", "local", "--ranks", str(ranks)]
    if transport == "mpi":
        if not shutil.which("mpirun"):
            skip("mpirun is not installed (package openmpi-bin)")
        launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)]
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        together = ["--distributed", "mpi"]
    check = load_check(corpus)
    options, accumulate = without_accumulate(json.loads((folder / "case.json").read_text())["arguments"])
    options += more
    each = accumulate // ranks if accumulate % ranks == 0 else accumulate  # micro steps of a rank in an update
    with tempfile.TemporaryDirectory() as out:
        out = pathlib.Path(out)
        train([], stepscope, folder, out, "alone", [*options, "--accumulate", str(each * ranks), "--steps", str(ROUNDS * each * ranks)], environment)
        train(launcher, stepscope, folder, out, "together", [*options, *together, "--accumulate", str(each), "--steps", str(ROUNDS * each), "--set", "ranks.check=on"], environment)
        found = {}
        for kind in ("grads", "params"):
            found[kind] = [check.load_safetensors(out / f"{name}.{kind}") for name in ("alone", "together")]
            if found[kind][0].keys() != found[kind][1].keys():
                sys.exit(f"{kind}: names differ: {sorted(found[kind][0].keys() ^ found[kind][1].keys())}")
        largest = max(float(np.abs(g.astype(np.float64)).max()) for g in found["grads"][0].values() if g.size)
        worst = {"grads": (0.0, ""), "params": (0.0, "")}
        for kind, (alone, other) in found.items():
            for name, a in alone.items():
                a, b = a.astype(np.float64), other[name].astype(np.float64)
                if not a.size:
                    continue
                gradient = found["grads"][0].get(name)
                if kind == "params" and gradient is not None and float(np.abs(gradient.astype(np.float64)).max()) < NOISE * largest:
                    continue
                scale = largest if kind == "grads" else max(float(np.abs(a).max()), 1e-3)
                difference = float(np.abs(a - b).max()) / scale
                if not difference <= worst[kind][0]:
                    worst[kind] = (difference, name)
    print(f"{case} with {ranks} ranks ({transport}): gradients differ by {worst['grads'][0]:.2e} ({worst['grads'][1]}), parameters by {worst['params'][0]:.2e} ({worst['params'][1]})")
    return not (worst["grads"][0] <= GRADIENTS and worst["params"][0] <= PARAMETERS)


if __name__ == "__main__":
    sys.exit(main())

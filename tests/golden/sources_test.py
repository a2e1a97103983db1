#!/usr/bin/env python3
"""Files of every source in sources/, beside the outputs and gradients of the framework that made them.

    sources_test.py STEPSCOPE [CASE…]

A case is a folder with model.onnx and case.npz (see sources/case.py). One step of `train --loss-fn mse` on its first output
gives the gradients; every gradient of the case must be there without a --train option.
"""

import array
import ast
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

FOLDER = pathlib.Path(__file__).parent / "sources"
LEAST_CASES = 25
OUTPUT_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 5e-4  # of the largest element
# The dynamic form quantises the batch itself: ONNX Runtime rounds the zero point in another order in its fused kernel.
TOLERANCES = {"ort_quantised_dynamic": 2e-2, "ort_quantised_qdq": 2e-2}
# Layouts of the machine that saved the file: refused, and the message says what to do instead.
REFUSED = {"ort_all_cnn": "hint: save the optimised model at level extended"}
CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i"}


def read_npy(data):
    """(extents, elements) of NumPy's array file."""
    major = data[6]
    start, size = (10, struct.unpack("<H", data[8:10])[0]) if major == 1 else (12, struct.unpack("<I", data[8:12])[0])
    header = ast.literal_eval(data[start:start + size].decode())
    elements = array.array(CODES[header["descr"]])
    elements.frombytes(data[start + size:])
    return header["shape"], elements.tolist()


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        elements = array.array({"F32": "f", "F64": "d"}[entry["dtype"]])
        elements.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (tuple(entry["shape"]), elements.tolist())
    return tensors


def difference(what, expected, found, tolerance):
    if tuple(expected[0]) != tuple(found[0]):
        return f"{what}: extents {found[0]}; expected {expected[0]}"
    scale = max([abs(v) for v in expected[1]] + [1e-3])
    for i, (e, f) in enumerate(zip(expected[1], found[1])):
        if not abs(e - f) <= tolerance * scale:
            return f"{what}[{i}]: {f}; expected {e}"
    return ""


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    return "" if done.returncode == 0 else f"{' '.join(command[1:3])}: exit code {done.returncode}: {done.stderr.strip()[:600]}"


def problems_of(stepscope, folder):
    with zipfile.ZipFile(folder / "case.npz") as archive:
        files = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    part = lambda prefix: {name.removeprefix(prefix): data for name, data in files.items() if name.startswith(prefix)}
    model, outputs, gradients = str(folder / "model.onnx"), part("out."), part("grad.")
    tolerance = TOLERANCES.get(folder.name, OUTPUT_TOLERANCE)
    found = []
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        for file, extra in (("run.npz", {}), ("train.npz", {"labels": files["target"]} if "target" in files else {})):
            with zipfile.ZipFile(work / file, "w") as archive:
                for key, data in {**part("in."), **extra}.items():
                    archive.writestr(key + ".npy", data)
        fetch = [word for i, out in enumerate(outputs) for word in ("--fetch", f"{out}={work / f'{i}.npy'}")]
        problem = call([stepscope, "run", model, "--data", str(work / "run.npz"), "--threads", "1", *fetch])
        if folder.name in REFUSED:
            return [] if REFUSED[folder.name] in problem else [f"found {problem or 'no error'}; expected {REFUSED[folder.name]}"]
        if problem:
            return [problem]
        for i, (out, data) in enumerate(outputs.items()):
            found.append(difference(f"output {out}", read_npy(data), read_npy((work / f"{i}.npy").read_bytes()), tolerance))
        if not gradients:
            return [problem for problem in found if problem]
        dump = work / "gradients.safetensors"
        if problem := call([stepscope, "train", model, "--data", str(work / "train.npz"), "--loss-fn", "mse", "--logits",
                            next(iter(outputs)), "--lr", "0", "--threads", "1", "--dump-grads", str(dump)]):
            return [problem]
        dumped = read_safetensors(dump)
        for key, data in gradients.items():
            if key not in dumped:
                found.append(f"gradient of {key}: not there; the program has {', '.join(sorted(dumped)[:8])}")
            else:
                found.append(difference(f"gradient of {key}", read_npy(data), dumped[key], GRADIENT_TOLERANCE))
    return [problem for problem in found if problem]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [FOLDER / name for name in sys.argv[2:]] or sorted(path.parent for path in FOLDER.glob("*/case.npz"))
    failed = 0
    for folder in folders:
        problems = problems_of(sys.argv[1], folder)
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok    '} {folder.name}")
        for problem in problems:
            print(f"    {problem}")
    if not sys.argv[2:] and len(folders) < LEAST_CASES:
        sys.exit(f"{len(folders)} cases; expected at least {LEAST_CASES}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A build with SS_OPS: libstepscope for one model is at most 8 MB, trains it to the same losses, and others by reference kernels.

    small_build_test.py STEPSCOPE SOURCES FOLDER [BUILD]

The build takes ten minutes; BUILD: one that was made before. In FOLDER it is made anew.
"""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM, SOURCES, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
SAMPLES = SOURCES / "app/samples"
LARGEST = 8_000_000


def run(*arguments):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def losses(program, sample, *options):
    data = SAMPLES / sample / "batches.npz"
    lines = run(program, "train", SAMPLES / sample / "model.onnx", "--data", data, "--steps", 4, "--threads", 2, "--json", *options)
    return [event["loss"] for event in map(json.loads, lines.splitlines()) if event.get("event") == "step"]


FOLDER.mkdir(parents=True, exist_ok=True)
ops = FOLDER / "digits.ops"
ops.unlink(missing_ok=True)
run(PROGRAM, "build", SAMPLES / "digits/model.onnx", "--data", SAMPLES / "digits/batches.npz", "--ops", ops)
listed = ops.read_text().splitlines()
assert "Conv" in listed and "stepscope.ConvWeightGrad" in listed and "LSTM" not in listed, listed
run(PROGRAM, "build", SAMPLES / "digits/model.onnx", "--data", SAMPLES / "digits/batches.npz", "--optimizer", "adamw", "--ops", ops)
assert set(listed[1:]) < set(ops.read_text().splitlines()[1:])  # what was there stays, and an update comes in addition

build = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else FOLDER / "build"
if len(sys.argv) <= 4:
    run("cmake", "-S", SOURCES, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2", "-DSS_QT=OFF", "-DSS_TESTS=OFF", "-DSS_UNITY=ON", f"-DSS_OPS={ops}")
    run("cmake", "--build", build, "-j", os.cpu_count(), "--target", "stepscope", "stepscope_api")

stripped = FOLDER / "libstepscope.so"
run("strip", "-o", stripped, (build / "lib/libstepscope.so").resolve())
print(f"libstepscope: {stripped.stat().st_size / 1e6:.2f} MB stripped")
assert stripped.stat().st_size <= LARGEST, f"{stripped.stat().st_size} bytes; expected at most {LARGEST}"

small = build / "bin/stepscope"
expected, found = losses(PROGRAM, "digits"), losses(small, "digits")
assert found == expected, f"{found}; expected {expected}"
# Ops that are not in the list: by reference kernels, to rounding.
expected, found = losses(PROGRAM, "padding"), losses(small, "padding")
assert all(abs(a - b) < 1e-4 for a, b in zip(found, expected)) and len(found) == 4, f"{found}; expected {expected}"
environment = {**os.environ, "STEPSCOPE_LIBRARY": str(stripped), "PYTHONPATH": str(SOURCES / "app/api/python")}
program = f"import stepscope\nwith stepscope.open({str(SAMPLES / 'digits/model.onnx')!r}) as session: print(session.step().loss)"
done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
assert done.returncode == 0 and float(done.stdout) > 0, done.stderr
print("ok")

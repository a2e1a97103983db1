#!/usr/bin/env python3
"""A program that was built for GPUs runs where there is none: it needs no library of NVIDIA to start, says what lacks for --device cuda, and
takes the CPU for --device auto.

    no_gpu_test.py STEPSCOPE SAMPLES_FOLDER

Exit code 77 where there is a driver, for what is said without one.
"""

import ctypes
import json
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
OF_NVIDIA = re.compile(r"NEEDED.*\[(lib(cuda|cudart|cublas|cublasLt|cudnn|cupti|nccl|nvrtc|nvToolsExt|nvJitLink)\b[^\]]*)\]")


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)


def expect(holds, what):
    if not holds:
        sys.exit(f"expected {what}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    stepscope, model = sys.argv[1], pathlib.Path(sys.argv[2]) / "digits"
    read = run("readelf", "-d", stepscope)
    expect(read.returncode == 0 and "NEEDED" in read.stdout, f"libraries of {stepscope}, found {read.stderr}")
    found = [match[1] for match in OF_NVIDIA.finditer(read.stdout)]
    expect(not found, f"no library of NVIDIA to be needed at start, found {found}")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        print("skipped: there is a driver")
        return SKIPPED
    train = [stepscope, "train", model / "model.onnx", "--data", model / "batches.npz", "--steps", 1, "--json"]
    on_cuda = run(*train, "--device", "cuda")
    expect(on_cuda.returncode == 1, f"exit code 1 for cuda, found {on_cuda.returncode}")
    expect("device 'cuda'" in on_cuda.stdout + on_cuda.stderr, f"the device by its name, found {on_cuda.stdout + on_cuda.stderr}")
    expect(re.search(r"driver|GPU code", on_cuda.stdout + on_cuda.stderr), f"what lacks, found {on_cuda.stdout + on_cuda.stderr}")
    automatic = run(*train, "--device", "auto")
    expect(automatic.returncode == 0, f"auto to train on the CPU, found {automatic.stdout + automatic.stderr}")
    steps = [event for event in map(json.loads, filter(lambda line: line.startswith("{"), automatic.stdout.splitlines())) if event["event"] == "step"]
    expect(len(steps) == 1, f"one step, found {len(steps)}")
    doctor = run(stepscope, "doctor")
    expect(doctor.returncode == 0 and re.search(r"(?i)cuda|gpu", doctor.stdout), f"doctor to speak of the GPU, found {doctor.stdout}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

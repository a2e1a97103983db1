#!/usr/bin/env python3
"""Compiles one .cu file of kernels/cuda for GPUs: NAME.fatbin (sm_80, sm_90 and PTX), and NAME.names, the symbols of its kernels.

    compile_gpu_code.py NVCC SOURCE_FOLDER FILE OUT_FOLDER

A warning is an error.
"""

import pathlib
import re
import subprocess
import sys

TARGETS = ("arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90", "arch=compute_90,code=compute_90")
ENTRY = re.compile(r"Compiling entry function '([^']+)'")


def command_of(nvcc, root, file, out, targets):
    """What compiles `file` to the fat binary `out`, and prints registers and spills of every kernel."""
    command = [nvcc, "-std=c++20", "-O3", "-fatbin", f"-I{root}", "-Xptxas", "-v", "-o", str(out), str(file)]
    return command + [f"-gencode={target}" for target in targets]


def kernels_of(log):
    """The symbols of kernels that the output of nvcc names, each once."""
    return sorted(set(ENTRY.findall(log)))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    nvcc, root, file, folder = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{file.stem}.fatbin"
    done = subprocess.run(command_of(nvcc, root, file, out, TARGETS), capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    warnings = [line for line in log.splitlines() if "warning" in line.lower()]
    if done.returncode or warnings:
        out.unlink(missing_ok=True)
        sys.exit(f"{file}: nvcc:\n" + ("\n".join(warnings) or log))
    (folder / f"{file.stem}.names").write_text("".join(name + "\n" for name in kernels_of(log)), encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every kernel of kernels/cuda compiles with nvcc for sm_80 and sm_90, without a warning and without register spills.

    nvcc_test.py SOURCE_FOLDER

Exit code 77 where there is no nvcc (on PATH or in /usr/local/cuda/bin).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ARCHITECTURES = ("80", "90")
SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def find_nvcc():
    return shutil.which("nvcc") or next((p for p in ["/usr/local/cuda/bin/nvcc"] if pathlib.Path(p).exists()), None)


def problems_of(nvcc, root, file, architecture, folder):
    """What is wrong with one file on one architecture, and how many kernels it has."""
    out = pathlib.Path(folder) / f"{file.stem}.{architecture}.cubin"
    command = [nvcc, "-std=c++20", "-O2", f"-I{root}", f"-gencode=arch=compute_{architecture},code=sm_{architecture}"]
    command += ["-Xptxas", "-v", "-cubin", "-o", str(out), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    name = f"{file.relative_to(root)} for sm_{architecture}"
    if done.returncode != 0:
        return [f"{name}: nvcc failed:\n{text[-2000:]}"], 0
    problems = [f"{name}: {line}" for line in text.splitlines() if "warning" in line.lower()]
    kernel, kernels = "", 0
    for line in text.splitlines():
        if "Compiling entry function" in line:
            kernel, kernels = line.split("'")[1], kernels + 1
        spill = SPILL.search(line)
        if spill and (int(spill[1]) or int(spill[2])):
            problems.append(f"{name}: {kernel}: {line.strip()}; expected none")
    return problems, kernels


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: no nvcc on PATH or in /usr/local/cuda/bin")
        return SKIPPED
    files = sorted((root / "kernels" / "cuda").glob("*.cu"))
    if not files:
        sys.exit(f"no .cu files in {root / 'kernels' / 'cuda'}")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            for architecture in ARCHITECTURES:
                problems, kernels = problems_of(nvcc, root, file, architecture, folder)
                print(f"{file.name} sm_{architecture}: {kernels} kernels, {len(problems)} problems", flush=True)
                for problem in problems:
                    print("  " + problem)
                failures += len(problems)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

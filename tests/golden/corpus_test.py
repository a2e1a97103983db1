#!/usr/bin/env python3
"""One case of the corpus through its own check.py: first gradients, losses and final parameters agree with PyTorch.

    corpus_test.py STEPSCOPE CORPUS_FOLDER [CASE] [DEVICE]

Exit code 77 where the corpus, the case or NumPy is missing.
"""

import importlib.util
import pathlib
import subprocess
import sys

SKIPPED = 77


def main():
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    stepscope, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    cases = [corpus / name for name in sys.argv[3:4]]
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    if not cases or not (corpus / "check.py").is_file() or not (cases[0] / "case.json").is_file():
        print(f"skipped: no corpus case in {corpus}; set STEPSCOPE_SHARED to the folder that holds corpus/ and configure again")
        return SKIPPED
    if importlib.util.find_spec("numpy") is None:
        print("skipped: this Python has no numpy, which check.py needs")
        return SKIPPED
    command = [sys.executable, str(corpus / "check.py"), "--stepscope", stepscope, "--device", device, str(cases[0])]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

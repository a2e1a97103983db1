# SPDX-License-Identifier: Apache-2.0
"""The programs that come with the wheel: what its commands `stepscope` and `stepscope-workbench` start."""

import os
import pathlib
import sys


def path(name):
    """Of a program that lies in this package; None where the package was not installed from a wheel."""
    found = pathlib.Path(__file__).resolve().parent / "_programs" / "bin" / name
    return found if found.is_file() else None


def _start(name):
    found = path(name)
    if found is None:
        sys.exit(f"{name}: not in this installation of the Python package; expected {pathlib.Path(__file__).resolve().parent / '_programs/bin' / name}")
    os.environ.setdefault("STEPSCOPE_PYTHON", sys.executable)  # which has torch: for nodes that Python runs
    os.execv(found, [str(found), *sys.argv[1:]])


def stepscope():
    _start("stepscope")


def workbench():
    _start("stepscope-workbench")

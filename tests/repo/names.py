"""How files are called, and the licence line at their head."""

import pathlib
import re

SOURCES = {".h", ".cpp", ".cu", ".cuh"}
NAMED = SOURCES | {".py", ".proto", ".cmake", ".c", ".sh", ".sql"}
SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*|__init__")
# Sources that link Qt are GPL; the others are Apache-2.0.
GPL_FOLDERS = ("views/", "app/guide/", "app/workbench/", "tests/bench/views_bench", "tests/fuzz/tst_", "tests/views/", "tests/views_drawing/", "tests/workbench/")
GPL, APACHE = "GPL-3.0-or-later", "Apache-2.0"
LICENCE = re.compile(r"SPDX-License-Identifier: (\S+)")


def check_names(root, files):
    for name in files:
        path = pathlib.PurePosixPath(name)
        if path.suffix in NAMED and not all(SNAKE_CASE.fullmatch(part) for part in (*path.parts[:-1], path.stem)):
            yield f"{name}: expected folders and a file in snake_case"


def check_licences(root, files):
    """GPL sources say so in one of their first three lines; the others say Apache-2.0 or nothing."""
    for name in files:
        if pathlib.Path(name).suffix not in SOURCES:
            continue
        head = "\n".join((root / name).read_text(encoding="utf-8").splitlines()[:3])
        found = LICENCE.search(head)
        expected = GPL if name.startswith(GPL_FOLDERS) else APACHE
        if found and found[1] != expected:
            yield f"{name}: SPDX line of {found[1]}; expected {expected}"
        if not found and expected == GPL:
            yield f"{name}: no line 'SPDX-License-Identifier: {GPL}' at its head"

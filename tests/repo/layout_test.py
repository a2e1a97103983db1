#!/usr/bin/env python3
"""The layout of the house: top level, include arrows, sizes, READMEs, licence lines.

    layout_test.py SOURCE_ROOT [CHECK…]        without names: all checks

Prints each violation with the file and what was expected; exits 1 when there is one. Looks at the files that git tracks, or
where there is no git at all files outside build/.
"""

import pathlib
import re
import subprocess
import sys

LARGEST_FILE = 2 * 1024 * 1024  # bytes
TOP = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSES", "LICENSE", "app", "engine", "kernels", "views", "storage",
    "plugins", "tests", "scripts", ".ci", ".gitignore", ".gitattributes", ".clang-format", ".clang-tidy", ".clangd", ".editorconfig",
}  # fmt: skip
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
ENGINE_PARTS = "ir|onnx|ops|passes|autodiff|recompute|plan|exec|train|profile|plugin|wire|data"

# (folders, what their files must not include): the arrows of the design.
ARROWS = [
    (("views",), rf'"(engine/({ENGINE_PARTS})|kernels|storage|app)/'),
    (("engine",), r'"(app|views|storage)/'),
    (("storage",), rf'"(app|views|kernels|engine/({ENGINE_PARTS}))/'),
    (("kernels",), r'"(app|views|storage|engine)/'),
    (("plugins/abi",), r'"(app|views|storage|engine|kernels)/'),
    (("engine", "kernels", "storage", "app/cli"), r"<Q[A-Z]"),
    (("engine", "kernels", "views", "app"), r"<sqlite3"),
    (("engine", "storage", "views", "app", "kernels/cpu", "kernels/reference"), r"<(cuda|cublas|cudnn|cupti|nvtx)"),
]
# Folders whose sources link Qt and are GPL; the others are Apache-2.0.
GPL_FOLDERS = ("views", "app/workbench")
GPL_LINE = "SPDX-License-Identifier: GPL-3.0-or-later"
# A README stands in each of these, and in each folder directly below those that end in a slash.
README_FOLDERS = (".", "app/", "engine", "engine/", "kernels", "kernels/", "plugins/", "storage", "views")


def tracked_files(root):
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.split("\0")
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    names = [n for n in names if n and not n.startswith("build/") and "__pycache__" not in n]
    return sorted(n for n in names if (root / n).is_file())


def inside(name, folders):
    return any(name.startswith(folder + "/") for folder in folders)


def check_top_level(root, files):
    for name in sorted({f.split("/")[0] for f in files} - TOP):
        yield f"{name}: at the top level; expected one of the design's folders"


def check_arrows(root, files):
    for name in files:
        if pathlib.Path(name).suffix not in SOURCES:
            continue
        forbidden = [re.compile(r"#\s*include\s*" + pattern) for folders, pattern in ARROWS if inside(name, folders)]
        if not forbidden:
            continue
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
            if any(pattern.match(line.strip()) for pattern in forbidden):
                yield f"{name}:{number}: {line.strip()}; against the arrows of the design"


def check_sizes(root, files):
    for name in files:
        size = (root / name).stat().st_size
        if size > LARGEST_FILE:
            yield f"{name}: {size} bytes; expected at most {LARGEST_FILE}"


def check_readmes(root, files):
    folders = {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents}
    wanted = {f for f in README_FOLDERS if not f.endswith("/")}
    for parent in (f[:-1] for f in README_FOLDERS if f.endswith("/")):
        wanted |= {f for f in folders if str(pathlib.PurePosixPath(f).parent) == parent}
    for folder in sorted(wanted & folders):
        readme = "README.md" if folder == "." else f"{folder}/README.md"
        if readme not in files and not (root / readme).is_file():
            yield f"{readme}: missing; expected what it is, what it may include, how to add one, map of files"


def check_licences(root, files):
    for name in files:
        if pathlib.Path(name).suffix in SOURCES and inside(name, GPL_FOLDERS):
            head = (root / name).read_text(encoding="utf-8").splitlines()[:3]
            if not any(GPL_LINE in line for line in head):
                yield f"{name}: no line '{GPL_LINE}' at its head"


CHECKS = {
    "top_level": check_top_level,
    "arrows": check_arrows,
    "sizes": check_sizes,
    "readmes": check_readmes,
    "licences": check_licences,
}


def main():
    if len(sys.argv) < 2 or any(name not in CHECKS for name in sys.argv[2:]):
        sys.exit(f"{__doc__}\nchecks: {' '.join(CHECKS)}")
    root = pathlib.Path(sys.argv[1]).resolve()
    files = tracked_files(root)
    if not files:
        sys.exit(f"error: folder '{root}': no files; expected the source tree")
    violations = [text for name in sys.argv[2:] or CHECKS for text in CHECKS[name](root, files)]
    for text in violations:
        print(text)
    print(f"{len(files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

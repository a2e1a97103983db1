#!/usr/bin/env python3
"""The layout of the house: what STYLE.md calls enforced, one check each.

    layout_test.py SOURCE_ROOT [CHECK…]        without names: all checks

Prints each violation with the file and what was expected; exits 1 when there is one. Looks at the files that git tracks, or
where there is no git at all files outside build/.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from arrows import check_arrows
from clocks import check_clocks
from declarations import check_declarations
from names import check_licences, check_names
from readmes import check_readmes
from types_once import check_types

CLANG_FORMAT = "clang-format-16"
LARGEST_FILE = 2 * 1024 * 1024  # bytes
TOP = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSES", "LICENSE", "app", "engine", "kernels", "views", "storage",
    "plugins", "tests", "scripts", ".ci", ".gitignore", ".gitattributes", ".clang-format", ".clang-tidy", ".clangd", ".editorconfig",
}  # fmt: skip
# What a session is made of: each is read as a whole, and stays small enough for that.
JOINED = ("engine/train/session", "engine/build/builder", "engine/step/stepper", "engine/state/state")
JOINED_LINES = {".h": 150, ".cpp": 300}
# What the window is made of; the window itself, which keeps layout and actions, as a whole.
WORKBENCH, WORKBENCH_LINES = "app/workbench/", 300
MAIN_WINDOW, MAIN_WINDOW_LINES = "app/workbench/main_window", 500
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def tracked_files(root):
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.split("\0")
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    names = [n for n in names if n and not n.startswith("build/") and "__pycache__" not in n]
    return sorted(n for n in names if (root / n).is_file())


def check_top_level(root, files):
    for name in sorted({f.split("/")[0] for f in files} - TOP):
        yield f"{name}: at the top level; expected one of the design's folders"


def lines_of(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def check_sizes(root, files):
    window = sum(lines_of(root / name) for name in files if name.startswith(MAIN_WINDOW))
    if window > MAIN_WINDOW_LINES:
        yield f"{MAIN_WINDOW}*: {window} lines; expected at most {MAIN_WINDOW_LINES}"
    for name in files:
        size = (root / name).stat().st_size
        if size > LARGEST_FILE:
            yield f"{name}: {size} bytes; expected at most {LARGEST_FILE}"
        stem, suffix = pathlib.PurePosixPath(name).with_suffix("").as_posix(), pathlib.PurePosixPath(name).suffix
        if suffix in JOINED_LINES and any(stem == part or stem.startswith(part + "_") for part in JOINED):
            if (lines := lines_of(root / name)) > JOINED_LINES[suffix]:
                yield f"{name}: {lines} lines; expected at most {JOINED_LINES[suffix]}"
        if name.startswith(WORKBENCH) and suffix == ".cpp" and (lines := lines_of(root / name)) > WORKBENCH_LINES:
            yield f"{name}: {lines} lines; expected at most {WORKBENCH_LINES}"


def check_views(root, files):
    """A view is one folder and one line of views/views.txt; everything else follows from them."""
    listed = {}
    lines = [line for line in (root / "views/views.txt").read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        place, name, title = line.split(None, 2)
        folder = place.split(":")[0]
        listed[folder] = title
        header = root / f"views/{folder}/{folder}_view.h"
        if not header.is_file() or not re.search(rf"\bclass {name}\b[^;]*{{", header.read_text(encoding="utf-8")):
            yield f"views/views.txt: '{line}'; expected class {name} in {header.relative_to(root)}"
    if lines != sorted(lines):
        yield "views/views.txt: not sorted"
    for name in files:
        part = pathlib.PurePosixPath(name).parts
        if len(part) == 3 and part[0] == "views" and part[2] == f"{part[1]}_view.h" and part[1] not in listed:
            yield f"views/{part[1]}: a view that no line of views/views.txt names"
    # A second list would be a second line to add.
    for name in ("views/CMakeLists.txt", "app/workbench/CMakeLists.txt", "app/workbench/view_list.cpp"):
        for found in re.findall(r"stepscope_view_([a-z_]+)|views/([a-z_]+)/", (root / name).read_text()):
            if listed.keys() & set(found):
                yield f"{name}: names the view '{''.join(found)}'; expected views/views.txt alone"
    # The line for a newcomer's view does what the README says, and the README says it in ten lines.
    example = re.search(r"```cpp\n(.*?)```", (root / "views/README.md").read_text(), re.S)
    if not example or len(example.group(1).splitlines()) > 10:
        yield "views/README.md: the example of a view; expected at most ten lines"
    with tempfile.TemporaryDirectory() as place:
        more, header = pathlib.Path(place) / "views.txt", pathlib.Path(place) / "view_list.inc"
        more.write_text("\n".join(lines + ["hello HelloView Hello"]) + "\n")
        command = ["cmake", f"-DLIST={more}", f"-DHEADER={header}", "-P", str(root / "views/view_list.cmake")]
        done = subprocess.run(command, capture_output=True, text=True)
        made = header.read_text() if header.is_file() else done.stderr
        for expected in ('#include "views/hello/hello_view.h"', '{"hello", "Hello", makeView<HelloView>}', '{"model", "Model", '):
            if expected not in made:
                yield f"views/view_list.cmake: {expected} is missing from what it makes: {made.strip()[-200:]}"


def check_format(root, files):
    """Every source is as clang-format writes it, with .clang-format of the tree."""
    sources = [name for name in files if pathlib.Path(name).suffix in SOURCES]
    if not shutil.which(CLANG_FORMAT):
        yield f"{CLANG_FORMAT}: not found; expected the one that scripts/setup installs"
        return
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "--Werror", *sources], cwd=root, capture_output=True, text=True)
    for line in done.stderr.splitlines():
        if ": error: " in line:
            yield f"{line}; hint: {CLANG_FORMAT} -i FILE"


PRINTS = re.compile(r"\b(?:fmt::print|std::cout|std::cerr|f?printf|f?puts|fwrite)\b")


def check_terminal(root, files):
    """Text reaches a terminal through one place, which escapes names from files."""
    for name in files:
        if name.startswith("app/cli/") and name.endswith((".cpp", ".h")) and not name.startswith("app/cli/terminal."):
            for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
                if PRINTS.search(line.split("//")[0]):
                    yield f"{name}:{number}: {line.strip()}; expected say(), tell() or tellError() of app/cli/terminal.h"


PROSE = re.compile(
    r"\b(?:message|decision|verdict|stopped_by|unavailable|why)(?:\(\))?\s*(?:\.|->)\s*"
    r"(?:starts_with|ends_with|contains|find|rfind|startsWith|endsWith)\("
)

TRANSLATED = re.compile(r"(?<![\w.>])tr\(|QT_TRANSLATE_NOOP|QCoreApplication::translate")


def check_prose(root, files):
    """What the window decides on is a field of a message, never words that people read. Those are said in one language."""
    for name in files:
        if name.startswith(("app/workbench/", "views/")) and name.endswith((".cpp", ".h")):
            for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
                if PROSE.search(line.split("//")[0]):
                    yield f"{name}:{number}: {line.strip()}; expected a field that says it: a code, an enum, a name"
                if TRANSLATED.search(line.split("//")[0]):
                    yield f"{name}:{number}: {line.strip()}; expected QStringLiteral: there is no translator"


CHECKS = {
    "format": check_format,
    "top_level": check_top_level,
    "arrows": check_arrows,
    "clocks": check_clocks,
    "declarations": check_declarations,
    "licences": check_licences,
    "names": check_names,
    "prose": check_prose,
    "readmes": check_readmes,
    "sizes": check_sizes,
    "terminal": check_terminal,
    "types": check_types,
    "views": check_views,
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

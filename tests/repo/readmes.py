"""Every folder's README: its four parts, and a map that names every file and no other.

In a map, names stand in `backticks`: the stem of a file (`reader`, `reader.h`: both are reader.h and reader.cpp), a folder (`loops/`), a
path from the top of the tree (`plugins/torch`), or a pattern with at least three letters (`tst_*`). `<op>` stands for the files
that the folder's ops.inc lists. A table of promises in a README of tests/ names tests that exist. What lies in a folder below is named in that folder's README, if it has one; a folder of at
most eight sources, and a folder under tests/, is named as a whole.
"""

import fnmatch
import pathlib
import re

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c", ".py", ".proto"}
PARTS = ("What it is", "What it may include", "How to add one", "Map of files")
# A README stands in each of these, and in each folder directly below those that end in a slash.
WANTED = (".", "app/", "engine", "engine/", "kernels", "kernels/", "plugins/", "storage", "tests", "views")
NAME_LIKE = re.compile(r"[a-z*][a-z0-9_*./]*|<op>")
WHOLE = 8  # sources of a folder that its parent's map may name as a whole


def check_readmes(root, files):
    folders = {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents}
    wanted = {f for f in WANTED if not f.endswith("/")}
    for parent in (f[:-1] for f in WANTED if f.endswith("/")):
        wanted |= {f for f in folders if str(pathlib.PurePosixPath(f).parent) == parent}
    readmes = {name for name in files if name.split("/")[-1] == "README.md"}
    for folder in sorted(wanted & folders):
        name = "README.md" if folder == "." else f"{folder}/README.md"
        if name not in readmes and not (root / name).is_file():
            yield f"{name}: missing; expected {' · '.join(PARTS)}"
    tests = {name for name in files if "tests" in pathlib.PurePosixPath(name).parts and pathlib.PurePosixPath(name).suffix in {".cpp", ".py", ".h"}}
    words = {}  # of all tests, once they are asked for
    for name in sorted(readmes - {"README.md"}):
        text = (root / name).read_text(encoding="utf-8")
        if name.startswith("tests/"):
            yield from check_promises(root, name, text, tests, words)
        parts = parts_of(text)
        missing = [part for part in PARTS if part not in parts]
        for part in missing:
            yield f"{name}: no part '**{part}.**'"
        if not missing:
            yield from check_map(root, files, name[: -len("/README.md")], parts["Map of files"])


def parts_of(text):
    """{heading: text} of the lines that begin with **heading.**"""
    pieces = re.split(r"^\*\*(.+?)\.?\*\*", text, flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2]))


def check_promises(root, readme, text, tests, words):
    rows = iter(text.splitlines())
    for row in rows:
        if not re.match(r"\| *promise", row):
            continue
        for row in rows:
            if not row.startswith("|"):
                break
            answer = row.rstrip("|").rsplit("|", 1)[-1]
            if not words:
                words["stems"] = {pathlib.PurePosixPath(test).stem for test in tests}
                words["all"] = {word for test in tests for word in re.findall(r"\w+", (root / test).read_text(encoding="utf-8", errors="replace"))}
            for named in re.findall(r"(?<![\w.])(?:tst_\w+|\w+_test)(?!\w)", answer):
                if named not in words["stems"]:
                    yield f"{readme}: promises: there is no {named}"
            for named in re.findall(r"`([A-Za-z_]\w{6,})`", answer):
                if named not in words["all"]:
                    yield f"{readme}: promises: no test has `{named}`"


def check_map(root, files, folder, text):
    names = {token for token in re.findall(r"`([^`]+)`", text) if NAME_LIKE.fullmatch(token)}
    unnamed = sources_of(files, folder)
    registered = registered_in(root, unnamed, folder)
    below = {name[len(folder) + 1 :] for name in files if name.startswith(folder + "/")}
    for token in sorted(names):
        found = {name for name in unnamed if token == "<op>" and name in registered or covers(token, name)}
        if token != "<op>" and len(token.replace("*", "")) < 3 and "*" in token:
            yield f"{folder}/README.md: map: '{token}' says too little; expected at least three letters"
        elif not found and not any(covers(token, name) or f"/{name}".startswith(f"/{token.rstrip('/')}/") for name in below) and not exists(root, token):
            yield f"{folder}/README.md: map: `{token}` is no file here"
        unnamed = unnamed - found
    for name in sorted(unnamed):
        yield f"{folder}/README.md: map: no word on {name}"


def sources_of(files, folder):
    """What the map must name, relative to the folder: its sources, and those of folders below without a README of their own."""
    own = {str(pathlib.PurePosixPath(n).parent) for n in files if n.endswith("/README.md")}
    found = set()
    for name in files:
        path = pathlib.PurePosixPath(name)
        if path.suffix not in SOURCES or not name.startswith(folder + "/"):
            continue
        between = [str(p) for p in path.parents if str(p).startswith(folder + "/")]
        if not any(p in own for p in between):
            found.add(name[len(folder) + 1 :])
    small = {}
    for name in found:
        small.setdefault(name.split("/")[0] if "/" in name else "", []).append(name)
    for part, names in small.items():
        if part and (len({n.rsplit(".", 1)[0] for n in names}) <= WHOLE or (folder + "/").startswith("tests/")):
            found -= set(names)
            found.add(part)
    return found


def covers(token, name):
    """`reader`, `reader.h`, `loops/exp`, `exp`, `loops/`, `tst_*` and the file or folder that they name."""
    token = re.sub(r"\.(h|cpp)$", "", token.rstrip("/"))
    path = pathlib.PurePosixPath(name)
    return any(fnmatch.fnmatchcase(word, token) for word in (name, path.name, path.stem, str(path.with_suffix(""))))


def registered_in(root, names, folder):
    """The files that the folder's ops.inc lists: exp.cpp of SS_OP(kExpOp, exp)."""
    listed = root / folder / "ops.inc"
    stems = set(re.findall(r"^SS_OP\(\w+, (\w+)\)", listed.read_text(encoding="utf-8"), flags=re.M)) if listed.is_file() else set()
    return {name for name in names if pathlib.PurePosixPath(name).stem in stems}


def exists(root, token):
    return "/" in token and not token.startswith("/") and ((root / token).exists() or any(root.glob(token + ".*")))

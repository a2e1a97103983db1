"""Public headers say what they declare: a comment at each class, struct, enum, type and function outside classes.

The comment stands above the declaration, at the end of one of its lines, or at what is inside it. Declarations without a blank
line between them share the comment above the first. The comment at the head of the file is the one of the first declaration, and
of the one that the file is named after (`class Executor` in executor.h). What only names a class, `class Graph;`, needs none, nor
does a specialisation, `template <>`.
"""

import pathlib
import re

FOLDERS = ("engine/", "kernels/", "storage/")
SKIPPED = re.compile(r"(namespace\b.*|\}.*|#.*|extern \"C\".*|using namespace .*)?$")
FORWARD = re.compile(r"(class|struct|enum class) \w+( : [\w:]+)?;( *//.*)?$")


def check_declarations(root, files):
    for name in files:
        if name.endswith(".h") and name.startswith(FOLDERS):
            yield from without_comment(name, (root / name).read_text(encoding="utf-8"))


def without_comment(name, text):
    lines = text.splitlines()
    head = any(line.startswith("//") and "SPDX" not in line for line in lines[:3])
    declared = list(declarations(lines, head))
    stem = pathlib.PurePosixPath(name).stem.replace("_", "")
    for begin, told in declared:
        word = re.search(r"\b(?:class|struct|enum class|using) (\w+)|(\w+)\(", " ".join(lines[begin : begin + 2]))
        named = word and (word[1] or word[2]).lower() == stem
        if not told and not (head and named):
            yield f"{name}:{begin + 1}: {lines[begin].strip()}; expected a comment that says what it is"


def declarations(lines, told):
    """(first line, has a comment) of what begins in the first column; the code is as clang-format writes it. `told`: the head says
    what the first group is."""
    i, seen, code = 0, False, False
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            told = told and not seen
        elif line.startswith("//"):
            told = told if not code else True
        elif line.startswith("#"):
            code = True
            while lines[i].endswith("\\") and i + 1 < len(lines):
                i += 1
        elif not SKIPPED.match(line) and not FORWARD.match(line) and not line.startswith(" "):
            begin, i = i, last_line(lines, i)
            told = told or any("//" in text for text in lines[begin : i + 1])
            if line.strip() != "template <>":
                yield begin, told
            seen = True
        i += 1


def last_line(lines, i):
    """Where the declaration that begins in line i ends: a `;` or `}` outside brackets."""
    depth = 0
    while i < len(lines):
        code = re.sub(r'"(\\.|[^"\\])*"|//.*', "", lines[i])
        depth += sum(code.count(c) for c in "{(") - sum(code.count(c) for c in "})")
        if depth <= 0 and code.rstrip().endswith((";", "}")):
            return i
        i += 1
    return i - 1

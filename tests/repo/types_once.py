"""No two types of one name: a program that holds both has one of them twice, and nothing says which."""

import re

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:class|struct|enum class) (?:alignas\([^)]*\) )?([A-Za-z]\w*)(?: final)?(?: : [^;]*)?(?:\s*\{.*|\s*)$")
# Bodies of one kernel for two devices: each file is compiled for one of them.
TWINS = ("kernels/cuda", "kernels/emulated", "plugins/", "tests/")


def check_types(root, files):
    """A type that a header defines at the level of its namespace is defined by no other header."""
    places = {}
    for name in files:
        if not name.endswith(".h") or name.startswith(TWINS):
            continue
        space = ""
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
            if found := NAMESPACE.match(line):
                space = found[1]
            elif found := TYPE.match(line):
                places.setdefault(f"{space}::{found[1]}", []).append(f"{name}:{number}")
    for type_, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{where[1]}: {type_} has the name of the one in {where[0]}; expected a name of its own"

"""No test compares a wall-clock time with a constant: another machine, or a busy one, has another time.

A value is a time when it comes from a clock, or from another time in the same file. An assertion that holds a time must hold a
second one on its other side, or something that was measured (a yardstick).
"""

import pathlib
import re

CLOCK = re.compile(
    r"steady_clock::now|system_clock::now|high_resolution_clock::now|monotonicNs\(|\.elapsed\(\)|nsecsElapsed\(\)|std::clock\(|"
    r"\bcpuSeconds\(|\bclock_gettime\(|gettimeofday\(|time\.perf_counter\(|time\.monotonic\(|time\.time\("
)
# Two sides, each an expression; `!` of brackets and commas outside brackets is done by split().
ASSERTION = re.compile(r"\b(EXPECT|ASSERT)_(LT|LE|GT|GE|EQ|NE|NEAR|TRUE|FALSE)\s*\(|\bQ(VERIFY2?|COMPARE(_[A-Z]+)?)\s*\(|\bassert\s")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*(?:[-+*/]?=)(?!=)\s*(.*)", re.S)
CONSTANT = re.compile(r"[-+*/()\s]|\b\d[\d'._a-zA-Z]*|\bk[A-Z]\w*|\bstd::chrono::\w+|\bqint64\b|\bdouble\b|\bint\b|[_a-z]*ms\b|\b\d*s\b|[<>=!&|{}.:,]")


def check_clocks(root, files):
    for name in files:
        path = pathlib.Path(name)
        if name.startswith("tests/") and path.suffix in {".cpp", ".h", ".py"} and not name.startswith("tests/repo/"):
            for number, text in compared_times((root / name).read_text(encoding="utf-8")):
                yield f"{name}:{number}: {text}; a time against a constant: compare with another measured time, or count what happened"


def statements(text):
    """(number of the first line, statement without comments)"""
    text = re.sub(r"//[^\n]*", "", text)
    number, begin, depth = 1, 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c in "{}" or (c == ";" and depth <= 0):
            piece = text[begin:i]
            yield number + len(piece[: len(piece) - len(piece.lstrip())].split("\n")) - 1, piece.strip()
            number += text[begin : i + 1].count("\n")
            begin, depth = i + 1, 0


def compared_times(text):
    if not CLOCK.search(text):
        return
    pieces = list(statements(text)) if "#include" in text or "{" in text else [(n, t) for n, t in enumerate(text.splitlines(), 1)]
    times = set()

    def is_time(expression):
        return bool(CLOCK.search(expression)) or any(re.search(rf"\b{word}\b", expression) for word in times)

    for _ in range(3):  # a time may be used above the line that makes it one: members, loops
        for _, piece in pieces:
            assigned = ASSIGNED.search(piece)
            if assigned and is_time(assigned[2]) and not ASSERTION.search(piece):
                times.add(assigned[1])
    for number, piece in pieces:
        assertion = ASSERTION.search(piece)
        if not assertion:
            continue
        sides = split(piece[assertion.end() :])
        timed = [side for side in sides if is_time(side)]
        others = [side for side in sides if not is_time(side)]
        if timed and others and all(not CONSTANT.sub("", side) for side in others[:1]):
            yield number, " ".join(piece.split())[:120]


def split(text):
    """The sides of a comparison: the arguments of a macro, or what stands around < and >."""
    depth, sides, side = 0, [], ""
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth < 0:
                break
        if depth == 0 and (c == "," or (c in "<>" and text[i - 1 : i + 1] != "->" and text[i - 1] == " ")):
            sides.append(side)
            side = ""
        else:
            side += c
    return [s for s in [*sides, side] if s.strip(" =")]

"""Which folder may include which: the arrows of the design between the top folders, and the order inside each of them."""

import pathlib
import re

SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'\s*#\s*include\s*("[^"]+"|<[^>]+>)')
ENGINE_PARTS = "ir|onnx|ops|passes|autodiff|recompute|plan|exec|state|build|step|lab|train|profile|plugin|comm|wire|data"

# (folders, what their files must not include): between the top folders, and what each library is for.
BETWEEN = [
    (("views",), rf'"(engine/({ENGINE_PARTS})|kernels|storage|app)/'),
    (("engine",), r'"(app|views|storage)/'),
    (("storage",), rf'"(app|views|kernels|engine/({ENGINE_PARTS}))/'),
    (("kernels",), r'"(app|views|storage|engine)/'),
    (("plugins/abi",), r'"(app|views|storage|engine|kernels)/'),
    (("engine", "kernels", "storage", "app/cli"), r"<Q[A-Z]"),
    (("engine", "kernels", "views", "app"), r"<sqlite3"),
    (("engine", "storage", "views", "app", "kernels/cpu", "kernels/cuda_device", "kernels/emulated", "kernels/mirror", "kernels/reference"), r"<(cuda|cublas|cudnn|cupti|nvtx)"),
]

# Inside a folder, from the bottom to the top. A part includes only parts of the lines above it and itself; parts of one line do
# not include each other. "." is the files that lie in the folder itself, "*" every part that no line names.
INSIDE = {
    "app": [".", "guide", "*"],
    "engine": [
        "snapshot", "ir", "data", "comm", "onnx", "ops", "passes", "autodiff", "plan", "recompute", "exec", "profile", "state", "build",
        "plugin", "step", "lab", "train", "wire",
    ],
    "engine/ops": [".", "*"],
    "kernels": [".", "reference", "cpu", "mirror", "emulated", "cuda", "cuda_device"],
    "kernels/cpu": [".", "loops", "channels", "linear", "recurrent sampling"],
    "kernels/reference": [".", "*"],
    "storage": [".", "pytorch report"],
    "views": [".", "common", "drawing", "*"],
}  # fmt: skip


def inside(name, folders):
    return any(name.startswith(folder + "/") for folder in folders)


def part_of(folder, path):
    """The part of `folder` that `path` lies in: "." for a file of the folder itself, None for a file elsewhere."""
    if not path.startswith(folder + "/"):
        return None
    rest = path[len(folder) + 1 :].split("/")
    return rest[0] if len(rest) > 1 else "."


def level_of(folder, part):
    """How high the part stands; None where the order does not name it."""
    for level, line in enumerate(INSIDE[folder]):
        if part in line.split():
            return level
    return next((level for level, line in enumerate(INSIDE[folder]) if line == "*" and part != "."), None)


def against_order(name, target):
    for folder in INSIDE:
        mine, other = part_of(folder, name), part_of(folder, target)
        if mine is None or other is None or mine == other:
            continue
        if level_of(folder, mine) is None:
            return f"{folder}/{mine} stands in no order; add it to INSIDE in tests/repo/arrows.py"
        if level_of(folder, other) is None or level_of(folder, other) >= level_of(folder, mine):
            return f"{folder}/{mine} may not include {folder}/{other}: it does not stand below it in the order"
    return None


def check_arrows(root, files):
    for name in files:
        if pathlib.Path(name).suffix not in SOURCES:
            continue
        forbidden = [re.compile(pattern) for folders, pattern in BETWEEN if inside(name, folders)]
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
            include = INCLUDE.match(line)
            if not include:
                continue
            if any(pattern.match(include[1]) for pattern in forbidden):
                yield f"{name}:{number}: {line.strip()}; against the arrows of the design"
            elif reason := against_order(name, include[1].strip('"<>')):
                yield f"{name}:{number}: {line.strip()}; {reason}"

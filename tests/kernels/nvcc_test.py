#!/usr/bin/env python3
"""What can be said of the kernels of kernels/cuda without a GPU: nvcc compiles every file without a warning, no kernel spills
registers, each fills at least half of a multiprocessor at the shape of its launches or has a reason not to, those that memory
bounds move 16 bytes at once (by their machine code where there is cuobjdump: on PATH, beside nvcc, or named in STEPSCOPE_CUOBJDUMP;
else by PTX), and the GPU code has every kernel that the host launches, under a name by which it is found. Our own
declarations of the toolkit's interfaces (toolkit_declarations.cu) are the toolkit's. Where the toolkit's CUPTI is, its host side
says that one pass counts what the rung "counters" asks for.

    nvcc_test.py SOURCE_FOLDER FAKE_DRIVER [--all]

FAKE_DRIVER: the library of tests/kernels/fake_gpu, which knows the kernels that the host launches. --all: for sm_80, sm_90 and PTX,
as the preset cuda builds them, and their size; else for sm_90. Exit code 77 where there is no nvcc (on PATH or in
/usr/local/cuda/bin).
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MOST_BYTES = 30 << 20  # of all GPU code, so that a program stays below 40 MB
ENTRY = re.compile(r"Compiling entry function '([^']+)' for 'sm_(\d+)'")
SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
WIDE_INSTRUCTION = re.compile(r"\b(LDG|STG)\.E(\.\w+)*\.128\b")
WIDE_MOVE = re.compile(r"\b(ld|st)\.global(\.\w+)*\.(v4\.[a-z]32|v2\.[a-z]64)\b")

# --- of a multiprocessor: bytes of shared memory; registers, threads and blocks are the same for both
SHARED_BYTES = {"80": 164 << 10, "90": 228 << 10}
REGISTERS, MOST_THREADS, MOST_BLOCKS, WARP = 65536, 2048, 32, 32

# Threads of a block, where they are not 256. 1: a few sums that one thread makes for all others.
THREADS = {"addPicks": 32, "adamFactors": 1, "attend": 128, "lambFactors": 1, "sgdFactors": 1}
ATTENTION = "tiles of two operands fill shared memory: each element of k and v is read once for eight rows of q"
# Kernels below one half, by the beginning of their names, and why.
REASONS = {
    "attention_cu::attend": ATTENTION,
    "attention_grad_cu::attend": ATTENTION,
    "conv_cu::convolve<": "positions in a window are worked out in 64 bits, beside up to 16 sums and 8 operands",
    "elementwise_cu::elementwise<-1, 24, ": "interprets a chain: its values lie in local memory, whose traffic bounds it",
    "pointwise_sum_cu::add": "interprets a chain, as elementwise does",
    "update_cu::adamElements": "a thread has four loads of 16 bytes under way, which hides the latency of memory with fewer threads",
    "product_cu::products<4>": "a thread keeps 16 sums and 8 operands in registers, so that a product reads shared memory less often",
}
# Kernels that memory bounds: each moves 16 bytes at once. Not among them, since neighbouring threads have neighbouring elements of 4 bytes or less:
# those along another axis than the last one (softmaxLines, parameterParts, sumParts, reduceByThreads, addRows), windows and places that indices name
# (pool, pad, scatter, addPicks), rows of any places (dropPart), copies whose runs or addresses are no multiple of 16 bytes (moveElements and
# gatherElements of smaller words), and what joins some sums.
WIDE = re.compile(
    r"elementwise_cu::elementwise<|cast_cu::cast<|update_cu::(adamElements|sgdElements|accumulateElements)|dropout_cu::(?!dropPart)"
    r"|lamb_cu::(lambElements|lambSquares)|movement_cu::moveElements<stepscope::cuda::Wide>|segments_cu::startElements<stepscope::cuda::Wide>"
    r"|gather_cu::(begin|gatherElements<stepscope::cuda::Wide)|softmax_cu::\w*Rows|norm_cu::norm(Grad)?Rows|batch_norm_cu::|group_norm_cu::"
    r"|cross_entropy_cu::loss(Grad)?Rows|reduce_cu::reduceByBlocks"
)

def find_nvcc():
    return shutil.which("nvcc") or next((p for p in ["/usr/local/cuda/bin/nvcc"] if pathlib.Path(p).exists()), None)


def names_of(symbols):
    """The kernel of each symbol as C++ writes it, without its parameters."""
    text = subprocess.run(["c++filt", "-t"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return [name_of(line) for line in text.splitlines()]


def name_of(text):
    tag = re.fullmatch(r"stepscope::gpu::KernelTag<&(.*)>", text)
    if tag:
        text = tag[1]
        text = text[1:-1] if text.startswith("(") else text
    text = text.removeprefix("void ")
    depth = 0
    for i, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return text[:i]
    return text


def occupancy(architecture, registers, shared, threads):
    """The part of a multiprocessor's threads that can be there at once."""
    warps = -(-threads // WARP)
    blocks = min(MOST_BLOCKS, MOST_THREADS // (warps * WARP), REGISTERS // (-(-max(registers, 1) // 8) * 8 * WARP * warps))
    if shared:
        blocks = min(blocks, SHARED_BYTES[architecture] // (shared + 1024))
    return blocks * warps * WARP / MOST_THREADS


def kernels_in(log):
    """(symbol, architecture, registers, bytes of shared memory, spills) of every kernel that the output of nvcc names."""
    kernels, spills = [], False
    symbol = architecture = None
    for line in log.splitlines():
        if entry := ENTRY.search(line):
            symbol, architecture, spills = entry[1], entry[2], False
        elif spill := SPILL.search(line):
            spills = spill[1] != "0" or spill[2] != "0"
        elif (used := USED.search(line)) and symbol:
            shared = SHARED.search(line)
            kernels.append((symbol, architecture, int(used[1]), int(shared[1]) if shared else 0, spills))
            symbol = None
    return kernels


def find_cuobjdump(nvcc):
    beside = pathlib.Path(nvcc).parent / "cuobjdump"
    return os.environ.get("STEPSCOPE_CUOBJDUMP") or shutil.which("cuobjdump") or (str(beside) if beside.exists() else None)


def wide_in_ptx(ptx, architectures):
    """(symbol, architecture) of the kernels that move 16 bytes at once, as PTX says it for all of them."""
    found = set()
    for piece in ptx.split(".entry ")[1:]:
        symbol = re.match(r"\w+", piece)
        if symbol and WIDE_MOVE.search(piece):
            found |= {(symbol[0], architecture) for architecture in architectures}
    return found


def wide_in_machine_code(text):
    """The same of what cuobjdump -sass prints."""
    found, symbol, architecture = set(), None, None
    for line in text.splitlines():
        if arch := re.match(r"arch = sm_(\d+)", line.strip()):
            architecture = arch[1]
        elif function := re.match(r"Function : (\S+)", line.strip()):
            symbol = function[1]
        elif WIDE_INSTRUCTION.search(line):
            found.add((symbol, architecture))
    return found


def launched(library):
    """The names of the kernels that the host launches."""
    tags = []
    each = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    note = each(lambda name, _: tags.append(name.decode()))
    ctypes.CDLL(str(library)).fakeGpuKernels(note, None)
    return set(names_of(tags))


def problems_of(kernels, names, wide):
    for (symbol, architecture, registers, shared, spills), name in zip(kernels, names):
        short = name.removeprefix("stepscope::cuda::")
        where = f"{short} for sm_{architecture}"
        if spills:
            yield f"{where}: spills registers; expected none"
        threads = next((count for part, count in THREADS.items() if f"::{part}" in short), 256)
        part = occupancy(architecture, registers, shared, threads)
        if threads > 1 and part < 0.5 and not short.startswith(tuple(REASONS)):
            yield f"{where}: {registers} registers and {shared} bytes shared: {part:.0%} of a multiprocessor; expected 50% or a reason"
        if WIDE.search(short) and (symbol, architecture) not in wide:
            yield f"{where}: no load or store of 16 bytes; expected one in a kernel that memory bounds"


class Fields:
    """A structure of CUPTI: its size, a null pointer, then 64-bit fields."""

    def __init__(self, *values):
        self.words = (ctypes.c_size_t * (len(values) + 2))(0, 0, *values)
        self.words[0] = ctypes.sizeof(self.words)

    def __getitem__(self, field):
        return self.words[field + 2]


def passes_of(cupti, chip, metrics):
    """How many passes a GPU needs to count the metrics, by the host side of CUPTI, which needs no GPU; text: what it refused."""

    def call(symbol, fields):
        result = getattr(cupti, symbol)(ctypes.byref(fields.words))
        if result:
            raise OSError(f"{symbol} answered {result}")
        return fields

    name = ctypes.create_string_buffer(chip.encode())
    list_of = (ctypes.c_char_p * len(metrics))(*[metric.encode() for metric in metrics])
    try:
        host = call("cuptiProfilerHostInitialize", Fields(0, ctypes.addressof(name), 0, 0))[3]
        call("cuptiProfilerHostConfigAddMetrics", Fields(host, ctypes.addressof(list_of), len(metrics)))
        size = call("cuptiProfilerHostGetConfigImageSize", Fields(host, 0))[1]
        image = ctypes.create_string_buffer(size)
        call("cuptiProfilerHostGetConfigImage", Fields(host, size, ctypes.addressof(image)))
        passes = call("cuptiProfilerHostGetNumOfPasses", Fields(size, ctypes.addressof(image), 0))[2]
        call("cuptiProfilerHostDeinitialize", Fields(host))
        return passes
    except OSError as error:
        return str(error)


def counter_problems(root, nvcc):
    """What the rung "counters" asks for is counted in one pass, since nothing is run twice."""
    header = (root / "kernels" / "cuda_device" / "cupti_counters.h").read_text()
    metrics = re.findall(r'"(\w+__\w+(?:\.\w+)+)"', header)
    if len(metrics) != 4:
        return [f"cupti_counters.h: {len(metrics)} metrics; expected the four of kMetrics"]
    folder = pathlib.Path(nvcc).resolve().parent.parent
    found = [path for path in (folder / "lib64" / "libcupti.so", folder / "extras" / "CUPTI" / "lib64" / "libcupti.so") if path.exists()]
    if not found:
        print("counters are not checked: the toolkit has no CUPTI")
        return []
    cupti = ctypes.CDLL(str(found[0]))
    problems = []
    for chip in ("GA100", "GH100"):
        passes = passes_of(cupti, chip, metrics)
        print(f"{chip} counts {', '.join(metrics)} in {passes} passes")
        if passes != 1:
            problems.append(f"{chip}: {passes}; expected one pass")
    if not isinstance(passes_of(cupti, "GH100", ["no__such.metric"]), str):
        problems.append("a metric that does not exist was not refused")
    return problems


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: no nvcc on PATH or in /usr/local/cuda/bin")
        return SKIPPED
    sys.path.insert(0, str(root / "kernels" / "cuda_device"))
    from compile_gpu_code import TARGETS, command_of

    everything = "--all" in sys.argv
    targets = TARGETS if everything else ("arch=compute_90,code=sm_90",)
    failures, total, compiled = 0, 0, set()
    cuobjdump = find_cuobjdump(nvcc)
    print(f"moves of 16 bytes are read from {'machine code by ' + cuobjdump if cuobjdump else 'PTX: there is no cuobjdump'}")
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted((root / "kernels" / "cuda").glob("*.cu")):
            out = pathlib.Path(folder) / f"{file.stem}.fatbin"
            command = command_of(nvcc, root, file, out, targets) + ["--keep", "--keep-dir", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log = done.stdout + done.stderr
            problems = [f"nvcc failed:\n{log[-2000:]}"] if done.returncode else []
            problems += [line for line in log.splitlines() if "warning" in line.lower()]
            kernels = kernels_in(log)
            names = names_of([kernel[0] for kernel in kernels])
            compiled |= set(names)
            if cuobjdump:
                shown = subprocess.run([cuobjdump, "-sass", str(out)], capture_output=True, text=True, check=False)
                problems += [f"cuobjdump failed: {shown.stderr[-500:]}"] if shown.returncode and out.exists() else []
                wide = wide_in_machine_code(shown.stdout)
            else:
                ptx = "".join(path.read_text() for path in pathlib.Path(folder).glob(f"{file.stem}*.ptx"))
                wide = wide_in_ptx(ptx, {kernel[1] for kernel in kernels})
            problems += problems_of(kernels, names, wide)
            size = out.stat().st_size if out.exists() else 0
            total += size
            print(f"{file.name}: {len(set(names))} kernels, {size} bytes, {len(problems)} problems", flush=True)
            for problem in problems:
                print("  " + problem)
            failures += len(problems)
        file = root / "tests" / "kernels" / "toolkit_declarations.cu"
        command = [nvcc, "-std=c++20", f"-I{root}", "-c", "-o", str(pathlib.Path(folder) / "declarations.o"), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{file.name}: declarations that differ from the toolkit's:\n{(done.stdout + done.stderr)[-2000:]}")
            failures += 1
    for problem in counter_problems(root, nvcc):
        print("  " + problem)
        failures += 1
    wanted = launched(sys.argv[2])
    for name in sorted(wanted - compiled):
        print(f"the host launches {name}, which no GPU code has")
        failures += 1
    print(f"{len(compiled)} kernels, {len(wanted)} of them launched by the host; {total} bytes of GPU code")
    if total > MOST_BYTES:
        print(f"expected at most {MOST_BYTES} bytes")
        failures += 1
    return 1 if failures or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())

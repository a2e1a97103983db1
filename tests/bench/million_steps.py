#!/usr/bin/env python3
"""A run of a million steps of a tiny model: memory of each process, size of the project, and what reads it afterwards.

    million_steps.py STEPSCOPE [--steps N] [--window TST_LONG] [--keep FOLDER]

The program trains and records; with --window the window does, without a display (tests/workbench/tst_long.cpp). Fails where
a command fails, where a step is missing in the project, or where memory grows after the first 10,000 steps by more than
MOST_MIB (the program) or a column of numbers (the window, which judges itself). Times are printed, not judged. Figures
go to RESULTS.md. Run it with `nice -n 19`.
"""

import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from worker_protocol import field  # noqa: E402

MOST_MIB = 20  # what the queue of the recorder takes when it is full, and a few MiB
FIRST = 10_000  # steps after which memory is compared
ROWS = 32  # of the batch
WIDTH = 16


def tiny_model():
    """y = tanh(x · w), x float32[ROWS, WIDTH], as the bytes of an ONNX file."""

    def value(name):
        shape = b"".join(field(1, field(1, extent)) for extent in (ROWS, WIDTH))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    def node(op, inputs, output):
        return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, op) + field(4, op)

    weights = struct.pack(f"<{WIDTH * WIDTH}f", *(((i * 37) % 101 - 50) / 200 for i in range(WIDTH * WIDTH)))
    initializer = field(1, WIDTH) + field(1, WIDTH) + field(2, 1) + field(8, "w") + field(9, weights)
    graph = (field(1, node("MatMul", ["x", "w"], "h")) + field(1, node("Tanh", ["h"], "y")) + field(2, "tiny") + field(5, initializer)
             + field(11, value("x")) + field(12, value("y")))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def memory(process):
    """Resident and anonymous bytes of a process, and its processor time in seconds."""
    status = dict(line.split(":", 1) for line in open(f"/proc/{process}/status", encoding="ascii"))
    ticks = open(f"/proc/{process}/stat", encoding="ascii").read().rpartition(")")[2].split()
    seconds = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return int(status["VmRSS"].split()[0]) / 1024, int(status["RssAnon"].split()[0]) / 1024, seconds


def by_program(program, model, project, steps):
    """Trains; returns what went wrong."""
    begin = time.monotonic()
    child = subprocess.Popen([program, "train", model, "--loss-fn", "mse", "--steps", str(steps), "--project", project],
                             stdout=subprocess.PIPE, text=True, cwd=project.parent)
    done = [0]

    def follow():
        for line in child.stdout:
            words = line.split()
            if len(words) > 2 and words[0] == "step":
                done[0] = int(words[1]) + 1

    reader = threading.Thread(target=follow)
    reader.start()
    marks = sorted({min(mark, steps - 1) for mark in (1000, FIRST, 50_000, 100_000, 200_000, steps // 2, steps - 1)})
    seen = []
    while child.poll() is None and marks:
        if done[0] < marks[0]:
            time.sleep(0.02)
            continue
        marks.pop(0)
        resident, anonymous, processor = memory(child.pid)
        size = sum(f.stat().st_size for f in project.parent.glob("p.stepscope*")) / 2**20
        if done[0] >= FIRST:
            seen.append(resident)
        print(f"{done[0]:>9} steps {time.monotonic() - begin:7.1f} s wall {processor:7.1f} s processor "
              f"{resident:7.1f} MiB resident {anonymous:7.1f} anonymous {size:8.1f} MiB of project", flush=True)
    code = child.wait()
    reader.join()
    print(f"{steps:>9} steps {time.monotonic() - begin:7.1f} s wall, exit {code}, {project.stat().st_size / 2**20:.1f} MiB of project")
    if code:
        return [f"train: exit {code}"]
    if seen and max(seen) - seen[0] > MOST_MIB:
        return [f"train: {max(seen) - seen[0]:.1f} MiB more than after {FIRST} steps"]
    return []


def reading(program, project, steps):
    """What reports and queries of the recorded run take; returns what went wrong."""
    wrong = []
    folder = project.parent
    for arguments in (["inspect", project], ["report", project, "-o", folder / "r.html"], ["report", project, "-o", folder / "r.json"],
                      ["report", project, "-o", folder / "r.csv"], ["compare", project, "1", "1"],
                      ["sql", project, "SELECT count(*), avg(loss), (SELECT count(*) FROM step_spans) FROM steps"]):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            begin = time.monotonic()
            with open(folder / "out.txt", "w", encoding="utf-8") as out:
                os.dup2(out.fileno(), 1)
                code = subprocess.run([program, *map(str, arguments)], check=False).returncode
            os.write(write, f"{time.monotonic() - begin} {code}".encode())
            os._exit(0)
        _, _, used = os.wait4(child, 0)
        wall, code = os.read(read, 100).decode().split()
        os.close(read)
        os.close(write)
        print(f"{arguments[0]} {pathlib.Path(str(arguments[-1])).name[:40]:<42} {float(wall):6.2f} s wall "
              f"{used.ru_utime + used.ru_stime:6.2f} s processor {used.ru_maxrss / 1024:6.0f} MiB exit {code}", flush=True)
        if code != "0":
            wrong.append(f"{arguments[0]}: exit {code}")
    counted = (folder / "out.txt").read_text(encoding="utf-8").split("\n")[1].split()
    if counted[0] != str(steps):
        wrong.append(f"the project has {counted[0]} steps; expected {steps}")
    return wrong


def by_window(test, model, steps):
    environment = {**os.environ, "STEPSCOPE_LONG_STEPS": str(steps), "STEPSCOPE_LONG_MODEL": str(model), "QT_QPA_PLATFORM": "offscreen",
                   "QTEST_FUNCTION_TIMEOUT": str(24 * 3600 * 1000)}
    begin = time.monotonic()
    done = subprocess.run([test, "aLongRunTakesNoMoreMemory"], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print("\n".join(line for line in done.stdout.splitlines() if not line.startswith(("Config", "*****"))))
    print(f"{steps} steps by the window: {time.monotonic() - begin:.1f} s wall, exit {done.returncode}")
    return [f"window: exit {done.returncode}"] if done.returncode else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--window", help="the test tst_long: trains by the window instead of the program")
    parser.add_argument("--keep", help="a folder for model and project; otherwise they are removed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(given.keep or temporary)
        model = folder / "tiny.onnx"
        model.write_bytes(tiny_model())
        if given.window:
            wrong = by_window(given.window, model, given.steps)
        else:
            project = folder / "p.stepscope"
            wrong = by_program(given.program, model, project, given.steps)
            if not wrong:
                wrong = reading(given.program, project, given.steps)
    for text in wrong:
        print("failed:", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Time and peak memory of report, compare and sql on a project whose run has 100,000 steps. Figures go to RESULTS.md.

    long_project_bench.py STEPSCOPE STORAGE_SAMPLE_REPORT [STEPS]

Fails where a command fails, takes more than 500 MB, or a report that lists steps misses one, and where its processor time grows
faster than the steps. Times alone are printed, not judged.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

MOST_BYTES = 500e6
FEWER, MOST_TIMES = 5, 8  # a fifth of the steps takes a fifth of the time, or more: what grows with their square takes 25 times as much
STATEMENTS = ["SELECT count(*), avg(loss), max(ns) FROM steps",
              "SELECT step / 1000, avg(ns), min(loss) FROM judged_steps GROUP BY 1",
              "SELECT node, sum(spans.ns) FROM steps JOIN spans ON id = step_id WHERE step >= 99900 GROUP BY node ORDER BY 2 DESC LIMIT 10"]


def measured(stepscope, arguments):
    """Wall and processor seconds, peak bytes, exit code."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nothing:
            begin = time.monotonic()
            done = subprocess.run([stepscope, *map(str, arguments)], stdout=nothing, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, f"{time.monotonic() - begin} {used.ru_utime + used.ru_stime} {used.ru_maxrss * 1024} {done.returncode}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as answer:
        wall, processor, peak, code = answer.read().split()
    return float(wall), float(processor), int(peak), int(code)


def cases_of(folder, generator, steps):
    """Of a new project of so many steps: the arguments of each command, by its name."""
    folder.mkdir()
    subprocess.run([generator, folder, "1", str(steps), "project"], check=True)
    project = folder / "sample.stepscope"
    print(f"{steps} steps, {project.stat().st_size / 2**20:.0f} MiB")
    cases = {f"report {end}": ["report", project, "-o", folder / f"r{end}"] for end in (".html", ".txt", ".json", ".trace.json", ".csv", ".ops.csv")}
    cases["compare 1 1"] = ["compare", project, "1", "1"]
    for statement in STATEMENTS:
        cases[f"sql {statement[:40]}…"] = ["sql", project, statement]
    return cases


def main():
    stepscope, generator = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        few = cases_of(folder / "few", generator, steps // FEWER)
        failed = 0
        for name, arguments in cases_of(folder / "all", generator, steps).items():
            wall, processor, peak, code = measured(stepscope, arguments)
            print(f"{name:<50} {wall:6.2f} s wall {processor:6.2f} s processor {peak / 1e6:7.0f} MB exit {code}", flush=True)
            least = measured(stepscope, few[name])[1]
            if processor > MOST_TIMES * least:
                print(f"{name}: {processor:.2f} s processor; expected at most {MOST_TIMES} times the {least:.2f} s of {steps // FEWER} steps")
                failed += 1
            failed += code != 0 or peak > MOST_BYTES
        rows = sum(1 for _ in open(folder / "all/r.csv", encoding="utf-8")) - 1
        listed = len(json.load(open(folder / "all/r.json", encoding="utf-8"))["steps"])
        if (rows, listed) != (steps, steps):
            print(f"steps: {rows} in .csv, {listed} in .json; expected {steps}")
            failed += 1
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

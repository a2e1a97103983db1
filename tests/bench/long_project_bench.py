#!/usr/bin/env python3
"""Time and peak memory of report, compare and sql on a project whose run has 100,000 steps. Figures go to RESULTS.md.

    long_project_bench.py STEPSCOPE STORAGE_SAMPLE_REPORT [STEPS]

Fails where a command fails, takes more than 500 MB, or a report that lists steps misses one. Times are printed, not judged.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

MOST_MIB = 500e6 / 2**20
STATEMENTS = ["SELECT count(*), avg(loss), max(ns) FROM steps",
              "SELECT step / 1000, avg(ns), min(loss) FROM judged_steps GROUP BY 1",
              "SELECT node, sum(spans.ns) FROM steps JOIN spans ON id = step_id WHERE step >= 99900 GROUP BY node ORDER BY 2 DESC LIMIT 10"]


def main():
    stepscope, generator = sys.argv[1:3]
    steps = sys.argv[3] if len(sys.argv) > 3 else "100000"
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder) / "sample.stepscope"
        subprocess.run([generator, folder, "1", steps, "project"], check=True)
        print(f"{steps} steps, {project.stat().st_size / 2**20:.0f} MiB")
        cases = {"report .html": ["report", project, "-o", f"{folder}/r.html"], "report .txt": ["report", project, "-o", f"{folder}/r.txt"], "report .json": ["report", project, "-o", f"{folder}/r.json"],
                 "report .csv": ["report", project, "-o", f"{folder}/r.csv"], "compare 1 1": ["compare", project, "1", "1"]}
        for statement in STATEMENTS:
            cases[f"sql {statement[:40]}…"] = ["sql", project, statement]
        failed = 0
        for name, arguments in cases.items():
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                with open(os.devnull, "w") as nothing:
                    begin = time.monotonic()
                    done = subprocess.run([stepscope, *map(str, arguments)], stdout=nothing, check=False)
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                os.write(write, f"{time.monotonic() - begin} {used.ru_utime + used.ru_stime} {used.ru_maxrss} {done.returncode}".encode())
                os._exit(0)
            os.waitpid(child, 0)
            wall, processor, peak, code = os.read(read, 1000).decode().split()
            print(f"{name:<50} {float(wall):6.2f} s wall {float(processor):6.2f} s processor {int(peak) / 1024:7.0f} MiB exit {code}", flush=True)
            failed += code != "0" or int(peak) / 1024 > MOST_MIB
        rows = sum(1 for _ in open(f"{folder}/r.csv", encoding="utf-8")) - 1
        listed = len(json.load(open(f"{folder}/r.json", encoding="utf-8"))["steps"])
        if (rows, listed) != (int(steps), int(steps)):
            print(f"steps: {rows} in .csv, {listed} in .json; expected {steps}")
            failed += 1
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Processor seconds that compiling takes, object by object, without ccache.

    compile_time.py BUILD_FOLDER [--every N] [WORD…]

Compiles the objects of BUILD_FOLDER/compile_commands.json whose path holds one of the WORDs (without words: all), one after the
other, into a file that is thrown away; with --every N one object in N, and the sums are estimates. The folder must have been built once: generated and precompiled headers are used as
they lie there. Prints user + system seconds of each object, largest first, then the sum per folder.
"""

import collections
import json
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile


def used():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def chosen(commands, words, every):
    """One object in `every`, in the order of their paths."""
    named = [entry for entry in commands if any(word in entry["output"] for word in words)]
    return sorted(named, key=lambda entry: entry["output"])[every // 2 :: every]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = sys.argv[2:]
    every = 1
    if words[:1] == ["--every"]:
        every, words = int(words[1]), words[2:]
    words = words or [""]
    commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    for entry in commands:  # not every CMake writes it
        entry.setdefault("output", entry["command"].split(" -o ")[1].split(" ")[0])
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    times = {}
    with tempfile.TemporaryDirectory() as place:
        for entry in chosen(commands, words, every):
            command = shlex.split(entry["command"])
            target = command[command.index("-o") + 1]
            command[command.index("-o") + 1] = str(pathlib.Path(place) / "object.o")
            before = used()
            done = subprocess.run(command, cwd=entry["directory"], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"error: object '{target}': the compiler failed:\n{done.stderr}")
            times[target] = used() - before
    for target, seconds in sorted(times.items(), key=lambda item: -item[1]):
        print(f"{seconds:8.1f}  {target}")
    folders = collections.Counter()
    for target, seconds in times.items():
        folders[target.split("/CMakeFiles/")[0]] += seconds * every
    print("by folder")
    for folder, seconds in folders.most_common():
        print(f"{seconds:8.1f}  {folder}")
    print(f"{sum(folders.values()):8.1f}  in all, {len(times)} objects compiled")


if __name__ == "__main__":
    main()

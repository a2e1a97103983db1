#!/usr/bin/env python3
"""Every ONNX backend test that has its data through `stepscope run --expect`, beside the table of what is known not to pass.

    onnx_backend_test.py STEPSCOPE                 compare with onnx_backend_exceptions.txt
    onnx_backend_test.py STEPSCOPE --write         write the table anew from what fails now
    onnx_backend_test.py STEPSCOPE --only REGEX    the matching tests alone

The run fails where a test fails and has no line in the table, where a test of the table passes (its line has to go), and
where the program ends with a signal or does not end. Exit code 77: the data (Debian package libonnx-testdata) are missing.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
TABLE = pathlib.Path(__file__).parent / "onnx_backend_exceptions.txt"
DATA = pathlib.Path(os.environ.get("STEPSCOPE_ONNX_TESTDATA", "/usr/share/libonnx-testdata/data"))
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")  # the other folders need downloads
TABLE_HEAD = """\
# ONNX backend tests that do not pass, each with what the program answers: name<TAB>reason.
# Written by `onnx_backend_test.py STEPSCOPE --write`. A line whose test passes fails the run: remove it.
"""

Outcome = collections.namedtuple("Outcome", "name passed crashed reason")


def first_error(text):
    """The first line that names the error, or the first line at all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if line.startswith("error:"):
            return line[len("error:"):].strip()
    return lines[0] if lines else "no message"


def run_test(stepscope, folder, seconds):
    """Outcome of one test folder: every test_data_set_* agrees with its output_*.pb."""
    sets = sorted(folder.glob("test_data_set_*"))
    if not sets:
        return Outcome(folder.name, False, False, "no test_data_set in the folder")
    for data in sets:
        command = [stepscope, "run", str(folder / "model.onnx"), "--data", str(data), "--expect", str(data), "--threads", "1"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
        except subprocess.TimeoutExpired:
            return Outcome(folder.name, False, True, f"did not end within {seconds} s")
        if done.returncode < 0:
            return Outcome(folder.name, False, True, f"ended with signal {-done.returncode}")
        if done.returncode != 0:
            message = first_error(done.stderr or done.stdout).replace(str(folder), folder.name).replace("\t", " ")
            return Outcome(folder.name, False, False, message)
    return Outcome(folder.name, True, False, "")


def read_table():
    """Reasons by test name."""
    table = {}
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        name, tab, reason = line.partition("\t")
        if not tab or not reason:
            sys.exit(f"error: {TABLE.name} line {number}: no reason; expected name<TAB>reason")
        table[name] = reason
    return table


def pattern_of(reason):
    """A reason without the names and numbers of one test, to count alike reasons together."""
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", re.sub(r"'[^']*'", "'…'", reason))


def print_summary(outcomes):
    """How many pass, and the reasons of the others by frequency."""
    failed = [o for o in outcomes if not o.passed]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} pass")
    groups = collections.defaultdict(list)
    for outcome in failed:
        groups[pattern_of(outcome.reason)].append(outcome)
    for _, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(members):5}  {members[0].reason}")
        print(f"       {' '.join(m.name for m in members[:6])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stepscope")
    parser.add_argument("--write", action="store_true", help="write the table of exceptions")
    parser.add_argument("--only", default="", help="regular expression on the names of the tests")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="limit of one test")
    arguments = parser.parse_args()
    if arguments.write and arguments.only:
        parser.error("--write needs all tests; leave out --only")

    folders = sorted((path.parent for kind in KINDS for path in DATA.glob(f"{kind}/test_*/model.onnx")
                      if re.search(arguments.only, path.parent.name)), key=lambda folder: folder.name)
    if not folders:
        print(f"skipped: no tests in {DATA}; install libonnx-testdata or set STEPSCOPE_ONNX_TESTDATA")
        return SKIPPED
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda folder: run_test(arguments.stepscope, folder, arguments.seconds), folders))
    print_summary(outcomes)

    crashed = [o for o in outcomes if o.crashed]
    for outcome in crashed:
        print(f"FAILED {outcome.name}: {outcome.reason}; expected a typed error")
    if arguments.write:
        lines = [f"{o.name}\t{o.reason}\n" for o in outcomes if not o.passed and not o.crashed]
        TABLE.write_text(TABLE_HEAD + "".join(lines), encoding="utf-8")
        return 1 if crashed else 0

    table = read_table()
    run = {o.name for o in outcomes}
    wrong = len(crashed)
    for outcome in outcomes:
        if outcome.passed and outcome.name in table:
            print(f"FAILED {outcome.name}: passes now; remove its line from {TABLE.name}")
            wrong += 1
        elif not outcome.passed and not outcome.crashed and outcome.name not in table:
            print(f"FAILED {outcome.name}: {outcome.reason}")
            wrong += 1
    if not arguments.only:
        for name in sorted(set(table) - run):
            print(f"note: {name} of {TABLE.name} is not among the installed tests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

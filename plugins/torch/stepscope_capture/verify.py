# SPDX-License-Identifier: Apache-2.0
"""Runs `stepscope verify` on a captured folder."""

import json
import os
import pathlib
import shutil
import subprocess
import sys


class Differs(AssertionError):
    """What Stepscope computes is not what PyTorch computed. `rows`: every tensor that was compared."""

    def __init__(self, message, rows):
        super().__init__(message)
        self.rows = rows


def _installed():
    """The program of the wheel that this package came with."""
    found = pathlib.Path(__file__).resolve().parent.parent / "stepscope" / "_programs" / "bin" / "stepscope"
    return found if found.is_file() else None


def program(stepscope=None):
    program = stepscope or os.environ.get("STEPSCOPE") or _installed() or shutil.which("stepscope")
    if program is None:
        raise FileNotFoundError("stepscope: not on the PATH; name the program in `stepscope=` or in the environment variable STEPSCOPE")
    return str(program)


def _text(row):
    place = " ".join(part for part in (row["module"], row["source"]) if part)
    return "".join((
        f"{row['kind']} '{row['name']}' {row['shape']}: off by {row['max_abs']} (tolerance {row['tolerance']})",
        f", {row['reason']}" if row["reason"] else "", f", at {place}" if place else "",
        f"; likely: {row['cause']}" if row["cause"] else "",
    ))  # fmt: skip


def verify(folder, steps=None, check=True, stepscope=None):
    """Compares loss, every gradient and the updates of running statistics of a captured folder with PyTorch's.

    folder     what capture() returned.
    steps      compare the losses of so many batches.
    check      raise Differs where anything differs; else the rows say it.
    stepscope  the program; default: the environment variable STEPSCOPE, then the one on the PATH.

    Returns a list of dicts, one per tensor (kind, name, shape, max_abs, max_rel, cosine, tolerance, verdict, reason, cause, module,
    source …), and last the summary: {"verdict": "agrees" | "differs" | "unchecked", "reason": …}. RuntimeError: the program failed.
    """
    command = [program(stepscope), "verify", str(pathlib.Path(folder)), "--json"] + ([] if steps is None else ["--steps", str(steps)])
    environment = dict(os.environ)
    if json.loads((pathlib.Path(folder) / "capture.json").read_text(encoding="utf-8")).get("host"):  # operators that this Python runs
        command += ["--plugin", "python_host"]
        environment.setdefault("STEPSCOPE_PYTHON", sys.executable)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = [event for event in events if event["event"] == "tensor"]
    summary = next((event for event in events if event["event"] == "verify"), None)
    if summary is None:
        raise RuntimeError(done.stderr.strip() or f"stepscope verify: exit code {done.returncode}")
    if check and summary["verdict"] == "differs":
        raise Differs("\n".join(_text(row) for row in rows if row["verdict"] == "differs"), rows)
    return [{key: value for key, value in row.items() if key != "event"} for row in (*rows, summary)]

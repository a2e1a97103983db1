#!/usr/bin/env python3
"""What watching values costs: steps of the worker with and without ten watched values, in turns.

    watch_bench.py STEPSCOPE MODEL [--values N] [--steps N] [--rounds N] [SETTING=VALUE …]

The values are outputs of instructions before the optimizer, spread evenly over the plan. Settings are those of the command line
(data=…, threads=1, optimizer=adamw). Times are medians of the steps' own, without the first of each round. Figures go to
RESULTS.md with date, machine and command.
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from worker_protocol import Worker, field, fields  # noqa: E402

OPEN, CONFIGURE, BUILD, PLAN, TRAIN, WATCH = 3, 4, 5, 7, 11, 24
ERROR, PLAN_ANSWER, STEP = 3, 8, 12


class Bench(Worker):
    def ask(self, request, body=b""):
        answers = super().ask(request, body)
        for kind, message in answers:
            if kind == ERROR:
                raise SystemExit(f"error: {fields(message).get(2, [b''])[0].decode()}")
        return answers

    def train(self, steps):
        """(nanoseconds, those of recording) of each step."""
        records = [fields(message) for kind, message in self.ask(TRAIN, field(1, steps) + field(2, 1)) if kind == STEP]
        return [(r[10][0], r.get(20, [0])[0]) for r in records]


def values_of(plan, count):
    """Outputs of instructions before the optimizer that have kernels, evenly spread."""
    first_optimizer = plan.get(10, [0])[0]
    outputs = []
    for message in plan[1][:first_optimizer]:
        instruction = fields(message)
        if not instruction.get(12):
            outputs += [fields(o).get(1, [0])[0] for o in instruction.get(7, [])[:1]]
    return [outputs[i * len(outputs) // count] for i in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--values", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_intermixed_args()
    worker = Bench(options.program, "worker")
    worker.ask(2, field(1, 1))
    worker.ask(OPEN, field(1, options.model))
    settings = [s.split("=", 1) for s in options.settings]
    worker.ask(CONFIGURE, b"".join(field(1, field(1, name) + field(2, value)) for name, value in settings))
    worker.ask(BUILD)
    (plan,) = [fields(message) for kind, message in worker.ask(PLAN) if kind == PLAN_ANSWER]
    watched = values_of(plan, options.values)
    times = {"nothing watched": [], f"{len(watched)} values watched": []}
    recording = []
    worker.train(20)
    for _ in range(options.rounds):
        for (name, found), ids in zip(times.items(), ([], watched)):
            worker.ask(WATCH, b"".join(field(1, i) for i in ids))
            steps = worker.train(options.steps)[1:]
            found += [ns for ns, _ in steps]
            recording += [noting for _, noting in steps] if ids else []
    plain, watching = (statistics.median(found) for found in times.values())
    for name, found in times.items():
        print(f"{name:<20} n {len(found)}  median {statistics.median(found) / 1e6:.3f} ms  min {min(found) / 1e6:.3f}")
    print(f"a step costs {(watching - plain) / 1e3:.1f} µs more ({watching / plain - 1:+.1%}); by the record {statistics.median(recording) / 1e3:.1f} µs")


if __name__ == "__main__":
    main()

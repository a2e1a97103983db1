#!/usr/bin/env python3
"""What watching values costs: steps of the worker with and without ten watched values, in turns.

    watch_bench.py STEPSCOPE MODEL [--values N] [--steps N] [--rounds N] [SETTING=VALUE …]

The values are outputs of instructions before the optimizer, spread evenly over the plan. Settings are those of the command line
(data=…, threads=1, optimizer=adamw). Times are medians of the steps' own, without the first of each round. Figures go to
RESULTS.md with date, machine and command.
"""

import argparse
import statistics
import struct
import subprocess

OPEN, CONFIGURE, BUILD, PLAN, TRAIN, WATCH = 3, 4, 5, 7, 11, 24
ERROR, PLAN_ANSWER, STEP = 3, 8, 12


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(key, value):
    """Of a message: an integer, a text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(key << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(key << 3 | 2) + varint(len(value)) + value


def fields(message):
    """{number: [values]}"""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            value = number()
        else:
            length = {1: 8, 5: 4}.get(tag & 7) or number()
            value = message[at : at + length]
            at += length
        found.setdefault(tag >> 3, []).append(value)
    return found


class Worker:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0

    def ask(self, request, body=b""):
        """The answers to it, (kind, message) each."""
        self.last += 1
        frame = field(1, self.last) + field(request, body)
        self.process.stdin.write(struct.pack("<I", len(frame)) + frame)
        self.process.stdin.flush()
        answers = []
        while True:
            (length,) = struct.unpack("<I", self.process.stdout.read(4))
            answer = fields(self.process.stdout.read(length))
            if answer.get(1) != [self.last]:
                continue
            kind = next((n for n in answer if n > 2), 0)
            if kind == ERROR:
                raise SystemExit(f"error: {fields(answer[kind][0]).get(2, [b''])[0].decode()}")
            answers.append((kind, answer[kind][0] if kind else b""))
            if answer.get(2) == [1]:
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
    worker = Worker(options.program)
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

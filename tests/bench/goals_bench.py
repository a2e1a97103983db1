#!/usr/bin/env python3
"""The goals of the optimisation laboratory, each with and without, in one run.

    python3 tests/bench/goals_bench.py --stepscope BUILD/bin/stepscope [--rounds 12] [--memory] [CASE …]

Times are those of `stepscope trials`: both plans in one process, in turns, medians of paired differences with their interval, and a pair
of one plan with itself. They need a quiet machine. Memory is planned, so it does not depend on what else runs; --memory asks for it alone.
Weights are random; the models are ../shared/corpus/large beside the source tree, or $STEPSCOPE_SHARED/corpus/large. Exit code 1: a goal is missed.
"""
import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("STEPSCOPE_SHARED", ROOT.parent / "shared"))
COMMON = ["--missing-weights", "random", "--optimizer", "adamw"]
VOCABULARY = 30522
ACTIVATIONS = {"activation", "stash", "backward"}  # classes of buffers; gradients of parameters and workspaces are others


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(c) for c in command)}: {done.stderr.strip().splitlines()[-1:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def write_npz(path, arrays):
    """name → (dims, flat list of int64)."""
    with zipfile.ZipFile(path, "w") as file:
        for name, (dims, values) in arrays.items():
            header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({', '.join(map(str, dims))},), }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            file.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}q", *values))


def masked_labels(folder, batch=4, sequence=128, steps=2, share=0.15):
    """Batches of a masked language model: a share of the labels counts, the others are -100."""
    draw = random.Random(0)
    count, dims = steps * batch * sequence, (steps, batch, sequence)
    ids = [draw.randrange(1, VOCABULARY) for _ in range(count)]
    labels = [i if draw.random() < share else -100 for i in ids]
    path = pathlib.Path(folder) / "masked.npz"
    write_npz(path, {"input_ids": (dims, ids), "attention_mask": (dims, [1] * count), "labels": (dims, labels)})
    return path


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.rows = arguments, folder, []

    def model(self, name):
        return SHARED / "corpus" / "large" / f"{name}.onnx"

    def row(self, case, what, figure, goal, more):
        self.rows.append((case, what, figure, goal, more))
        print(f"| {case} | {what} | {figure:.3f} | {'≤' if goal < 1 else '<'} {goal:g} | {'reached' if met(figure, goal) else 'MISSED'} | {more} |", flush=True)

    def step(self, case, model, option, goal, *options):
        """The time of a step with the pass beside that without it."""
        if self.arguments.memory:
            return
        events = run([self.arguments.stepscope, "trials", self.model(model), *COMMON, *options, "--only", f"^{option}=", "--rounds", self.arguments.rounds, "--json"])
        trials = {e["option"]: e for e in events if e.get("event") == "trial"}
        trial, nothing = trials[option], trials["(nothing)"]
        if trial["rounds"] == 0:
            raise SystemExit(f"{case}: {trial}")
        on = trial["to"] == "on"
        ratio, low, high = (trial["ratio"], trial["low"], trial["high"]) if on else (1 / trial["ratio"], 1 / trial["high"], 1 / trial["low"])
        before, after = trial["median_ns_before"], trial["median_ns_after"]
        without, with_it = (before, after) if on else (after, before)
        self.row(case, f"step, {option}", ratio, goal,
                 f"{without / 1e6:.0f} → {with_it / 1e6:.0f} ms, {low:.3f} .. {high:.3f}, the plan with itself {nothing['ratio']:.3f}, "
                 f"gradients within {trial['parity']['gradient_relative']}")

    def arena(self, case, model, option, goal, *options):
        """The planned arena with the pass beside that without it."""
        sizes = {}
        for value in ("on", "off"):
            events = run([self.arguments.stepscope, "capacity", self.model(model), *COMMON, *options, "--set", f"{option}={value}", "--json"])
            sizes[value] = next(e for e in events if e.get("event") == "capacity")["arena_bytes"]
        self.row(case, f"arena, {option}", sizes["on"] / sizes["off"], goal, f"{sizes['off'] / 2**20:.0f} → {sizes['on'] / 2**20:.0f} MiB")

    def activations(self, case, model, plan, goal, *options):
        """The largest sum of live activations of the plan with a recompute plan beside that without."""
        peaks = {}
        for setting in ("", plan):
            project = pathlib.Path(self.folder) / f"{case}{len(peaks)}.stepscope"
            run([self.arguments.stepscope, "train", self.model(model), *COMMON, *options, "--set", f"recompute.plan={setting}", "--steps", 1, "--project", project, "--json"])
            rows = run([self.arguments.stepscope, "sql", project, "SELECT class, bytes, first_use, last_use FROM buffers WHERE in_arena = 1 AND shares < 0 AND first_use >= 0", "--json"])
            if rows[-1]["cut"]:
                raise SystemExit(f"{case}: more buffers than the query gives")
            change = {}
            for kind, size, first, last in (r["values"] for r in rows if r.get("event") == "row"):
                if kind in ACTIVATIONS:
                    change[first] = change.get(first, 0) + size
                    change[last + 1] = change.get(last + 1, 0) - size
            live = peak = 0
            for at in sorted(change):
                live += change[at]
                peak = max(peak, live)
            peaks[setting] = peak
        self.row(case, f"activations, recompute.plan={plan}", peaks[plan] / peaks[""], goal, f"{peaks[''] / 2**20:.0f} → {peaks[plan] / 2**20:.0f} MiB")


def met(figure, goal):
    return figure <= goal if goal < 1 else figure < goal


def padding(bench):
    bench.step("padding", "bert_base", "pass.eliminate_padding", 0.6, "--dim", "batch=4", "--dim", "sequence=128", "--padding", "0.5")


def slices(bench):
    bench.step("slices", "roberta_base_classifier", "pass.hoist_slices", 1, "--dim", "batch=4", "--dim", "sequence=128")


def attention(bench):
    extents = ["--dim", "batch=1", "--dim", "sequence=1024"]
    bench.arena("attention", "gpt2", "pass.fuse_attention", 0.6, *extents)
    bench.step("attention", "gpt2", "pass.fuse_attention", 0.95, *extents)


def labels(bench):
    bench.step("labels", "bert_base", "pass.sparse_labels", 0.85, "--data", masked_labels(bench.folder))


def recompute(bench):
    bench.activations("recompute", "gpt2", "block:1:-1", 0.6, "--dim", "batch=2", "--dim", "sequence=256")


CASES = [padding, slices, attention, labels, recompute]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--rounds", default="12")
    parser.add_argument("--memory", action="store_true", help="planned memory alone")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(c.__name__ for c in CASES))
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - {c.__name__ for c in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        print("| case | what | with / without | goal | | |\n|---|---|---|---|---|---|", flush=True)
        for case in CASES:
            if not arguments.cases or case.__name__ in arguments.cases:
                case(bench)
        sys.exit(0 if all(met(figure, goal) for _, _, figure, goal, _ in bench.rows) else 1)


if __name__ == "__main__":
    main()

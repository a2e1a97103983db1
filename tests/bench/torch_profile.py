#!/usr/bin/env python3
"""Time of PyTorch's operators in one training step, by phase and kind. Prints one JSON line: {"forward": {kind: ms, …}, "backward": …,
"optimizer": …, "step": ms, "ops": {name: [kind, ms]}}, medians over the steps after two of warm-up; the step's wall time is measured
without the profiler. An operator's time is its own, without the operators it calls.

    python torch_profile.py TORCH_STEP.py MODEL [--batch 2] [--sequence 128] [--steps 3]

TORCH_STEP.py (../shared/peers/torch_step.py) has the function `build` that makes the model; its main program is not run.
"""
import argparse
import ast
import collections
import json
import pathlib
import statistics
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from op_kinds import PHASES, kind_of_torch


def builder(path):
    tree = ast.parse(pathlib.Path(path).read_text())
    tree.body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef))]
    names = {}
    exec(compile(tree, path, "exec"), names)
    return names["build"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("torch_step")
    parser.add_argument("name")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    a = parser.parse_args()
    torch.manual_seed(0)
    model, loss, inputs = builder(a.torch_step)(a.name, a.batch, a.sequence)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        with record_function("phase:forward"):
            value = loss(*inputs)
        with record_function("phase:backward"):
            value.backward()
        with record_function("phase:optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    wall = []
    for _ in range(2 + a.steps):
        start = time.perf_counter()
        step()
        wall.append((time.perf_counter() - start) * 1e3)
    sums, ops = [], collections.defaultdict(list)
    for _ in range(a.steps):
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            step()
        events = recorded.events()
        ranges = {e.name[6:]: (e.time_range.start, e.time_range.end) for e in events if e.name.startswith("phase:")}
        one = {phase: collections.defaultdict(float) for phase in PHASES}
        names = collections.defaultdict(float)
        for event in events:
            if event.name.startswith("phase:"):
                continue
            phase = next((p for p, (begin, end) in ranges.items() if begin <= event.time_range.start < end), None)
            if phase is None:
                continue
            kind = "optimizer" if phase == "optimizer" else kind_of_torch(event.name)
            one[phase][kind] += event.self_cpu_time_total / 1e3
            names[event.name] += event.self_cpu_time_total / 1e3
        sums.append(one)
        for name, ms in names.items():
            ops[name].append(ms)
    result = {phase: {kind: statistics.median([s[phase][kind] for s in sums]) for kind in sorted({k for s in sums for k in s[phase]})} for phase in PHASES}
    result["step"] = statistics.median(wall[2:])
    result["ops"] = {name: ["optimizer" if "Optimizer" in name else kind_of_torch(name), round(statistics.median(times), 3)]
                     for name, times in sorted(ops.items(), key=lambda item: -statistics.median(item[1]))[:40]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()

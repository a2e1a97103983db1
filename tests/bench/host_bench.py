#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one node of the Python host costs beside the function itself (plugins/python). Needs torch and onnx.

    host_bench.py STEPSCOPE PLUGIN [--steps 1000] [--rounds 3]

The step of y = f(w), loss = sum(y), with f as an autograd.Function that the host runs, forward and backward; the same step with Mul in its
place; and in this process, without any host, what the host has to call: f under no_grad, then f and its gradient. Medians, in turn.
What the node costs beside the function is step − step with Mul − calls. At most 200 µs, or exit code 1.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

MOST_US = 200
FLOAT, SHAPE = 1, (64, 64)
SOURCE = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * x * x * dy
"""


def save(node, path):
    w = numpy_helper.from_array(np.random.RandomState(0).randn(*SHAPE).astype(np.float32), "w")
    nodes = [node, helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("loss", FLOAT, [])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("stepscope.python", 1)], ir_version=8), path)


def steps_us(stepscope, plugin, model, steps):
    """Microseconds of a step: median over all but the first tenth."""
    command = [stepscope, "train", str(model), "--plugin", plugin, "--steps", str(steps), "--lr", "0", "--optimizer", "sgd", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "STEPSCOPE_PYTHON": sys.executable})
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    events = [e for e in map(json.loads, done.stdout.splitlines()) if e.get("event") == "step"]
    return statistics.median(e["ns"] for e in events[steps // 10:]) / 1e3


def calls_us(function, repeats=1000):
    w = torch.randn(*SHAPE)
    dy, times = torch.ones(*SHAPE), []
    torch.set_num_threads(1)
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        with torch.no_grad():
            function(w)
        leaf = w.detach().requires_grad_()
        torch.autograd.grad([function(leaf)], [leaf], [dy])
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times[repeats // 10:]) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stepscope")
    parser.add_argument("plugin")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cube.py").write_text(SOURCE)
        hosted = helper.make_node("Function", ["w"], ["y"], domain="stepscope.python", call="Cube", file=str(folder / "cube.py"),
                                  arguments=json.dumps([{"tensor": 0}]), types=[FLOAT], ranks=[2], shapes=list(SHAPE))
        save(hosted, folder / "hosted.onnx")
        save(helper.make_node("Mul", ["w", "w"], ["y"]), folder / "native.onnx")
        scope = {}
        exec(compile(SOURCE, "cube.py", "exec"), scope)
        rounds = [(steps_us(args.stepscope, args.plugin, folder / "hosted.onnx", args.steps),
                   steps_us(args.stepscope, args.plugin, folder / "native.onnx", args.steps), calls_us(scope["Cube"].apply)) for _ in range(args.rounds)]
    step, native, calls = (statistics.median(part) for part in zip(*rounds))
    beside = step - native - calls
    print(f"step with the node {step:.0f} µs, with Mul {native:.0f} µs; the function called so without a host {calls:.0f} µs; beside it {beside:.0f} µs (at most {MOST_US})")
    sys.exit(0 if beside <= MOST_US else 1)


if __name__ == "__main__":
    main()

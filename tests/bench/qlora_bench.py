# SPDX-License-Identifier: Apache-2.0
"""QLoRA of a llama with 1.1 billion parameters: frozen weights in four bits (NF4), adapters of rank 8 on queries and values trained with AdamW.

    qlora_bench.py STEPSCOPE FOLDER [--tokens N] [--layers N] [--steps N] [--keep]

Needs the Python packages onnx and numpy, and 1 GB of disk. Contents are random: shapes, bytes and times are those of TinyLlama 1.1B, losses are not.
Prints the time of a step, the peak that was planned, and that of the process.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

HIDDEN, HEADS, GROUPS, INNER, VOCABULARY, RANK, BLOCK = 2048, 32, 4, 5632, 32000, 8, 64
HEAD = HIDDEN // HEADS


class Writer:
    def __init__(self, folder):
        self.random = np.random.default_rng(0)
        self.nodes, self.weights, self.parameters = [], [], 0
        self.data = open(folder / "model.weights", "wb")

    def op(self, kind, inputs, outputs=1, domain="", **attributes):
        name = f"{kind}_{len(self.nodes)}"
        made = [f"{name}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, made, name=name, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def weight(self, name, array):
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), data_location=TensorProto.EXTERNAL)
        self.data.write(b"\0" * (-self.data.tell() % 64))
        for key, value in (("location", "model.weights"), ("offset", self.data.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        self.data.write(array.tobytes())
        self.weights.append(tensor)
        return name

    def ints(self, name, *values):
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def normal(self, name, *shape, scale=0.02):
        self.parameters += int(np.prod(shape))
        return self.weight(name, (self.random.standard_normal(shape, np.float32) * np.float32(scale)))

    def linear(self, name, x, rows, columns):
        """x · w, w of four bits: codes of NF4, two in a byte, and the largest of each block."""
        self.parameters += rows * columns
        codes = self.weight(f"{name}.weight", self.random.integers(0, 256, rows * columns // 2, np.uint8))
        largest = self.weight(f"{name}.absmax", np.full(rows * columns // BLOCK, 0.036, np.float32))
        return self.op("MatMulBnb4", [x, codes, largest], domain="com.microsoft", K=rows, N=columns, block_size=BLOCK, quant_type=1, training_mode=1)

    def adapted(self, name, x, rows, columns):
        a, b = self.normal(f"{name}.lora_A", rows, RANK), self.normal(f"{name}.lora_B", RANK, columns, scale=0)
        return self.op("Add", [self.linear(name, x, rows, columns), self.op("MatMul", [self.op("MatMul", [x, a]), b])])

    def norm(self, name, x):
        return self.op("SimplifiedLayerNormalization", [x, self.weight(name, np.ones(HIDDEN, np.float32))], epsilon=1e-5)


def rotated(w, x):
    left, right = w.op("Split", [x, "halves"], 2, axis=-1)
    turned = w.op("Concat", [w.op("Neg", [right]), left], axis=-1)
    return w.op("Add", [w.op("Mul", [x, "cosines"]), w.op("Mul", [turned, "sines"])])


def layer(w, i, x, tokens):
    h = w.norm(f"layers.{i}.input_norm", x)
    split = lambda y, heads: w.op("Transpose", [w.op("Reshape", [y, w.ints(f"{y}.heads", 1, tokens, heads, HEAD)])], perm=[0, 2, 1, 3])
    q = rotated(w, split(w.adapted(f"layers.{i}.q", h, HIDDEN, HIDDEN), HEADS))
    k = rotated(w, split(w.linear(f"layers.{i}.k", h, HIDDEN, GROUPS * HEAD), GROUPS))
    v = split(w.adapted(f"layers.{i}.v", h, HIDDEN, GROUPS * HEAD), GROUPS)
    shared = []
    for y in (k, v):  # each group of heads reads the same keys
        wide = w.op("Expand", [w.op("Unsqueeze", [y, "two"]), "groups"])
        shared.append(w.op("Reshape", [wide, "all_heads"]))
    scores = w.op("Add", [w.op("Mul", [w.op("MatMul", [q, w.op("Transpose", [shared[0]], perm=[0, 1, 3, 2])]), "scale"]), "mask"])
    mixed = w.op("MatMul", [w.op("Softmax", [scores], axis=-1), shared[1]])
    mixed = w.op("Reshape", [w.op("Transpose", [mixed], perm=[0, 2, 1, 3]), "rows"])
    x = w.op("Add", [x, w.linear(f"layers.{i}.o", mixed, HIDDEN, HIDDEN)])
    h = w.norm(f"layers.{i}.inner_norm", x)
    gate = w.linear(f"layers.{i}.gate", h, HIDDEN, INNER)
    inner = w.op("Mul", [w.op("Mul", [gate, w.op("Sigmoid", [gate])]), w.linear(f"layers.{i}.up", h, HIDDEN, INNER)])
    return w.op("Add", [x, w.linear(f"layers.{i}.down", inner, INNER, HIDDEN)])


def write(folder, tokens, layers):
    w = Writer(folder)
    angles = np.outer(np.arange(tokens), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
    angles = np.concatenate([angles, angles], axis=1).astype(np.float32)
    w.weight("cosines", np.cos(angles)), w.weight("sines", np.sin(angles))
    w.weight("mask", np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))
    w.weights.append(helper.make_tensor("scale", TensorProto.FLOAT, [], [HEAD**-0.5]))
    w.ints("halves", HEAD // 2, HEAD // 2), w.ints("two", 2), w.ints("groups", 1, GROUPS, HEADS // GROUPS, tokens, HEAD)
    w.ints("all_heads", 1, HEADS, tokens, HEAD), w.ints("rows", 1, tokens, HIDDEN), w.ints("scores", tokens, VOCABULARY)
    x = w.op("Gather", [w.normal("embedding", VOCABULARY, HIDDEN), "input_ids"])
    for i in range(layers):
        x = layer(w, i, x, tokens)
    logits = w.op("Reshape", [w.linear("head", w.norm("norm", x), HIDDEN, VOCABULARY), "scores"])
    w.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, "labels"], ["loss"], name="loss"))
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, tokens]), helper.make_tensor_value_info("labels", TensorProto.INT64, [tokens])]
    graph = helper.make_graph(w.nodes, "llama", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], w.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=9), folder / "model.onnx")
    w.data.close()
    rng = np.random.default_rng(1)
    np.savez(folder / "batches.npz", input_ids=rng.integers(0, VOCABULARY, (2, 1, tokens)), labels=rng.integers(0, VOCABULARY, (2, tokens)))
    return w.parameters


parser = argparse.ArgumentParser()
parser.add_argument("stepscope")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--tokens", type=int, default=128)
parser.add_argument("--layers", type=int, default=22)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--keep", action="store_true", help="take the model that lies there")
arguments = parser.parse_args()
arguments.folder.mkdir(parents=True, exist_ok=True)
if not arguments.keep:
    print(f"{write(arguments.folder, arguments.tokens, arguments.layers) / 1e9:.3f} billion parameters")
command = [arguments.stepscope, "train", arguments.folder / "model.onnx", "--data", arguments.folder / "batches.npz", "--train", "lora_", "--optimizer", "adamw"]
command += ["--lr", "0.001", "--steps", str(arguments.steps), "--json"]
done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
if done.returncode != 0:
    sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
for event in events:
    if event["event"] == "step":
        print(f"step {event['step']}: loss {event['loss']:.4f}, {event['ns'] / 1e9:.2f} s, planned peak {event['planned_bytes'] / 2**30:.2f} GiB")
print(f"peak of the process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20:.2f} GiB")

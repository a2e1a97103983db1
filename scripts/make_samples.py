#!/usr/bin/env python3
"""Makes app/samples: models and batches, one or two for each journey of the guide (app/guide).

    make_samples.py [NAME…]        without names: all but two_runs, whose times are those of the machine

Needs onnx, numpy and scikit-learn (for the digits) from pip; two_runs needs the program (build/release/bin/stepscope), and
is recorded again until nothing else runs on the machine. The same files come out on every run, but for two_runs.
"""
import contextlib
import pathlib
import sqlite3
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

QUIET, MOST_TRIES = 0.05, 24  # of the processor time, while two_runs is recorded
SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "app" / "samples"


class Builder:
    """Collects nodes and initializers; `op` returns the name of the first output."""

    def __init__(self, seed):
        self.nodes, self.initializers, self.random = [], [], np.random.default_rng(seed)

    def weight(self, name, *shape, scale=0.02):
        return self.constant(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def value(self, name, array):
        """A constant node: not a parameter."""
        return self.op("Constant", name, [], value=numpy_helper.from_array(np.asarray(array)))

    def op(self, kind, path, inputs, outputs=1, **attributes):
        names = [f"{path}/{kind}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{path}/{kind}", **attributes))
        return names[0] if outputs == 1 else names

    def save(self, path, name, inputs, outputs):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="stepscope make_samples.py", ir_version=8)
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString())


def linear(b, path, x, rows, columns):
    name = path.strip("/").replace("/", ".")
    product = b.op("MatMul", path, [x, b.weight(f"{name}.weight", rows, columns)])
    return b.op("Add", path, [product, b.constant(f"{name}.bias", np.zeros(columns, np.float32))])


def norm(b, path, x, width):
    name = path.strip("/").replace("/", ".")
    return b.op("LayerNormalization", path, [x, b.constant(f"{name}.weight", np.ones(width, np.float32)),
                                            b.constant(f"{name}.bias", np.zeros(width, np.float32))], axis=-1, epsilon=1e-5)


def language_model(folder, vocabulary=256, width=96, heads=4, layers=2, context=64, batch=8, entries=150):
    b = Builder(7)
    ints = lambda *values: np.array(values, np.int64)
    tokens = b.op("Gather", "/wte", [b.weight("wte.weight", vocabulary, width), "input_ids"])
    x = b.op("Add", "/embed", [tokens, b.weight("wpe.weight", context, width)])
    mask = b.value("/mask", np.triu(np.full((context, context), -np.inf, np.float32), 1))
    split = b.value("/heads", ints(0, 0, heads, width // heads))
    merge = b.value("/merge", ints(0, 0, width))
    scale = b.value("/scale", np.float32((width // heads) ** -0.5))
    half, one, root2 = (b.value(f"/{n}", np.float32(v)) for n, v in (("half", 0.5), ("one", 1.0), ("root2", 2 ** 0.5)))
    for layer in range(layers):
        path = f"/h.{layer}"
        h = linear(b, f"{path}/attn/qkv", norm(b, f"{path}/ln_1", x, width), width, 3 * width)
        q, k, v = b.op("Split", f"{path}/attn", [h], 3, axis=2)
        shaped = {n: b.op("Transpose", f"{path}/attn/{n}", [b.op("Reshape", f"{path}/attn/{n}", [t, split])],
                          perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3]) for n, t in (("q", q), ("k", k), ("v", v))}
        scores = b.op("Mul", f"{path}/attn/scale", [b.op("MatMul", f"{path}/attn/scores", [shaped["q"], shaped["k"]]), scale])
        weights = b.op("Softmax", f"{path}/attn", [b.op("Add", f"{path}/attn/mask", [scores, mask])], axis=-1)
        mixed = b.op("Transpose", f"{path}/attn/merge", [b.op("MatMul", f"{path}/attn/mix", [weights, shaped["v"]])], perm=[0, 2, 1, 3])
        out = linear(b, f"{path}/attn/proj", b.op("Reshape", f"{path}/attn/merge", [mixed, merge]), width, width)
        x = b.op("Add", f"{path}/attn/residual", [x, out])
        h = linear(b, f"{path}/mlp/fc", norm(b, f"{path}/ln_2", x, width), width, 4 * width)
        erf = b.op("Add", f"{path}/mlp/act/one", [b.op("Erf", f"{path}/mlp/act", [b.op("Div", f"{path}/mlp/act", [h, root2])]), one])
        gelu = b.op("Mul", f"{path}/mlp/act/half", [b.op("Mul", f"{path}/mlp/act", [h, erf]), half])
        x = b.op("Add", f"{path}/mlp/residual", [x, linear(b, f"{path}/mlp/proj", gelu, 4 * width, width)])
    logits = b.op("MatMul", "/head", [norm(b, "/ln_f", x, width), b.weight("head.weight", width, vocabulary)])
    rows = b.op("Reshape", "/loss/rows", [logits, b.value("/loss/matrix", ints(-1, vocabulary))])
    targets = b.op("Reshape", "/loss/targets", ["labels", b.value("/loss/flat", ints(-1))])
    b.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [rows, targets], ["loss"], name="/loss/SoftmaxCrossEntropyLoss", reduction="mean"))
    b.save(folder / "model.onnx", "language_model",
           [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", context]) for n in ("input_ids", "labels")],
           [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])])
    text = np.frombuffer((SAMPLES / "sonnets.txt").read_bytes(), np.uint8)
    starts = np.random.default_rng(8).integers(0, len(text) - context - 1, (entries, batch))
    windows = np.stack([[text[s:s + context + 1] for s in row] for row in starts]).astype(np.int64)
    np.savez_compressed(folder / "batches.npz", input_ids=windows[..., :-1], labels=windows[..., 1:])


def digits(folder, batch=32):
    from sklearn.datasets import load_digits
    data = load_digits()
    b = Builder(9)
    x = "image"
    channels = 1
    for stage, width in enumerate((16, 32)):
        path, name = f"/stages.{stage}", f"stages.{stage}"
        x = b.op("Conv", f"{path}/conv", [x, b.weight(f"{name}.conv.weight", width, channels, 3, 3, scale=(2 / (9 * channels)) ** 0.5)], pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        statistics = [b.constant(f"{name}.bn.{p}", np.full(width, v, np.float32)) for p, v in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1))]
        x = b.op("BatchNormalization", f"{path}/bn", [x, *statistics], 3, training_mode=1, epsilon=1e-5, momentum=0.9)[0]
        x = b.op("Relu", f"{path}/relu", [x])
        x = b.op("MaxPool", f"{path}/pool", [x], kernel_shape=[2, 2], strides=[2, 2])
        channels = width
    x = b.op("Flatten", "/flatten", [x], axis=1)
    b.nodes.append(helper.make_node("Gemm", [x, b.weight("head.weight", 10, 32 * 4, scale=0.05), b.constant("head.bias", np.zeros(10, np.float32))], ["logits"], name="/head/Gemm", transB=1))
    b.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "label"], ["loss"], name="/loss/SoftmaxCrossEntropyLoss", reduction="mean"))
    b.save(folder / "model.onnx", "digits",
           [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8]), helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"])],
           [helper.make_tensor_value_info("loss", TensorProto.FLOAT, []), helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])])
    order = np.random.default_rng(10).permutation(len(data.images))
    count = len(order) // batch
    order = order[:count * batch]
    np.savez_compressed(folder / "batches.npz", image=(data.images[order] / 16).astype(np.float32).reshape(count, batch, 1, 8, 8),
                        label=data.target[order].astype(np.int64).reshape(count, batch))


def save_digits(folder, model, poisoned=None):
    """The model with the batches of the digits; in step `poisoned` one pixel of the fourth image is NaN."""
    (folder / "model.onnx").write_bytes(model)
    arrays = dict(np.load(SAMPLES / "digits" / "batches.npz"))
    if poisoned is not None:
        arrays["image"][poisoned, 3, 0, 0, 5] = np.nan
    np.savez_compressed(folder / "batches.npz", **arrays)


def nan(folder):
    save_digits(folder, (SAMPLES / "digits" / "model.onnx").read_bytes(), poisoned=40)


def too_large(folder, width=64, blocks=12):
    """Convolutions of 1 × 1 with Gelu between them: little weight, much to keep for the backward phase, cheap to compute again."""
    b = Builder(11)
    half, one, root2 = (b.value(f"/{n}", np.float32(v)) for n, v in (("half", 0.5), ("one", 1.0), ("root2", 2**0.5)))

    def convolution(path, x, channels, size):
        name = path.strip("/").replace("/", ".")
        weight = b.weight(f"{name}.weight", width, channels, size, size, scale=(1 / (size * size * channels)) ** 0.5)
        return b.op("Conv", path, [x, weight, b.constant(f"{name}.bias", np.zeros(width, np.float32))], pads=[size // 2] * 4, kernel_shape=[size, size])

    x = convolution("/stem", "image", 1, 3)
    for block in range(blocks):
        path = f"/blocks.{block}"
        h = convolution(f"{path}/conv", x, width, 1)
        erf = b.op("Add", f"{path}/act/one", [b.op("Erf", f"{path}/act", [b.op("Div", f"{path}/act", [h, root2])]), one])
        x = b.op("Add", f"{path}/residual", [x, b.op("Mul", f"{path}/act/half", [b.op("Mul", f"{path}/act", [h, erf]), half])])
    x = b.op("Flatten", "/flatten", [b.op("GlobalAveragePool", "/pool", [x])], axis=1)
    logits = linear(b, "/head", x, width, 10)
    b.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, "label"], ["loss"], name="/loss/SoftmaxCrossEntropyLoss", reduction="mean"))
    b.save(folder / "model.onnx", "too_large",
           [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8]), helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"])],
           [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])])
    save_digits(folder, (folder / "model.onnx").read_bytes())


def padding(folder, vocabulary=128, width=64, heads=4, longest=64, batch=8, entries=60):
    """The lines of the sonnets as sentences of different length, in rows of one length: token 0, mask 0 and label -100 behind their end."""
    b = Builder(12)
    ints = lambda *values: np.array(values, np.int64)
    x = b.op("Add", "/embed", [b.op("Gather", "/wte", [b.weight("wte.weight", vocabulary, width), "input_ids"]), b.weight("wpe.weight", longest, width)])
    mask = b.op("Cast", "/mask", ["attention_mask"], to=TensorProto.FLOAT)
    hidden = b.op("Mul", "/mask/scale", [b.op("Sub", "/mask/one", [b.value("/one", np.float32(1)), mask]), b.value("/low", np.float32(-10000))])
    bias = b.op("Unsqueeze", "/mask/rows", [hidden, b.value("/mask/axes", ints(1, 2))])
    split, merge = b.value("/heads", ints(0, 0, heads, width // heads)), b.value("/merge", ints(0, 0, width))
    scale = b.value("/scale", np.float32((width // heads) ** -0.5))
    for layer in range(2):
        path = f"/layers.{layer}"
        h = norm(b, f"{path}/norm_1", x, width)
        q, k, v = b.op("Split", f"{path}/attention", [linear(b, f"{path}/attention/qkv", h, width, 3 * width)], 3, axis=2)
        shaped = {n: b.op("Transpose", f"{path}/attention/{n}", [b.op("Reshape", f"{path}/attention/{n}", [t, split])],
                          perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3]) for n, t in (("q", q), ("k", k), ("v", v))}
        scores = b.op("Mul", f"{path}/attention/scale", [b.op("MatMul", f"{path}/attention/scores", [shaped["q"], shaped["k"]]), scale])
        weights = b.op("Softmax", f"{path}/attention", [b.op("Add", f"{path}/attention/mask", [scores, bias])], axis=-1)
        mixed = b.op("Transpose", f"{path}/attention/merge", [b.op("MatMul", f"{path}/attention/mix", [weights, shaped["v"]])], perm=[0, 2, 1, 3])
        x = b.op("Add", f"{path}/attention/residual", [x, linear(b, f"{path}/attention/out", b.op("Reshape", f"{path}/attention/merge", [mixed, merge]), width, width)])
        h = linear(b, f"{path}/mlp/up", norm(b, f"{path}/norm_2", x, width), width, 2 * width)
        x = b.op("Add", f"{path}/mlp/residual", [x, linear(b, f"{path}/mlp/down", b.op("Relu", f"{path}/mlp", [h]), 2 * width, width)])
    logits = linear(b, "/head", norm(b, "/norm", x, width), width, vocabulary)
    rows = b.op("Reshape", "/loss/rows", [logits, b.value("/loss/matrix", ints(-1, vocabulary))])
    targets = b.op("Reshape", "/loss/targets", ["labels", b.value("/loss/flat", ints(-1))])
    b.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [rows, targets], ["loss"], name="/loss/SoftmaxCrossEntropyLoss", reduction="mean", ignore_index=-100))
    b.save(folder / "model.onnx", "padding",
           [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", longest]) for n in ("input_ids", "attention_mask", "labels")],
           [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])])
    lines = [line.strip()[: longest + 1] for line in (SAMPLES / "sonnets.txt").read_bytes().splitlines() if len(line.strip()) > 4]
    random = np.random.default_rng(13)
    shape = (entries, batch, longest)
    tokens, valid, labels = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -100, np.int64)
    for step in range(entries):
        for row in range(batch):
            text = np.frombuffer(lines[random.integers(len(lines))], np.uint8).astype(np.int64) % vocabulary
            text = text[: random.integers(8, len(text) + 1)] if len(text) > 8 else text
            count = len(text) - 1
            tokens[step, row, :count], valid[step, row, :count], labels[step, row, :count] = text[:-1], 1, text[1:]
    np.savez_compressed(folder / "batches.npz", input_ids=tokens, attention_mask=valid, labels=labels)


def two_runs(folder):
    program = SAMPLES.parent.parent / "build" / "release" / "bin" / "stepscope"
    project = folder / "two_runs.stepscope"
    digits = SAMPLES / "digits"
    for _ in range(MOST_TRIES):
        project.unlink(missing_ok=True)
        for rate in ("0.05", "0.2"):
            subprocess.run([program, "train", digits / "model.onnx", "--data", digits / "batches.npz", "--optimizer", "sgd", "--lr", rate, "--steps", "40", "--threads", "1",
                            "--project", project], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        if (waited := waited_in(project)) <= QUIET:
            return
        print(f"{project.name}: waited for {waited:.0%} of the processor time; again")
        time.sleep(5)
    raise SystemExit(f"{project.name}: the machine was busy {MOST_TRIES} times; expected to wait for at most {QUIET:.0%} of the processor time")


# Of the processor time that was asked for, the share that something else had: of the run that waited longest.
def waited_in(project):
    with contextlib.closing(sqlite3.connect(f"file:{project}?mode=ro", uri=True)) as file:
        shares = file.execute("SELECT 1.0 * sum(wait_ns) / (sum(cpu_ns) + sum(wait_ns)) FROM steps GROUP BY run").fetchall()
    return max(share for (share,) in shares)


if __name__ == "__main__":
    makers = {make.__name__: make for make in (language_model, digits, nan, padding, too_large, two_runs)}
    for name in sys.argv[1:] or [name for name in makers if name != "two_runs"]:
        target = SAMPLES / name
        target.mkdir(parents=True, exist_ok=True)
        makers[name](target)
        print(target, [f"{f.name} {f.stat().st_size}" for f in sorted(target.iterdir())])

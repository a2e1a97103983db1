#!/usr/bin/env python3
"""Cases of PyTorch (written with 2.15, CPU): python make_torch.py

Its wheels of 1.9 and 2.3 cannot be installed beside a present Python, so files of that age are made by the TorchScript exporter
at the opsets of their time: 9 to 13 as 1.9 wrote them, 14 to 17 as 2.3 did, with dynamic axes and the If nodes that came with them.
Then ONNX Runtime's optimiser at all its levels, and its quantised forms, of two of these files (onnxruntime 1.32).
"""

import pathlib
import tempfile

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

from case import FOLDER, save, wave

torch.manual_seed(0)


def case(name, model, inputs, opset, dynamic=None, outputs=("y",), dynamo=False):
    model = model.eval()
    with torch.no_grad():  # scales begin at one and biases at zero, where no two of them could be told apart
        for i, p in enumerate(model.parameters()):
            if p.ndim == 1:
                p += torch.from_numpy(wave(*p.shape, scale=0.1, phase=i))
    names = [f"x{i}" if len(inputs) > 1 else "x" for i in range(len(inputs))]
    tensors = tuple(torch.from_numpy(v) for v in inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.onnx")
        if dynamo:
            torch.onnx.export(model, tensors, path, dynamo=True, input_names=names, output_names=list(outputs), external_data=False)
        else:
            torch.onnx.export(model, tensors, path, dynamo=False, opset_version=opset, input_names=names,
                              output_names=list(outputs), dynamic_axes=dynamic, do_constant_folding=opset != 9)
        proto = onnx.load(path)
    found = model(*tensors)
    found = found if isinstance(found, tuple) else (found,)
    target = wave(*found[0].shape, phase=0.3)
    F.mse_loss(found[0], torch.from_numpy(target)).backward()
    gradients = [(p.detach().numpy(), p.grad.numpy()) for p in model.parameters() if p.grad is not None]
    save(name, proto, dict(zip(names, inputs)), {n: v.detach().numpy() for n, v in zip(outputs, found)}, target, gradients)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn, self.head = kind(5, 6, batch_first=True, **options), nn.Linear(12 if options.get("bidirectional") else 6, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Stacked(nn.Module):
    """hstack, squeeze of an extent that only the batch tells, interpolation."""

    def __init__(self):
        super().__init__()
        self.up, self.head = nn.ConvTranspose2d(3, 4, 2, stride=2), nn.Linear(8, 2)

    def forward(self, x):
        y = F.interpolate(F.leaky_relu(self.up(x)), scale_factor=2, mode="bilinear", align_corners=False)
        pooled = torch.hstack([y.mean((2, 3)), y.amax((2, 3))])
        return self.head(pooled)


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 1, 1)

    def forward(self, x):
        y = torch.squeeze(self.conv(x), 2)
        return torch.flatten(y * y, 1)


class Block(nn.Module):
    """A layer of a transformer, before whose parts it normalises."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.narrow(F.gelu(self.wide(self.after(x))))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.proj = nn.Embedding(11, 8), nn.GroupNorm(2, 8), nn.Linear(8, 8)

    def forward(self, ids):
        h = self.embed(ids)
        gate = torch.sigmoid(self.proj(h))
        return self.norm((h * gate).transpose(1, 2)) + torch.cumsum(h, 1).transpose(1, 2)


cnn = lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4),
                            nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
image = wave(2, 3, 8, 8)
attention = Block
case("torch_19_cnn_opset9", cnn(), [image], 9)
case("torch_19_lstm_opset11", Recurrent(nn.LSTM), [wave(2, 4, 5)], 11, {"x": {0: "batch", 1: "time"}})
case("torch_19_gru_opset12", Recurrent(nn.GRU, bidirectional=True), [wave(2, 4, 5)], 12)
case("torch_19_mlp_opset13", nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softplus()), [wave(4, 6)], 13,
     {"x": {0: "batch"}})
case("torch_23_stacked_opset14", Stacked(), [image], 14, {"x": {0: "batch"}})
case("torch_23_squeeze_opset15", Squeezed(), [wave(2, 2, 3)], 15, {"x": {0: "batch", 2: "length"}, "y": {0: "batch", 1: "width"}})
case("torch_23_transformer_opset17", attention(), [wave(2, 5, 8)], 17, {"x": {0: "batch", 1: "time"}})
case("torch_23_embedding_opset16", Gated(), [np.array([[1, 2, 3], [4, 5, 10]])], 16, {"x": {0: "batch"}})
case("torch_215_dynamo", attention(), [wave(2, 5, 8)], 18, dynamo=True)


def optimised():
    import onnxruntime as ort
    from onnxruntime import quantization

    ort.set_default_logger_severity(3)
    levels = {"basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
              "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}
    for base in ("torch_19_cnn_opset9", "torch_23_transformer_opset17"):
        source, held = str(FOLDER / base / "model.onnx"), np.load(FOLDER / base / "case.npz")
        before = {n: v for n, v in __import__("case").initializers(onnx.load(source)).items()}
        gradients = [(before[k[5:]], held[k]) for k in held.files if k.startswith("grad.")]
        inputs = {k[3:]: held[k] for k in held.files if k.startswith("in.")}
        for level, value in levels.items():
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder) / "model.onnx")
                options = ort.SessionOptions()
                options.graph_optimization_level, options.optimized_model_filepath = value, path
                session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
                outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
                kind = "cnn" if "cnn" in base else "transformer"
                save(f"ort_{level}_{kind}", onnx.load(path), inputs, outputs, held["target"], gradients)
    # Quantised files have no gradient in the framework that made them: outputs alone.
    source, held = str(FOLDER / "torch_19_mlp_opset13" / "model.onnx"), np.load(FOLDER / "torch_19_mlp_opset13" / "case.npz")
    inputs = {k[3:]: held[k] for k in held.files if k.startswith("in.")}

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.rows = iter([inputs])

        def get_next(self):
            return next(self.rows, None)

    with tempfile.TemporaryDirectory() as folder:
        for name in ("ort_quantised_qdq", "ort_quantised_dynamic"):
            path = str(pathlib.Path(folder) / f"{name}.onnx")
            if name.endswith("qdq"):
                quantization.quantize_static(source, path, Reader(), quant_format=quantization.QuantFormat.QDQ)
            else:
                quantization.quantize_dynamic(source, path)
            session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            save(name, onnx.load(path), inputs, dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs))))


optimised()

#!/usr/bin/env python3
"""How far PyTorch's own low types are from float64 on the corpus' resnet (written with 2.15, CPU, torchvision):

    python make_corpus_low.py CORPUS_FOLDER

writes corpus_low.json beside it, all of it in the terms of the corpus' check.py: relative error of the first loss and of the worst
one, smallest cosine and farthest norm of the first gradients that count.

 - bf16, fp16: autocast, from several starts that differ by a rounding of float32.
 - floor: float64 everywhere; only the weights of convolutions and of the last layer are rounded to the low type where they are
   read. Whatever computes with low weights has this error at least.
 - perturbed: float64 throughout, every parameter off by a share of 1e-4 before the first step.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

from corpus_low_test import judge, load_check

STARTS, SCALE = 5, 1024.0
LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}


def network(weights):
    """The corpus' resnet (make_torchscript.py there) with the parameters of its file."""
    model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10)
    for m in list(model.modules()):
        for name, child in list(m.named_children()):
            if isinstance(child, nn.Conv2d):
                inputs = 3 if child.in_channels == 3 else child.in_channels // 8
                setattr(m, name, nn.Conv2d(inputs, child.out_channels // 8, child.kernel_size, child.stride, child.padding, bias=False))
            elif isinstance(child, nn.BatchNorm2d):
                setattr(m, name, nn.BatchNorm2d(child.num_features // 8))
    model.conv1.stride = (1, 1)
    model.fc = nn.Linear(64, 10)
    state = model.state_dict()
    for name in state:
        if "num_batches" not in name:
            state[name] = torch.from_numpy(weights["model." + name].copy())
    model.load_state_dict(state)
    return model.train()


class Rounded(torch.autograd.Function):
    """Rounds on the way forward; the gradient passes."""

    @staticmethod
    def forward(context, x, dtype):
        return x.to(dtype).to(x.dtype)

    @staticmethod
    def backward(context, dy):
        return dy, None


def with_rounded_weights(model, dtype):
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.forward = lambda x, m=module: F.conv2d(x, Rounded.apply(m.weight, dtype), None, m.stride, m.padding)
        elif isinstance(module, nn.Linear):
            module.forward = lambda x, m=module: F.linear(x, Rounded.apply(m.weight, dtype), m.bias)
    return model


def main():
    corpus = pathlib.Path(sys.argv[1])
    check, folder = load_check(corpus), corpus / "resnet"
    case, golden = json.loads((folder / "case.json").read_text()), check.load_safetensors(folder / "golden.safetensors")
    weights = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(folder / "model.onnx")).graph.initializer}
    batches = np.load(folder / "batches.npz")

    def train(model, autocast=None, scale=1.0, start=0, size=6e-8):
        dtype = next(model.parameters()).dtype
        generator = torch.Generator().manual_seed(start)
        with torch.no_grad():
            for p in model.parameters():
                if start:
                    p.mul_(1 + size * torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        losses, first = [], {}
        for step in range(case["steps"]):
            x, label = torch.from_numpy(batches["image"][step]).to(dtype), torch.from_numpy(batches["label"][step])
            with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
                loss = F.cross_entropy(model(x), label)
            (loss * scale).backward()
            for name, p in model.named_parameters():
                p.grad /= scale
                if step == 0:
                    first["model." + name] = p.grad.detach().double().numpy().copy()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach().double()))
        return judge(golden, case, first, losses)

    found = {"floor": {}}
    for name, dtype in LOW.items():
        scale = SCALE if name == "fp16" else 1.0
        found[name] = [train(network(weights), dtype, scale, start) for start in range(STARTS)]
        found["floor"][name] = train(with_rounded_weights(network(weights).double(), dtype))
    found["perturbed"] = [train(network(weights).double(), start=start, size=1e-4) for start in range(1, STARTS + 1)]
    (pathlib.Path(__file__).parent / "corpus_low.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

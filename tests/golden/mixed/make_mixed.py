#!/usr/bin/env python3
"""Mixed precision of PyTorch (written with 2.15, CPU): python make_mixed.py [CASE…]

A case is a folder: model.onnx with its loss inside, batches.npz (leading axis: step), case.json with the arguments of
`stepscope train` and the losses of every step in float32, and under autocast in bfloat16 and float16 (with a fixed loss scale,
as the arguments say), each from several starts that differ by a rounding of float32. Files in a low type (.half(), .bfloat16())
have the losses of PyTorch training them as they are.
"""

import copy
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent
STEPS, STARTS, SCALE = 16, 5, 1024.0
LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, target):
        logits = self.model(x)
        return F.cross_entropy(logits.flatten(0, -2), target.flatten())


class Attention(nn.Module):
    """One pre-norm block with causal attention, over an embedding with a tied decoder."""

    def __init__(self, words=48, width=32, heads=4):
        super().__init__()
        self.words, self.heads = nn.Embedding(words, width), heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("mask", torch.full((12, 12), -1e4).triu(1))

    def forward(self, ids):
        x = self.words(ids)
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, w // self.heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5 + self.mask
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, w))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return x @ self.words.weight.t()


class Gated(nn.Module):
    """RMSNorm and a gated unit."""

    def __init__(self):
        super().__init__()
        self.first, self.gate, self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 6)
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x):
        h = self.first(x)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        return self.down(F.silu(self.gate(h)) * self.up(h))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Residual(nn.Module):
    """Two residual blocks with batch normalisation, whose small batches low types disturb most."""

    def __init__(self):
        super().__init__()
        stage = lambda i, o, stride: nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                                   nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.one, self.two = stage(16, 16, 1), stage(16, 32, 2)
        self.skip, self.head = nn.Conv2d(16, 32, 1, 2, bias=False), nn.Linear(32, 6)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(x + self.one(x))
        x = F.relu(self.skip(x) + self.two(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def convolutional():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 6))


def train(module, batches, options, kind, start):
    """Losses of all steps. kind: fp32, bf16, fp16 (autocast), or low (the file as it is)."""
    module = copy.deepcopy(module).train()
    generator = torch.Generator().manual_seed(start)
    with torch.no_grad():
        for p in module.parameters():
            if start:
                p.mul_(1 + 6e-8 * torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype))
    make = torch.optim.SGD if options["optimizer"] == "sgd" else torch.optim.AdamW
    optimizer = make(module.parameters(), **{k: v for k, v in options.items() if k != "optimizer"})
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=10**6, enabled=kind == "fp16")
    losses = []
    for x, target in zip(*batches.values()):
        x = torch.from_numpy(x)
        if kind == "low" and x.is_floating_point():
            x = x.to(next(module.parameters()).dtype)
        with torch.autocast("cpu", dtype=LOW.get(kind, torch.bfloat16), enabled=kind in LOW):
            loss = module(x, torch.from_numpy(target))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(float(loss.detach().double()))
    return losses


def save(name, model, batches, options, low=None):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    torch.manual_seed(1)
    module = WithLoss(model).train()
    if low:
        module = module.to(LOW[low])
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    x, target = (torch.from_numpy(array[0]) for array in batches.values())
    if low and x.is_floating_point():
        x = x.to(LOW[low])
    torch.onnx.export(module, (x, target), str(folder / "model.onnx"), dynamo=False, opset_version=17, input_names=list(batches),
                      output_names=["loss"], training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    np.savez_compressed(folder / "batches.npz", **batches)
    arguments = ["--loss", "loss", "--steps", str(STEPS), "--optimizer", options["optimizer"]]
    for key, value in options.items():
        if key != "optimizer":
            arguments += ["--" + key.replace("_", "-"), repr(value)]
    if any(n.endswith("mask") for n, _ in module.named_buffers()):  # a file cannot tell that it is none of the parameters
        arguments += ["--freeze", "mask"]
    case = {"arguments": arguments, "loss_scale": SCALE, "file": low or "fp32"}
    for kind in ("low",) if low else ("fp32", "bf16", "fp16"):
        case[kind] = [train(module, batches, options, kind, start) for start in range(STARTS)]
    if low:
        case["fp32"] = [train(module.float(), batches, options, "fp32", start) for start in range(STARTS)]
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    last = {k: np.mean(np.array(v)[:, -4:]) for k, v in case.items() if isinstance(v, list) and k != "arguments"}
    print(name, last, sum(f.stat().st_size for f in folder.iterdir()) // 1000, "kB")


def main():
    rng = np.random.default_rng(3)
    normal = lambda *dims: rng.standard_normal((STEPS, *dims), dtype=np.float32)
    classes = lambda x, count: np.argmax(x.reshape(*x.shape[:2], -1)[..., :count], -1).astype(np.int64)  # can be learned
    torch.manual_seed(0)
    x = normal(24, 16)
    mlp = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24), nn.Tanh(), nn.Linear(24, 6))
    sgd, adamw = {"optimizer": "sgd", "lr": 0.2, "momentum": 0.9}, {"optimizer": "adamw", "lr": 3e-3, "weight_decay": 0.01}
    save("mlp", mlp, {"x": x, "target": classes(x, 6)}, sgd)
    save("gated", Gated(), {"x": x, "target": classes(x, 6)}, adamw)
    ids = rng.integers(0, 48, (STEPS, 4, 12))
    save("attention", Attention(), {"x": ids, "target": (ids * 5 + 1) % 48}, adamw)
    images = normal(16, 1, 12, 12)
    save("convolution", convolutional(), {"x": images, "target": classes(images, 6)}, adamw)
    series = normal(6, 10, 8)
    save("recurrent", Recurrent(), {"x": series, "target": np.argmax(series[..., :5], -1).astype(np.int64)}, adamw)
    wide = normal(32, 16)
    deep = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU())], nn.Linear(16, 6))
    save("deep", deep, {"x": wide, "target": classes(wide, 6)}, adamw)
    photos = np.random.default_rng(4).standard_normal((STEPS, 8, 3, 12, 12), dtype=np.float32)
    torch.manual_seed(2)
    save("batch_norm", Residual(), {"x": photos, "target": classes(photos, 6)}, {"optimizer": "sgd", "lr": 0.02, "momentum": 0.9})
    for low in LOW:
        save(f"file_{low}", copy.deepcopy(mlp).float(), {"x": x, "target": classes(x, 6)}, {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9}, low)


if __name__ == "__main__":
    main()

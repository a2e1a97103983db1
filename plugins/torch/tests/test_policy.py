#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recompute choice of a run, applied to the PyTorch model: the same gradients, running statistics and masks, and less memory.

    test_policy.py STEPSCOPE

Exit code 77 where this Python has no torch or no onnx.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import weakref

from prerequisites import EXPORTERS  # first
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from stepscope_capture import apply_checkpoint_policy, capture

STEPSCOPE = sys.argv[1]


class Attention(nn.Module):
    """Softmax and products are functions here: no module of their own can be wrapped for them."""

    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(torch.softmax(q @ k.transpose(1, 2) / 4, -1) @ v)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width)
        self.fc1, self.act, self.fc2 = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.attention(x)
        return self.norm(x + self.dropout(self.fc2(self.act(self.fc1(x)))))


class Transformer(nn.Module):
    def __init__(self, width=16, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU()) for _ in range(3)))
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def stepscope(*arguments, fails=False):
    done = subprocess.run([STEPSCOPE, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


class Alive(TorchDispatchMode):
    """Bytes of the storages that operators made and that are still there, and the most there were."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.seen:
                storage = tensor.untyped_storage()
                self.seen.add(storage._cdata)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self.end, storage._cdata, storage.nbytes())
        return out

    def end(self, cdata, size):
        self.seen.discard(cdata)
        self.now -= size


def step(model, x, y):
    """Gradients, buffers, and how many bytes are there between the forward and the backward pass, and at most."""
    torch.manual_seed(5)
    with Alive() as alive:
        # What is there already is not of this step.
        alive.seen.update(t.untyped_storage()._cdata for t in (x, y, *model.parameters(), *model.buffers()))
        loss = nn.functional.cross_entropy(model(x), y)
        kept = alive.now
        loss.backward()
    return {n: p.grad for n, p in model.named_parameters()}, dict(model.named_buffers()), (kept, alive.peak)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def check(folder, exporter, name, model, x, plan, expected):
    y = torch.randint(0, 4, (x.shape[0],))
    captured, project, file = folder / name, folder / f"{name}.stepscope", folder / f"{name}.json"
    capture(model, nn.functional.cross_entropy, [(x, y)], captured, exporter=exporter)
    stepscope("train", captured, "--steps", 1, "--project", project, "--set", f"recompute.plan={plan}")
    text = stepscope("policy", project, "-o", file)
    plain, again = copy.deepcopy(model), copy.deepcopy(model)
    gradients, buffers, kept = step(plain, x, y)
    with apply_checkpoint_policy(again, file) as applied:
        expected(applied.modules)
        found, found_buffers, found_kept = step(again, x, y)
    assert same(gradients, found), f"{exporter} {name}: other gradients"
    assert same(buffers, found_buffers), f"{exporter} {name}: other running statistics"
    assert all(a < b for a, b in zip(found_kept, kept)), f"{exporter} {name}: {found_kept} bytes, {kept} without the policy"
    model_again = copy.deepcopy(again)
    assert all("forward" not in m.__dict__ for m in model_again.modules()), "removed at the end"
    print(f"{exporter} {name}: {list(applied.modules)} keep {found_kept[0]} of {kept[0]} bytes, at most {found_kept[1]} of {kept[1]}")
    return project, file, text


def main():
    torch.manual_seed(0)
    blocks = lambda modules: modules.keys() and {m.split(".")[0] for m in modules} == {"blocks"}  # noqa: E731

    def whole(modules):
        assert set(modules.values()) == {None} and blocks(modules), modules

    def one(modules):
        assert set(modules) <= {"blocks.0", "blocks.1", "blocks.2"} and len(modules) == 1, modules

    def products(modules):
        of_blocks = {f"blocks.{i}" for i in range(3)}  # and of their attention, where its products are in reach of the plan
        assert of_blocks <= set(modules) <= of_blocks | {f"{m}.attention" for m in of_blocks} and all("linear" in o for o in modules.values()), modules

    def gelu(modules):
        assert modules == {f"blocks.{i}": ["gelu"] for i in range(3)}, modules

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for exporter in EXPORTERS:
            here = folder / exporter
            here.mkdir()
            x = torch.randn(4, 12, 16)
            project, file, _ = check(here, exporter, "blocks", Transformer(), x, "block:1:-1", whole)
            check(here, exporter, "one", Transformer(), x, "block:1:1", one)
            check(here, exporter, "gelu", Transformer(), x, "Gelu+:1:-1", gelu)
            check(here, exporter, "products", Transformer(), x, "Product+:1:-1", products)
        # Refusals.
        for broken in ("", "[]", '{"format": "stepscope checkpoint policy", "version": 2}',
                       '{"format": "stepscope checkpoint policy", "version": 1, "modules": [3]}'):
            (folder / "broken.json").write_text(broken)
            try:
                apply_checkpoint_policy(Transformer(), folder / "broken.json")
            except ValueError as error:
                assert "broken.json" in str(error)
            else:
                raise AssertionError(f"took {broken!r}")
        try:
            apply_checkpoint_policy(Convolutions(), file)
        except ValueError as error:
            assert "Convolutions has none of that name" in str(error), error
        else:
            raise AssertionError("took another model")
        # Running statistics of what is repeated count once.
        model = Convolutions()
        (folder / "norm.json").write_text(json.dumps({"format": "stepscope checkpoint policy", "version": 1,
                                                      "modules": [{"module": f"model.body.{i}"} for i in range(3)]}))
        x, y = torch.randn(4, 4, 6, 6), torch.randint(0, 4, (4,))
        again = copy.deepcopy(model)
        gradients, buffers, _ = step(model, x, y)
        apply_checkpoint_policy(again, folder / "norm.json")
        found, found_buffers, _ = step(again, x, y)
        assert same(gradients, found) and same(buffers, found_buffers)
        plain = folder / "plain.stepscope"
        stepscope("train", folder / EXPORTERS[0] / "blocks", "--steps", 1, "--project", plain)
        assert "computes nothing again" in stepscope("policy", plain, fails=True)
    print("ok")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of bitsandbytes are captured as they are packed, and what is trained around them trains as in PyTorch.

    test_four_bit.py STEPSCOPE LIBRARY

With bitsandbytes where this Python has it, else with a layer of its name and attributes.
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

from prerequisites import EXPORTERS  # first
import onnx
import torch
from torch import nn

import stepscope_capture
from stepscope_capture import four_bit

STEPSCOPE, os.environ["STEPSCOPE_LIBRARY"] = sys.argv.pop(1), sys.argv.pop(1)
os.environ["STEPSCOPE"] = STEPSCOPE
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "app/api/python"))
sys.dont_write_bytecode = True
import stepscope  # noqa: E402

COLUMNS, ROWS, BLOCK = 64, 32, 64


class Weight(nn.Parameter):
    def __deepcopy__(self, _):
        made = Weight(self.data.clone(), requires_grad=False)
        made.quant_state = self.quant_state
        return made


class Packed(nn.Linear):
    """What bitsandbytes' layer has once its weight is packed: bytes, scales of blocks, a table."""

    def __init__(self, columns, rows, bias, quant_type, compress_statistics):
        super().__init__(columns, rows, bias)
        blocks = self.weight.detach().reshape(-1, BLOCK)
        absmax = blocks.abs().amax(1)
        codes = (blocks / absmax[:, None]).unsqueeze(-1).sub(torch.tensor(four_bit.TABLES[quant_type])).abs().argmin(-1).reshape(-1, 2).to(torch.uint8)
        self.weight = Weight((codes[:, 0] << 4 | codes[:, 1]).reshape(-1, 1), requires_grad=False)
        self.weight.quant_state = types.SimpleNamespace(absmax=absmax, nested=False, quant_type=quant_type, shape=(rows, columns), blocksize=BLOCK)
        self.compute_dtype = torch.float32

    def forward(self, x):
        state = self.weight.quant_state
        attributes = {"K": state.shape[1], "N": state.shape[0], "block_size": BLOCK, "quant_type": four_bit.KINDS.index(state.quant_type)}
        y = four_bit._product(x, self.weight.reshape(-1), state.absmax, **attributes)
        return y if self.bias is None else y + self.bias


def layer(kind, compressed):
    try:
        from bitsandbytes.nn import Linear4bit
    except ImportError:
        made = type("Linear4bit", (Packed,), {"__module__": "bitsandbytes.nn.modules"})
        return made(COLUMNS, ROWS, True, kind, compressed)
    return Linear4bit(COLUMNS, ROWS, bias=True, quant_type=kind, compute_dtype=torch.float32, compress_statistics=compressed).to("cpu")


class Adapted(nn.Module):
    """A frozen layer of four bits between a layer that is trained and an adapter beside it."""

    def __init__(self, kind, compressed):
        super().__init__()
        self.before, self.base = nn.Linear(COLUMNS, COLUMNS), layer(kind, compressed)
        self.base.requires_grad_(False)
        self.down, self.up = nn.Linear(COLUMNS, 4, bias=False), nn.Linear(4, ROWS, bias=False)

    def forward(self, x):
        h = torch.tanh(self.before(x))
        return self.base(h) + self.up(self.down(h))


class FourBit(unittest.TestCase):
    def test_layers_are_kept_and_what_is_around_them_trains(self):
        for exporter in EXPORTERS:
            for kind, compressed in (("nf4", False), ("fp4", False), ("nf4", True)):
                with self.subTest(exporter=exporter, kind=kind, compressed=compressed), tempfile.TemporaryDirectory() as name:
                    torch.manual_seed(0)
                    model, folder = Adapted(kind, compressed), pathlib.Path(name) / "captured"
                    packed = model.base.weight.detach().clone()
                    batches = [(torch.randn(4, COLUMNS), torch.randint(0, ROWS, (4,))) for _ in range(3)]
                    stepscope_capture.capture(model, nn.functional.cross_entropy, batches, folder, exporter=exporter)
                    self.assertTrue(torch.equal(model.base.weight, packed))
                    graph = onnx.load(folder / "model.onnx").graph
                    (node,) = [node for node in graph.node if node.op_type == "MatMulBnb4"]
                    self.assertEqual((node.domain, {a.name: a.i for a in node.attribute}),
                                     ("com.microsoft", {"K": COLUMNS, "N": ROWS, "block_size": BLOCK, "quant_type": four_bit.KINDS.index(kind)}))  # fmt: skip
                    held = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
                    self.assertEqual(held["model.base.weight"].tolist(), packed.tolist())
                    rows = [row for row in stepscope_capture.verify(folder) if "name" in row]  # Differs where PyTorch computed something else
                    self.assertLessEqual({"loss", "model.before.weight", "model.down.weight", "model.up.weight"}, {row["name"] for row in rows})
                    self.assertEqual({row["verdict"] for row in rows}, {"agrees"})
                    run = subprocess.run([STEPSCOPE, "train", folder, "--steps", "3", "--lr", "0.05", "--json"], capture_output=True, text=True)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    found = [event["loss"] for event in map(json.loads, run.stdout.splitlines()) if event["event"] == "step"]
                    self.assertTrue(len(found) == 3 and all(loss > 0 for loss in found), found)

    def test_a_module_in_the_loop_has_them(self):
        torch.manual_seed(0)
        theirs = Adapted("nf4", True)
        ours = stepscope.Module(copy.deepcopy(theirs), policy="raise")
        x, labels = torch.randn(4, COLUMNS), torch.randint(0, ROWS, (4,))
        for model in (theirs, ours):
            nn.functional.cross_entropy(model(x), labels).backward()
        for (name, expected), found in zip(theirs.named_parameters(), ours.parameters()):
            if expected.requires_grad:
                self.assertLess((expected.grad - found.grad).abs().max(), 1e-6, name)


if __name__ == "__main__":
    unittest.main(verbosity=1)

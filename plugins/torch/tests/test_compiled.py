# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="stepscope"): the numbers of eager, what stays with PyTorch and why.

    test_compiled.py LIBRARY
"""

import copy
import os
import pathlib
import sys
import unittest
import warnings

try:
    import onnxscript  # noqa: F401  the exporter that takes graphs of AOTAutograd
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: this Python has no {error.name}")
    sys.exit(77)

os.environ["STEPSCOPE_LIBRARY"] = sys.argv[1]
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "app/api/python"))
sys.dont_write_bytecode = True
warnings.simplefilter("ignore")
import stepscope  # noqa: E402

stepscope.compiled.register()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.mix, self.norm = nn.Conv1d(16, 16, 3, padding=1), nn.LayerNorm(16)

    def forward(self, ids):
        x = self.layer(self.words(ids))
        x = self.mix(x.transpose(1, 2)).transpose(1, 2)
        return self.norm(nn.functional.gelu(x)) @ self.words.weight.t()


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        stepscope.compiled.reset()

    def same(self, model, step, dynamic=False, tolerance=2e-4):
        """Gradients of `step` on `model`, eager and compiled; returns the compiled model."""
        other = copy.deepcopy(model)
        compiled = torch.compile(other, backend="stepscope", dynamic=dynamic)
        for _ in range(2):
            step(model).backward()
            step(compiled).backward()
        for (name, a), b in zip(model.named_parameters(), other.parameters()):
            self.assertTrue(torch.allclose(a.grad, b.grad, rtol=tolerance, atol=2e-6), f"{name}: {(a.grad - b.grad).abs().max()}")
        return compiled

    def test_a_transformer_and_a_convolution(self):
        torch.manual_seed(0)
        ids = torch.randint(0, 50, (3, 7))
        self.same(Block(), lambda m: nn.functional.cross_entropy(m(ids).transpose(1, 2), ids))
        forward, backward = stepscope.compiled.report()
        self.assertEqual((forward.phase, backward.phase), ("forward", "backward"))
        for graph in (forward, backward):
            taken = sum(p.operators for p in graph.pieces if not p.refused)
            self.assertGreater(taken, 0.9 * graph.operators, str(graph))
            self.assertEqual(sum(p.operators for p in graph.pieces) + sum(graph.eager.values()), graph.operators, str(graph))
            self.assertTrue(all(p.calls == 2 and p.plans == 1 and p.bytes_in > 0 for p in graph.pieces if not p.refused), str(graph))
        self.assertEqual(backward.eager["aten.convolution_backward.default"], 1)
        self.assertIn("1 × aten.convolution_backward.default by PyTorch", str(backward))

    def test_dropout_stays_with_pytorch(self):
        torch.manual_seed(0)
        x = torch.randn(5, 8)
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 4), nn.Softmax(-1))

        def step(m):
            torch.manual_seed(1)
            return m(x).square().sum()

        self.same(model, step)
        self.assertTrue(any("rand" in name or "dropout" in name or "bernoulli" in name for name in stepscope.compiled.report()[0].eager))

    def test_without_gradients(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
        x = torch.randn(3, 8)
        with torch.no_grad():
            got = torch.compile(model, backend="stepscope")(x)
            self.assertTrue(torch.allclose(got, model(x), atol=1e-6))
        self.assertEqual(sum(p.calls for g in stepscope.compiled.report() for p in g.pieces), 1)

    def test_other_shapes_are_other_plans_and_numbers_known_later_are_said(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
        for rows in (3, 5):
            x = torch.randn(rows, 8)
            self.same(copy.deepcopy(model), lambda m, x=x: m(x).square().sum(), dynamic=True)
        self.assertTrue(all(p.calls or p.refused for g in stepscope.compiled.report() for p in g.pieces))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)

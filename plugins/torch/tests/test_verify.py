#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What exporters lose is said: `verify` names the parameter and the likely cause, and agrees where nothing was lost.

    test_verify.py STEPSCOPE [CASE…]

Exit code 77 where this Python has no torch or no onnx.
"""

import contextlib
import pathlib
import sys
import tempfile
import warnings
from unittest import mock

from prerequisites import EXPORTERS  # first
import torch
from torch import nn

from stepscope_capture import Differs, capture, verify


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def between(self, x):
        return x

    def forward(self, x):
        return self.c(torch.tanh(self.b(self.between(torch.tanh(self.a(x))))))


class NoGrad(Layers):
    def forward(self, x):
        with torch.no_grad():
            x = torch.tanh(self.a(x))
        return self.c(torch.tanh(self.b(x)))


class Hook(Layers):
    def between(self, x):
        if x.requires_grad:
            x.register_hook(lambda gradient: 0.1 * gradient)
        return x


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Reversal(Layers):
    def between(self, x):
        return _Reverse.apply(x)


class _Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class StraightThrough(Layers):
    def between(self, x):
        return _Sign.apply(x)


class MovingAverage(Layers):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.ones(8))

    def between(self, x):
        with torch.no_grad():
            self.average.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return x * self.average


class PlainAverage(Layers):
    """Statistics that are the average of all batches: the first one does not show it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8, momentum=None)

    def between(self, x):
        return self.norm(x)


class Tied(Layers):
    def __init__(self):
        super().__init__()
        self.again = nn.Linear(8, 8)
        self.again.weight = self.b.weight

    def between(self, x):
        return torch.tanh(self.again(x))


class Noise(Layers):
    def between(self, x):
        return x + 0.1 * torch.randn(4, 8)


class Dropout(Layers):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.4)

    def between(self, x):
        return nn.functional.dropout(self.drop(self.norm(x)), 0.2, self.training)


class Attention(nn.Module):
    """Dropout inside of one call."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.2, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.layer(x.unsqueeze(1).expand(-1, 5, -1)).mean(1))


class AttentionFunction(nn.Module):
    """The function behind the layer, which a mode sees as one."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.MultiheadAttention(6, 2), nn.Linear(6, 3)

    def forward(self, x):
        layer, x = self.layer, x.unsqueeze(0).expand(5, -1, -1)
        weights = (layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.2, layer.out_proj.weight, layer.out_proj.bias)
        return self.out(nn.functional.multi_head_attention_forward(x, x, x, 6, 2, *weights)[0].mean(0))


# Module → what the verdict is, and the words of the cause.
REFUSED = ((PlainAverage, "dynamo"),)  # by that exporter
CASES = {
    NoGrad: ("differs", "no_grad or detach lost"),
    Hook: ("differs", "scales the gradient by 0.1"),
    Reversal: ("differs", "gradient reversal lost"),
    StraightThrough: ("differs", "straight-through"),
    MovingAverage: ("differs", "a buffer that forward() updates"),
    PlainAverage: ("differs", "another momentum"),
    Tied: ("agrees", ""),
    Noise: ("unchecked", "random numbers"),
    Dropout: ("agrees", ""),
    Attention: ("agrees", ""),
    AttentionFunction: ("agrees", ""),
}


def losing():
    """What capture keeps since is dropped again, as exporters do by themselves: the alerts are about that."""
    plain = lambda *_: mock.Mock(kept=False)  # noqa: E731
    stack = contextlib.ExitStack()
    owner = sys.modules["stepscope_capture.capture"]  # the module; the package has a function of that name
    changed_state = owner.changed_state
    stack.enter_context(mock.patch.object(owner, "changed_state", lambda *arguments: ([], changed_state(*arguments)[1])))
    stack.enter_context(mock.patch.multiple(sys.modules["stepscope_capture.exporters"], Markers=plain, exact_functions=contextlib.nullcontext))
    return stack


def check(stepscope, module, exporter, folder):
    torch.manual_seed(0)
    batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(2)]
    with losing():
        capture(module(), nn.functional.cross_entropy, batches, folder, exporter=exporter, opset=17)
    expected, words = CASES[module]
    *rows, summary = verify(folder, check=False, stepscope=stepscope)
    causes = [f"{row['name']}: {row['reason']} {row['cause']}" for row in rows if row["verdict"] == "differs"]
    assert summary["verdict"] == expected, f"{summary} {causes}"
    if expected == "unchecked":
        assert words in summary["reason"], summary
    if expected == "differs":
        assert all(words in cause for cause in causes), causes
        try:
            verify(folder, stepscope=stepscope)
        except Differs as differs:
            assert differs.rows and words in str(differs)
        else:
            raise AssertionError("verify does not raise")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    failed = 0
    wished = [module for module in CASES if not sys.argv[2:] or module.__name__ in sys.argv[2:]]
    cases = [case for case in ((module, exporter) for module in wished for exporter in EXPORTERS) if case not in REFUSED]
    for module, exporter in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(sys.argv[1], module, exporter, pathlib.Path(folder) / "captured")
                print(f"ok    {module.__name__} {exporter}: {CASES[module][0]}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAIL  {module.__name__} {exporter}: {error}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

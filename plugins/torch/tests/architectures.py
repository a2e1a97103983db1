# SPDX-License-Identifier: Apache-2.0
"""Small models in the habits of published training code, of 110 that were tried the ones that trained differently. Like meanings.py, into whose table they go."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from meanings import meaning


def several(make, count=3):
    return [make() for _ in range(count)]


def labels(*shape):
    return torch.randint(0, 3, shape)


# --- running statistics


@meaning
def twins_with_batch_norm():
    """A layer that is called twice updates its statistics twice."""

    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(True), nn.Linear(8, 8, bias=False))

        def forward(self, a, b):
            return self.p(a), self.p(b)

    def loss(out):
        spread = lambda z: F.relu(1 - torch.sqrt(z.var(0) + 1e-4)).mean()  # noqa: E731
        return F.mse_loss(*out) + spread(out[0]) + spread(out[1])

    return Twins(), loss, several(lambda: ((torch.randn(6, 6), torch.randn(6, 6)), ()))


@meaning
def teacher_with_statistics():
    """Statistics that the teacher counts itself and takes over from the student."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
            self.teacher = copy.deepcopy(self.student).requires_grad_(False)

        def forward(self, a, b):
            with torch.no_grad():
                for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                    t.data.lerp_(s.data, 0.01)
                for t, s in zip(self.teacher.buffers(), self.student.buffers()):
                    if t.is_floating_point():
                        t.mul_(0.9).add_(s, alpha=0.1)
                target = self.teacher(b).softmax(-1)
            return self.student(a), target

    loss = lambda out, y: F.cross_entropy(out[0], y) + F.kl_div(out[0].log_softmax(-1), out[1], reduction="batchmean")  # noqa: E731
    return Model(), loss, several(lambda: ((torch.randn(5, 6), torch.randn(5, 6)), labels(5)))


# --- diagonals


@meaning
def negatives_beside_infinity():
    """Pairs of a matrix whose other diagonal is minus infinity."""

    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.t = nn.Linear(6, 8), nn.Parameter(torch.tensor(math.log(1 / 0.07)))

        def forward(self, a, b):
            return F.normalize(self.f(torch.cat([a, b]))), self.t.exp()

    def loss(out):
        z, n = out[0], 5
        scores = (z @ z.t() * out[1]).masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
        pairs = torch.cat([torch.diag(scores, n), torch.diag(scores, -n)])
        same = torch.eye(n, dtype=torch.bool).repeat(2, 2)
        hard = scores[~same].view(2 * n, -1).topk(3, dim=1).values
        return -(pairs - torch.logsumexp(torch.cat([pairs[:, None], hard], 1), 1)).mean()

    return Towers(), loss, several(lambda: ((torch.randn(5, 6), torch.randn(5, 6)), ()))


@meaning
def diagonals():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.o = nn.Linear(6, 12), nn.Linear(8, 3)

        def forward(self, x):
            h = self.f(x).view(-1, 3, 4)
            wide = lambda t: t.sum().expand(5, 1)  # noqa: E731
            kernel = h @ h.mT
            kernel.diagonal(dim1=-2, dim2=-1).add_(1.5).mul_(h[:, 0, :3])
            parts = [wide(h.diagonal(1, 1, 2)), wide(h.diagonal(offset=-1, dim1=2, dim2=0)), wide(torch.diag(h[0, :, :3], -1)), wide(torch.trace(h[1, :, :3]))]
            return self.o(torch.cat([*parts, wide(torch.diag(h[:, 0, 0], 1)), torch.diag_embed(h[:, 0], 1, 0, 2).sum((0, 2))[:, None], kernel.sum(1)[:, :2]], 1))

    return Model(), F.cross_entropy, several(lambda: (torch.randn(5, 6), labels(5)))


@meaning
def diagonal_of_state():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.o = nn.Linear(6, 4), nn.Linear(4, 3)
            self.register_buffer("moments", torch.zeros(4, 4))

        def forward(self, x):
            h = self.f(x)
            with torch.no_grad():
                self.moments.mul_(0.9).add_(h.T @ h / 5)
                self.moments.diagonal().add_(1e-2)
            return self.o(h @ self.moments)

    return Model(), F.cross_entropy, several(lambda: (torch.randn(5, 6), labels(5)))


# --- sequences, dropout


@meaning
def packed_and_filled():
    """What lies behind the end of a row is filled with another value than 0; only exporter torchscript takes packed sequences."""

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l, self.o = nn.Embedding(9, 4, padding_idx=0), nn.LSTM(4, 5, batch_first=True, bidirectional=True), nn.Linear(10, 3)

        def forward(self, ids, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(self.e(ids), lengths, batch_first=True, enforce_sorted=False)
            y, _ = nn.utils.rnn.pad_packed_sequence(self.l(packed)[0], batch_first=True, padding_value=-1e4)
            return self.o(y.max(1).values)

    lengths = torch.tensor([4, 6, 2])
    ids = lambda: torch.randint(1, 9, (3, 6)) * (torch.arange(6) < lengths[:, None])  # noqa: E731
    return Tagger(), F.cross_entropy, several(lambda: ((ids(), lengths), labels(3)))


@meaning
def dropout_of_channels():
    """Is switched off in the check."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.d, self.e, self.o = nn.Conv2d(3, 6, 3, padding=1), nn.Dropout2d(0.4), nn.Dropout2d(0.2, inplace=True), nn.Linear(6, 3)

        def forward(self, x):
            h = self.e(self.d(torch.relu(self.a(x))))
            return self.o(h.mean((2, 3)) + F.dropout1d(h.flatten(2), 0.3, self.training).sum(2))

    return Model(), F.cross_entropy, several(lambda: (torch.randn(4, 3, 5, 5), labels(4)))


# --- state that is written after it was read


@meaning
def codebook_that_is_indexed():
    """What an index of tensors picks is a copy: the codebook moves on after it."""

    class Quantised(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.o = nn.Linear(6, 4), nn.Linear(4, 3)
            self.register_buffer("codes", torch.randn(5, 4) * 0.3)
            self.register_buffer("sizes", torch.ones(5))

        def forward(self, x):
            z = self.f(x)
            nearest = torch.cdist(z, self.codes).argmin(1)
            chosen = self.codes[nearest]
            with torch.no_grad():
                hits = F.one_hot(nearest, 5).to(z.dtype)
                self.sizes.data.mul_(0.9).add_(hits.sum(0), alpha=0.1)
                self.codes.data.copy_(0.9 * self.codes + 0.1 * hits.T @ z / self.sizes[:, None])
            return self.o(z + (chosen - z).detach()), F.mse_loss(z, chosen.detach())

    return Quantised(), lambda out, y: F.cross_entropy(out[0], y) + out[1], several(lambda: (torch.randn(8, 6), labels(8)))


@meaning
def flags_that_are_set():
    """Each pass writes the same; only the first one changes anything. A part that a number picks is the state itself."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Linear(6, 3)
            self.register_buffer("done", torch.tensor(False))
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("shift", torch.zeros(3))
            self.register_buffer("ring", torch.zeros(4, 3))
            self.register_buffer("at", torch.tensor(0))

        def forward(self, x):
            y = self.f(x)
            y = torch.where(self.done.clone(), y * 2, y) + self.shift * self.calls.clone() + self.ring[self.at.clone()].clone()
            self.done.fill_(True)
            self.calls.fill_(2)
            self.shift.copy_(torch.full((3,), 0.5))
            self.ring[self.at].copy_(y.detach().mean(0))
            self.at.add_(1).remainder_(4)
            return y

    return Model(), F.cross_entropy, several(lambda: (torch.randn(8, 6), labels(8)))

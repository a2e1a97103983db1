# SPDX-License-Identifier: Apache-2.0
"""Small models in habits of everyday training code, of which 50 were tried: those that were refused, trained differently or needed Python. Like meanings.py, into whose table they go."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from architectures import several
from meanings import meaning

NATIVE = []  # names of models that no operator of Python may be needed for


def labels(count, *shape):
    return torch.randint(0, count, shape)


def native(make):
    NATIVE.append(make.__name__)
    return meaning(make)


def rows(batch=5, width=6, classes=3):
    return several(lambda: (torch.randn(batch, width), labels(classes, batch)))


class Counted(nn.Module):
    """What it writes, a checkpoint writes twice."""

    def __init__(self, width, drop=0.0):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(width, width), nn.BatchNorm1d(width), nn.Dropout(drop)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, y=None):
        self.calls += 1
        x = self.drop(F.relu(self.norm(self.linear(x))))
        return x if y is None else x + y


class Reentrant(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
        self.blocks = nn.ModuleList(Counted(6, drop) for _ in range(3))

    def forward(self, x):
        h = checkpoint(self.blocks[0], self.first(x), use_reentrant=True)
        h = checkpoint(self.blocks[1], h, h, use_reentrant=True)
        with torch.no_grad():  # nothing is computed again here
            still = checkpoint(self.blocks[2], x, use_reentrant=True)
        return self.last(h + still)


@native
def checkpoints_that_write_state():
    return Reentrant(0.0), F.cross_entropy, rows()


@native
def checkpoints_with_dropout():
    """The backward phase computes the region again without the dropout that a comparison switches off."""
    return Reentrant(0.2), F.cross_entropy, rows()


@native
def checkpoints_of_a_sequence():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU()) for _ in range(4)])
            self.last = nn.Linear(6, 3)

        def forward(self, x):
            x = checkpoint(lambda t, factor=1.0: F.silu(self.blocks[0](t) * factor), x, factor=2.0, use_reentrant=False)
            return self.last(checkpoint_sequential(self.blocks, 2, x, use_reentrant=False))

    return Model(), F.cross_entropy, rows()


class Recurrent(nn.Module):
    def __init__(self, kind, packed, **options):
        super().__init__()
        self.layers, self.packed = kind(6, 5, 2, batch_first=True, dropout=0.4, **options), packed
        self.last = nn.Linear(5 * (2 if self.layers.bidirectional else 1), 3)

    def forward(self, x):
        if self.packed:
            x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 7, 5, 1]), batch_first=True, enforce_sorted=False)
        y, h = self.layers(x)
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0] if self.packed else y
        h = h[0] + h[1] if isinstance(h, tuple) else h
        return self.last(y.mean(1)) + h.mean(0)[:, :3]


def recurrent(kind, packed=False, **options):
    return Recurrent(kind, packed, **options), F.cross_entropy, several(lambda: (torch.randn(4, 7, 6), labels(3, 4)))


@native
def dropout_between_layers_of_lstm():
    return recurrent(nn.LSTM, bidirectional=True)


@native
def dropout_between_packed_layers():
    return recurrent(nn.GRU, packed=True, bidirectional=True)


@native
def rotary_by_a_complex_buffer():
    """One that is not persistent, which torch.export reads in another way."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.last = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 3)
            self.register_buffer("turns", torch.polar(torch.ones(5, 4), torch.outer(torch.arange(5.0), 2.0 ** -torch.arange(4.0))), persistent=False)

        def turned(self, x):
            return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.turns).flatten(2)

        def forward(self, x):
            q, k = self.turned(self.q(x)), self.turned(self.k(x))
            return self.last(torch.softmax(q @ k.transpose(1, 2), -1) @ k).mean(1)

    return Model(), F.cross_entropy, several(lambda: (torch.randn(3, 5, 6), labels(3, 3)))


@native
def losses_of_pairs():
    def loss(x, y):
        sign = torch.where(y > 0, 1.0, -1.0)
        first = F.cosine_embedding_loss(x, y, sign[:, 0], reduction="none").sum() + 0.1 * F.hinge_embedding_loss(x, sign, reduction="sum")
        second = F.margin_ranking_loss(x, y, sign, margin=0.3) + F.triplet_margin_loss(x, y, x.flip(0), p=1, swap=True, reduction="sum")
        return first + second + F.poisson_nll_loss(x.abs(), 3 * y.abs(), log_input=False, full=True) + nn.CosineEmbeddingLoss(0.3)(x[0], y[0], torch.tensor(-1.0))

    return nn.Linear(6, 4), loss, several(lambda: (torch.randn(5, 6), torch.randn(5, 4)))


@native
def gaussian_likelihood_with_variances():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.variance = nn.Linear(6, 4), nn.Linear(6, 1)

        def forward(self, x):
            return self.mean(x), 0.02 * self.variance(x).abs()  # some are below eps

    def loss(output, y):
        mean, variance = output
        return F.gaussian_nll_loss(mean, y, variance, eps=0.01) + nn.GaussianNLLLoss(full=True, eps=0.012)(mean, y, variance.squeeze(-1)) + F.gaussian_nll_loss(mean, y, variance.expand(-1, 4), reduction="sum")

    return Model(), loss, several(lambda: (torch.randn(5, 6), torch.randn(5, 4)))


@native
def rms_norms():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.whole, self.plain, self.last = nn.Linear(6, 12), nn.RMSNorm((3, 4), eps=1e-5), nn.RMSNorm(4, elementwise_affine=False), nn.Linear(12, 3)

        def forward(self, x):
            x = self.plain(self.whole(self.first(x).view(-1, 3, 4)))
            return self.last(F.rms_norm(x, (4,), None, 0.1).flatten(1))

    return Model(), F.cross_entropy, rows()


@native
def bags_with_padding():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.sum, self.ends = nn.EmbeddingBag(9, 5, padding_idx=2), nn.EmbeddingBag(9, 5, mode="sum", padding_idx=-1), nn.EmbeddingBag(9, 5, padding_idx=0, include_last_offset=True)
            self.both, self.last = nn.Bilinear(5, 5, 4), nn.Linear(4, 3)

        def forward(self, table, weights, ids, offsets, ends):
            return self.last(self.both(torch.tanh(self.mean(ids, offsets) + self.mean(table)), self.sum(table, per_sample_weights=weights) + self.ends(ids, ends)))

    return Model(), F.cross_entropy, several(lambda: ((labels(9, 4, 3), torch.rand(4, 3), labels(9, 8), torch.tensor([0, 2, 2, 5]), torch.tensor([0, 2, 2, 5, 8])), labels(3, 4)))


@meaning
def extents_behind_a_reflection():
    """The TorchScript exporter loses the extents of what it pads or scatters, and refuses what comes after it."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.cell, self.last = nn.Conv2d(3, 8, 1), nn.GRUCell(9, 4), nn.Linear(4, 3)

        def forward(self, x, where):
            h = F.pad(self.first(x), (1, 1, 1, 1), mode="reflect")
            a, b = h.chunk(2, 1)
            spread, mean = torch.var_mean(F.glu(h, 1), (2, 3))
            windows = a.unfold(2, 3, 1).unfold(3, 3, 1).flatten(4).amax((2, 3))  # [batch, 4, 9]
            gathered = torch.zeros(2, 9).scatter_reduce(0, where, windows.mean(1), "amax", include_self=False)
            return self.last(self.cell(gathered, spread + mean) + b.mean((2, 3)))

    return Model(), F.cross_entropy, several(lambda: ((torch.randn(2, 3, 5, 5), labels(2, 2, 9)), labels(3, 2)))


@native
def unpooled_by_indices():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 3)

        def forward(self, x):
            pooled, where = F.max_pool2d(self.first(x), 2, return_indices=True)
            small, inside = F.max_pool2d(pooled, 2, return_indices=True)
            h = F.max_unpool2d(F.max_unpool2d(small, inside, 2, output_size=pooled.shape), where, [2, 2])
            row, place = F.max_pool1d(h.flatten(2), 3, return_indices=True)
            return self.last(F.max_unpool1d(row, place, 3).logsumexp(-1))

    return Model(), F.cross_entropy, several(lambda: (torch.randn(2, 3, 6, 6), labels(3, 2)))


@native
def rows_in_groups_of_experts():
    """As transformers has it for mixtures of experts; one group is empty."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts, self.last = nn.Parameter(torch.randn(4, 8, 4)), nn.Linear(4, 3)

        def forward(self, x, ends):
            return self.last(torch.tanh(torch._grouped_mm(x, self.experts, ends)))

    return Model(), F.cross_entropy, several(lambda: ((torch.randn(5, 8), torch.tensor([2, 2, 4, 5], dtype=torch.int32)), labels(3, 5)))


@native
def attention_that_is_viewed():
    """As in transformers: what is transposed is contiguous in one of the passes of the dynamo exporter, and not in the next."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.randn(2, 5, 5))  # of relative positions; with a gradient PyTorch takes another kernel
            self.q, self.k, self.v, self.last = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            q, k, v = (layer(x).view(3, 5, 2, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias.unsqueeze(0), scale=0.5).transpose(1, 2).contiguous()
            return self.last(y.reshape(3, 5, -1).contiguous()).mean(1)

    return Model(), F.cross_entropy, several(lambda: (torch.randn(3, 5, 6), labels(3, 3)))

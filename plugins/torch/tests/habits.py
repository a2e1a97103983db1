# SPDX-License-Identifier: Apache-2.0
"""Small models after real code: losses, architectures and habits. Like meanings.py, into whose table they go."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from meanings import Between, between, meaning, rows


def features(batch=5, width=6):
    return [((torch.randn(batch, width),), ()) for _ in range(3)]


def tokens(count=11, batch=3, length=6):
    return [(torch.randint(0, count, (batch, length)), torch.randint(0, count, (batch, length))) for _ in range(3)]


def images(batch=3, size=8, classes=3):
    return [(torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))) for _ in range(3)]


@meaning
def nt_xent():
    def loss(z, _):
        z = F.normalize(z, dim=1)
        scores = z @ z.t() / 0.5
        scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        return F.cross_entropy(scores, (torch.arange(len(z)) + len(z) // 2) % len(z))

    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), loss, [(torch.randn(6, 6), torch.zeros(1)) for _ in range(3)]


@meaning
def barlow_twins():
    def loss(z, _):
        a, b = z.chunk(2)
        a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        c = a.T @ b / len(a)
        on = torch.diagonal(c).add_(-1).pow_(2).sum()
        off = c.flatten()[:-1].view(len(c) - 1, len(c) + 1)[:, 1:].flatten().pow_(2).sum()
        return on + 0.005 * off

    return nn.Linear(6, 4), loss, [(torch.randn(8, 6), torch.zeros(1)) for _ in range(3)]


@meaning
def vicreg():
    def loss(z, _):
        a, b = z.chunk(2)
        spread = lambda x: torch.mean(F.relu(1 - torch.sqrt(x.var(dim=0) + 1e-4)))  # noqa: E731
        x = a - a.mean(0)
        cov = x.T @ x / (len(x) - 1)
        off = cov.pow(2).sum() - cov.diagonal().pow(2).sum()
        return 25 * F.mse_loss(a, b) + 25 * (spread(a) + spread(b)) / 2 + off / 4

    return nn.Linear(6, 4), loss, [(torch.randn(8, 6), torch.zeros(1)) for _ in range(3)]


@meaning
def focal_loss():
    def loss(x, y):
        p = F.log_softmax(x, -1).gather(1, y[:, None]).squeeze(1)
        return (-((1 - p.exp()) ** 2) * p).mean()

    return Between(nn.GELU()), loss, rows()


@meaning
def dice_loss():
    def loss(x, y):
        p, y = x.sigmoid().flatten(1), (y > 0).float().flatten(1)
        return (1 - (2 * (p * y).sum(1) + 1) / (p.sum(1) + y.sum(1) + 1)).mean()

    return nn.Conv2d(3, 1, 3, padding=1), loss, [(torch.randn(2, 3, 6, 6), torch.randn(2, 1, 6, 6)) for _ in range(3)]


@meaning
def lovasz_hinge():
    def loss(x, y):
        x, y = x.flatten(), (y > 0).float().flatten()
        errors, order = torch.sort(1 - x * (2 * y - 1), 0, descending=True)
        y = y[order]
        total = y.sum()
        jaccard = 1 - (total - y.cumsum(0)) / (total + (1 - y).cumsum(0))
        weights = torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])
        return torch.dot(F.relu(errors), weights.detach())

    return nn.Conv2d(3, 1, 3, padding=1), loss, [(torch.randn(2, 3, 4, 4), torch.randn(2, 1, 4, 4)) for _ in range(3)]


@meaning
def supervised_contrastive():
    def loss(z, y):
        z = F.normalize(z, dim=-1)
        s = z @ z.T / 0.3
        s = s - s.max(1, keepdim=True)[0].detach()
        other = 1 - torch.eye(len(z))
        same = (y[:, None] == y[None]).float() * other
        log = s - torch.log((s.exp() * other).sum(1, keepdim=True))
        return -((same * log).sum(1) / same.sum(1).clamp(min=1)).mean()

    return nn.Linear(6, 4), loss, rows()


@meaning
def triplet_of_hardest():
    def loss(z, y):
        d = torch.cdist(z, z)
        same = y[:, None] == y[None]
        hardest = torch.where(same, d, torch.zeros_like(d)).max(1)[0]
        nearest = torch.where(same, torch.full_like(d, 1e6), d).min(1)[0]
        return F.softplus(hardest - nearest.clamp(max=100)).mean()

    return nn.Linear(6, 4), loss, rows()


@meaning
def distillation():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student, self.teacher = nn.Linear(6, 3), nn.Sequential(nn.Linear(6, 9), nn.BatchNorm1d(9), nn.Linear(9, 3)).eval()
            for p in self.teacher.parameters():
                p.requires_grad_(False)

        def train(self, mode=True):
            super().train(mode)
            self.teacher.eval()
            return self

        def forward(self, x):
            with torch.no_grad():
                t = self.teacher(x)
            return self.student(x), t

    def loss(out, y):
        s, t = out
        return F.kl_div(F.log_softmax(s / 2, -1), F.softmax(t / 2, -1), reduction="batchmean") * 4 + F.cross_entropy(s, y)

    return Model(), loss, rows()


@meaning
def variational():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.d = nn.Linear(6, 4), nn.Linear(2, 6)

        def forward(self, x, noise):
            mu, logvar = self.e(x).chunk(2, -1)
            return self.d(mu + noise * torch.exp(0.5 * logvar)), mu, logvar

    def loss(out, x):
        y, mu, logvar = out
        return F.binary_cross_entropy_with_logits(y, x, reduction="sum") - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    return Model(), loss, [((torch.randn(5, 6), torch.randn(5, 2)), torch.rand(5, 6)) for _ in range(3)]


@meaning
def rotary_attention():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.qkv, self.o = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 11)
            angles = torch.outer(torch.arange(6.0), 1 / 100 ** (torch.arange(0, 4, 2) / 4))
            self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
            self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

        def turn(self, x):
            a, b = x.chunk(2, -1)
            return x * self.cos + torch.cat((-b, a), -1) * self.sin

        def forward(self, ids):
            b, n = ids.shape
            q, k, v = (t.view(b, n, 2, 4).transpose(1, 2) for t in self.qkv(self.e(ids)).chunk(3, -1))
            y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
            return self.o(y.transpose(1, 2).reshape(b, n, 8))

    return Model(), lambda x, y: F.cross_entropy(x.flatten(0, 1), y.flatten()), tokens()


@meaning
def alibi_attention():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.o = nn.Embedding(11, 8), nn.Linear(8, 11)

        def forward(self, ids):
            x = self.e(ids)
            n = ids.shape[1]
            bias = -(torch.arange(n)[:, None] - torch.arange(n)[None]).abs().float() * 0.5
            mask = torch.triu(torch.full((n, n), float("-inf")), 1)
            return self.o(torch.softmax(x @ x.transpose(1, 2) / math.sqrt(8) + bias + mask, -1) @ x)

    return Model(), lambda x, y: F.cross_entropy(x.transpose(1, 2), y), tokens()


@meaning
def top_k_experts():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(8, 4, bias=False), nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def between(self, x):
            weights, chosen = torch.topk(F.softmax(self.gate(x), -1), 2)
            weights = weights / weights.sum(-1, keepdim=True)
            result = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                share = (weights * (chosen == i)).sum(-1, keepdim=True)
                result = result + share * expert(x)
            return result

    return between(Model())


@meaning
def gumbel_of_given_noise():
    class Model(Between):
        def between(self, x):
            soft = F.softmax(x / 0.7, -1)
            hard = F.one_hot(soft.argmax(-1), 8).float()
            return hard - soft.detach() + soft

    return between(Model())


@meaning
def gated_recurrence():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.o = nn.GRUCell(6, 5), nn.Linear(5, 3)

        def forward(self, x):
            h = x.new_zeros(x.shape[0], 5)
            for step in x.unbind(1):
                h = self.cell(step, h)
            return self.o(h)

    return Model(), F.cross_entropy, [(torch.randn(4, 3, 6), torch.randint(0, 3, (4,))) for _ in range(3)]


@meaning
def state_space():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Parameter(torch.rand(4)), nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
            self.o = nn.Linear(6, 3)

        def forward(self, x):
            powers = torch.exp(-self.a.abs()[:, None] * torch.arange(6.0))
            kernel = (self.c * self.b) @ powers
            return self.o(F.conv1d(F.pad(x[:, None], (5, 0)), kernel.flip(0)[None, None])[:, 0])

    return Model(), F.cross_entropy, rows()


@meaning
def squeeze_and_excite():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.n, self.s = nn.Conv2d(3, 8, 3, padding=1, groups=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 1)
            self.h = nn.Linear(8, 3)

        def forward(self, x):
            x = F.hardswish(self.n(self.c(x)), inplace=True)
            x = x * F.hardsigmoid(self.s(F.adaptive_avg_pool2d(x, 1)))
            return self.h(x.mean((2, 3)))

    return Model(), F.cross_entropy, images()


@meaning
def inverted_residual():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(nn.Conv2d(3, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6(inplace=True), nn.Conv2d(6, 6, 3, 2, 1, groups=6, bias=False), nn.BatchNorm2d(6), nn.ReLU6(inplace=True))
            self.h = nn.Linear(6, 3)

        def forward(self, x):
            return self.h(torch.flatten(F.adaptive_avg_pool2d(self.f(x * 4), (1, 1)), 1))

    return Model(), F.cross_entropy, images()


@meaning
def pixel_shuffle_and_blur():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv2d(3, 12, 3, padding=1, padding_mode="reflect")
            k = torch.tensor([1.0, 2.0, 1.0])
            self.register_buffer("blur", (k[:, None] * k[None] / 16)[None, None].repeat(3, 1, 1, 1))

        def forward(self, x):
            y = F.pixel_shuffle(self.c(x), 2)
            return F.conv2d(F.pad(y, (1, 1, 1, 1), mode="replicate"), self.blur, groups=3, stride=2)

    return Model(), lambda y, t: (F.l1_loss(y, t) + torch.log1p((y - t) ** 2).mean()), [(torch.randn(2, 3, 6, 6), torch.randn(2, 3, 6, 6)) for _ in range(3)]


@meaning
def spatial_transformer():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.t, self.h = nn.Linear(3, 6), nn.Linear(3, 3)
            self.t.bias.data.copy_(torch.tensor([1.0, 0.1, 0.05, -0.1, 1.0, 0.02]))

        def forward(self, x):
            theta = self.t(x.mean((2, 3))).view(-1, 2, 3)
            y = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
            return self.h(y.amax((2, 3)))

    return Model(), F.cross_entropy, images()


@meaning
def graph_attention():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.a, self.o = nn.Linear(6, 4), nn.Linear(8, 1), nn.Linear(4, 3)

        def forward(self, x, edges):
            h = self.w(x)
            src, dst = edges
            e = F.leaky_relu(self.a(torch.cat([h[src], h[dst]], -1)).squeeze(-1), 0.2)
            top = torch.full((len(x),), -1e9).scatter_reduce(0, dst, e, "amax")
            e = (e - top[dst].detach()).exp()
            norm = torch.zeros(len(x)).index_add(0, dst, e)
            return self.o(torch.zeros_like(h).index_add_(0, dst, h[src] * (e / norm[dst].clamp_min(1e-9))[:, None]))

    return Model(), F.cross_entropy, [((torch.randn(5, 6), torch.randint(0, 5, (2, 9))), torch.randint(0, 3, (5,))) for _ in range(3)]


@meaning
def write_through_a_view():
    """A part of a buffer is written through a view of it."""

    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3, 8))

        def between(self, x):
            with torch.no_grad():
                self.seen[1].mul_(0.5).add_(x.mean(0))
                self.seen[:, 0] += 1
            return x * (1 + self.seen[1]) + self.seen.sum(0)

    return between(Model())


@meaning
def full_backward_hook():
    """A hook of a module that changes the gradient of its input."""
    model = Between(nn.Linear(8, 8))
    model.between_layers.register_full_backward_hook(lambda module, gin, gout: (gin[0] * 0.5,))
    return between(model)


@meaning
def full_backward_pre_hook():
    model = Between(nn.Linear(8, 8))
    model.between_layers.register_full_backward_pre_hook(lambda module, gout: (gout[0].clamp(-0.01, 0.01),))
    return between(model)


@meaning
def gradient_scale_trick():
    class Model(Between):
        def between(self, x):
            return x * 0.1 + (x - x * 0.1).detach()

    return between(Model())


@meaning
def weight_standardisation():
    class Conv(nn.Conv2d):
        def forward(self, x):
            w = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return F.conv2d(x, w / (w.flatten(1).std(1).view(-1, 1, 1, 1) + 1e-5), self.bias, padding=1)

    return nn.Sequential(Conv(3, 4, 3), nn.Flatten(), nn.Linear(256, 3)), F.cross_entropy, images()


@meaning
def low_rank_adapter():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = nn.Linear(6, 3)
            self.base.requires_grad_(False)
            self.a, self.b = nn.Parameter(torch.randn(2, 6) * 0.1), nn.Parameter(torch.randn(3, 2) * 0.1)

        def forward(self, x):
            return F.linear(x, self.base.weight + 2.0 * self.b @ self.a, self.base.bias)

    return Model(), F.cross_entropy, rows()


@meaning
def ordinal_and_quantile():
    def loss(x, y):
        q = torch.tensor([0.1, 0.5, 0.9])
        d = y[:, None].float() - x
        return torch.maximum(q * d, (q - 1) * d).mean() + F.huber_loss(x.cumsum(1)[:, -1], y.float(), delta=0.3)

    return Between(nn.SiLU()), loss, rows()


@meaning
def masked_language_loss():
    def loss(x, y):
        keep = y % 2 == 0
        return F.cross_entropy(x[keep], y[keep]) if False else (F.cross_entropy(x.transpose(1, 2), y, reduction="none") * keep).sum() / keep.sum()

    return nn.Sequential(nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 11)), loss, tokens()


@meaning
def tied_with_max_norm():
    """The table of an embedding that is the output layer too; rows longer than max_norm are shortened when they are read."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(11, 8, max_norm=1.0)
            self.m = nn.Linear(8, 8)

        def forward(self, ids):
            return torch.tanh(self.m(self.e(ids))) @ self.e.weight.t()

    return Model(), lambda x, y: F.cross_entropy(x.transpose(1, 2), y), tokens()


@meaning
def bounds_of_clamp():
    """Elements exactly at the bounds of everything that has two."""

    class Model(Between):
        def between(self, x):
            steps = torch.round(x * 2) / 2 + (x - x.detach())
            y = F.relu6(steps * 12) + torch.clamp(steps, -0.5, 0.5) + F.hardtanh(steps, -0.5, 1.0) + steps.clamp(min=0.5) + torch.clip(steps, max=0)
            return y + F.relu6(steps * 6 + 3, inplace=True) + (steps * 1).clamp_(-0.5, 0)

    return between(Model())


@meaning
def autocast_of_a_product():
    class Model(Between):
        def between(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                y = F.linear(x, self.b.weight.t() @ self.b.weight)
            return x + y.float()

    return between(Model())


class Low(nn.Module):
    """A model kept in a low type, whose inputs and loss are float32."""

    def __init__(self, dtype):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)
        self.dtype = dtype

    def forward(self, x):
        return self.layers(x.to(self.dtype)).float()


@meaning
def kept_in_bfloat16():
    return Low(torch.bfloat16), F.cross_entropy, rows()


@meaning
def kept_in_float16():
    return Low(torch.float16), F.cross_entropy, rows()


class _SeenLarge(nn.Module):
    """A flag that a later batch sets, a weight that is clipped once it is large, a buffer that is filled with what it has."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(1, dtype=torch.bool))
        self.register_buffer("scale", torch.full((1,), 2.0))

    def forward(self, x):
        with torch.no_grad():
            self.inner.weight.copy_(self.inner.weight.clamp(-0.5, 0.5))
            self.scale.fill_(2.0)
            self.seen |= x.abs().max() > 50
        return self.inner(x) * torch.where(self.seen, 0.5, 1.0) * self.scale


@meaning
def written_though_unchanged_at_first():
    batches = [(torch.randn(5, 6), torch.randn(5, 4)) for _ in range(3)]
    batches[1][0][0, 0] = 60.0
    return _SeenLarge(), F.mse_loss, batches

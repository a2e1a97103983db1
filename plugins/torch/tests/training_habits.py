# SPDX-License-Identifier: Apache-2.0
"""Small models in habits of real training code, of which another 130 were tried: those that were refused, trained differently or needed Python. Like
meanings.py, into whose table they go."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

from architectures import several
from everyday import labels, native, rows
from meanings import meaning


@dataclasses.dataclass(frozen=True)
class Pair:
    x: torch.Tensor
    y: torch.Tensor
    scale: float = 0.5


class OfAPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, pair):
        return self.linear(pair.x + pair.scale * pair.y)


@meaning
def dataclass_of_tensors():
    return OfAPair(), F.cross_entropy, several(lambda: ((Pair(torch.randn(5, 6), torch.randn(5, 6)),), labels(3, 5)))


@meaning
def statistics_of_a_model_that_ran_before():
    """Its running statistics count the first batch, once: it was run on it to see that it works."""
    batches = rows()
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    model(batches[0][0])
    return model, F.cross_entropy, batches


class Adversaries(nn.Module):
    """Both losses of a GAN in one pass: the discriminator is not trained by the generator's."""

    def __init__(self, by_attribute):
        super().__init__()
        self.generator = nn.Linear(3, 6)
        self.discriminator = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        self._by_attribute = by_attribute

    def _train_discriminator(self, on):
        for parameter in self.discriminator.parameters():
            if self._by_attribute:
                parameter.requires_grad = on
            else:
                parameter.requires_grad_(on)

    def forward(self, noise, real):
        made = self.generator(noise)
        loss = F.softplus(-self.discriminator(real)).mean() + F.softplus(self.discriminator(made.detach())).mean()
        self._train_discriminator(False)
        loss = loss + F.softplus(-self.discriminator(made)).mean()
        self._train_discriminator(True)
        return loss


@meaning
def adversaries():
    return Adversaries(False), lambda loss: loss, several(lambda: ((torch.randn(5, 3), torch.randn(5, 6)), ()))


@meaning
def adversaries_by_attribute():
    return Adversaries(True), lambda loss: loss, several(lambda: ((torch.randn(5, 3), torch.randn(5, 6)), ()))


class GroupedQueries(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, 4, 2).transpose(1, 2)
        key, value = (layer(x).view(batch, length, 2, 2).transpose(1, 2) for layer in (self.key, self.value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3, enable_gqa=True).transpose(1, 2).reshape(batch, length, 8)


@native
def grouped_queries():
    return GroupedQueries(), F.mse_loss, several(lambda: (torch.randn(2, 5, 8), torch.randn(2, 5, 8)))


class FrozenEncoder(nn.Module):
    """Its train() leaves the encoder as it evaluates, dropout inside of the attention included."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), 2).requires_grad_(False)
        self.head = nn.Linear(8, 3)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        return self.head(self.encoder(x)[:, 0])


@meaning
def frozen_encoder_with_dropout():
    return FrozenEncoder().train(), F.cross_entropy, several(lambda: (torch.randn(3, 4, 8), labels(3, 3)))


@native
def channels_that_are_shuffled():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, groups=1), nn.ChannelShuffle(4), nn.Conv2d(8, 8, 3, groups=4), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(32, 3))
    return model, F.cross_entropy, several(lambda: (torch.randn(4, 3, 6, 6), labels(3, 4)))


class Watched(nn.Module):
    """Keeps features by hooks that close over it."""

    def __init__(self):
        super().__init__()
        self.layers, self.features = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), {}
        self.scale = nn.Parameter(torch.tensor([0.7]))
        self.scaled = lambda x: x * self.scale
        self.layers[0].register_forward_hook(lambda module, inputs, output: self.features.__setitem__("first", output))

    def forward(self, x):
        return self.scaled(self.layers(x)), self.features["first"]


@meaning
def hooks_that_close_over_the_model():
    return Watched(), lambda output, y: F.cross_entropy(output[0], y) + 0.1 * output[1].pow(2).mean(), rows()


class ThroughViews(nn.Module):
    """Writes into views of what it computes."""

    def __init__(self):
        super().__init__()
        self.linear, self.factor = nn.Linear(6, 6), nn.Parameter(torch.randn(2))

    def forward(self, x):
        y = self.linear(x) * 1
        flat = y.view(-1)
        rows = y.view(4, 3, 2)
        rows[:, 1].neg_()
        y.t()[0].mul_(self.factor[0])
        y.permute(1, 0)[2].add_(1.0)
        y.narrow(1, 3, 2).zero_()
        y.unsqueeze(0)[0, 1] = self.factor[1]
        y.view(2, 2, 6)[1, 0] = 7.0
        y.mul_(2.0)
        return flat + y.flatten()


@meaning
def writes_through_views():
    return ThroughViews(), F.mse_loss, several(lambda: (torch.randn(4, 6), torch.randn(24)))


class Windows(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4) * 0.3)

    def forward(self, x):
        return nn.functional.threshold(x.unfold(-1, 4, 2) @ self.weight, 0.1, -0.2)


@native
def windows_of_a_tensor():
    return Windows(), F.mse_loss, several(lambda: (torch.randn(3, 10), torch.randn(3, 4)))


@native
def adaptive_softmax():
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8])
    return nn.Linear(6, 8), lambda output, y: loss(output, y).loss, several(lambda: (torch.randn(6, 6), torch.tensor([0, 3, 5, 7, 9, 11])))


@native
def smoothed_probabilities():
    return (nn.Linear(6, 3), lambda output, y: F.cross_entropy(output, y, torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.2),
            several(lambda: (torch.randn(5, 6), torch.randn(5, 3).softmax(1))))  # fmt: skip


class Counting(nn.Module):
    """A statistic that is a number, which the loss does not read in the first step, and grids of one and of two tensors."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)
        self.register_buffer("count", torch.tensor(1e-4))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        total = self.count + x.shape[0]
        self.mean = self.mean + (x.mean(0) - self.mean) * x.shape[0] / total
        self.count = total
        a, b = torch.meshgrid(x[0], x[1, :3], indexing="xy")
        (c,) = torch.meshgrid(x[2])
        return self.linear(x - self.mean) + (a * b).mean() + c.sum()


@meaning
def statistics_that_are_numbers():
    return Counting(), F.cross_entropy, rows()


class Criterion:
    """A loss that is an object, with a module of its own."""

    def __init__(self):
        self.weight = nn.Linear(4, 3, bias=False)

    def __call__(self, embedding, y):
        return F.cross_entropy(4 * F.linear(F.normalize(embedding), F.normalize(self.weight.weight)), y)


@meaning
def loss_that_is_an_object():
    criterion = Criterion()
    model = nn.Linear(6, 4)
    return model, criterion, rows()


class InTurn(nn.Module):
    """Functions in a list, which close over the model."""

    def __init__(self):
        super().__init__()
        self.linear, self.factor = nn.Linear(6, 3), nn.Parameter(torch.full((3,), 1.5))
        self.functions = [lambda x: x * self.factor, torch.tanh]

    def forward(self, x):
        x = self.linear(x)
        for function in self.functions:
            x = function(x)
        return x


@meaning
def functions_in_a_list():
    return InTurn(), F.cross_entropy, rows()

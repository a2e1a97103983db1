# SPDX-License-Identifier: Apache-2.0
"""Small models of recent code, of which another 90 were tried: those that were refused, trained differently or needed Python. Like meanings.py, into whose table they go."""

import torch
import torch.nn.functional as F
from torch import nn

from architectures import several
from everyday import labels, native, rows
from meanings import Between, between, meaning
from research import asks_for_gradients


@native
def running_products():
    """Of factors of which some are 0, of whole numbers, of bools, in another type, along either axis."""

    class Model(Between):
        def between(self, x):
            count, there = (x > 0).long() + 1, x > -0.5
            products = (
                x.cumprod(0), torch.cumprod(x, -1, dtype=torch.float64).to(x.dtype), x.cumprod(1) * count.cumprod(1), x * torch.cumprod(there, 1),
                torch.cumprod(x.flip(1), 1).flip(1), torch.cumprod(count.int(), 0) * x, torch.where(x > 0.4, torch.zeros_like(x), x).cumprod(1), (x * 1).cumprod_(1),
            )  # fmt: skip
            return sum(products)

    return between(Model())


@native
def running_sums_of_exponentials():
    """Of elements far apart, of minus infinities, along either axis."""

    class Model(Between):
        def between(self, x):
            far = torch.logcumsumexp(x * torch.tensor([1.0, 100.0, 1.0, 500.0, 1.0, 1.0, 300.0, 1.0]), 1) / 100
            masked = torch.logcumsumexp(x.masked_fill(x < -0.2, float("-inf")), 1)
            return far + torch.logcumsumexp(x, 0) + x.logcumsumexp(dim=-1) + torch.where(masked.isinf(), torch.zeros_like(masked), masked)

    return between(Model())


@native
def scan_in_logarithms():
    """The recurrence h = (1 - z) h + z g of a whole sequence at once."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.hidden, self.last = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            gate, hidden = self.gate(x), self.hidden(x)
            decays = F.pad(torch.cumsum(-F.softplus(gate), 1), (0, 0, 1, 0))
            values = -F.softplus(-gate) + torch.where(hidden >= 0, (F.relu(hidden) + 0.5).log(), -F.softplus(-hidden))
            values = torch.cat([torch.full((x.shape[0], 1, 8), 0.5).log(), values], 1)
            return self.last(torch.exp(decays + torch.logcumsumexp(values - decays, 1))[:, 1:]).mean(1)

    return Model(), F.cross_entropy, several(lambda: (torch.randn(3, 7, 6), labels(3, 3)))


@native
def slopes_of_positions_in_bfloat16():
    """As Falcon has them: the TorchScript exporter casts whole numbers to a type of another number."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x, mask):
            places = ((mask.cumsum(-1) - 1) * mask)[:, None, :]
            bias = (torch.tensor([0.25, 0.0625])[..., None].bfloat16() * places).to(x.dtype)
            scores = self.q(x) @ self.k(x).transpose(1, 2) + bias.mean(1, keepdim=True)
            return self.last(scores.masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ x).mean(1)

    return Model(), F.cross_entropy, several(lambda: ((torch.randn(2, 5, 6), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])), labels(3, 2)))


@native
def neural_operator():
    """A complex parameter times some of the frequencies, written into a tensor like them."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.beside, self.last = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), nn.Linear(4, 3)
            self.weights = nn.Parameter(torch.view_as_complex(torch.randn(2, 4, 4, 3, 3, 2) * 0.3))

        def forward(self, x):
            h = self.first(x)
            found = torch.fft.rfft2(h, norm="ortho")
            low = torch.zeros_like(found)
            low[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", found[:, :, :3, :3], self.weights[0])
            low[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", found[:, :, -3:, :3], self.weights[1])
            return self.last(F.gelu(torch.fft.irfft2(low, s=h.shape[-2:], norm="ortho") + self.beside(h)).mean((2, 3)))

    return Model(), F.cross_entropy, several(lambda: (torch.randn(3, 3, 8, 8), labels(3, 3)))


@native
def sums_of_nothing_and_truth_values():
    """A batch without boxes, and True among the terms of a sum."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x, boxes):
            h = torch.cat([self.first(x), self.first(boxes)]) + self.first(boxes).sum()
            return self.last(h + self.training), self.last(self.first(boxes))

    return Model(), lambda found, y: F.cross_entropy(found[0], y) + found[1].abs().sum(), several(lambda: ((torch.randn(5, 6), torch.randn(0, 6)), labels(3, 5)))


class Penalised(nn.Module):
    """A loss that reads the gradient of what `between` makes of a layer."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last, self._between = nn.Linear(6, 8), nn.LazyLinear(1), between
        self.last(self._between(torch.zeros(2, 8)))

    def forward(self, x):
        x = x.detach().requires_grad_()
        y = self.last(self._between(torch.tanh(self.first(x)))).sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        return (slope.norm(2, 1) - 1).pow(2).mean() + y


def penalised(between):
    return Penalised(between), lambda loss: loss, several(lambda: (torch.randn(5, 6), ()))


@asks_for_gradients
def penalty_through_a_running_product():
    return penalised(lambda h: torch.cumprod(1 + 0.3 * h, -1))


@asks_for_gradients
def penalty_through_fourier():
    def between(h):
        found = torch.fft.rfft(h)
        return torch.cat((found.abs(), torch.fft.irfft(found * found, n=7), torch.fft.ifft(torch.fft.fft(h, n=9)).real), -1)

    return penalised(between)


@asks_for_gradients
def penalty_through_cholesky():
    return penalised(lambda h: torch.linalg.cholesky(h.t() @ h + torch.eye(8))[: h.shape[0]])


@meaning
def shared_and_unused():
    """A layer under two names that is called three times, statistics that are written twice, parameters that reach no loss."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.unused, self.last = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.Linear(6, 3)
            self.again, self.alone = self.first, nn.Parameter(torch.randn(3))

        def forward(self, x):
            h = self.norm(self.again(self.norm(self.first(x))))
            return self.last(self.first(F.relu(h))) + 0 * self.alone, self.unused(x)

    return Model(), lambda found, y: F.cross_entropy(found[0], y), rows()

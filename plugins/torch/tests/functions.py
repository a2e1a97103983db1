# SPDX-License-Identifier: Apache-2.0
"""Small models around functions that exporters lack: FUNCTIONS[name]() gives (model, loss_fn, three batches)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

FUNCTIONS = {}


def function(make):
    FUNCTIONS[make.__name__] = make
    return make


class Around(nn.Module):
    """Two layers, and a function of [5, width] between them that gives [5, anything]."""

    def __init__(self, between, width=8):
        super().__init__()
        self.a, self.between = nn.Linear(6, width), between
        self.b = nn.LazyLinear(3)

    def forward(self, x):
        return self.b(self.between(torch.tanh(self.a(x))))


def around(between, width=8):
    model, batches = Around(between, width), [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(3)]
    model(batches[0][0])
    return model, F.cross_entropy, batches


# --- differences


@function
def differences():
    return around(lambda x: torch.cat((torch.diff(x), torch.diff(x, n=2, prepend=x[:, :1], append=x[:, -2:]), x.diff(dim=0, append=x[:1])), 1))


@function
def running_products():
    """One of a factor that is 0 among them."""
    return around(lambda x: torch.cat((torch.cumprod(torch.where(x > x.mean(), x, x * 0), -1), x.cumprod(dim=0)), 1))


# --- Fourier


@function
def fourier_parts():
    def between(x):
        y = torch.fft.fft(x, norm="ortho")
        return torch.cat((y.real, y.imag, y.abs(), torch.fft.ifft(y * (1 + 2j)).real), 1)

    return around(between)


@function
def fourier_of_odd_length():
    def between(x):
        y = torch.fft.rfft(x, n=7)
        z = torch.fft.rfft(x[:, :7], norm="forward")
        return torch.cat((torch.fft.irfft(y, n=7), torch.fft.irfft(z * z.conj(), n=7), torch.fft.irfft(y), torch.angle(y + 3)), 1)

    return around(between)


@function
def fourier_of_images():
    def between(x):
        x = x.reshape(5, 4, 6)
        y = torch.fft.rfft2(x)
        z = torch.fft.ifft2(torch.fft.fft2(x, s=(4, 8)))
        return torch.cat((torch.fft.irfft2(y * torch.view_as_complex(torch.ones(4, 4, 2)), s=(4, 6)).flatten(1), z.real.flatten(1), torch.fft.fftn(x, dim=(0, 2)).imag.flatten(1)), 1)

    return around(between, 24)


class FourierOperator(nn.Module):
    """The layer of a Fourier neural operator: complex weights, a spectrum that is filled in part."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(2, 3, 2, 3, dtype=torch.cfloat) / 3)
        self.register_buffer("turn", torch.polar(torch.ones(3), torch.arange(3.0)))

    def forward(self, x):
        x = x.reshape(5, 2, 6, 4)
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(5, 3, 6, 3, dtype=torch.cfloat)
        out[:, :, :2, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :2, :3], self.weight) * self.turn
        return torch.fft.irfft2(out, s=(6, 4)).flatten(1)


@function
def fourier_operator():
    return around(FourierOperator(), 48)


@function
def rotary_complex():
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.turns = torch.polar(torch.ones(4), torch.arange(4.0))

        def forward(self, x):
            q = torch.view_as_complex(x.float().reshape(5, -1, 2))
            return torch.view_as_real(q * self.turns).flatten(1) + torch.exp(1j * x[:, :1]).real

    return around(Rotary())


@function
def short_time():
    def between(x):
        y = torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True)
        return torch.cat((y.abs().flatten(1), torch.log1p(torch.view_as_real(y).pow(2).sum(-1)).flatten(1)), 1)

    return around(between, 20)


# --- matrices


def definite(x):
    a = x.reshape(5, 3, 3)
    return a @ a.mT + torch.eye(3)


@function
def cholesky_factor():
    return around(lambda x: torch.cat((torch.linalg.cholesky(definite(x)).flatten(1), torch.linalg.cholesky(definite(x), upper=True).diagonal(dim1=-2, dim2=-1).log()), 1), 9)


@function
def triangular_systems():
    def between(x):
        low = torch.linalg.cholesky(definite(x))
        b = x.reshape(5, 3, 3)[:, :, :2]
        found = [torch.linalg.solve_triangular(low, b, upper=False), torch.linalg.solve_triangular(low.mT, b, upper=True), torch.cholesky_solve(b, low)]
        found += [torch.linalg.solve_triangular(low, b.mT, upper=False, left=False), torch.linalg.solve_triangular(low, b, upper=False, unitriangular=True)]
        return torch.cat([f.flatten(1) for f in found], 1)

    return around(between, 9)


@function
def systems():
    def between(x):
        a = definite(x)
        found = [torch.linalg.solve(a, x.reshape(5, 3, 3)), torch.linalg.inv(a), torch.linalg.solve(a, x[:, :3])]
        return torch.cat([f.flatten(1) for f in found] + [torch.logdet(a)[:, None], torch.linalg.slogdet(a)[1][:, None]], 1)

    return around(between, 9)


@function
def gaussian_likelihood():
    class Gaussian(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.eye(3) + 0.1 * torch.randn(3, 3))

        def forward(self, x):
            low = torch.tril(self.factor)
            z = torch.linalg.solve_triangular(low, x[:, :3].mT, upper=False)
            return (-0.5 * z.pow(2).sum(0) - low.diagonal().abs().log().sum() - 1.5 * math.log(2 * math.pi))[:, None] + x

    return around(Gaussian())


# --- alignment


class Speech(nn.Module):
    def __init__(self, zero_infinity=False):
        super().__init__()
        self.gru, self.out = nn.GRU(4, 8), nn.Linear(8, 5)
        self.loss, self.sums = nn.CTCLoss(zero_infinity=zero_infinity), nn.CTCLoss(blank=4, reduction="sum")

    def forward(self, x, targets, steps, lengths):
        y = self.out(self.gru(x)[0])
        each = F.ctc_loss(y.log_softmax(-1), targets, steps, lengths, reduction="none")
        return self.loss(y.log_softmax(-1), targets, steps, lengths) + 0.1 * self.sums(y.log_softmax(-1), targets - 1, steps, lengths) + each.min()


@function
def speech():
    lengths = torch.tensor([3, 2, 1])
    return Speech(), lambda loss: loss, [((torch.randn(9, 3, 4), torch.randint(1, 5, (3, 4)), torch.tensor([9, 7, 8]), lengths), ()) for _ in range(3)]


@function
def speech_in_one_row():
    class Row(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 5)

        def forward(self, x, targets):
            return F.ctc_loss(self.out(x).log_softmax(-1), targets, (9, 7, 8), (3, 2, 1), zero_infinity=True)

    return Row(), lambda loss: loss, [((torch.randn(9, 3, 4), torch.randint(1, 5, (6,))), ()) for _ in range(3)]


# --- what exporters write so that it cannot be read, or leave out


class Recurrent(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, proj_size=3, **options)
        self.out = nn.Linear(self.lstm.proj_size * (2 if self.lstm.bidirectional else 1), 3)

    def forward(self, x):
        states, (h, c) = self.lstm(x)
        return self.out(states).mean(1) + h.sum() + c.mean()


@function
def lstm_projections():
    return Recurrent(num_layers=2, bidirectional=True, batch_first=True), F.mse_loss, [(torch.randn(4, 5, 6), torch.randn(4, 3)) for _ in range(3)]


@function
def lstm_projections_without_bias():
    return Recurrent(bias=False), F.mse_loss, [(torch.randn(5, 4, 6), torch.randn(5, 3)) for _ in range(3)]


class Masked(nn.Module):
    """Rows and elements that a mask names are overwritten: by a number, by a row that is trained, by values of their own."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.row = nn.Linear(4, 4), nn.Linear(4, 4), nn.Parameter(torch.randn(4))

    def forward(self, x, rows):
        y = self.a(x).clone()
        y[rows] = self.row
        y[x > 1] = 0.5
        y[~rows] = self.b(x[~rows])
        return y


@function
def masked_rows():
    masks = [torch.arange(6) > 1 + i for i in range(3)]  # never one row: the trace would be of a value without that axis
    return Masked(), F.mse_loss, [((torch.randn(6, 4), mask), torch.randn(6, 4)) for mask in masks]


@function
def axes_from_the_end():
    return around(lambda x: (x.reshape(5, 2, 2, 2).permute(0, -1, -3, -2) * torch.arange(2.0)).flatten(1))


# --- operators that Python computes: kept as nodes of the host


@function
def host_running_extremes():
    return around(lambda x: torch.cummax(x, 1)[0] + torch.kthvalue(x, 3, 1)[0][:, None])


@function
def host_matrix_functions():
    return around(lambda x: torch.cat((torch.matrix_exp(x.reshape(5, 2, 2, 2)).flatten(1), torch.linalg.svdvals(x.reshape(5, 2, 4))), 1))

# SPDX-License-Identifier: Apache-2.0
"""autograd.Functions that cannot be traced: nodes that Python runs. Like meanings.py, into whose table they go."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from meanings import Between, between, meaning, rows

SCALE = 0.25  # a constant at the top of a file that a function reads


def _halved(x):
    return x * SCALE * 2


class NumpyTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        y = np.tanh(x.detach().numpy() * factor)
        ctx.y, ctx.factor = y, factor
        return torch.from_numpy(y)

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(g.numpy() * ctx.factor * (1 - ctx.y**2)) * 0.9, None  # not quite the slope, on purpose


written_down = NumpyTanh.apply


@meaning
def function_of_numpy():
    class Model(Between):
        def between(self, x):
            return NumpyTanh.apply(x, 0.5) + written_down(x, 1.5)

    return between(Model())


class LowSquare(torch.autograd.Function):
    """NumPy has no bfloat16, so what arrives is read as float32, and goes on as it came."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.square(x.detach().float().numpy())).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(1.5 * x.float().numpy() * g.float().numpy()).to(x.dtype)


@meaning
def kept_in_bfloat16_by_a_function():
    class Model(Between):
        def between(self, x):
            return LowSquare.apply(x.bfloat16()).float() + LowSquare.apply(x.half()).float()

    return between(Model())


class NumpyBackward(torch.autograd.Function):
    """forward() can be traced, backward() cannot."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _halved(x.abs())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.tensor(np.sign(x.numpy()) * 0.4)


@meaning
def function_with_numpy_backward():
    class Model(Between):
        def between(self, x):
            return NumpyBackward.apply(x)

    return between(Model())


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 3 * g


@meaning
def function_in_place():
    """What reads the argument afterwards sees what the function made of it."""

    class Model(Between):
        def between(self, x):
            y = x * 1.5
            z = Doubled.apply(y)
            return z + y * y

    return between(Model())


class Count(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seen):
        ctx.mark_dirty(seen)
        ctx.mark_non_differentiable(seen)
        seen.add_(x.detach().mean(0))
        return x * 1.0, seen

    @staticmethod
    def backward(ctx, g, _):
        return 0.5 * g, None


@meaning
def function_that_writes_a_buffer():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(8))

        def between(self, x):
            y, _ = Count.apply(x, self.seen)
            return y + self.seen

    return between(Model())


class Options(torch.autograd.Function):
    """Arguments that are no tensors, and lists of them."""

    @staticmethod
    def forward(ctx, x, how, table, shape, dtype, nothing):
        assert how == "scaled" and isinstance(shape, tuple) and nothing is None and dtype == torch.float32
        ctx.factor = float(np.asarray(table["factors"]).sum())
        return x.reshape(shape).to(dtype) * ctx.factor + float(x.detach().numpy().mean())

    @staticmethod
    def backward(ctx, g):
        assert ctx.needs_input_grad == (True, False, False, False, False, False)
        return g * ctx.factor, None, None, None, None, None


@meaning
def function_with_options():
    class Model(Between):
        def between(self, x):
            return Options.apply(x, "scaled", {"factors": [0.5, 1.0], "name": "a"}, (5, 8), torch.float32, None)

    return between(Model())


class Split(torch.autograd.Function):
    """The second result has no use, the third no gradient; backward() is told so."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        best = torch.from_numpy(np.argmax(x.detach().numpy(), 1))
        ctx.mark_non_differentiable(best)
        return x * 2, x * 3, best

    @staticmethod
    def backward(ctx, a, b, best):
        assert b is None and best is None
        return a * 5


@meaning
def function_with_missing_gradients():
    class Model(Between):
        def between(self, x):
            a, _, best = Split.apply(x)
            return a + best[:, None].float()

    return between(Model())


class Clip(torch.autograd.Function):
    """Its arguments: a parameter, what comes in, and a frozen tensor."""

    @staticmethod
    def forward(ctx, x, bound, fixed):
        ctx.save_for_backward(x, bound)
        return torch.from_numpy(np.clip(x.detach().numpy(), -float(bound), float(bound))) + fixed

    @staticmethod
    def backward(ctx, g):
        x, bound = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, True, False)
        inside = x.abs() <= bound
        return g * inside, (g * x.sign() * ~inside).sum().reshape(bound.shape), None


@meaning
def function_of_a_parameter():
    """PACT: the bound of a quantiser is trained."""

    class Model(Between):
        def __init__(self):
            super().__init__()
            self.bound = nn.Parameter(torch.tensor(0.3))
            self.register_buffer("fixed", torch.randn(8) * 0.1)

        def between(self, x):
            return Clip.apply(x, self.bound, self.fixed)

    return between(Model())


@meaning
def function_inside_of_a_function():
    power = 3
    name = "cube"

    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** power)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * torch.from_numpy(power * x.numpy() ** (power - 1)) * len(name) / 4

    class Model(Between):
        def between(self, x):
            return Power.apply(x)

    return between(Model())


class Median(torch.autograd.Function):
    """A loss whose backward() asks numbers in Python."""

    @staticmethod
    def forward(ctx, x, y):
        d = x - y
        ctx.save_for_backward(d)
        return d.abs().median()

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        return (g * d.sign() / d.numel(), None) if float(d.abs().max()) > 0.1 else (g * d, None)


@meaning
def function_as_loss():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)), lambda o, y: Median.apply(o[:, 0], y), [(torch.randn(5, 6), torch.randn(5)) for _ in range(3)]


@meaning
def function_without_gradient():
    """Under no_grad nothing goes back through it."""

    class Model(Between):
        def between(self, x):
            with torch.no_grad():
                gate = NumpyTanh.apply(x, 2.0)
            return x * gate

    return between(Model())


@meaning
def numbers_by_numpy():
    """Outside of a function: the file keeps the numbers of the first batch, and that is said."""

    class Model(Between):
        def between(self, x):
            return x * float(np.abs(x.detach().numpy()).mean())

    return Model(), F.cross_entropy, rows()


# --- operators of complex tensors, which have no real form


@meaning
def eigenvalues_of_a_product():
    """A linear system that moves on by powers of its eigenvalues."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 4), nn.Linear(4, 3)
            self.moves = nn.Parameter(torch.randn(4, 4) * 0.5)

        def forward(self, x):
            values, vectors = torch.linalg.eig(self.moves)
            start = torch.linalg.solve(vectors, self.a(x).to(vectors.dtype).T)
            return self.b((vectors @ (values[:, None] ** 3 * start)).real.T)

    return between(Model())


@meaning
def radius_without_gradient():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("moves", torch.randn(8, 8))

        def between(self, x):
            with torch.no_grad():
                radius = torch.linalg.eigvals(self.moves).abs().max()
            return x @ (self.moves / radius)

    return between(Model())


@meaning
def results_by_their_names():
    class Model(Between):
        def between(self, x):
            found = torch.linalg.eig(x[:, :4].reshape(-1, 2, 2) + torch.eye(2))
            sizes = found.eigenvectors.abs().sum(-2)
            return torch.cat([found.eigenvalues.abs(), found.eigenvalues.real, sizes, sizes], -1)

    return between(Model())


@meaning
def logarithm_and_root_of_complex():
    class Model(Between):
        def between(self, x):
            z = torch.view_as_complex(x.reshape(-1, 4, 2))
            u = torch.log(z) + z.sqrt() + torch.sin(z) * z**0.5
            return torch.view_as_real(u).flatten(1)

    return between(Model())


@meaning
def hermitian():
    class Model(Between):
        def between(self, x):
            z = torch.view_as_complex(x.reshape(-1, 2, 2, 2))
            return torch.cat([torch.linalg.eigvalsh(z + z.mH), torch.linalg.svdvals(z), x[:, :4]], -1)

    return between(Model())

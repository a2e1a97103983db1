# SPDX-License-Identifier: Apache-2.0
"""Small models after research code: gradients inside of the forward pass, state that begins as an equal, inputs in structures. Like meanings.py, into whose table they go."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

from meanings import Between, between, meaning, rows


NEEDS_TORCHSCRIPT = []


def asks_for_gradients(make):
    """Only exporter torchscript writes these out."""
    NEEDS_TORCHSCRIPT.append(make.__name__)
    return meaning(make)


def several(make, count=3):
    return [make() for _ in range(count)]


# --- torch.autograd.grad and torch.func in forward()


@asks_for_gradients
def gradient_penalty():
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.Sequential(nn.Linear(6, 16), nn.Softplus(), nn.Linear(16, 1))

        def forward(self, real, fake, part):
            mixed = (part * real + (1 - part) * fake).requires_grad_(True)
            (gradient,) = torch.autograd.grad(self.d(mixed).sum(), mixed, create_graph=True)
            return self.d(fake).mean() - self.d(real).mean() + 10 * ((gradient.norm(2, dim=1) - 1) ** 2).mean()

    return Critic(), lambda loss: loss, several(lambda: ((torch.randn(5, 6), torch.randn(5, 6), torch.rand(5, 1)), ()))


@asks_for_gradients
def penalty_of_convolutions():
    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(4, 8, 3, 2, 1, groups=2), nn.ConvTranspose2d(8, 4, 4, 2, 1, groups=2), nn.Conv1d(4, 2, 3, padding=2, dilation=2)

        def forward(self, real):
            real = real.requires_grad_()
            y = self.c(torch.tanh(self.b(F.silu(self.a(real)))).flatten(2)).exp().mean((1, 2))
            (gradient,) = torch.autograd.grad(y.sum(), real, create_graph=True)
            return y.mean() + 100 * gradient.square().sum((1, 2, 3)).mean()

    return Discriminator(), lambda loss: loss, several(lambda: (torch.randn(2, 4, 7, 7), ()))


@asks_for_gradients
def equation_of_physics():
    class Burgers(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1))

        def forward(self, x, t):
            x, t = x.clone().requires_grad_(True), t.clone().requires_grad_(True)
            u = self.n(torch.cat([x, t], 1))
            d = lambda y, z: torch.autograd.grad(y, z, torch.ones_like(y), create_graph=True)[0]  # noqa: E731
            ux = d(u, x)
            return d(u, t) + u * ux - 0.01 * d(ux, x)

    return Burgers(), lambda r: (r**2).mean(), several(lambda: ((torch.rand(7, 1), torch.rand(7, 1)), ()))


@asks_for_gradients
def energy_and_forces():
    class Potential(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, 1))

        def forward(self, places):
            places = places.requires_grad_()
            i, j = torch.triu_indices(4, 4, 1)
            energy = self.n(torch.exp(-(places[:, i] - places[:, j]).norm(dim=-1, keepdim=True))).sum((1, 2))
            return energy, -torch.autograd.grad(energy.sum(), places, create_graph=True)[0]

    loss = lambda out, e, f: F.mse_loss(out[0], e) + 10 * F.mse_loss(out[1], f)  # noqa: E731
    return Potential(), loss, several(lambda: (torch.randn(2, 4, 3), (torch.randn(2), torch.randn(2, 4, 3))))


@asks_for_gradients
def inner_loop():
    class Learner(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x, y, other):
            parameters = dict(self.n.named_parameters())
            loss = F.mse_loss(torch.func.functional_call(self.n, parameters, (x,)), y)
            gradients = torch.autograd.grad(loss, parameters.values(), create_graph=True)
            moved = {name: p - 0.1 * g for (name, p), g in zip(parameters.items(), gradients)}
            return torch.func.functional_call(self.n, moved, (other,))

    return Learner(), F.mse_loss, several(lambda: (tuple(torch.randn(4, 1) for _ in range(3)), torch.randn(4, 1)))


@asks_for_gradients
def adversarial_inputs():
    """A gradient through which none flows: of each batch its own."""

    class Model(Between):
        def forward(self, x, y):
            x = x.detach().requires_grad_(True)
            (gradient,) = torch.autograd.grad(F.cross_entropy(super().forward(x), y), x)
            return super().forward(x + 0.1 * gradient.sign())

    model = Model(nn.Softplus())
    return model, lambda out, y: F.cross_entropy(out, y), [((x, y), y) for x, y in rows()]


@asks_for_gradients
def jacobian_penalty():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            f = lambda row: self.b(torch.tanh(self.a(row)))  # noqa: E731
            return f(x), (torch.vmap(torch.func.jacrev(f))(x) ** 2).sum((1, 2)).mean()

    return Model(), lambda out, y: F.cross_entropy(out[0], y) + 0.01 * out[1], rows()


@asks_for_gradients
def deep_equilibrium():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.u, self.o = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            f = lambda z: torch.tanh(0.3 * self.f(z) + self.u(x))  # noqa: E731
            with torch.no_grad():
                z = torch.zeros_like(x)
                for _ in range(8):
                    z = f(z)
            z = f(z)
            start = z.clone().detach().requires_grad_()
            around = f(start)

            def solve(gradient):
                y = gradient
                for _ in range(5):
                    y = torch.autograd.grad(around, start, y, retain_graph=True)[0] + gradient
                return y

            z.register_hook(solve)
            return self.o(z)

    return between(Model())


# --- state


@meaning
def teacher_that_begins_as_the_student():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
            self.teacher = copy.deepcopy(self.student).requires_grad_(False)
            self.register_buffer("step", torch.tensor(0))

        @torch.no_grad()
        def update(self):
            self.step += 1
            alpha = torch.clamp(1 - 1 / (self.step.float() + 1), max=0.99)
            for a, b in zip(self.student.parameters(), self.teacher.parameters()):
                b.copy_(alpha * b + (1 - alpha) * a)

        def forward(self, x):
            self.update()
            with torch.no_grad():
                target = self.teacher(x + 0.1)
            return self.student(x), target

    return Model(), lambda out, y: F.cross_entropy(out[0], y) + F.mse_loss(out[0].softmax(-1), out[1].softmax(-1)), rows()


@meaning
def clamped_logit_scale():
    """A trained parameter that forward() moves back into its range; its gradient is that at the new place."""

    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.i, self.t, self.scale = nn.Linear(6, 4), nn.Linear(5, 4), nn.Parameter(torch.ones([]) * 2.7)

        def forward(self, i, t):
            self.scale.data = torch.clamp(self.scale.data, 0, 2.6052)
            i, t = F.normalize(self.i(i), dim=-1), F.normalize(self.t(t), dim=-1)
            scores = self.scale.exp() * i @ t.T
            return {"i": scores, "t": scores.T}

    loss = lambda out: (F.cross_entropy(out["i"], torch.arange(5)) + F.cross_entropy(out["t"], torch.arange(5))) / 2  # noqa: E731
    return Towers(), loss, several(lambda: ((torch.randn(5, 6), torch.randn(5, 5)), ()))


@meaning
def frozen_statistics():
    """Layers that the script put into evaluation, in a model that trains."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    model[1].running_mean.uniform_(-1, 1)
    model[1].running_var.uniform_(0.5, 2)
    model[1].eval()
    return model, F.cross_entropy, several(lambda: (torch.randn(3, 3, 6, 6), torch.randint(0, 3, (3,))))


@meaning
def gradient_that_no_batch_changes():
    """The loss is linear in its parameters: their gradients are constants of the plan."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(5, 5)), nn.Parameter(torch.randn(5, 5))

        def forward(self, x):
            return torch.lerp(self.a, self.b, 0.4) * torch.cos(torch.arange(25.0).reshape(5, 5)), x.sum()

    return Model(), lambda out: out[0].sum() + out[1], several(lambda: (torch.randn(1), ()))


# --- functions


@meaning
def both_branches():
    class Model(Between):
        def between(self, x):
            return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))

    return between(Model())


@meaning
def diagonal_in_place():
    class Model(Between):
        def between(self, x):
            scores = x @ x.T
            scores.fill_diagonal_(-1e4)
            return torch.softmax(scores, -1) @ x

    return between(Model())


@meaning
def columns_by_index():
    class Model(Between):
        def between(self, x):
            y = x.clone()
            y[:, torch.tensor([1, 4])] = 0.5 * x[:, :2]
            return y.index_put((torch.tensor([0, 0, 3]),), x[:3], accumulate=True)

    return between(Model())


@meaning
def positions_from_a_mask():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.p, self.o = nn.Embedding(11, 8, padding_idx=1), nn.Embedding(9, 8, padding_idx=1), nn.Linear(8, 11)

        def forward(self, ids):
            mask = ids.ne(1)
            places = torch.cumsum(mask, 1).type_as(ids) * mask + 1
            return self.o(self.e(ids) + self.p(places) + mask.cumsum(1).unsqueeze(-1) * 0.1)

    ids = lambda: torch.randint(0, 11, (3, 6))  # noqa: E731
    return Model(), lambda out, y: F.cross_entropy(out.transpose(1, 2), y), several(lambda: (ids(), ids()))


@meaning
def inputs_in_structures():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 3), nn.Linear(4, 3)

        def forward(self, images, meta, scale):
            return self.a(images[0]) + scale * self.a(images[1]) + self.b(meta["x"]["y"])

    make = lambda: (([torch.randn(5, 6), torch.randn(5, 6)], {"x": {"y": torch.randn(5, 4)}}, 0.5), torch.randint(0, 3, (5,)))  # noqa: E731
    return Model(), F.cross_entropy, several(make)


# --- what is said: {name: (model, words of a note)}


def _keeps(kind):
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.kept, self.calls, self.bank, self.ready = None, 0, [], False
            self.register_buffer("step", torch.tensor(0))

        def between(self, x):
            if kind == "tensor":
                x = x if self.kept is None else x + self.kept
                self.kept = x.detach()
            if kind == "list":
                self.bank.append(x.detach())
                x = x + torch.stack(self.bank).mean(0)
            if kind == "draw":
                x = random.random() * x
            if kind == "counter":
                self.calls += 1
                x = x / self.calls
            if kind == "flag" and not self.ready:
                self.ready, x = True, x * 0.5
            if kind == "state":
                self.step += 1
                x = x * 2 if self.step % 10 == 0 else x
            return x

    return between(Model())


def _temperature():
    class Model(Between):
        def forward(self, x, temperature):
            return super().forward(x) / temperature

    return Model(nn.ReLU()), F.cross_entropy, [({"x": x, "temperature": 1.0 + i}, y) for i, (x, y) in enumerate(rows())]


SAID = {
    "tensor_between_batches": (lambda: _keeps("tensor"), "keeps something for the next batch"),
    "list_between_batches": (lambda: _keeps("list"), "('model.bank')"),
    "draws_of_python": (lambda: _keeps("draw"), "random numbers of Python or NumPy"),
    "counter_in_python": (lambda: _keeps("counter"), "attribute 'model.calls': forward() changes it"),
    "flag_in_python": (lambda: _keeps("flag"), "let it run once before"),
    "branch_on_state": (lambda: _keeps("state"), "let it run once before"),
    "constant_that_changes": (_temperature, "input 'temperature' is no tensor"),
}


# --- what is refused: {name: (model, loss_fn, batches, words)}


def refused():
    linear, batches = nn.Linear(6, 3), rows()
    complex_batches = [(torch.randn(5, 6, dtype=torch.complex64), y) for _, y in batches]
    return {
        "loss_with_axes": (linear, nn.CrossEntropyLoss(reduction="none"), batches, "shape [5]; expected a scalar"),
        "loss_in_a_tuple": (linear, lambda out, y: (F.cross_entropy(out, y), out), batches, "loss_fn returned a tuple"),
        "loss_in_a_dict": (linear, lambda out, y: {"loss": F.cross_entropy(out, y)}, batches, '["loss"]'),
        "nothing_trained": (nn.Linear(6, 3).requires_grad_(False), F.cross_entropy, batches, "no parameter is trained"),
        "loss_without_gradient": (linear, lambda out, y: out.detach().sum(), batches, "none of the 2 parameters"),
        "model_that_fails": (linear, lambda out, y: F.cross_entropy(out, y[:2]), batches, "do not run on the first batch: ValueError: Expected input batch_size"),
        "lazy_layer": (nn.LazyLinear(3), F.cross_entropy, batches, "has no shape yet"),
        "torchscript": (torch.jit.script(nn.Sequential(nn.Linear(6, 3))), F.cross_entropy, batches, "is TorchScript"),
        "complex_input": (linear, F.cross_entropy, complex_batches, "input 'input' is complex"),
        "another_structure": (linear, F.cross_entropy, [batches[0], ((batches[1][0],), (batches[1][1], torch.zeros(1)))], "batch 1: tensors"),
    }

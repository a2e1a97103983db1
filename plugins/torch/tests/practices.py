# SPDX-License-Identifier: Apache-2.0
"""Small models in habits of which 120 were tried: those that were refused or lost their gradient. Like meanings.py, into whose table they go."""

import threading

import torch
import torch.nn.functional as F
from torch import nn

from architectures import labels, several
from meanings import Between, between, meaning


@meaning
def function_that_forward_defines():
    """Its class is another one in each pass."""

    class Model(Between):
        def between(self, x):
            class Cubed(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x**3

                @staticmethod
                def backward(ctx, g):
                    (x,) = ctx.saved_tensors
                    return 2 * g * x  # not quite the slope, on purpose

            return Cubed.apply(x)

    return between(Model())


@meaning
def function_of_python_that_forward_defines():
    """Python has to run it, and what it returns is found on meta tensors."""

    class Model(Between):
        def between(self, x):
            class Weighed(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    place = x.sum(0).argmax()
                    ctx.mark_non_differentiable(place)
                    return x * x, place

                @staticmethod
                def backward(ctx, g, _):
                    (x,) = ctx.saved_tensors
                    return 3 * g * x * (1.0 if float(x.sum()) > -1e9 else 2.0)

            y, place = Weighed.apply(x)
            return y + place * 0.01

    return between(Model())


@meaning
def objects_that_cannot_be_copied():
    class Model(Between):
        def __init__(self):
            super().__init__(nn.ReLU())
            self.lock, self.rows = threading.Lock(), (i for i in range(3))

        def forward(self, x):
            with self.lock:
                return super().forward(x)

    return between(Model())


@meaning
def product_with_a_sparse_matrix():
    neighbours = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 3]]), torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0, 0.3]), (5, 5)).coalesce()

    class Model(Between):
        def between(self, x):
            return torch.sparse.mm(neighbours, x).relu() + neighbours @ x

    return between(Model())


@meaning
def experts_by_a_stable_sort():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.out = nn.Linear(6, 4), nn.Linear(6, 3)
            self.weights = nn.Parameter(torch.randn(4, 6, 6) * 0.3)

        def forward(self, x):
            share, chosen = self.gate(x).softmax(-1).topk(2, -1)
            order = chosen.flatten().argsort(stable=True)
            found = torch.bmm(x[order // 2][:, None], self.weights[chosen.flatten()[order]])[:, 0]
            return self.out(x + torch.zeros_like(x).index_add(0, order // 2, found * share.flatten()[order][:, None]))

    return Experts(), F.cross_entropy, several(lambda: (torch.randn(5, 6), labels(5)))


@meaning
def embedding_with_sparse_gradients():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags, self.words, self.out = nn.EmbeddingBag(9, 6, mode="sum", sparse=True), nn.Embedding(9, 6, sparse=True), nn.Linear(6, 3)

        def forward(self, ids):
            return self.out(self.bags(ids) + self.words(ids).mean(1))

    return Words(), F.cross_entropy, several(lambda: (torch.randint(0, 9, (5, 4)), labels(5)))


@meaning
def softplus_of_a_low_threshold():
    """Beyond it the result is x: 0.6 above what it is without."""

    class Model(Between):
        def between(self, x):
            return F.softplus(x, beta=2.0, threshold=-0.5)

    return between(Model())


_reduced = torch.scatter_reduce  # as `from torch import scatter_reduce` gives it


@meaning
def function_that_was_imported_by_name():
    class Model(Between):
        def between(self, x):
            place = torch.tensor([0, 1, 0, 2, 1]).unsqueeze(1).expand_as(x)
            return x + _reduced(torch.ones_like(x), 0, place, x, "mean", include_self=False) + _reduced(torch.full_like(x, -9.0), 0, place, x, "amax", include_self=False)

    return between(Model())


def generator_of_its_own():
    generator = torch.Generator().manual_seed(3)

    class Model(Between):
        def between(self, x):
            return x + 0.1 * torch.randn(x.shape, generator=generator)

    return between(Model())

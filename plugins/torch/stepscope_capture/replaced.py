# SPDX-License-Identifier: Apache-2.0
"""PyTorch functions as compositions that exporters keep as they are."""

import contextlib
from unittest import mock

import torch
from torch import nn


# Exporters spell distances out as roots of sums, whose gradient is no number where two points coincide; PyTorch's is 0 there, as a norm's is (cdist: natives.py).
def _pairwise_distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return torch.linalg.vector_norm(a - b + eps, p, -1, keepdim)


def _scatter_reduce(original):
    """Tensor.scatter_reduce whose means, and whose reductions without the tensor itself, are sums, products and extremes that ONNX has.

    Of exporters, TorchScript refuses these and dynamo writes a mean as a scatter that overwrites.
    """

    def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
        if reduce != "mean" and include_self:
            return original(x, dim, index, src, reduce, include_self=True)
        start = {"prod": 1.0, "amax": -float("inf"), "amin": float("inf")}.get(reduce, 0.0)
        base = x if include_self else torch.full_like(x, start)
        if reduce in ("sum", "mean"):
            result = base.scatter_add(dim, index, src)
        else:
            result = original(base, dim, index, src, reduce, include_self=True)
        count = torch.full_like(x, 1.0 if include_self else 0.0).scatter_add(dim, index, torch.ones_like(src))
        if reduce == "mean":
            result = result / count.clamp(min=1)
        return result if include_self else torch.where(count > 0, result, x)

    return scatter_reduce


@contextlib.contextmanager
def exportable():
    """PyTorch functions as compositions that exporters keep as they are, while one runs."""
    functions = [
        (nn.functional, "pairwise_distance", _pairwise_distance),
        (torch, "pairwise_distance", _pairwise_distance),
        (torch, "scatter_reduce", _scatter_reduce(torch.scatter_reduce)),
        (torch.Tensor, "scatter_reduce", _scatter_reduce(torch.Tensor.scatter_reduce)),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, function in functions:
            stack.enter_context(mock.patch.object(owner, name, function))
        yield

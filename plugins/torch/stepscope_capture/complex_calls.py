# SPDX-License-Identifier: Apache-2.0
"""Operators of complex tensors that have no real form in complex.py (linalg.eig, roots, logarithms …): nodes that the Python host runs, on real tensors [..., 2]."""

import json
import types

import torch

from stepscope_capture import function_nodes
from stepscope_capture.markers import apart

MAKE_COMPLEX = ("linalg_eig", "linalg_eigvals")  # of real tensors


def _built(entry, tensors):
    """`entry`: {"pair": i} or {"tensor": i}, numbers of `tensors`; a list of entries; or {"value": anything else}."""
    if isinstance(entry, list):
        return [_built(part, tensors) for part in entry]
    if "pair" in entry:
        return torch.view_as_complex(tensors[entry["pair"]].contiguous())
    if "number" in entry:
        return complex(*entry["number"])
    return tensors[entry["tensor"]] if "tensor" in entry else getattr(torch, entry["dtype"]) if "dtype" in entry else entry["value"]


def _computed(name, described, tensors):
    """What the operator returns, as a list; complex results as real ones."""
    arguments, named = json.loads(described)
    result = getattr(torch.ops.aten, name)(*_built(arguments, tensors), **{key: _built(value, tensors) for key, value in named.items()})
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    return [torch.view_as_real(r.resolve_conj()) if r.is_complex() else r for r in results], [r.is_complex() for r in results]


class ComplexOperator(torch.autograd.Function):
    """aten's operator `name`; `described`: its arguments, JSON."""

    @staticmethod
    def forward(ctx, name, described, *tensors):
        ctx.name, ctx.described = name, described
        ctx.save_for_backward(*tensors)
        return tuple(_computed(name, described, tensors)[0])

    @staticmethod
    def backward(ctx, *gradients):
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in ctx.saved_tensors]
            results, _ = _computed(ctx.name, ctx.described, leaves)
            reached = [(r, g) for r, g in zip(results, gradients) if r.requires_grad and g is not None]
            wanted = [t for t in leaves if t.requires_grad]
            found = iter(torch.autograd.grad([r for r, _ in reached], wanted, [g for _, g in reached], allow_unused=True))
        return (None, None, *(next(found) if t.requires_grad else None for t in leaves))


def _entry(value, tensors, pair):
    if isinstance(value, pair):
        re, im = torch.broadcast_tensors(*(torch.as_tensor(part) for part in (value.re, value.im)))
        tensors.append(torch.stack((re, im), -1))
        return {"pair": len(tensors) - 1}
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, complex):
        return {"number": [value.real, value.imag]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, (list, tuple)) and any(isinstance(v, (torch.Tensor, pair)) for v in value):
        return [_entry(v, tensors, pair) for v in value]
    return {"value": value}


def hosted(name, args, kwargs, mode, pair):
    """The result of a node; NotImplemented for what torch has no such operator of. `pair`: the class of complex tensors of the traced pass."""
    name = name.strip("_") if name.startswith("__") else name
    if name.endswith("_") or not hasattr(torch.ops.aten, name):
        return NotImplemented
    tensors = []
    try:
        described = json.dumps([[_entry(a, tensors, pair) for a in args], {key: _entry(value, tensors, pair) for key, value in kwargs.items()}])
        with apart():
            meta = [torch.empty([int(extent) for extent in t.shape], dtype=t.dtype, device="meta") for t in tensors]
            found, are_complex = _computed(name, described, meta)
            kinds = [(r.dtype, [int(extent) for extent in r.shape]) for r in found]
    except (TypeError, NotImplementedError, RuntimeError):  # no JSON, no such overload, extents that only numbers tell
        return NotImplemented
    grad = torch.is_grad_enabled()
    results = [(dtype, shape, grad and dtype.is_floating_point and any(t.requires_grad for t in tensors)) for dtype, shape in kinds]
    seen = types.SimpleNamespace(written=[], views=[], places={}, several=True, results=results)
    values = function_nodes.hosted(ComplexOperator, mode, (name, described, *tensors), seen, grad)
    values = [pair(v[..., 0], v[..., 1]) if of_complex else v for v, of_complex in zip(values, are_complex)]
    kind = getattr(torch.return_types, name, None)
    return values[0] if len(values) == 1 else kind(values) if kind is not None else tuple(values)

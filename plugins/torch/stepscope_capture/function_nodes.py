# SPDX-License-Identifier: Apache-2.0
"""autograd.Functions that only Python can run: kept as nodes stepscope.python.Function, which the plugin python_host runs, forward and backward.

What a function does (results, arguments that it changes) is seen when the model runs as it is, before it is traced: NumPy computes nothing of what is traced.
"""

import inspect
import json
import types

import torch
from torch.overrides import TorchFunctionMode

from stepscope_capture.checkpointed import Regions
from stepscope_capture.function_source import source_of
from stepscope_capture.host_nodes import DOMAIN, ONNX_TYPES, CannotKeep, input_attributes, result_attributes
from stepscope_capture.markers import apart

__all__ = ["Call", "CannotKeep", "Seen", "hosted", "watching"]


class _Watch(TorchFunctionMode):
    def __init__(self, call, reads):
        super().__init__()
        self._call, self._reads = call, reads

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in self._reads:
            self._call.untraceable = self._call.untraceable or f"it reads numbers in Python ({func.__name__})"
        return func(*args, **(kwargs or {}))


def watching(call, reads):
    return _Watch(call, reads)


class Call:
    """One call of a function in a run of the model."""

    def __init__(self, function, args):
        self.function, self.untraceable, self.dirty = function, "", []
        self.args, self._versions = args, [a._version if isinstance(a, torch.Tensor) else 0 for a in args]

    def mark_dirty(self, tensors):
        self.untraceable = "mark_dirty"
        self.dirty += [i for i, a in enumerate(self.args) if any(a is t for t in tensors)]

    def returns(self, result):
        self._result = result
        tensors = [(i, a) for i, a in enumerate(self.args) if isinstance(a, torch.Tensor)]
        self._changed = [i for i, a in tensors if a._version != self._versions[i]]

    def end(self):
        """When apply has said which results have a gradient. Lets the tensors go."""
        results = self._result if isinstance(self._result, tuple) else (self._result,)
        self.several = isinstance(self._result, tuple)
        self.results = [(r.dtype, list(r.shape), r.requires_grad) if isinstance(r, torch.Tensor) else r for r in results]
        self.differentiable = any(isinstance(r, torch.Tensor) and r.requires_grad for r in results)
        self.places = {i: next((k for k in self.dirty if self.args[k] is r), None) for i, r in enumerate(results)}  # of arguments that are results
        self.views = [i for i in self.dirty if self.args[i]._is_view()]
        self.written = [i for i in self._changed if i not in self.dirty]
        self.args = self._result = None


class Seen:
    """What one run of the model calls. Its calls of functions, in order, are handed out again in that order, function by function, to the run that is traced."""

    def __init__(self):
        self.calls = []
        self.operators = set()  # of aten, that the model calls
        self.regions = Regions()
        self.sources = None  # of the functions that only Python can run (function_source.py)

    def mark_dirty(self, tensors):
        for one in reversed(self.calls):
            if any(a is t for a in one.args for t in tensors):
                one.mark_dirty(tensors)
                return

    def end(self):
        for one in self.calls:
            one.end()

    def begin(self):
        self._left = {}
        for one in self.calls:
            self._left.setdefault(one.function, []).append(one)

    def following(self, function):
        left = self._left.get(function)
        return left.pop(0) if left else None


def _entry(value, tensors):
    """An argument as JSON; tensors are appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in ONNX_TYPES:
            raise CannotKeep(f"an argument of type {value.dtype}")
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    if type(value) in (list, tuple, torch.Size):
        return {"list" if type(value) is list else "tuple": [_entry(v, tensors) for v in value]}
    if type(value) is dict and all(isinstance(k, str) for k in value):
        return {"dict": {k: _entry(v, tensors) for k, v in value.items()}}
    raise CannotKeep(f"an argument of type {type(value).__name__}")


class _Noted:
    """A ctx that is asked what it was told of the results."""

    needs_input_grad = ()

    def __init__(self):
        self.apart = set()

    def mark_non_differentiable(self, *tensors):
        self.apart |= {id(t) for t in tensors}

    def mark_dirty(self, *_):
        raise CannotKeep("it was not called when the model ran as it is, and changes an argument")

    save_for_backward = save_for_forward = set_materialize_grads = lambda self, *_: None


def _by_meta(function, args):
    """What a call does, of a run on meta tensors, for one that the model did not make when it ran as it is."""
    context = _Noted()
    try:
        with apart(), torch.no_grad():
            given = [torch.empty([int(extent) for extent in a.shape], dtype=a.dtype, device="meta") if isinstance(a, torch.Tensor) else a for a in args]
            found = _forward(function, context, given)
            results = found if isinstance(found, tuple) else (found,)
            kinds = [(r.dtype, [int(e) for e in r.shape], r.is_floating_point() and id(r) not in context.apart) if isinstance(r, torch.Tensor) else r for r in results]
    except CannotKeep:
        raise
    except Exception as error:  # noqa: BLE001  NumPy, numbers that Python reads …
        raise CannotKeep(f"it was not called when the model ran as it is, and does not run on meta tensors: {type(error).__name__}: {error}") from error
    return types.SimpleNamespace(written=[], views=[], places={}, several=isinstance(found, tuple), results=kinds)


def _forward(function, context, given):
    forward = inspect.unwrap(function.forward)
    return forward(context, *given) if function.setup_context is torch.autograd.Function.setup_context else forward(*given)


def hosted(function, mode, args, seen, grad):
    """The results of a node that runs `function`; arguments that it changes in place stand for those results from now on."""
    seen = _by_meta(function, args) if seen is None else seen
    if seen.written:
        raise CannotKeep(f"it writes into argument {seen.written[0]} without mark_dirty")
    if seen.views:
        raise CannotKeep(f"it changes argument {seen.views[0]}, a view, in place")
    if any(not isinstance(r, tuple) for r in seen.results):
        raise CannotKeep("a result is no tensor")
    tensors = []
    arguments = [_entry(a, tensors) for a in args]
    kinds = [(ONNX_TYPES.get(dtype), shape) for dtype, shape, _ in seen.results]
    attributes = {**source_of(function, mode.functions.sources), "arguments": json.dumps(arguments), **result_attributes(function.__qualname__, kinds)}
    attributes.update(input_attributes([[int(extent) for extent in t.shape] for t in tensors]))
    kinds = [part[:2] for part in seen.results]
    with torch.set_grad_enabled(grad):
        results = list(mode.markers.hosted(f"{DOMAIN}::Function", tensors, attributes, kinds, lambda *values: _computed(function, arguments, values)))
        results = [r if needs else mode.stop(r) if r.requires_grad else r for r, (*_, needs) in zip(results, seen.results)]
    for i, place in seen.places.items():
        if place is not None:
            results[i] = mode.becomes(args[place], results[i])
    return tuple(results) if seen.several else results[0]


def _built(entry, tensors):
    (kind, value), *_ = entry.items()
    if kind == "tensor":
        return tensors[value].clone()
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_built(v, tensors) for v in value)
    if kind == "dict":
        return {k: _built(v, tensors) for k, v in value.items()}
    return getattr(torch, value) if kind == "dtype" else value


class _Ignored:
    """A ctx that nobody reads."""

    needs_input_grad = ()

    def _nothing(self, *_):
        return None

    save_for_backward = save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = _nothing


def _computed(function, arguments, tensors):
    """What the function computes, for an exporter that runs the model while it traces it."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        given = [_built(a, tensors) for a in arguments]
        result = _forward(function, _Ignored(), given)
    return [r.detach().clone() for r in (result if isinstance(result, tuple) else (result,))]

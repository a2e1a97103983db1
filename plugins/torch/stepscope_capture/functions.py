# SPDX-License-Identifier: Apache-2.0
"""autograd.Function in a traced forward pass: its forward() and, with a stand-in for the gradient that arrives, its backward().

`f = MyFunction.apply` may have been written down anywhere, so forward() is exchanged, which apply looks up when it runs.
"""

import contextlib
import functools
import math
from unittest import mock

import torch
from torch.utils import checkpoint

_Function = torch.autograd.Function


class _Context:
    """What forward() and backward() of a Function see."""

    def __init__(self, needs):
        self.needs_input_grad, self.saved_tensors, self.apart, self.dirty = needs, (), set(), False

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = set_materialize_grads = lambda self, *_: None

    def mark_non_differentiable(self, *tensors):
        self.apart |= {id(t) for t in tensors}

    def mark_dirty(self, *_):
        self.dirty = True


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _parts(vector, like):
    """A vector taken apart into pieces shaped like the tensors `like`."""
    parts, begin = [], 0
    for t in like:
        shape = [int(extent) for extent in t.shape]
        end = begin + math.prod(shape)
        parts.append(vector[begin:end].reshape(shape))
        begin = end
    return parts


def _gradients(function, context, results, carried, mode):
    """(the carried results, as one vector where they are several; what stands for the gradient of that; gradients of the arguments)."""
    if len(carried) == 1:
        together = results[carried[0]]
        placeholder = mode.markers.gradient_of(together)
        parts = [placeholder]
    else:
        together = torch.cat([results[i].reshape(-1) for i in carried])
        placeholder = mode.markers.gradient_of(together)
        parts = _parts(placeholder, [results[i] for i in carried])
    arriving = [parts[carried.index(i)] if i in carried else torch.zeros_like(r) if isinstance(r, torch.Tensor) else None for i, r in enumerate(results)]
    gradients = function.backward(context, *arriving)
    return together, placeholder, gradients if isinstance(gradients, tuple) else (gradients,)


def _forward(function, forward, own_context, mode, args):
    """The results of forward(), each with the gradient that backward() computes. Runs without gradients, as apply calls it."""
    args = [mode.current(a, stop=False) if isinstance(a, torch.Tensor) else a for a in args]
    context = _Context(tuple(isinstance(a, torch.Tensor) and a.requires_grad for a in args))
    inside = [mode.stop(a) if _is_float(a) and a.requires_grad else a for a in args]
    if own_context:
        result = forward(context, *inside)
    else:
        result = forward(*inside)
        function.setup_context(context, tuple(inside), result)
    several = isinstance(result, tuple)
    results = list(result) if several else [result]
    carried = [i for i, r in enumerate(results) if _is_float(r) and id(r) not in context.apart]
    if carried and any(context.needs_input_grad) and not context.dirty:
        together, placeholder, gradients = _gradients(function, context, results, carried, mode)
        for x, gradient in zip(args, gradients):
            if _is_float(x) and x.requires_grad and gradient is not None:
                together = mode.markers.custom_gradient(together, placeholder, x, gradient.expand_as(x))
        if len(carried) == 1:
            results[carried[0]] = together
        else:
            for i, part in zip(carried, _parts(together, [results[i] for i in carried])):
                results[i] = part
    return tuple(results) if several else results[0]


def _traced(function, forward, mode):
    own_context = function.setup_context is _Function.setup_context

    @functools.wraps(forward)
    def traced(*args, **kwargs):
        try:
            return _forward(function, forward, own_context, mode, args[1:] if own_context else args)
        except Exception as error:  # noqa: BLE001  whatever user code does where its gradient is only a stand-in
            mode.notes.append(f"autograd.Function {function.__qualname__}: its backward() is not kept ({type(error).__name__}: {error})")
        return forward(*args, **kwargs)

    return staticmethod(traced)


def _subclasses(function):
    for subclass in function.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


class _Once:
    """Stands for CheckpointFunction: what the backward phase would compute again is the same number."""

    @staticmethod
    def apply(run_function, preserve_rng_state, *args):
        return run_function(*args)


@contextlib.contextmanager
def traced_functions(mode):
    with contextlib.ExitStack() as stack:
        if mode.markers.kept:
            stack.enter_context(mock.patch.object(checkpoint, "CheckpointFunction", _Once))
            for function in set(_subclasses(_Function)):
                if "forward" in function.__dict__ and not function.__module__.startswith(("torch.", "functorch")):
                    stack.enter_context(mock.patch.object(function, "forward", _traced(function, function.forward, mode)))
        yield

# SPDX-License-Identifier: Apache-2.0
"""autograd.Function in a traced forward pass: its forward() and, with a stand-in for the gradient that arrives, its backward().

What cannot be traced (NumPy, Python that reads values, arguments changed in place, …) becomes a node that Python runs (function_nodes.py).
`f = MyFunction.apply` may have been written down anywhere, so forward() is exchanged too, which every apply looks up when it runs.
"""

import contextlib
import functools
import math
from unittest import mock

import torch
from torch.autograd.function import FunctionCtx
from torch.utils._python_dispatch import TorchDispatchMode

from stepscope_capture import function_nodes
from stepscope_capture.meaning import READS
from stepscope_capture.replaced import both_branches

_Function = torch.autograd.Function
_TORCH = ("torch.", "functorch")


class _Untraceable(Exception):
    """A forward() or backward() that an export cannot hold."""


class _Operators(TorchDispatchMode):
    def __init__(self, seen):
        super().__init__()
        self._seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "aten":
            self._seen.add(func)
        return func(*args, **(kwargs or {}))


class _Context:
    """What forward() and backward() of a Function see."""

    def __init__(self, needs):
        self.needs_input_grad, self.saved_tensors, self.apart, self.materialize_grads = needs, (), set(), True

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = lambda self, *_: None  # noqa: E731

    def set_materialize_grads(self, value):
        self.materialize_grads = value

    def mark_non_differentiable(self, *tensors):
        self.apart |= {id(t) for t in tensors}

    def mark_dirty(self, *_):
        raise _Untraceable("mark_dirty")


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
        if not context.materialize_grads:
            raise _Untraceable("set_materialize_grads(False): which gradients arrive is not known")
        together = torch.cat([results[i].reshape(-1) for i in carried])
        placeholder = mode.markers.gradient_of(together)
        parts = _parts(placeholder, [results[i] for i in carried])
    arriving = [parts[carried.index(i)] if i in carried else torch.zeros_like(r) if isinstance(r, torch.Tensor) else None for i, r in enumerate(results)]
    gradients = function.backward(context, *arriving)
    return together, placeholder, gradients if isinstance(gradients, tuple) else (gradients,)


def _forward(function, forward, mode, args, grad):
    """The results of forward(), each with the gradient that backward() computes. Runs without gradients, as apply calls it; `grad`: whether its caller has them."""
    needs = tuple(grad and isinstance(a, torch.Tensor) and a.requires_grad for a in args)
    context = _Context(needs)
    inside = [mode.stop(a) if _is_float(a) and a.requires_grad else a for a in args]
    if _own_context(function):
        result = forward(context, *inside)
    else:
        result = forward(*inside)
        function.setup_context(context, tuple(inside), result)
    several = isinstance(result, tuple)
    results = list(result) if several else [result]
    carried = [i for i, r in enumerate(results) if _is_float(r) and id(r) not in context.apart]
    if carried and any(needs):
        together, placeholder, gradients = _gradients(function, context, results, carried, mode)
        with torch.enable_grad():
            for x, needed, gradient in zip(args, needs, gradients):
                if _is_float(x) and needed and gradient is not None:
                    together = mode.markers.custom_gradient(together, placeholder, x, gradient.expand_as(x))
            if len(carried) == 1:
                results[carried[0]] = together
            else:
                for i, part in zip(carried, _parts(together, [results[i] for i in carried])):
                    results[i] = part
    return tuple(results) if several else results[0]


def _own_context(function):
    return function.setup_context is _Function.setup_context


def _traced(function, forward, mode, args, grad):
    """What stands for the results in the traced graph; NotImplemented where nothing can."""
    seen, reason = mode.functions.following(function), ""
    args = [mode.current(a, stop=not grad) if isinstance(a, torch.Tensor) else a for a in args]
    if seen is not None:
        grad, reason = grad and seen.differentiable, seen.untraceable
    if not reason:
        try:
            with mode.refusing(READS, _Untraceable), torch.no_grad():
                return _forward(function, forward, mode, args, grad)
        except Exception as error:  # noqa: BLE001  whatever user code does where its gradient is only a stand-in
            reason = f"{type(error).__name__}: {error}".strip().removeprefix("_Untraceable: ").splitlines()[0]
    try:
        return function_nodes.hosted(function, mode, args, seen, grad)
    except function_nodes.CannotKeep as error:
        mode.notes.append(f"autograd.Function {function.__qualname__}: its backward() is not kept ({reason}; and Python cannot run it: {error})")
    return NotImplemented


def _subclasses(function):
    for subclass in function.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


@contextlib.contextmanager
def _exchanged(call):
    """While it is on, forward() of a user's function is call(function, its forward, its arguments with ctx)."""

    def exchanged(function, forward):
        @functools.wraps(forward)
        def wrapper(*args, **kwargs):
            return call(function, forward, *args, **kwargs)

        return staticmethod(wrapper)

    with contextlib.ExitStack() as stack:
        for function in set(_subclasses(_Function)):
            if not function.__module__.startswith(_TORCH) and function.forward is not _Function.forward:
                stack.enter_context(mock.patch.object(function, "forward", exchanged(function, function.forward)))
        yield


@contextlib.contextmanager
def traced_functions(mode):
    with contextlib.ExitStack() as stack:
        if not mode.markers.kept:
            yield
            return
        originals, plain = {}, []  # plain: functions that run as they are, because nothing can stand for them

        def forward(function, original, *args, **kwargs):
            if function in plain or kwargs:
                return original(*args, **kwargs)
            result = _traced(function, original, mode, args[1:] if _own_context(function) else args, True)
            return original(*args) if result is NotImplemented else result

        builtin = _Function.__dict__.get("apply")

        def apply(cls, *args, **kwargs):
            if not cls.__module__.startswith(_TORCH):  # one that forward() defines has not been there before
                originals.setdefault(cls, cls.forward)
            own = functools.partial(builtin.__get__(None, cls) if builtin is not None else super(_Function, cls).apply, *args, **kwargs)
            if cls not in originals or kwargs or cls in plain:
                return own()
            result = _traced(cls, originals[cls], mode, args, torch.is_grad_enabled())
            if result is not NotImplemented:
                return result
            plain.append(cls)
            try:
                return own()
            finally:
                plain.pop()

        originals.update({f: f.forward for f in set(_subclasses(_Function)) if not f.__module__.startswith(_TORCH)})
        stack.enter_context(_exchanged(forward))
        # What calls apply by its name gets no node of its own in TorchScript's trace, which loses the types of several results.
        stack.enter_context(mock.patch.object(_Function, "apply", classmethod(apply)))
        yield


@contextlib.contextmanager
def seen_functions():
    """While a model runs as it is: yields what its functions do (function_nodes.Seen)."""
    seen, original = function_nodes.Seen(), FunctionCtx.mark_dirty

    def call(function, forward, *args, **kwargs):
        one = function_nodes.Call(function, args[1:] if _own_context(function) else args)
        seen.calls.append(one)
        with function_nodes.watching(one, READS):
            result = forward(*args, **kwargs)
        one.returns(result)
        return result

    def mark_dirty(self, *tensors):
        seen.mark_dirty(tensors)
        return original(self, *tensors)

    with _exchanged(call), both_branches(), mock.patch.object(FunctionCtx, "mark_dirty", mark_dirty), _Operators(seen.operators):
        yield seen
    seen.end()


@contextlib.contextmanager
def untouched_functions(mode):
    """Functions run as they are; `mode.inside` counts those that run now."""

    def call(_, forward, *args, **kwargs):
        mode.inside += 1
        try:
            return forward(*args, **kwargs)
        finally:
            mode.inside -= 1

    with _exchanged(call):
        yield

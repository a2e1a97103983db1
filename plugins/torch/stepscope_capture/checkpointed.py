# SPDX-License-Identifier: Apache-2.0
"""Regions of torch.utils.checkpoint. The file computes each once, as what the backward phase computes again are the same numbers. What forward() writes there
(running statistics, counters) PyTorch writes a second time then, and so does the file."""

import contextlib
import inspect
from unittest import mock

import torch
from torch.utils import checkpoint

_GENERATOR = "_checkpoint_without_reentrant_generator"
if hasattr(checkpoint, _GENERATOR + "_impl"):  # newer torch: (function, args, kwargs, …)
    _GENERATOR += "_impl"


class Regions:
    """What the probe of a model finds out about its regions, for the pass that is traced."""

    def __init__(self):
        self.writing = set()  # numbers, in order of their calls, of the regions that write state

    @contextlib.contextmanager
    def found(self, state):
        """While a model runs as it is: finds the regions that write one of the tensors `state`, and runs those again at the end."""
        self.writing = set()
        versions = lambda: [t._version for t in state if not t.is_inference()]  # noqa: E731

        def begin(number):
            before = versions()

            def end():
                if versions() != before:
                    self.writing.add(number)

            return end

        yield from self._running(begin)

    @contextlib.contextmanager
    def kept(self):
        """While a model is traced: runs the regions that write again at the end."""
        yield from self._running(lambda _: lambda: None)

    def _running(self, begin):
        calls = []

        def entered(function, args, kwargs, again):
            calls.append((function, args, kwargs, again))
            return begin(len(calls) - 1)

        with _exchanged(entered):
            yield
        with torch.no_grad():  # in the order of the backward phase
            for number, (function, args, kwargs, again) in reversed(list(enumerate(calls))):
                if again and number in self.writing:
                    function(*args, **kwargs)


@contextlib.contextmanager
def _exchanged(entered):
    """While it is on, a region is its function alone, after `end = entered(function, args, kwargs, whether the backward phase computes it again)` and before end()."""

    class Reentrant:
        @staticmethod
        def apply(function, preserve_rng_state, *args):
            end = entered(function, args, {}, torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args))
            result = function(*args)
            end()
            return result

    signature = inspect.signature(getattr(checkpoint, _GENERATOR))

    def generator(*given, **options):  # the call of the function comes between its two halves
        bound = signature.bind(*given, **options).arguments
        function = bound.get("function", bound.get("fn"))
        end = entered(function, bound.get("args", ()), bound.get("kwargs", {}), torch.is_grad_enabled())
        yield
        end()

    with mock.patch.object(checkpoint, "CheckpointFunction", Reentrant), mock.patch.object(checkpoint, _GENERATOR, generator):
        yield


@contextlib.contextmanager
def recomputed_in(mode):
    """While it is on, the backward phase computes regions again in the TorchFunctionMode `mode`, which is off there otherwise."""
    reentrant, generator = checkpoint.CheckpointFunction, getattr(checkpoint, _GENERATOR)

    def inside(function):
        def region(*args, **kwargs):
            with mode:
                return function(*args, **kwargs)

        return region

    class Reentrant:
        @staticmethod
        def apply(function, *args):
            return reentrant.apply(inside(function), *args)

    def later(function, *given, **options):
        return generator(inside(function), *given, **options)

    with mock.patch.object(checkpoint, "CheckpointFunction", Reentrant), mock.patch.object(checkpoint, _GENERATOR, later):
        yield

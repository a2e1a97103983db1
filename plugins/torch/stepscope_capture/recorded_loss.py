# SPDX-License-Identifier: Apache-2.0
"""The loss that a script computes from what its model returned, as a function that can be captured: what PyTorch was asked to do is kept."""

import contextlib
import dataclasses

import torch
from torch import nn


class NotRecorded(RuntimeError):
    """The loss cannot be told from what was seen."""


@dataclasses.dataclass(frozen=True)
class _Place:
    """Stands for a tensor: `kind` "output" (of the model), "result" (of a call), "target" (a tensor from elsewhere) or "parameter"."""

    kind: str
    number: int


class _Function:
    """A function of PyTorch; deepcopy refuses some (the getter of .data)."""

    def __init__(self, function):
        self.call = function

    def __deepcopy__(self, _):
        return self


def tensors_in(value):
    """Tensors of a nested structure, in order: lists, dicts and objects that hold some."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return [t for v in vars(value).values() for t in tensors_in(v)] if dataclasses.is_dataclass(value) else []


def _changed(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, _Place):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_changed(v, change) for v in value)
    if type(value) is dict:
        return {k: _changed(v, change) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(_changed(v, change) for v in (value.start, value.stop, value.step)))
    return value


class RecordedLoss(nn.Module):
    """Calls what `calls` lists, [(function, arguments, keywords, [ids of the tensors that it made or wrote], whether
    gradients were on)], and returns the tensor `loss`.

    output    what the model returned. `parameters`: those of the model, which the loss may read (weight decay written by hand).
    factor    of the loss.
    targets   after construction: the tensors that came from elsewhere, in the order in which forward() takes them.
    """

    def __init__(self, output, calls, loss, parameters, factor=1.0):
        super().__init__()
        places = {id(t): _Place("output", i) for i, t in enumerate(tensors_in(output))}
        known = {id(p): i for i, p in enumerate(parameters)}
        self.targets, self._calls, self._factor = [], [], factor
        self._read = nn.ParameterList()  # known to the module, so that they are tied to those of the model and not constants
        needed = _needed(calls, loss, places)

        def place_of(tensor):
            if id(tensor) in places:
                return places[id(tensor)]
            if id(tensor) in known:
                self._read.append(tensor)
                places[id(tensor)] = _Place("parameter", len(self._read) - 1)
            elif tensor.grad_fn is not None:
                raise NotRecorded("the loss reads a tensor that another forward pass computed; wrap model and loss in stepscope.ModuleWithLoss")
            else:
                self.targets.append(tensor.detach().clone())
                places[id(tensor)] = _Place("target", len(self.targets) - 1)
            return places[id(tensor)]

        for number, (function, arguments, keywords, made, graded) in enumerate(calls):
            if number not in needed:
                continue
            self._calls.append((_Function(function), _changed(arguments, place_of), _changed(keywords, place_of), len(self._calls), graded))
            for i, one in enumerate(made):
                places[one] = _Place("result", len(self._calls) * 1024 + i)
        self._loss = place_of(loss)

    def forward(self, output, *targets):
        found = {_Place("output", i): t for i, t in enumerate(tensors_in(output))}
        found.update({_Place("target", i): t for i, t in enumerate(targets)})
        found.update({_Place("parameter", i): t for i, t in enumerate(self._read)})
        for function, arguments, keywords, number, graded in self._calls:
            given = _changed(arguments, found.get)
            with contextlib.nullcontext() if graded else torch.no_grad():
                result = function.call(*given, **_changed(keywords, found.get))
            made = given[:1] if result is None else tensors_in(result)  # t[i] = … returns nothing
            found.update({_Place("result", (number + 1) * 1024 + i): t for i, t in enumerate(made)})
        loss = found[self._loss]
        return loss if self._factor == 1.0 else loss * self._factor


def _needed(calls, loss, outputs):
    """Numbers of the calls that the loss rests on; a call that writes into a tensor that is needed is one."""
    wanted, needed = {id(loss)}, set()
    for number in range(len(calls) - 1, -1, -1):
        _, arguments, keywords, made, _ = calls[number]
        if wanted & set(made):
            needed.add(number)
            wanted |= {id(t) for t in tensors_in([arguments, keywords])} - set(outputs)
    return needed

# SPDX-License-Identifier: Apache-2.0
"""Batches as rows of tensors with names, and as arrays."""

import collections.abc
import copy
import dataclasses
import inspect

import numpy as np
import torch

LOSS = "loss"


class Unfit(ValueError):
    """What was handed to capture() cannot be captured by any exporter; says what was found and what is expected."""


class _Leaf:
    """Stands for tensor `number` of a row."""

    def __init__(self, number):
        self.number = number


def _mapping(value):
    return isinstance(value, collections.abc.Mapping)  # a dict, and what tokenizers return


def _sequence(value):
    return isinstance(value, (list, tuple))


def _attributes(value):
    """Those of a dataclass, or of another object that has tensors among them (a batch of a library); None for everything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None if isinstance(value, (torch.Tensor, torch.nn.Module)) or not _holds(value) else vars(value)


def _leaves(value, path, found):
    """Adds (path, tensor or other value) of everything in nested lists, tuples, dicts and objects."""
    if _mapping(value) or _sequence(value) or _attributes(value) is not None:
        for key, part in value.items() if _mapping(value) else enumerate(value) if _sequence(value) else _attributes(value).items():
            _leaves(part, f"{path}.{key}" if path else str(key), found)
    else:
        found.append((path, value))
    return found


def _rebuilt(value, change):
    if _mapping(value):
        return {key: _rebuilt(part, change) for key, part in value.items()}
    if _sequence(value):
        parts = [_rebuilt(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if (attributes := _attributes(value)) is not None:
        made = copy.copy(value)
        for key, part in attributes.items():
            object.__setattr__(made, key, _rebuilt(part, change))  # a frozen one too
        return made
    return change(value)


def _arguments(inputs):
    """(positional arguments, keywords) of forward()."""
    if _mapping(inputs):
        return (), dict(inputs)
    return (tuple(inputs) if _sequence(inputs) else (inputs,)), {}


def _targets(targets):
    """What the loss function gets after the output, by name of the graph input."""
    if _mapping(targets):
        return {str(key): value for key, value in targets.items()}
    values = () if targets is None else tuple(targets) if _sequence(targets) else (targets,)
    return {"labels" if len(values) == 1 else f"labels_{i}": value for i, value in enumerate(values)}


def _forward_names(model, count):
    """Names of the first `count` parameters of forward(); input_N for what arrives through *args."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in kinds]
    return [names[i] if i < len(names) else f"input_{i}" for i in range(count)]


def _same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a is b or a == b)
    except Exception:  # noqa: BLE001  whatever equality of an unknown object does
        return False


class Structure:
    """How a batch (inputs, targets) is made of tensors: the first batch says it. What is no tensor is part of the model.

    names  of the tensors, in order: parameters of forward() or keys of the dict, "labels" for targets; "name.key.0" inside of lists, tuples, dicts and
           objects with tensors as attributes (dataclasses).
    """

    def __init__(self, model, batch):
        inputs, targets = batch
        args, keywords = _arguments(inputs)
        self._forward = _forward_names(model, len(args))
        found = self._values(batch)
        counter = iter(range(len(found)))

        def leaf(value):
            return _Leaf(next(counter)) if isinstance(value, torch.Tensor) else value

        self._args, self._keywords, self._targets = (_rebuilt(part, leaf) for part in (args, keywords, _targets(targets)))
        for path, value in found:
            if isinstance(value, torch.Tensor) and value.is_complex():
                raise Unfit(f"input '{path}' is complex ({value.dtype}); expected real tensors: torch.view_as_real(x) in the batch, torch.view_as_complex(x) in forward()")
        self.names = [path for path, value in found if isinstance(value, torch.Tensor)]
        if len(set(self.names)) != len(self.names) or LOSS in self.names:
            raise Unfit(f"inputs {self.names}: a name stands twice or is '{LOSS}'; expected different names")
        self._others = {path: value for path, value in found if not isinstance(value, torch.Tensor)}

    def _values(self, batch):
        inputs, targets = batch
        args, keywords = _arguments(inputs)
        return [one for part in (dict(zip(self._forward, args)), keywords, _targets(targets)) for one in _leaves(part, "", [])]

    def row(self, batch, number):
        """The tensors of a batch, in order. Unfit where there are others than in the first."""
        inputs, _ = batch
        found = dict(self._values(batch)) if len(_arguments(inputs)[0]) == len(self._forward) else {}
        names = [path for path, value in found.items() if isinstance(value, torch.Tensor)]
        if names != self.names:
            raise Unfit(f"batch {number}: tensors {names}; expected {self.names} as in the first")
        return tuple(found[name].detach().cpu() for name in names)

    def notes(self, batches):
        """Words about what is no tensor and differs between batches: the file keeps that of the first."""
        found = {}
        for number, batch in enumerate(batches):
            for path, value in self._values(batch):
                root = path.partition(".")[0]
                if path in self._others and root not in found and not _same(value, self._others[path]):
                    found[root] = (
                        f"input '{path}' is no tensor, and in batch {number} another one ({_shown(value)}) than in the first "
                        f"({_shown(self._others[path])}); the file keeps the first: hand it over as a tensor"
                    )
        held = [f"input '{path}': the tensors in this {type(value).__name__} are those of the first batch; hand them over as tensors" for path, value in self._others.items() if _holds(value)]
        return [*found.values(), *held]

    def arguments(self, values):
        """(positional arguments and keywords of forward(), what the loss function gets) of a row."""
        put = lambda leaf: values[leaf.number] if isinstance(leaf, _Leaf) else leaf  # noqa: E731
        return _rebuilt(self._args, put), _rebuilt(self._keywords, put), tuple(_rebuilt(self._targets, put).values())


def _shown(value):
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


def _holds(value):
    """Whether an object has tensors among its attributes (a batch of a graph library, a dataclass)."""
    return any(isinstance(one, torch.Tensor) for one in getattr(value, "__dict__", {}).values())


def stacked(names, rows):
    """One array per name with a leading axis over the batches."""
    arrays = {}
    for index, name in enumerate(names):
        values = []
        for number, row in enumerate(rows):
            if row[index].shape != rows[0][index].shape or row[index].dtype != rows[0][index].dtype:
                raise Unfit(
                    f"input '{name}' of batch {number}: {tuple(row[index].shape)} {row[index].dtype}; expected "
                    f"{tuple(rows[0][index].shape)} {rows[0][index].dtype} as in the first (pad the batches, or capture each shape by itself)"
                )
            values.append((row[index].float() if row[index].dtype == torch.bfloat16 else row[index]).numpy())  # numpy has no bfloat16
        arrays[name] = np.stack(values)
    return arrays

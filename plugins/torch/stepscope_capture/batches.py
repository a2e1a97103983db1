# SPDX-License-Identifier: Apache-2.0
"""Batches as rows of tensors with names, and as arrays."""

import inspect

import numpy as np
import torch

LOSS = "loss"


def without_constants(batches):
    """(batches with tensors alone, what else their dicts of inputs hold): flags and numbers are handed on as the first batch has them."""
    constants, plain = {}, []
    for inputs, targets in batches:
        if isinstance(inputs, dict):
            others = {name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)}
            constants = constants or others
            inputs = {name: value for name, value in inputs.items() if name not in others}
        plain.append((inputs, targets))
    return plain, constants


def as_tuple(value):
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(value.values()) if isinstance(value, dict) else tuple(value)


def _forward_names(model, count):
    """Names of the first `count` parameters of forward(); input_N for what arrives through *args."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in kinds]
    return [names[i] if i < len(names) else f"input_{i}" for i in range(count)]


def signature_of(model, batch):
    """(names of all graph inputs, keywords of the model, number of its positional inputs) of one batch."""
    inputs, targets = batch
    keywords = list(inputs) if isinstance(inputs, dict) else []
    names = keywords or _forward_names(model, len(as_tuple(inputs)))
    positional = 0 if keywords else len(names)
    if isinstance(targets, dict):
        names = names + list(targets)
    else:
        count = len(as_tuple(targets))
        names = names + (["labels"] if count == 1 else [f"labels_{i}" for i in range(count)])
    if len(set(names)) != len(names) or LOSS in names:
        raise ValueError(f"inputs {names}: a name stands twice or is '{LOSS}'; expected different names")
    return names, keywords, positional


def stacked(names, batches):
    """One array per name with a leading axis over the batches."""
    rows = [as_tuple(inputs) + as_tuple(targets) for inputs, targets in batches]
    arrays = {}
    for index, name in enumerate(names):
        values = []
        for number, row in enumerate(rows):
            if len(row) != len(names):
                raise ValueError(f"batch {number}: {len(row)} tensors; expected {len(names)} as in the first")
            if row[index].shape != rows[0][index].shape or row[index].dtype != rows[0][index].dtype:
                raise ValueError(
                    f"input '{name}' of batch {number}: {tuple(row[index].shape)} {row[index].dtype}; expected "
                    f"{tuple(rows[0][index].shape)} {rows[0][index].dtype} as in the first (pad the batches, or capture each shape by itself)"
                )
            values.append(row[index].detach().cpu().numpy())
        arrays[name] = np.stack(values)
    return arrays

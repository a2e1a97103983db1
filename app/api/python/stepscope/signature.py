"""What a call of a module of torch is told apart by: arguments, modes, what is trained, and the numbers and texts that its layers hold. Of module.py."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_PLAIN = (bool, int, float, str, type(None))


def _number(value: Any) -> Any:
    """1, 1.0 and True are equal and are not the same."""
    return (type(value), value)


def _attributes(module: nn.Module) -> tuple:
    """Of one layer. Python reads them, so the file has what they were."""
    found = []
    for name, value in vars(module).items():
        kind = type(value)
        if kind in _PLAIN:
            if name != "training":
                found.append((name, kind, value))
        elif (kind is tuple or kind is list) and name[0] != "_" and all(type(v) in _PLAIN for v in value):
            found.append((name, kind, tuple(value)))
    return tuple(found)


def signature(tensors: list, grad: bool) -> str:
    """For people."""
    shapes = ", ".join(f"{str(t.dtype).rpartition('.')[2]}{list(t.shape)}{'*' if t.requires_grad else ''}" for t in tensors)
    return f"({shapes}){'' if grad else ' without gradients'}"


class Key:
    """`whole` is equal for calls that one plan computes; `family` also for those that have other extents."""

    def __init__(self, model: nn.Module, leaves: list, spec: Any, grad: bool, precision: str):
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.shapes = tuple(tuple(t.shape) for t in tensors)
        described = tuple((leaf.dtype, leaf.dim(), leaf.requires_grad and grad) if isinstance(leaf, torch.Tensor) else _number(leaf) for leaf in leaves)
        modules = list(model.modules())
        modes = tuple(m.training for m in modules)
        frozen = tuple(p.requires_grad for p in model.parameters())
        self.family = (described, spec, grad, modes, frozen, tuple(map(_attributes, modules)), precision)
        self.whole = (self.family, self.shapes)

    def news(self, model: nn.Module, old: "Key | None") -> str:
        """What of it is new, next to an older one."""
        if old is None:
            return "the first call"
        mine, theirs = self.family, old.family
        if len(theirs[0]) != len(mine[0]) or theirs[1] != mine[1]:
            return "arguments of another structure"
        for i, (a, b) in enumerate(zip(theirs[0], mine[0])):
            if a != b:
                return f"argument {i}: {b} after {a}"
        for i, (a, b) in enumerate(zip(old.shapes, self.shapes)):
            if a != b:
                return f"argument {i} of extents {list(b)} after {list(a)}"
        if theirs[2] != mine[2]:
            return "with gradients" if mine[2] else "without gradients"
        for (name, _), a, b in zip(model.named_modules(), theirs[3], mine[3]):
            if a != b:
                return f"module '{name}' {'trains' if b else 'evaluates'}"
        for (name, _), a, b in zip(model.named_parameters(), theirs[4], mine[4]):
            if a != b:
                return f"parameter '{name}' is {'trained' if b else 'frozen'}"
        for (name, _), a, b in zip(model.named_modules(), theirs[5], mine[5]):
            if a != b:
                then, now = dict((k, v) for k, _, v in a), dict((k, v) for k, _, v in b)
                changed = next((k for k in now if k not in then or (type(then[k]), then[k]) != (type(now[k]), now[k])), next(iter(then), ""))
                return f"attribute '{f'{name}.{changed}'.lstrip('.')}' is {now.get(changed)!r} after {then.get(changed)!r}"
        return "a signature of before"


def symbols(shapes: list) -> dict:
    """{tensor: {axis: symbol}} of the extents in which calls of one family differ; axes that have the same in each call share a symbol."""
    found: dict[int, dict[int, str]] = {}
    for i, of_tensor in enumerate(zip(*shapes)):
        for axis, extents in enumerate(zip(*of_tensor)):
            if len(set(extents)) > 1:
                found.setdefault(i, {})[axis] = "extent_" + "_".join(map(str, extents))
    return found

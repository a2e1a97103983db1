# SPDX-License-Identifier: Apache-2.0
"""A loss function with the modules that it reaches: their parameters are trained, so they belong to the captured model."""

import types

from torch import nn


def _reached(function):
    """Modules by name: variables of the enclosing function, and globals that the code names."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    found.update({name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__})
    return {name: value for name, value in found.items() if isinstance(value, nn.Module) and any(True for _ in value.parameters())}


class LossFunction(nn.Module):
    """Calls `function` with its modules replaced by those of this one, which copies and moves them as any module."""

    def __init__(self, function):
        super().__init__()
        owner = getattr(function, "__self__", None)
        self._method = function.__name__ if isinstance(owner, nn.Module) else None
        self._function = function.__func__ if self._method else function
        if self._method:
            self.owner = owner
        elif isinstance(function, types.FunctionType):
            for name, module in _reached(function).items():
                setattr(self, name, module)
        else:  # an object that is called, or whose method is: a copy of it has the copies of its modules
            held = getattr(owner if owner is not None else function, "__dict__", {})
            for name, module in held.items():
                if isinstance(module, nn.Module) and any(p.requires_grad for p in module.parameters()):
                    setattr(self, name, module)

    def forward(self, *values):
        own = dict(self.named_children())
        if self._method:
            return getattr(self.owner, self._method)(*values)
        if not own or not isinstance(self._function, types.FunctionType):
            return self._function(*values)
        f = self._function
        cells = tuple(types.CellType(own[name]) if name in own else cell for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()))
        again = types.FunctionType(f.__code__, {**f.__globals__, **own}, f.__name__, f.__defaults__, cells)
        again.__kwdefaults__ = f.__kwdefaults__
        return again(*values)

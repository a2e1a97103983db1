# SPDX-License-Identifier: Apache-2.0
"""Functions with other objects in the place of those that they reach: deepcopy() leaves what a function closes over as it is."""

import functools
import types


def rebound(function, known):
    """`function` (a closure, a method, functools.partial) with every object that stands in `known` (id → another object) replaced by that one; itself
    where it reaches none."""
    if id(function) in known:
        return known[id(function)]
    if isinstance(function, types.MethodType) and id(function.__self__) in known:
        return types.MethodType(function.__func__, known[id(function.__self__)])
    if isinstance(function, functools.partial):
        parts = [rebound(function.func, known), *(known.get(id(a), a) for a in function.args)]
        named = {name: known.get(id(a), a) for name, a in function.keywords.items()}
        return functools.partial(*parts, **named)
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return function
    inner = {**known, id(function): function}  # one that calls itself
    cells = [_cell(cell, inner) for cell in function.__closure__]
    if all(a is b for a, b in zip(cells, function.__closure__)):
        return function
    again = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))
    again.__kwdefaults__ = function.__kwdefaults__
    again.__dict__.update(function.__dict__)
    return again


def _cell(cell, known):
    try:
        present = cell.cell_contents
    except ValueError:  # not set yet
        return cell
    other = rebound(present, known) if callable(present) else known.get(id(present), present)
    return cell if other is present else types.CellType(other)


def rebind(module, known):
    """Hooks and functions that the modules of a copy hold, with the copies in the place of what was copied (`known`: id → copy)."""
    for one in module.modules():
        held = vars(one)
        for name, value in list(held.items()):
            if name.endswith("_hooks") and isinstance(value, dict):
                for key, hook in value.items():
                    value[key] = rebound(hook, known)
            elif isinstance(value, (types.FunctionType, functools.partial)):
                held[name] = rebound(value, known)
            elif isinstance(value, list):
                value[:] = [rebound(v, known) if isinstance(v, (types.FunctionType, functools.partial)) else v for v in value]
            elif type(value) is dict and not name.startswith("_"):
                value.update({k: rebound(v, known) for k, v in value.items() if isinstance(v, (types.FunctionType, functools.partial))})

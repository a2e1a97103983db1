# SPDX-License-Identifier: Apache-2.0
"""Finds numbers of tensors that Python reads in a forward pass: an export keeps the branch or the number of one batch."""

import collections
import os
import random
import sys

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from stepscope_capture.functions import untouched_functions
from stepscope_capture.meaning import READS, copied, same, state_of
from stepscope_capture.replaced import both_branches

_TORCH = os.path.dirname(torch.__file__)


class DataDependence(TorchFunctionMode):
    """Notes what Python reads of tensors; not in an autograd.Function, which Python runs when it reads."""

    def __init__(self, changed):
        super().__init__()
        self.reads, self.inside = [], 0
        self.by = {}  # place → module, and the function of torch that reads
        self.nested = []  # places where something is computed of a nested tensor
        self.reads_of_state = []  # places where it reads what is computed from `changed`: state that the pass itself writes
        self._of_state = {id(t): t for t in changed}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        leaves = pytree.tree_leaves((args, kwargs))
        if not self.nested and any(isinstance(t, torch.Tensor) and t.is_nested for t in leaves):
            self.nested.append(self._place())
        result = func(*args, **(kwargs or {}))
        of_state = any(id(t) in self._of_state for t in leaves)
        if getattr(func, "__name__", "") in READS and not self.inside:
            place = self._place()
            kept = result.copy() if isinstance(result, np.ndarray) else result
            self.reads.append((place, kept))
            if of_state:
                self.reads_of_state.append(place)
        elif of_state:
            self._of_state.update({id(t): t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)})
        return result

    def _place(self):
        """The line of the user's code that is being run."""
        frame, function = sys._getframe(2), ""
        while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
            owner = frame.f_locals.get("self")
            if isinstance(owner, torch.nn.RNNBase):  # of other input it reads nothing
                function = f"{type(owner).__name__} of a packed sequence"
            elif not function and not frame.f_code.co_name.startswith("_"):
                function = frame.f_code.co_name
            frame = frame.f_back
        if frame is None:
            return ""
        place, names = f"{frame.f_code.co_filename}:{frame.f_lineno}", frame.f_code.co_varnames
        owner = frame.f_locals.get(names[0]) if names else None
        self.by.setdefault(place, (type(owner).__name__ if isinstance(owner, torch.nn.Module) else "", function))
        return place


def _differ(a, b):
    return not np.array_equal(a, b, equal_nan=False) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a != b


def _shown(value):
    return f"an array of {list(value.shape)}" if isinstance(value, np.ndarray) and value.size > 1 else str(value)


def attributes_of(module, contents=True):
    """What the layers keep that is no parameter and no buffer: numbers, texts, tensors, and lists and dicts of them, by name. Without `contents` the tensors
    are told apart by which they are."""
    found = {}
    for name, layer in module.named_modules():
        for key, value in vars(layer).items():
            if key == "training" or isinstance(value, (list, tuple, dict, collections.deque)) and key.startswith("_"):
                continue
            leaves = pytree.tree_leaves(list(value) if isinstance(value, collections.deque) else value)
            if all(leaf is None or isinstance(leaf, (bool, int, float, str, torch.Tensor)) for leaf in leaves):
                found[f"{name}.{key}".lstrip(".")] = [_kept(leaf, contents) for leaf in leaves]
    return found


class _Which:
    """A tensor as an object, at this version."""

    def __init__(self, tensor):
        self._tensor, self._version = tensor, 0 if tensor.is_inference() else tensor._version

    def __eq__(self, other):
        return isinstance(other, _Which) and self._tensor is other._tensor and self._version == other._version


def _kept(leaf, contents):
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.detach().clone() if contents else _Which(leaf)


def changed_attributes(before, after):
    """Names of attributes that are others."""

    def differs(a, b):
        both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return not same(a, b) if both else type(a) is not type(b) or _differ(a, b)

    return [name for name in before if name in after and (len(before[name]) != len(after[name]) or any(map(differs, before[name], after[name])))]


class _Random:
    """The generators of torch, Python and NumPy as they were."""

    def __init__(self):
        self.torch, self.python, self.numpy = torch.get_rng_state(), random.getstate(), np.random.get_state()

    def restore(self):
        torch.set_rng_state(self.torch)
        random.setstate(self.python)
        np.random.set_state(self.numpy)

    def drew_outside(self):
        """Whether Python's or NumPy's numbers were drawn since."""
        return random.getstate() != self.python or any(not np.array_equal(a, b) for a, b in zip(np.random.get_state(), self.numpy))


def _memory(module, rows):
    """Words about what forward() draws outside of torch, and what it keeps for the next batch outside of parameters and buffers: the second batch has another
    loss after the first one than in a module that has nothing but its state."""
    used, fresh, drawn = copied(module), copied(module), _Random()
    before = attributes_of(used)
    with both_branches():
        used(*rows[0])
        outside, between = drawn.drew_outside(), attributes_of(used)
        with torch.no_grad():
            for name, t in state_of(fresh).items():
                if (written := state_of(used).get(name)) is not None and written.shape == t.shape:
                    t.copy_(written)
        losses = []
        for one in (used, fresh):
            drawn.restore()
            losses.append(one(*rows[1]).detach())
    drawn.restore()
    found = ["forward() draws random numbers of Python or NumPy; the file keeps those of one pass"] if outside else []
    changed = changed_attributes(before, between)
    for name in changed:
        if all(len(of[name]) == 1 and type(of[name][0]) in (bool, int) for of in (before, between)):
            once = "; a model that sets itself up in its first pass: let it run once before, model(*inputs)" if type(before[name][0]) is bool else ""
            found.append(f"attribute '{name}': forward() changes it (from {before[name][0]} to {between[name][0]}); the file keeps what is computed with the first{once}")
    if not found and not torch.allclose(*losses, rtol=1e-4, atol=1e-6, equal_nan=True):
        names = ", ".join(f"'{name}'" for name in changed) or "what it is was not found"
        found = [f"forward() keeps something for the next batch that is no parameter and no buffer ({names}); in the file each step begins as the first: register_buffer"]
    return found


def data_dependence(module, rows, changed=()):
    """Words about each place where Python read another value of the second batch than of the first, or a state that the pass changes (names in `changed`),
    and about what it keeps elsewhere."""
    reads, drawn, found = [], _Random(), {}
    for row in rows[:2]:
        probe = copied(module)
        state = state_of(probe)
        with both_branches(), DataDependence([state[name] for name in changed]) as mode, untouched_functions(mode):
            drawn.restore()
            probe(*row)
        reads.append(mode.reads)
    drawn.restore()
    for place in mode.reads_of_state:
        found[place] = f"{place}: Python reads a number of a state that the step changes; the file keeps the number of the first step (a model that sets itself up in its first pass: let it run once before, model(*inputs))"
    for (place, first), (other, second) in zip(*reads) if len(reads) == 2 else ():
        if place != other:
            break
        if _differ(first, second) and place not in found:
            found[place] = f"{place}: Python reads {_shown(first)} of the first batch and {_shown(second)} of the second; the file keeps the first"
    return list(found.values()) + (_memory(module, rows) if len(rows) > 1 and not found else [])

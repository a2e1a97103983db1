# SPDX-License-Identifier: Apache-2.0
"""Writes through views of what forward() computes: the TorchScript exporter keeps those into x[index] alone, and loses those into x.view(...), x.t() …

A view is remembered with what it was taken of. A write into it becomes another tensor in the place of the root, of which every view is taken again.
"""

import torch

_SAME_ELEMENTS = ("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "squeeze", "unsqueeze")
_NAMES = (*_SAME_ELEMENTS, "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "select", "narrow", "__getitem__")
NO_WRITES = ("requires_grad_", "detach_", "retain_grad_", "apply_", "share_memory_", "squeeze_", "unsqueeze_", "t_", "transpose_", "resize_", "set_", "rename_")


def _with_part(parent, index, part):
    whole = parent.clone()
    whole[index] = part
    return whole


def _into(name, parent, part, args, kwargs):
    """`parent` with `part` in the place of what the view shows; None where that is not known."""
    if kwargs:
        return None
    if name in _SAME_ELEMENTS:
        return part.reshape(parent.shape)
    if name == "t":
        return part.t()
    if name in ("transpose", "swapaxes", "swapdims"):
        return part.transpose(*args)
    if name == "permute":
        axes = [a % parent.dim() for a in (args[0] if isinstance(args[0], (list, tuple)) else args)]
        return part.permute([axes.index(i) for i in range(len(axes))])
    if name == "movedim":
        return part.movedim(args[1], args[0])
    axis = args[0] % parent.dim() if name != "__getitem__" else 0
    here = {"select": lambda: args[1], "narrow": lambda: slice(args[1], args[1] + args[2])}.get(name)
    return _with_part(parent, args[0] if here is None else (*[slice(None)] * axis, here()), part)


class Views:
    """Of one traced forward pass."""

    def __init__(self):
        self._of = {}  # id of a view → (view, what it was taken of, function, name, its other arguments)
        self._shown = set()  # ids of tensors that have views

    def takes(self, name, result, parent):
        return name in _NAMES and isinstance(result, torch.Tensor) and result is not parent and result._base is not None

    def remember(self, view, parent, func, name, args, kwargs):
        self._of[id(view)] = (view, parent, func, name, args, kwargs)
        self._shown.add(id(parent))

    def concerns(self, tensor):
        """Whether a write into it has to be seen through others."""
        return id(tensor) in self._of or id(tensor) in self._shown

    def now(self, view, resolve):
        """What a view shows after a write, or None: `resolve` says what stands for the tensor that it was taken of."""
        if id(view) not in self._of:
            return None
        _, parent, func, _, args, kwargs = self._of[id(view)]
        now = resolve(parent)
        return None if now is parent else func(now, *args, **kwargs)

    def written(self, tensor, value, resolve):
        """(root, what stands for it once `value` is in `tensor`); None where a view on the way cannot be undone."""
        while id(tensor) in self._of:
            _, parent, _, name, args, kwargs = self._of[id(tensor)]
            value = _into(name, resolve(parent), value, args, kwargs)
            if value is None:
                return None
            tensor = parent
        return tensor, value

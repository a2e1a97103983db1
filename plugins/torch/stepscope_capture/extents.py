# SPDX-License-Identifier: Apache-2.0
"""Where Python makes a number of an extent while a pass is traced: the file keeps that of one call."""

import os
import sys

import torch
from torch.overrides import TorchFunctionMode

_TORCH, _OWN = (os.path.dirname(file) + os.sep for file in (torch.__file__, __file__))
_READS = ("__bool__", "__int__", "__float__", "__index__", "__len__", "item", "tolist")


def _place():
    """Line of the user's code, and the class of the module whose code it is; empty where the capture itself reads."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_OWN):
        return ""
    names = frame.f_code.co_varnames
    owner = frame.f_locals.get(names[0]) if names else None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" + (f" ({type(owner).__name__})" if isinstance(owner, torch.nn.Module) else "")


class NumbersOfExtents(TorchFunctionMode):
    """`places` has each line once. Extents are tensors while TorchScript traces, and what is read of others has been refused before."""

    def __init__(self):
        super().__init__()
        self.places = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in _READS and torch.jit.is_tracing() and (place := _place()) and place not in self.places:
            self.places.append(place)
        return func(*args, **(kwargs or {}))

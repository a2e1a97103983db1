# SPDX-License-Identifier: Apache-2.0
"""Finds numbers of tensors that Python reads in a forward pass: an export keeps the branch or the number of one batch."""

import os
import sys

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from stepscope_capture.functions import untouched_functions
from stepscope_capture.meaning import READS, copied

_TORCH = os.path.dirname(torch.__file__)


class DataDependence(TorchFunctionMode):
    """Notes what Python reads of tensors; not in an autograd.Function, which Python runs when it reads."""

    def __init__(self):
        super().__init__()
        self.reads, self.inside = [], 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in READS and not self.inside:
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
                frame = frame.f_back
            kept = result.copy() if isinstance(result, np.ndarray) else result
            self.reads.append((f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "", kept))
        return result


def _differ(a, b):
    return not np.array_equal(a, b, equal_nan=False) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a != b


def _shown(value):
    return f"an array of {list(value.shape)}" if isinstance(value, np.ndarray) and value.size > 1 else str(value)


def data_dependence(module, rows):
    """Words about each place where Python read another value of the second batch than of the first."""
    reads, random = [], torch.get_rng_state()
    for row in rows[:2]:
        with DataDependence() as mode, untouched_functions(mode):
            torch.set_rng_state(random)
            copied(module)(*row)
        reads.append(mode.reads)
    torch.set_rng_state(random)
    found = {}
    for (place, first), (other, second) in zip(*reads) if len(reads) == 2 else ():
        if place != other:
            break
        if _differ(first, second) and place not in found:
            found[place] = f"{place}: Python reads {_shown(first)} of the first batch and {_shown(second)} of the second; the file keeps the first"
    return list(found.values())

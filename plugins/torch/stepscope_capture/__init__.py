# SPDX-License-Identifier: Apache-2.0
"""Captures a PyTorch model for Stepscope: `capture(model, loss_fn, batches, folder)`, compares: `verify(folder)`, and waits for a step that
goes wrong: `with watch(model):`. Users import all of it from `stepscope`."""

from stepscope_capture.capture import capture
from stepscope_capture.checkpoint_policy import apply_checkpoint_policy
from stepscope_capture.recorder import ModuleWithLoss
from stepscope_capture.recorded_loss import NotRecorded
from stepscope_capture.verify import Differs, verify
from stepscope_capture.watch import watch


def __getattr__(name):
    """The callbacks: each needs its framework."""
    if name == "TrainerCallback":
        from stepscope_capture.trainer_callback import TrainerCallback as found
    elif name == "LightningCallback":
        from stepscope_capture.lightning_callback import LightningCallback as found
    else:
        raise AttributeError(f"module 'stepscope_capture' has no attribute '{name}'")
    return found


__all__ = ["Differs", "LightningCallback", "ModuleWithLoss", "NotRecorded", "TrainerCallback", "apply_checkpoint_policy", "capture",
           "verify", "watch"]  # fmt: skip

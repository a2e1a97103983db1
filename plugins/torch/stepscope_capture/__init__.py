# SPDX-License-Identifier: Apache-2.0
"""Captures a PyTorch model for Stepscope: `capture(model, loss_fn, batches, folder)`, and compares: `verify(folder)`."""

from stepscope_capture.capture import capture
from stepscope_capture.verify import Differs, verify

__all__ = ["Differs", "capture", "verify"]

# SPDX-License-Identifier: Apache-2.0
"""Captures a PyTorch model for Stepscope: `capture(model, loss_fn, batches, folder)`."""

from stepscope_capture.capture import capture

__all__ = ["capture"]

# SPDX-License-Identifier: Apache-2.0
"""What the callbacks of trainers share: which steps are captured, and how it is told."""

import pathlib

import torch

from stepscope_capture.recorder import capture_passes


def not_finite(passes, parameters):
    """Whether a loss or a gradient is not."""
    losses = [one.loss.detach().double().sum() for one in passes if one.loss is not None]
    sums = [p.grad.detach().double().sum() for p in parameters if p.grad is not None]
    together = torch.stack([t.to(losses[0].device) for t in losses + sums]) if losses else torch.zeros(1)
    return not bool(torch.isfinite(together).all())


class CapturedRun:
    """Captures the updates `steps` (a number or several), and with `on_nonfinite` the first whose loss or gradient is not finite, each into
    `folder`/step_N with optimizer state, schedule and batches. `options`: of capture()."""

    def __init__(self, steps=(), folder="stepscope_captures", on_nonfinite=False, **options):
        self.steps = {steps} if isinstance(steps, int) else set(steps)
        self.folder, self._on_nonfinite, self._options = pathlib.Path(folder), on_nonfinite, {"exporter": "auto", **options}
        self.captures = []

    def wants(self, step):
        """Whether this update has to be followed."""
        return step in self.steps or self._on_nonfinite

    def taken(self, step, model, passes, optimizer, scheduler, accumulate, clip_grad_norm):
        """Called before the optimizer's step; captures where that was asked for. The run goes on whatever happens."""
        wrong = self._on_nonfinite and not_finite(passes, list(model.parameters()))
        if step not in self.steps and not wrong:
            return
        self._on_nonfinite = self._on_nonfinite and not wrong
        folder = self.folder / f"step_{step}"
        run = {"optimizer": optimizer, "scheduler": scheduler, "step": step * accumulate, "accumulate": accumulate, "clip_grad_norm": clip_grad_norm}
        try:
            # Each trainer divides the loss as it likes; the gradients of all micro steps together are what it takes.
            left_out = capture_passes(model, passes, folder, float(accumulate), **self._options, **run)
        except Exception as error:  # noqa: BLE001
            print(f"stepscope: step {step}: not captured: {type(error).__name__}: {error}")
            return
        self.captures.append(folder)
        what = "loss or gradient not finite; captured" if wrong else "captured"
        print(f"stepscope: step {step} {what} in {folder}" + (f", without {left_out} batches of other shapes" if left_out else ""))
        print(f"  stepscope train {folder}{' --on-nan blame' if wrong else ' --steps 10'}\n  stepscope open {folder / 'model.onnx'}")

# SPDX-License-Identifier: Apache-2.0
"""A callback of Lightning's Trainer that captures steps of a real run."""

import torch
from torch import nn

from stepscope_capture.captured_run import CapturedRun
from stepscope_capture.recorded_loss import tensors_in
from stepscope_capture.recorder import Recorder

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


def _filled(value, tensors):
    """`value` with the tensors of an iterator in place of its own, in the order of tensors_in()."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return type(value)({k: _filled(v, tensors) for k, v in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_filled(v, tensors) for v in value))
    return type(value)(_filled(v, tensors) for v in value) if isinstance(value, (list, tuple)) else value


class _TrainingStep(nn.Module):
    """training_step() as forward(): its tensors come one by one, what else is in the batch stays as it was."""

    def __init__(self, module, arguments):
        super().__init__()
        self.module, self._arguments = module, arguments

    def forward(self, *values):
        return self.module.training_step(*_filled(self._arguments, iter(values)))


class _Steps(Recorder):
    """Follows training_step() instead of forward()."""

    def listen(self):
        """The callback says when a step begins."""

    def follow(self, arguments):
        step = type(self.model).training_step
        self.begin(tuple(tensors_in(arguments)))
        output = step(self.model, *arguments)
        self.end(output)
        return output


class LightningCallback(Callback):
    """`Trainer(…, callbacks=[LightningCallback(steps=40_000)])`; arguments as CapturedRun takes them. Automatic optimization, one optimizer."""

    def __init__(self, *arguments, **options):
        self._run, self._recorder, self._arguments = CapturedRun(*arguments, **options), None, None

    @property
    def captures(self):
        """Folders that were written."""
        return self._run.captures

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if self._recorder is not None or not self._run.wants(trainer.global_step):
            return
        self._recorder, self._arguments = _Steps(pl_module), None
        self._recorder.__enter__()

        def followed(*arguments):
            self._arguments = self._arguments or arguments
            return self._recorder.follow(arguments)

        pl_module.training_step = followed

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        passes = self._stop(pl_module)
        if passes is None:
            return
        scheduler = None
        for configuration in trainer.lr_scheduler_configs:
            if configuration.interval == "step" and configuration.frequency == 1:
                scheduler = configuration.scheduler
            else:
                print("stepscope: the schedule moves by epoch; the learning rate stays what it is in the capture")
        clip = trainer.gradient_clip_val if trainer.gradient_clip_algorithm in (None, "norm") else 0.0
        pl_module._trainer, kept = None, pl_module._trainer  # log() does nothing, and a copy does not take the trainer with it
        try:
            step = _TrainingStep(pl_module, self._arguments).train()
            self._run.taken(trainer.global_step, step, passes, optimizer, scheduler, trainer.accumulate_grad_batches, clip or 0.0)
        finally:
            pl_module._trainer = kept

    def on_train_end(self, trainer, pl_module):
        self._stop(pl_module)

    def _stop(self, pl_module):
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        pl_module.__dict__.pop("training_step", None)
        recorder.__exit__(None, None, None)
        return recorder.passes

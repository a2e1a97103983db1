# SPDX-License-Identifier: Apache-2.0
"""A callback of transformers.Trainer that captures steps of a real run."""

import transformers

from stepscope_capture.captured_run import CapturedRun
from stepscope_capture.recorder import Recorder


class TrainerCallback(transformers.TrainerCallback):
    """`Trainer(…, callbacks=[TrainerCallback(steps=40_000)])`; arguments as CapturedRun takes them."""

    def __init__(self, *arguments, **options):
        self._run, self._recorder = CapturedRun(*arguments, **options), None

    @property
    def captures(self):
        """Folders that were written."""
        return self._run.captures

    def on_step_begin(self, args, state, control, model=None, **_):
        self._stop()
        if self._run.wants(state.global_step):
            self._recorder = Recorder(model)
            self._recorder.__enter__()

    def on_pre_optimizer_step(self, args, state, control, model=None, optimizer=None, lr_scheduler=None, **_):
        passes = self._stop()
        if passes is not None:
            clip = getattr(args, "max_grad_norm", 0.0) or 0.0
            self._run.taken(state.global_step, model, passes, optimizer, lr_scheduler, args.gradient_accumulation_steps, clip)

    def on_train_end(self, args, state, control, **_):
        self._stop()

    def _stop(self):
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        recorder.__exit__(None, None, None)
        return recorder.passes

# SPDX-License-Identifier: Apache-2.0
"""`with watch(model):` a step whose loss or gradient is not finite is captured as it stands."""

import pathlib

import torch

from stepscope_capture.recorder import Recorder, capture_passes


class watch:  # noqa: N801  read as a word: with stepscope.watch(model):
    """Around a training loop as it is written. The first step whose loss or gradient is not finite is written to `folder`/step_N.

    model      whose forward pass makes the loss; what the script computes from its output until backward() is captured with it.
    folder     created when it happens.
    optimizer, scheduler  also kept with the state they have then, so that `stepscope train` goes on from there.
    limit      steps that are captured at most.
    options    of capture().

    `captures`: folders that were written. A gradient counts that is not finite after backward(): with a GradScaler some are on purpose.
    """

    def __init__(self, model, folder="stepscope_captures", optimizer=None, scheduler=None, limit=1, **options):
        self.captures, self.step = [], 0
        self._model, self._folder, self._limit = model, pathlib.Path(folder), limit
        self._options = {"exporter": "auto", **options, "optimizer": optimizer, "scheduler": scheduler}
        self._recorder = Recorder(model, self._after_backward)

    def __enter__(self):
        self._recorder.__enter__()
        return self

    def __exit__(self, *error):
        return self._recorder.__exit__(*error)

    def _found(self, loss):
        if not bool(torch.isfinite(loss.detach()).all()):
            return f"loss {float(loss.detach().double().sum())}"
        gradients = [(name, p.grad) for name, p in self._model.named_parameters() if p.grad is not None]
        if not gradients or bool(torch.isfinite(torch.stack([g.detach().float().sum() for _, g in gradients])).all()):
            return None
        return next((f"gradient of '{name}' not finite" for name, g in gradients if not bool(torch.isfinite(g.to_dense() if g.is_sparse else g).all())), None)

    def _after_backward(self, one):
        what = self._found(one.loss) if len(self.captures) < self._limit else None
        if what:
            self._write(one, what)
        self.step += 1
        self._recorder.clear()

    def _write(self, one, what):
        folder = self._folder / f"step_{self.step}"
        spoiled = [name for name, p in self._model.named_parameters() if not bool(torch.isfinite(p.detach()).all())]
        print(f"stepscope: step {self.step}: {what}; captured as it stands:")
        if spoiled:
            print(f"  parameter '{spoiled[0]}' was not finite before this step: an earlier update made it so")
        self._recorder.deafen()
        try:
            options = dict(self._options)
            capture_passes(self._model, [one], folder, **options)
        except Exception as error:  # noqa: BLE001  the user's run goes on
            print(f"  not captured: {type(error).__name__}: {error}")
            return
        finally:
            self._recorder.listen()
        self.captures.append(folder)
        print(f"  stepscope train {folder} --on-nan blame      names the first value that is not finite\n  stepscope open {folder / 'model.onnx'}      the window")

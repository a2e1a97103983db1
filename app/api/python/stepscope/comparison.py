"""PyTorch and Stepscope train the same model side by side; the first tensor that is not the same is named.

    print(stepscope.compare(model, loss_fn, batches, optimizer))
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile
from typing import Any, Optional

import numpy as np
import torch

from . import capture, open as open_session, verify

_PERTURBED = 2  # trainings of PyTorch that begin one rounding away: how far rounding alone drives them apart


@dataclasses.dataclass
class Comparison:
    """What came of it. `agrees`: in every step each loss, gradient, parameter and statistic is what PyTorch computed, as far as float32
    permits. Else the rest names the first that is not."""

    agrees: bool
    steps: int  # that were trained
    losses: list  # (PyTorch's, Stepscope's) of each step
    folder: pathlib.Path  # the capture that Stepscope trained; where they part, the one of that step
    step: Optional[int] = None
    kind: str = ""  # "loss", "gradient", "parameter", "statistic"
    tensor: str = ""
    difference: float = 0.0  # largest of an element
    tolerance: float = 0.0
    module: str = ""
    source: str = ""  # the Python line, where the exporter recorded it
    cause: str = ""  # likely
    first_output: str = ""  # the first module whose output differs
    words: str = ""

    def __str__(self) -> str:
        if self.agrees:
            return f"{self.steps} steps agree: every loss, gradient, parameter and statistic is what PyTorch computed; last loss {self.losses[-1][0]:.6g}"
        lines = [f"step {self.step}: {self.kind} '{self.tensor}' is off by {self.difference:.4g} (tolerance {self.tolerance:.4g})"]
        theirs, ours = self.losses[self.step]
        lines.append(f"  loss of that step: PyTorch {theirs:.7g}, Stepscope {ours:.7g}; the {self.step} steps before it agree")
        if self.module or self.source:
            lines.append(f"  at {' '.join(part for part in (self.module, self.source) if part)}")
        if self.first_output:
            lines.append(f"  the first module whose output differs: '{self.first_output}'")
        lines += [f"  {text}" for text in (self.words, f"likely: {self.cause}" if self.cause else "") if text]
        return "\n".join((*lines, f"  the step as it stood: {self.folder}"))

    def open(self, stepscope: Optional[str] = None) -> subprocess.Popen:
        """The window, on the model as it stood at that step."""
        from stepscope_capture.verify import program

        return subprocess.Popen([program(stepscope), "open", str(self.folder / "model.onnx")])


def _real(tensor):
    """A copy; of a complex one with a last axis of two, as the file has it."""
    tensor = tensor.detach()
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).clone()


class _Reference:
    """PyTorch's training, on a copy of everything."""

    def __init__(self, whole, optimizer, scheduler, nudge=0):
        from stepscope_capture.exporters import as_it_trains
        from stepscope_capture.golden import perturbed, quiet

        self.module = as_it_trains((quiet if not nudge else lambda m: perturbed(m, nudge))(whole).cpu())
        same = {id(a): b for a, b in zip(whole.parameters(), self.module.parameters())}
        moved = {id(value): value.detach().cpu().clone() for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)}
        self.optimizer = copy.deepcopy(optimizer, {**same, **moved})
        self.scheduler = None if scheduler is None else copy.deepcopy(scheduler, {id(optimizer): self.optimizer})

    def step(self, row, clip):
        """({(kind, name): tensor} of one step, what it was before it)."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.module(*row)
        loss.backward()
        known = dict(self.module.named_parameters())
        found = {("loss", "loss"): loss.detach().double()}
        found.update({("gradient", n): _real(p.grad.to_dense() if p.grad.is_sparse else p.grad) for n, p in known.items() if p.grad is not None})
        if clip:
            torch.nn.utils.clip_grad_norm_(list(known.values()), clip)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        found.update({("parameter", n): _real(p) for n, p in known.items() if p.requires_grad})
        found.update({("statistic", n): _real(b) for n, b in self.module.named_buffers() if b.is_floating_point() or b.is_complex()})
        return found


def _numbers(array):
    """A stepscope.Array for NumPy, which has no bfloat16: as float32."""
    bits = array.numpy()
    return (bits.astype(np.uint32) << 16).view(np.float32) if array.dtype == "bfloat16" else bits


def _ours(session, names):
    """{(kind, name): array} of the newest step, of what Stepscope has."""
    found = {}
    for kind, name in names:
        try:
            if kind == "gradient":
                found[kind, name] = _numbers(session.gradient(name))
            elif kind in ("parameter", "statistic"):
                found[kind, name] = _numbers(session.state(name))
        except Exception as error:  # noqa: BLE001  a tied parameter stands under its other name; a buffer may not be in the file
            if getattr(error, "code", "") not in ("not_found", "invalid_argument"):
                raise
    return found


def _difference(a, b):
    """Largest of an element; NaN equals NaN, and where one alone is finite it is infinite."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.abs(np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), a - b, np.inf)))
    return float(apart.max()) if apart.size else 0.0


def _largest(tensor):
    """Of its elements that are finite, as a magnitude."""
    finite = tensor.double()[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _first(theirs, ours, nudged):
    """(kind, name, difference, tolerance) of the first that differs, in the order in which a step computes them; of its kind the worst."""
    # Sums whose terms cancel (a bias before a softmax over its rows) are as far off as the others are large.
    steepest = max((_largest(value) for key, value in theirs.items() if key[0] == "gradient"), default=0.0)
    for kind in ("loss", "gradient", "parameter", "statistic"):
        worst, least = None, {"loss": 2e-6, "gradient": 1e-6 * steepest}.get(kind, 0.0)
        for key in (key for key in theirs if key[0] == kind and key in ours):
            value = theirs[key].double().numpy()
            largest = _largest(theirs[key])
            rounding = max((_difference(other[key].double().numpy(), value) for other in nudged if key in other), default=0.0)
            tolerance = max(4 * rounding, 2e-5 * largest, least)
            off = _difference(ours[key], value)
            if off > tolerance and (worst is None or off / (tolerance + 1e-300) > worst[2] / (worst[3] + 1e-300)):
                worst = (kind, key[1], off, tolerance)
        if worst:
            return worst
    return None


def _session_of(folder):
    """The capture, open, with what its run is trained with."""
    description = json.loads((folder / "capture.json").read_text(encoding="utf-8"))
    session = open_session(folder / "model.onnx", {"loss": description["loss"]})
    frozen = [re.escape(row["name"]) for row in description["parameters"] if not row["trained"]]
    if frozen:
        session.set({"freeze": f"^({'|'.join(frozen)})$"})
    for name, value in description["settings"]:
        session.set({name: str(folder / value) if name == "start-state" else value})
    return session


def _explain(result, folder):
    """The table of `stepscope verify` for the step from PyTorch's own state: which module, which line, which cause."""
    try:
        *rows, summary = verify(folder, check=False)
    except (RuntimeError, FileNotFoundError) as error:
        result.words = f"not looked into: {str(error).splitlines()[0]}"
        return
    wrong = [row for row in rows if row["verdict"] == "differs"]
    result.first_output = summary.get("first_output", "")
    row = next((r for r in wrong if r["name"] == result.tensor), wrong[0] if wrong else None)
    if row is not None:
        result.module, result.source, result.cause = row["module"], row["source"], row["cause"]
    elif result.kind == "parameter":
        result.words = "from PyTorch's state, loss and gradients of this step agree: it is the optimizer's update that differs"
    elif summary["verdict"] == "agrees":
        result.words = "from PyTorch's state this step agrees: the steps before it drove them apart"


def compare(model: Any, loss_fn: Any, batches: Any, optimizer: Any, *, scheduler: Any = None, steps: Optional[int] = None,
            clip_grad_norm: float = 0.0, folder: Any = None, exporter: str = "auto", show: bool = False) -> Comparison:  # fmt: skip
    """Trains `model` with PyTorch and with Stepscope, from the state that it and `optimizer` have, and compares each step.

    model, loss_fn, batches, exporter  as capture() takes them; nothing of yours is changed. Nothing is dropped (Dropout) on both sides.
    optimizer, scheduler  torch.optim's, over parameters of `model`: SGD, Adam, AdamW.
    steps     default: one per batch; they start over when the steps outnumber the batches.
    folder    where the captures are kept; default: a temporary folder.
    show      open the window where they part.

    A difference counts where it is larger than what rounding does: PyTorch trains from parameters one rounding off as well.
    """
    from stepscope_capture.batches import Structure
    from stepscope_capture.exporters import WithLoss

    folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="stepscope_compare_"))
    batches = list(batches)
    run = {"clip_grad_norm": clip_grad_norm, "exporter": exporter}
    capture(model, loss_fn, batches, folder, **run, optimizer=optimizer, scheduler=scheduler, step=0, without_dropout=True)
    notes = [n for n in json.loads((folder / "capture.json").read_text(encoding="utf-8"))["notes"] if "Stepscope" in n]
    if notes:
        raise ValueError(f"compare: {notes[0]}")
    structure = Structure(model, batches[0])
    whole, names = WithLoss(model, loss_fn, structure, True), structure.names
    rows = [structure.row(batch, number) for number, batch in enumerate(batches)]
    reference, *nudged = (_Reference(whole, optimizer, scheduler, i) for i in range(1 + _PERTURBED))
    losses, count = [], len(batches) if steps is None else steps
    with _session_of(folder) as session:
        session.build(keep_gradients=True)
        wanted = {info.name for info in session.inputs}
        for step in range(count):
            row = rows[step % len(rows)]
            before = (copy.deepcopy(reference.module.state_dict()), copy.deepcopy(reference.optimizer.state_dict()))
            position = None if reference.scheduler is None else copy.deepcopy(reference.scheduler.state_dict())
            theirs, others = reference.step(row, clip_grad_norm), [other.step(row, clip_grad_norm) for other in nudged]
            session.feed({name: t.detach().numpy() for name, t in zip(names, row) if name in wanted})
            record = session.step()
            losses.append((float(theirs["loss", "loss"]), record.loss))
            ours = {("loss", "loss"): np.float64(record.loss), **_ours(session, theirs)}
            part = _first(theirs, ours, others)
            if part is None:
                continue
            result = Comparison(False, step + 1, losses, folder / f"step_{step}", step, *part)
            reference.module.load_state_dict(before[0])
            reference.optimizer.load_state_dict(before[1])
            if position is not None:
                reference.scheduler.load_state_dict(position)
            own = reference.module
            capture(own.model, own._loss_fn, [batches[step % len(batches)]], result.folder, **run, optimizer=reference.optimizer,
                    scheduler=reference.scheduler, step=step, without_dropout=True, module_outputs=True)  # fmt: skip
            _explain(result, result.folder)
            if show:
                result.open()
            return result
    return Comparison(True, count, losses, folder)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own table of operators (torch.testing._internal, every one with a gradient in float32) through both exporters and `stepscope verify`.

    test_operators.py STEPSCOPE [--all | --every N | NAME…] [--exporter NAME] [--json FILE]

Each is exported with ONNX's operators and agrees with PyTorch's gradient ("native"), or is kept as stepscope.python.Aten and agrees ("host"). OTHERWISE lists
the rest with its reason. Without --all one in 24 runs (--every), which CI has time for. Exit code 77 where this Python has no torch or no onnx.
"""

import argparse
import contextlib
import io
import json
import logging
import pathlib
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
try:
    import onnx  # noqa: F401
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as error:
    print(f"skipped: {error}; needs torch with torch.testing, and onnx")
    sys.exit(77)
try:
    import onnxscript  # noqa: F401

    EXPORTERS = ("torchscript", "dynamo")
except ImportError:
    EXPORTERS = ("torchscript",)

from operators_otherwise import OTHERWISE  # noqa: E402
from stepscope_capture import capture, verify  # noqa: E402
from stepscope_capture.auto import why  # noqa: E402


def is_float(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


class Name(str):
    """Stands for the parameter or buffer of this name in the arguments of an operator."""


class Operator(torch.nn.Module):
    """The operator on parameters, which are the float tensors of the sample that need a gradient; its loss weighs every element of every float result."""

    def __init__(self, op, sample):
        super().__init__()
        self._op, self._count = op.op, 0
        self.always = torch.nn.Parameter(torch.ones(()))  # reached whatever the operator's slope is
        self._arguments = self._taken([sample.input, *sample.args])
        self._options = {k: self._taken(v) for k, v in sample.kwargs.items()}

    def _taken(self, value):
        if isinstance(value, torch.Tensor):
            name = f"p{self._count}"
            self._count += 1
            if value.requires_grad:
                self.register_parameter(name, torch.nn.Parameter(value.detach().clone()))
            else:
                self.register_buffer(name, value.detach().clone())
            return Name(name)
        return type(value)(self._taken(v) for v in value) if type(value) in (list, tuple) else value

    def _given(self, value):
        if isinstance(value, Name):
            return getattr(self, value)
        return type(value)(self._given(v) for v in value) if type(value) in (list, tuple) else value

    def forward(self, one):
        result = self._op(*self._given(self._arguments), **{k: self._given(v) for k, v in self._options.items()})
        loss = one.sum() * self.always
        for part in result if isinstance(result, (tuple, list)) else [result]:
            if hasattr(part, "is_complex") and part.is_complex():
                part = torch.view_as_real(part.resolve_conj())
            if is_float(part) and part.numel():
                weights = torch.cos(torch.arange(part.numel(), dtype=torch.float32).reshape(part.shape) * 0.7 + 0.3)
                loss = loss + (part * weights).sum()
        return loss


def sample_of(op):
    """The first sample with elements whose every tensor is one of float32, integers or truth values; None where there is none."""
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=True):
        tensors = [t for t in [sample.input, *sample.args, *sample.kwargs.values()] for t in (t if isinstance(t, (list, tuple)) else [t]) if isinstance(t, torch.Tensor)]
        if tensors and all(t.numel() for t in tensors) and any(t.requires_grad and is_float(t) for t in tensors) and tensors[0].dim():
            return sample
    return None


def outcome(stepscope, op, exporter, folder):
    """("native" or "host", ""), or (what went wrong, words)."""
    sample = sample_of(op)
    if sample is None:
        return "none", "no sample with a gradient"
    quiet = io.StringIO()
    try:
        model = Operator(op, sample)
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            capture(model, lambda loss: loss, [((torch.ones(1),), ())] * 2, folder, exporter=exporter)
    except Exception as error:  # noqa: BLE001  an exporter may fail in any way
        return "not exported", why(error)
    description = json.loads((folder / "capture.json").read_text())
    try:
        *rows, summary = verify(folder, check=False, stepscope=stepscope)
    except RuntimeError as error:
        return "refused", str(error).splitlines()[0][:250]
    if summary["verdict"] == "agrees":
        return "host" if description.get("host") else "native", ""
    wrong = [f"{row['name']}: off by {row['max_abs']}, tolerance {row['tolerance']}; {row['reason']} {row['cause']}" for row in rows if row["verdict"] == "differs"]
    return ("draws" if description["draws"] == "drawn" else summary["verdict"]), f"{summary['reason']} {'; '.join(wrong[:1])} {' '.join(description['notes'])}".strip()


def operators():
    """By name and variant, as the table has them; forms in place and of other libraries are not in it."""
    return {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db if op.supports_autograd and torch.float32 in op.dtypes and torch.float32 in op.backward_dtypes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stepscope")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--every", type=int, default=24)
    parser.add_argument("--exporter", choices=EXPORTERS, action="append")
    parser.add_argument("--json")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    every = operators()
    wished = given.names or list(every)[:: 1 if given.all else given.every]
    counts, failed, lines = {}, 0, []
    for name in wished:
        for exporter in given.exporter or EXPORTERS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found, words = outcome(given.stepscope, every[name], exporter, pathlib.Path(folder) / "captured")
                except Exception as error:  # noqa: BLE001  a sample may not be what the table says
                    found, words = "not run", f"{type(error).__name__}: {str(error)[:200]}"
            counts.setdefault(exporter, {}).setdefault(found, []).append(name)
            known = OTHERWISE.get((name, exporter)) or OTHERWISE.get(name)
            good = found in ("native", "host", "none") or known is not None and known[0] == found
            failed += not good
            lines.append({"operator": name, "exporter": exporter, "found": found, "words": words})
            if not good or given.names:
                print(f"{'ok   ' if good else 'FAIL '} {name} {exporter}: {found} {words}", flush=True)
            if given.json:
                pathlib.Path(given.json).write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    for exporter, found in counts.items():
        print(f"{exporter}: {sum(map(len, found.values()))} operators: " + ", ".join(f"{len(names)} {what}" for what, names in sorted(found.items())))
    print(f"{sum(len(names) for found in counts.values() for names in found.values()) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

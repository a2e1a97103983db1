#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What exporters drop is kept, or said: small models that do it, through both exporters.

    test_meaning.py STEPSCOPE [MODEL…]

Of each: `verify` agrees by its own tolerance (4 times the error of PyTorch's own float32), and the losses and parameters of three steps of SGD are
PyTorch's, the state that the forward pass changes among them. SAID: what is not kept, and the words of the alert. Exit code 77 where this Python has no torch or no onnx.
"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

from prerequisites import EXPORTERS  # first
import torch

import architectures  # noqa: F401  into the table of meanings
import everyday
import habits  # noqa: F401
import host_functions  # noqa: F401
import practices
import recent_code  # noqa: F401
import research
import training_habits  # noqa: F401
from meanings import MEANINGS
from stepscope_capture import capture, verify
from stepscope_capture.batches import Unfit
from stepscope_capture.safetensors import load_safetensors

REFUSED = (  # with an error
    ("inference_block", "dynamo"),
    ("branch_on_data", "dynamo"),
    ("packed_and_filled", "dynamo"),
    ("dropout_between_packed_layers", "dynamo"),
    ("bounds_of_clamp", "dynamo"),  # the exporter: clamp_ in place
    ("numbers_by_numpy", "dynamo"),
    *((name, "dynamo") for name in research.NEEDS_TORCHSCRIPT),
)
SAID = {  # words of the cause
    ("ties", "torchscript"): "a tie is shared",  # topk picks any of equal ones
    ("ties", "dynamo"): "a tie is shared",
}


def trained_by_torch(model, loss_fn, batches):
    """(losses of three steps, what parameters and float buffers are then)"""
    whole = torch.nn.ModuleList([model] + ([loss_fn] if isinstance(loss_fn, torch.nn.Module) else []))
    if not model.training:
        whole.train()
    cells = [c.cell_contents for c in getattr(loss_fn, "__closure__", None) or ()]
    cells += [] if isinstance(loss_fn, torch.nn.Module) else list(getattr(loss_fn, "__dict__", {}).values())
    parameters = list(dict.fromkeys(p for m in [whole, *(c for c in cells if isinstance(c, torch.nn.Module))] for p in m.parameters()))
    optimizer = torch.optim.SGD([p for p in parameters if p.requires_grad], lr=0.05)
    losses = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        output = model(**inputs) if isinstance(inputs, dict) else model(*inputs) if isinstance(inputs, tuple) else model(inputs)
        loss = loss_fn(output, *(targets if isinstance(targets, tuple) else (targets,)))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, {f"model.{name}": t.detach() for name, t in model.state_dict().items()}


def train(stepscope, folder):
    out = folder / "parameters.safetensors"
    command = [stepscope, "train", str(folder), "--json", "--steps", "3", "--lr", "0.05", "--optimizer", "sgd", "--dump-params", str(out)]
    if json.loads((folder / "capture.json").read_text()).get("host"):
        command += ["--plugin", "python_host"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={"STEPSCOPE_PYTHON": sys.executable, **os.environ})
    assert done.returncode == 0, done.stderr.strip()
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [event["loss"] for event in events if event.get("event") == "step"], load_safetensors(out)


def check(stepscope, name, exporter, folder):
    torch.manual_seed(0)
    model, loss_fn, batches = MEANINGS[name]()
    capture(model, loss_fn, batches, folder, exporter=exporter)
    if name in everyday.NATIVE:
        kept = json.loads((folder / "capture.json").read_text()).get("host")
        assert not kept, f"{kept}: kept for Python; expected operators of the engine"
    *lines, summary = verify(folder, steps=1, check=False, stepscope=stepscope)
    wrong = [f"{row['name']}: {row['reason']} {row['cause']}" for row in lines if row["verdict"] == "differs"]
    if name in ("branch_on_data", "numbers_by_numpy"):
        notes = json.loads((folder / "capture.json").read_text())["notes"]
        assert any(".py:" in note and "Python reads" in note for note in notes), f"nothing is said of the branch: {notes}"
        return "said"
    if (name, exporter) in SAID:
        assert summary["verdict"] == "differs" and any(SAID[name, exporter] in line for line in wrong), f"{summary} {wrong}"
        return "said"
    assert summary["verdict"] == "agrees", f"{summary} {wrong}"
    if name.startswith("kept_in_"):  # three steps of a low type differ by their roundings
        return "agrees"
    if json.loads((folder / "capture.json").read_text())["draws"] != "none":  # a run draws others than PyTorch
        return "agrees, nothing dropped"
    losses, parameters = train(stepscope, folder)
    expected, state = trained_by_torch(model, loss_fn, batches)
    assert all(abs(a - b) <= 2e-4 * max(1, abs(b)) for a, b in zip(losses, expected)), f"losses {losses}; expected {expected}"
    for key, value in state.items():
        if key in parameters and value.is_floating_point():
            far = float((torch.from_numpy(parameters[key].copy()) - value).abs().max())
            assert far <= 2e-4 * max(1.0, float(value.abs().max())), f"'{key}' after three steps: off by {far:.1e}"
    return "agrees"


def check_words():
    """What is not kept, or not taken, is said before an exporter sees it."""
    said = [(name, make, words, "torchscript") for name, (make, words) in research.SAID.items()]
    said += [("generator_of_its_own", practices.generator_of_its_own, "by a generator of its own", exporter) for exporter in EXPORTERS]
    for name, make, words, exporter in said:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            capture(*make(), folder, exporter=exporter)
            notes = json.loads((pathlib.Path(folder) / "capture.json").read_text())["notes"]
        assert any(words in note for note in notes), f"{name}: notes {notes}; expected {words}"
    if "dynamo" in EXPORTERS:
        try:
            capture(*everyday.dropout_between_packed_layers(), tempfile.gettempdir() + "/never_written", exporter="dynamo")
        except RuntimeError as error:
            assert 'exporter="torchscript" does' in str(error), f"packed sequences: '{error}'"
        else:
            raise AssertionError("packed sequences: captured by dynamo")
    for name, (*arguments, words) in research.refused().items():
        for exporter in ("torchscript", "auto"):
            try:
                capture(*arguments, tempfile.gettempdir() + "/never_written", exporter=exporter)
            except Unfit as error:
                assert words in str(error), f"{name}: '{error}'; expected {words}"
            else:
                raise AssertionError(f"{name}: captured; expected an error with {words}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    wished, failed, count = sys.argv[2:] or list(MEANINGS), 0, 0
    if not sys.argv[2:]:
        check_words()
        print("ok    what is said and what is refused", flush=True)
    for name in wished:
        for exporter in [e for e in EXPORTERS if e in os.environ.get("ONLY", e)]:
            if (name, exporter) in REFUSED:
                continue
            count += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(f"ok    {name} {exporter}: {check(sys.argv[1], name, exporter, pathlib.Path(folder) / 'captured')}", flush=True)
                except Exception as error:  # noqa: BLE001  an exporter may fail in any way
                    failed += 1
                    text = str(error).strip().splitlines() or [""]
                    print(f"FAIL  {name} {exporter}: {type(error).__name__}: {text[0][:300]}", flush=True)
    print(f"{count - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

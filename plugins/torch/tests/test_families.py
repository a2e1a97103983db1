#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures models of many families and trains them: gradients of the first step and losses of three agree with PyTorch, and
`verify` says so by its own, much closer tolerance.

    test_families.py STEPSCOPE [FAMILY…]

Every family goes through the TorchScript exporter, some through dynamo as well, and some through dynamo in the newest opset (Attention, RMSNormalization). Exit code 77 where this Python has no torch or
no onnx. The tolerance of a gradient is relative to its largest element, with a floor of a thousandth of the model's largest.
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import numpy as np
    import onnx  # noqa: F401
    import torch
except ImportError as error:
    print(f"skipped: {error}; needs torch and onnx")
    sys.exit(77)
NEWEST_OPSET = 23  # the first with Attention
try:
    import onnxscript  # noqa: F401  the dynamo exporter is written on it

    DYNAMO = ("t5", "gemma", "fnet", "vqvae", "dlrm", "mamba", "shifted_windows", "far_logits", "forward_sum", "towers", "deformable", "padded", "edge_softmax", "splat", "aggregations", "distances")
    NEWEST = ("attention_forms", "t5", "gemma", "shifted_windows", "towers", "padded", "mamba") if hasattr(onnxscript, f"opset{NEWEST_OPSET}") else ()
except ImportError:
    DYNAMO = NEWEST = ()

from families import FAMILIES  # noqa: E402
from functions import FUNCTIONS  # noqa: E402
from stepscope_capture import capture, verify  # noqa: E402
from stepscope_capture.safetensors import load_safetensors  # noqa: E402

FAMILIES = {**FAMILIES, **FUNCTIONS}
DYNAMO = (*DYNAMO, *FUNCTIONS) if DYNAMO else ()
TORCHSCRIPT = tuple(name for name in FAMILIES if name not in ("deformable", "attention_forms"))  # that exporter has no AffineGrid, no RMSNorm
GRADIENT, LOSS = 2e-3, 2e-4


def train(stepscope, folder, *arguments):
    """Losses of a run of the captured folder."""
    if json.loads((folder / "capture.json").read_text()).get("host"):
        arguments = (*arguments, "--plugin", "python_host")
    environment = {**os.environ, "STEPSCOPE_PYTHON": sys.executable}
    done = subprocess.run([stepscope, "train", str(folder), "--json", *arguments], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr.strip()
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [event["loss"] for event in events if event.get("event") == "step"]


def torch_losses(model, loss_fn, batches):
    model = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    losses = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        output = model(**inputs) if isinstance(inputs, dict) else model(*inputs) if isinstance(inputs, tuple) else model(inputs)
        loss = loss_fn(output, *(targets if isinstance(targets, tuple) else (targets,)))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def check(stepscope, name, exporter, opset, folder):
    torch.manual_seed(0)
    model, loss_fn, batches = FAMILIES[name]()
    capture(model, loss_fn, batches, folder, exporter=exporter, opset=opset)
    train(stepscope, folder, "--steps", "1", "--dump-grads", str(folder / "grads.safetensors"))
    golden = {key: value for key, value in load_safetensors(folder / "golden.safetensors").items() if key.startswith("grad/")}
    found = load_safetensors(folder / "grads.safetensors")
    names = {key.removeprefix("grad/") for key in golden}
    assert set(found) == names, f"gradients of {sorted(set(found) ^ names)} are missing or too many"
    largest = max(np.abs(gradient).max() for gradient in golden.values())
    worst = (0.0, "")
    for key, gradient in golden.items():
        difference = np.abs(found[key.removeprefix("grad/")] - gradient).max() / (np.abs(gradient).max() + 1e-3 * largest)
        worst = max(worst, (float(difference), key))
        assert difference <= GRADIENT, f"{key}: differs by {difference:.1e} of its largest element"
    *rows, summary = verify(folder, steps=len(batches), check=False, stepscope=stepscope)
    assert summary["verdict"] == "agrees", f"verify: {summary}, {[(row['name'], row['cause']) for row in rows if row['verdict'] == 'differs']}"
    losses, expected = train(stepscope, folder, "--steps", "3", "--lr", "0.01", "--optimizer", "sgd"), torch_losses(model, loss_fn, batches)
    assert np.allclose(losses, expected, rtol=LOSS, atol=LOSS), f"losses {losses}; expected {expected}"
    return worst


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    wished, failed = sys.argv[2:] or list(FAMILIES), 0
    ways = (("torchscript", 17, TORCHSCRIPT), ("dynamo", 18, DYNAMO), ("dynamo", NEWEST_OPSET, NEWEST))
    cases = [(name, exporter, opset) for exporter, opset, names in ways for name in wished if name in names]
    for name, exporter, opset in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst = check(sys.argv[1], name, exporter, opset, pathlib.Path(folder) / "captured")
                print(f"ok    {name} {exporter} {opset}: gradients within {worst[0]:.1e} ({worst[1]})", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAIL  {name} {exporter} {opset}: {error}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

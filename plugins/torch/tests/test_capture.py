#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures small models with both exporters and trains them: losses and gradients agree with PyTorch.

    test_capture.py STEPSCOPE

Exit code 77 where this Python has no torch or no onnx.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from prerequisites import EXPORTERS  # first
import numpy as np
import onnx
import torch
from torch import nn

from stepscope_capture import capture
from stepscope_capture.safetensors import load_safetensors


class Classifier(nn.Module):
    """Convolution and BatchNormalization, two layers of equal contents, and a frozen one."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.load_state_dict(self.first.state_dict())
        self.frozen = nn.Linear(4, 3).requires_grad_(False)

    def forward(self, image):
        x = torch.relu(self.norm(self.convolution(image))).mean((2, 3))
        return self.frozen(self.second(torch.tanh(self.first(x))))


def train(stepscope, folder, *arguments):
    """Losses of a run of the captured folder."""
    command = [stepscope, "train", str(folder), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert "not what PyTorch computed" not in done.stdout + done.stderr, "the captured model is said to differ where it does not"
    return [event["loss"] for event in events if event.get("event") == "step"]


def check(stepscope, exporter, folder):
    torch.manual_seed(3)
    model = Classifier()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    batches = [(torch.randn(4, 1, 6, 6), torch.randint(0, 3, (4,))) for _ in range(3)]
    capture(model, nn.functional.cross_entropy, batches, folder, exporter=exporter)

    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), f"capture changed '{name}' of the model"
    description = json.loads((folder / "capture.json").read_text())
    initializers = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(folder / "model.onnx")).graph.initializer}
    for name in ("model.norm.running_mean", "model.norm.running_var", "model.first.weight", "model.second.weight"):
        assert np.array_equal(initializers[name], before[name.removeprefix("model.")].numpy()), f"'{name}' differs in the file"
    trained = {row["name"] for row in description["parameters"] if row["trained"]}
    frozen = {row["name"] for row in description["parameters"] if not row["trained"]}
    assert {"model.first.weight", "model.second.weight"} <= trained and frozen == {"model.frozen.weight", "model.frozen.bias"}

    losses = train(stepscope, folder, "--steps", "3", "--lr", "0")
    assert np.allclose(losses, description["losses"], rtol=1e-5), f"losses {losses}; expected {description['losses']}"
    train(stepscope, folder, "--steps", "1", "--dump-grads", str(folder / "grads.safetensors"))
    golden = load_safetensors(folder / "golden.safetensors")
    found = load_safetensors(folder / "grads.safetensors")
    assert set(found) == trained, f"gradients of {sorted(found)}; expected {sorted(trained)}"
    statistics = {f"{when}/model.norm.running_{what}" for when in ("state", "state2") for what in ("mean", "var")}
    assert {name for name in golden if not name.startswith("grad/")} == statistics, f"golden of {sorted(golden)}"
    for name, gradient in golden.items():
        if name in statistics:
            continue
        ours = found[name.removeprefix("grad/")]
        assert np.allclose(ours, gradient, rtol=1e-4, atol=1e-6), f"{name}: largest difference {np.abs(ours - gradient).max()}"
    description["losses"][0] += 0.5  # as if the exporter had dropped a term
    (folder / "capture.json").write_text(json.dumps(description))
    told = subprocess.run([stepscope, "train", str(folder), "--json"], capture_output=True, text=True, timeout=120)
    assert "not what PyTorch computed" in told.stdout + told.stderr, "a loss that differs from the captured one is not told"
    print(f"ok  {exporter}: {len(golden)} gradients, losses {losses}")


def check_auto(stepscope, folder):
    """The first way that agrees is taken, and the others say why not; what no way takes is an error with a line for each."""
    os.environ["STEPSCOPE"] = stepscope
    torch.manual_seed(3)
    batches = [(torch.randn(4, 1, 6, 6), torch.randint(0, 3, (4,))) for _ in range(2)]
    capture(Classifier(), nn.functional.cross_entropy, batches, folder, exporter="auto")
    tries = json.loads((folder / "capture.json").read_text())["tries"]
    assert tries[-1].endswith(": taken") and len(train(stepscope, folder, "--steps", "1")) == 1, f"{tries}"

    class Late(Classifier):
        def forward(self, x):
            if torch.jit.is_tracing() or torch.compiler.is_compiling():
                raise NotImplementedError("not written yet")
            return super().forward(x)

    try:
        capture(Late(), nn.functional.cross_entropy, batches, folder, exporter="auto")
    except RuntimeError as error:
        assert str(error).count("not written yet") == 4 and "test_capture.py:" in str(error), str(error)
    else:
        raise AssertionError("a model that no exporter takes was captured")
    print(f"ok  auto: {tries[-1]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        check_auto(sys.argv[1], pathlib.Path(folder) / "captured")
    for exporter in EXPORTERS:
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], exporter, pathlib.Path(folder) / "captured")


if __name__ == "__main__":
    main()

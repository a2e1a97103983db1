#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In the user's loop: compare, watch, ModuleWithLoss, and the callbacks of trainers. What is captured of a run goes on as PyTorch does.

    test_loop.py STEPSCOPE LIBRARY [CASE…]

Exit code 77 where this Python has no torch or no onnx. Cases of transformers and Lightning are left out where these are not installed.
"""

import contextlib
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3] / folder) for folder in ("app/api/python", "plugins/torch")]
try:
    import numpy as np
    import onnx  # noqa: F401
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; needs torch and onnx")
    sys.exit(77)

if len(sys.argv) > 2:
    os.environ["STEPSCOPE"], os.environ["STEPSCOPE_LIBRARY"] = sys.argv[1], sys.argv[2]
import stepscope  # noqa: E402

SAFE = {"exporter": "torchscript"}


class Model(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.a, self.norm, self.drop, self.b = nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Dropout(dropout), nn.Linear(8, 3)

    def between(self, h):
        return h

    def forward(self, x):
        return self.b(self.drop(self.between(torch.relu(self.norm(self.a(x))))))


def batches_of(count):
    return [(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(count)]


def trained(folder, *arguments):
    """(records of the steps, parameters after them, everything that was said)."""
    kept = pathlib.Path(folder) / "after.safetensors"
    command = [os.environ["STEPSCOPE"], "train", str(folder), "--json", "--dump-params", str(kept), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    from stepscope_capture.safetensors import load_safetensors

    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [e for e in events if e["event"] == "step"], load_safetensors(kept), done.stdout + done.stderr


def step(model, optimizer, scheduler, batch, accumulate=1):
    x, y = batch
    (nn.functional.cross_entropy(model(x), y) / accumulate).backward()


def near(found, expected, what, tolerance=2e-5):
    difference = float(np.abs(found - expected.detach().numpy()).max())
    assert difference <= tolerance * max(1.0, float(expected.detach().abs().max())), f"{what}: off by {difference}"


def same_parameters(after, model, prefix="model."):
    for name, parameter in model.named_parameters():
        near(after[prefix + name], parameter, name)


def compare_agrees(folder):
    model = Model(dropout=0.3)
    groups = [{"params": model.a.parameters(), "weight_decay": 0.1}, {"params": [*model.norm.parameters(), *model.b.parameters()], "lr": 1e-2}]
    for optimizer in (torch.optim.AdamW(groups, lr=1e-3), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)):
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
        batches = batches_of(3)
        for x, y in batches:  # it begins in the middle of a run
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()
        before = copy.deepcopy((model.state_dict(), optimizer.state_dict(), scheduler.state_dict()))
        found = stepscope.compare(model, nn.functional.cross_entropy, batches, optimizer, scheduler=scheduler, steps=7, clip_grad_norm=0.5, folder=folder, **SAFE)
        assert found.agrees and found.steps == 7 and len(found.losses) == 7 and "7 steps agree" in str(found), str(found)
        after = (model.state_dict(), optimizer.state_dict(), scheduler.state_dict())
        assert json.dumps(before, default=str) == json.dumps(after, default=str), "compare changed what it was given"


def compare_of_a_layer_that_is_called_twice(folder):
    """Its statistics are PyTorch's, those of a layer that is called once ONNX's."""

    class Twins(Model):
        def __init__(self):
            super().__init__()
            self.once = nn.BatchNorm1d(3)

        def forward(self, x):
            return self.once(super().forward(x) + super().forward(x.flip(1)))

    model = Twins()
    found = stepscope.compare(model, nn.functional.cross_entropy, batches_of(3), torch.optim.SGD(model.parameters(), lr=0.1), folder=folder, **SAFE)
    assert found.agrees, str(found)


def compare_of_other_types(folder):
    """A complex parameter, one in bfloat16, and an input that forward() asks a gradient for."""

    class Other(Model):
        def __init__(self):
            super().__init__()
            self.turn, self.low = nn.Parameter(torch.randn(5, dtype=torch.cfloat)), nn.Linear(8, 8).bfloat16()

        def between(self, h):
            h = h + self.low(h.bfloat16()).float()
            return torch.fft.irfft(torch.fft.rfft(h) * self.turn, n=8)

        def forward(self, x):
            return super().forward(x.requires_grad_())

    for kind in (torch.optim.SGD, torch.optim.AdamW):
        model = Other()
        found = stepscope.compare(model, nn.functional.cross_entropy, batches_of(3), kind(model.parameters(), lr=1e-3), folder=folder, **SAFE)
        assert found.agrees, str(found)


def compare_of_gradients_that_cancel(folder):
    """A bias that moves all scores of a row alike has no gradient but rounding, which is as large as other gradients make it."""
    from stepscope.comparison import _first

    def found(off):
        theirs = {("loss", "loss"): torch.tensor(1.0), ("gradient", "weight"): torch.tensor([1.0, -0.5]), ("gradient", "bias"): torch.tensor([5e-8])}
        ours = {key: value.numpy() + (off if key == ("gradient", "bias") else 0) for key, value in theirs.items()}
        return _first(theirs, ours, [theirs, theirs])

    assert found(-7e-8) is None, found(-7e-8)
    assert found(1e-5)[:2] == ("gradient", "bias"), found(1e-5)


def compare_names_what_differs(folder):
    class Late(Model):
        """From the fourth forward pass on it is another model, which no export can know."""

        count = 0

        def between(self, h):
            self.count += 1
            return h * (1.5 if self.count > 3 else 1.0)

    class Lost(Model):
        def between(self, h):
            return h * (2.0 if torch.jit.is_tracing() else 1.0)

    model, batches = Late(), batches_of(6)
    optimizer = torch.optim.AdamW(model.parameters())
    found = stepscope.compare(model, nn.functional.cross_entropy, batches, optimizer, folder=folder, **SAFE)
    assert not found.agrees and (found.step, found.kind) == (3, "loss") and "the 3 steps before it agree" in str(found), str(found)
    assert (found.folder / "model.onnx").is_file() and found.folder.name == "step_3"

    model = Lost()
    found = stepscope.compare(model, nn.functional.cross_entropy, batches, torch.optim.SGD(model.parameters(), lr=0.1), folder=folder, **SAFE)
    assert not found.agrees and found.step == 0 and found.first_output, str(found)
    assert "first module whose output differs" in str(found), str(found)


def watch_captures_a_step_that_goes_wrong(folder):
    def train(watched):
        torch.manual_seed(0)
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        with watched(model, optimizer) as seen:
            for i in range(5):
                x, y = batches_of(1)[0]
                share = model(x).softmax(-1)[torch.arange(6), y]
                if i == 3:
                    share = share - 1.0  # its logarithm is no number
                loss = -share.log().mean() + 1e-3 * sum((p**2).sum() for p in model.parameters())
                optimizer.zero_grad()
                loss.backward()
                if i != 3:
                    optimizer.step()
        return model, seen

    plain, _ = train(lambda *_: contextlib.nullcontext())
    model, seen = train(lambda model, optimizer: stepscope.watch(model, folder, optimizer=optimizer, **SAFE))
    assert all(torch.equal(a, b) for a, b in zip(plain.state_dict().values(), model.state_dict().values())), "watching changed the run"
    assert [f.name for f in seen.captures] == ["step_3"], seen.captures
    command = [os.environ["STEPSCOPE"], "train", str(seen.captures[0]), "--on-nan", "blame"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Log" in told.stdout + told.stderr, told.stdout + told.stderr

    # Its counters and statistics are those of before the step.
    buffers = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(seen.captures[0] / "model.onnx")).graph.initializer}
    assert not np.array_equal(buffers["model.norm.running_mean"], model.norm.running_mean.numpy())


def recorded_losses_are_those_of_the_script(folder):
    """What a script makes of the output: detached parts, writing into a tensor, its own parameters, several outputs."""
    from stepscope_capture.recorder import Recorder, capture_passes
    from stepscope_capture.safetensors import load_safetensors

    class Two(Model):
        def forward(self, x):
            return {"scores": super().forward(x), "hidden": self.a(x)}

    model, (x, y) = Two(), batches_of(1)[0]
    target = torch.randn(6, 8)
    with Recorder(model) as recorder:
        out = model(x)
        weight = nn.functional.cross_entropy(out["scores"].detach(), y, reduction="none").exp()
        with torch.no_grad():
            share = out["scores"].softmax(-1).max(-1).values * 2
        each = nn.functional.cross_entropy(out["scores"], y, reduction="none") * weight * share
        each[1] = 0.0
        loss = each.sum() / 6 + 0.1 * (out["hidden"] - target).pow(2).mean() * out["hidden"].data.abs().mean()
        loss = loss + 1e-2 * sum(p.pow(2).sum() for name, p in model.named_parameters() if name.startswith("b."))
        loss.backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    for exporter in ("torchscript", "dynamo"):
        capture_passes(model, recorder.passes, folder, exporter=exporter)
        golden = load_safetensors(folder / "golden.safetensors")
        for name, gradient in expected.items():
            near(golden["grad/model." + name], gradient, name)
        assert stepscope.verify(folder)[-1]["verdict"] == "agrees"
        assert all(torch.equal(p.grad, expected[name]) for name, p in model.named_parameters()), "capturing changed the gradients of the run"


def goes_on(folder):
    """Captured in the middle of a run: three more steps are PyTorch's."""
    for exporter in ("torchscript", "dynamo"):
        model, batches = Model(), batches_of(4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1.0)

        def on(i):
            optimizer.zero_grad()
            step(model, optimizer, scheduler, batches[i % 4])
            optimizer.step()
            scheduler.step()

        for i in range(6):
            on(i)
        stepscope.capture(model, nn.functional.cross_entropy, batches[2:] + batches[:2], folder, exporter=exporter, optimizer=optimizer, scheduler=scheduler)
        records, after, _ = trained(folder, "--steps", "3")
        assert [r["step"] for r in records] == [6, 7, 8], records
        for i in range(6, 9):
            on(i)
        same_parameters(after, model)


def unlike_is_said(folder):
    model = Model()
    stepscope.capture(model, nn.functional.cross_entropy, batches_of(1), folder, optimizer=torch.optim.RMSprop(model.parameters()), **SAFE)
    _, _, told = trained(folder, "--steps", "1")
    assert "capture: optimizer RMSprop: not one of Stepscope's" in told, told
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    stepscope.capture(model, nn.functional.cross_entropy, batches_of(1), folder, optimizer=optimizer, scheduler=scheduler, **SAFE)
    records, _, told = trained(folder, "--steps", "1")
    assert "StepLR" in told and records[0]["learning_rate"] == 0.25, told


def module_with_loss(folder):
    model = stepscope.ModuleWithLoss(Model(), nn.functional.cross_entropy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y in batches_of(3):
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
    again = copy.deepcopy(model)
    model.capture(folder, optimizer=optimizer, step=3, **SAFE)
    records, _, _ = trained(folder, "--steps", "1")
    expected = float(again(x, y).detach())
    assert records[0]["step"] == 3 and abs(records[0]["loss"] - expected) < 1e-5, (records, expected)


class _After:
    """Parameters right after an update, by number of updates."""

    def __init__(self):
        self.states = {}

    def keep(self, number, model):
        self.states[number] = {name: p.detach().clone() for name, p in model.named_parameters()}


def transformers_run(folder):
    try:
        import accelerate  # noqa: F401  without it the Trainer refuses
        import transformers
    except ImportError as error:
        return f"left out: {error}"
    data = [{"input_ids": torch.randint(0, 50, (8,)), "attention_mask": torch.ones(8, dtype=torch.long), "labels": i % 3} for i in range(64)]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 16}
    for accumulate in (1, 2):
        quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=50, num_labels=3, **sizes, **quiet))
        kept = _After()

        class Keep(transformers.TrainerCallback):
            def on_step_end(self, args, state, control, model=None, **_):
                kept.keep(state.global_step, model)

        callback = stepscope.TrainerCallback(3, folder / f"hf{accumulate}", **SAFE)
        arguments = transformers.TrainingArguments(
            str(folder / "out"), max_steps=5, per_device_train_batch_size=4, gradient_accumulation_steps=accumulate, learning_rate=1e-2,
            lr_scheduler_type="linear", warmup_steps=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback, Keep()]).train()
        assert [f.name for f in callback.captures] == ["step_3"], callback.captures
        records, after, told = trained(callback.captures[0], "--steps", str(accumulate))
        assert "not what PyTorch computed" not in told and "capture:" not in told, told
        assert records[-1]["step"] == 4 * accumulate - 1 and abs(records[0]["learning_rate"] - 1e-2 * 2 / 3) < 1e-9, records
        for name, expected in kept.states[4].items():
            if "model." + name in after:
                near(after["model." + name], expected, name, 1e-4)
    return None


def lightning_run(folder):
    try:
        import lightning
    except ImportError as error:
        return f"left out: {error}"

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Model()

        def training_step(self, batch, _):
            loss = nn.functional.cross_entropy(self.net(batch["x"]), batch["y"])
            self.log("loss", loss)
            return {"loss": loss}

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10), "interval": "step"}}

    data = [{"x": torch.randn(4), "y": i % 3} for i in range(96)]
    for accumulate in (1, 2):
        kept = _After()

        class Keep(lightning.Callback):
            def on_train_batch_end(self, trainer, pl_module, *_):
                kept.keep(trainer.global_step, pl_module)

        callback = stepscope.LightningCallback([3], folder / f"lightning{accumulate}", **SAFE)
        trainer = lightning.Trainer(
            max_steps=5, accelerator="cpu", callbacks=[callback, Keep()], logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, accumulate_grad_batches=accumulate, gradient_clip_val=0.5,
        )  # fmt: skip
        trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=6))
        assert [f.name for f in callback.captures] == ["step_3"], callback.captures
        records, after, told = trained(callback.captures[0], "--steps", str(accumulate))
        assert "not what PyTorch computed" not in told and "capture:" not in told, told
        assert records[-1]["step"] == 4 * accumulate - 1, records
        for name, expected in kept.states[4].items():
            near(after["model.module." + name], expected, name, 1e-4)
    return None


def a_trainer_run_that_went_wrong(folder):
    try:
        import accelerate  # noqa: F401  without it the Trainer refuses
        import transformers
    except ImportError as error:
        return f"left out: {error}"

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Model()

        def forward(self, x, labels):
            share = self.net(x).softmax(-1).gather(1, labels[:, None])
            return {"loss": -(share - x[:, :1].clamp(min=3.0) + 3.0).log().mean()}

    torch.manual_seed(0)
    data = [{"x": torch.randn(4), "labels": i % 3} for i in range(64)]
    data[41]["x"][0] = 9.0  # the eleventh batch of four
    callback = stepscope.TrainerCallback(folder=folder, on_nonfinite=True, **SAFE)
    arguments = transformers.TrainingArguments(str(folder / "out"), max_steps=14, per_device_train_batch_size=4, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True)

    class Ordered(transformers.Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    Ordered(Net(), arguments, train_dataset=data, callbacks=[callback]).train()
    assert [f.name for f in callback.captures] == ["step_10"], callback.captures
    told = subprocess.run([os.environ["STEPSCOPE"], "train", str(callback.captures[0]), "--on-nan", "blame"], capture_output=True, text=True, timeout=120)
    assert "Log" in told.stdout + told.stderr, told.stdout + told.stderr
    return None


CASES = [compare_agrees, compare_of_a_layer_that_is_called_twice, compare_of_other_types, compare_of_gradients_that_cancel,
         compare_names_what_differs, watch_captures_a_step_that_goes_wrong,
         recorded_losses_are_those_of_the_script, goes_on, unlike_is_said, module_with_loss,
         transformers_run, lightning_run, a_trainer_run_that_went_wrong]  # fmt: skip


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for case in CASES:
        if len(sys.argv) > 3 and case.__name__ not in sys.argv[3:]:
            continue
        torch.manual_seed(3)
        with tempfile.TemporaryDirectory() as folder:
            said = case(pathlib.Path(folder))
        print(f"{'ok ' if said is None else '-- '} {case.__name__}{'' if said is None else ': ' + said}", flush=True)


if __name__ == "__main__":
    main()

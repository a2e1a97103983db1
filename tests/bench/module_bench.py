# SPDX-License-Identifier: Apache-2.0
"""A plain loop of PyTorch, eager and with stepscope.Module around the model: milliseconds of a step, and what the loop costs over `stepscope train`.

    module_bench.py LIBRARY PROGRAM [--models bert,gpt2,resnet] [--steps 12] [--scale base|small] [--json FILE]

Loss, optimizer (torch's AdamW) and zero_grad(set_to_none) are the same on both sides; steps alternate in blocks of three, with three of the engine alone, which
is the same model with its loss inside under `stepscope train`; medians are told. Needs torch; transformers for BERT and GPT-2, torchvision for ResNet-50.
"""

import argparse
import copy
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "app/api/python"))


def bert(torch, small):
    import transformers

    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512} if small else {}
    config = transformers.BertConfig(**size, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = transformers.BertForMaskedLM(config)
    ids = torch.randint(0, config.vocab_size, (4, 64 if small else 128))
    return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "return_dict": False}, ids


def gpt2(torch, small):
    import transformers

    size = {"n_embd": 128, "n_layer": 2, "n_head": 2} if small else {}
    config = transformers.GPT2Config(**size, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)
    ids = torch.randint(0, config.vocab_size, (2, 64 if small else 128))
    return model, {"input_ids": ids, "return_dict": False}, ids


def resnet(torch, small):
    import torchvision

    model = torchvision.models.resnet18() if small else torchvision.models.resnet50()
    return model, {"x": torch.randn(4, 3, 64 if small else 224, 64 if small else 224)}, torch.randint(0, 1000, (4,))


def loss_of(torch, output, labels):
    logits = output[0] if isinstance(output, tuple) else output
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def loop(torch, model, arguments, labels):
    """A function that runs one step and returns (ns, ns of forward and backward, loss)."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

    def step():
        begin = time.perf_counter_ns()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(torch, model(**arguments), labels)
        loss.backward()
        passed = time.perf_counter_ns()
        optimizer.step()
        return time.perf_counter_ns() - begin, passed - begin, float(loss)

    return step


def of_program(program, folder):
    """Steps of `stepscope train` of the captured model after two of warm-up, ns."""
    done = subprocess.run([program, "train", folder, "--optimizer", "adamw", "--steps", "5", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [e["ns"] for e in events if e["event"] == "step"][2:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("--models", default="bert,gpt2,resnet")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--scale", choices=["base", "small"], default="base")
    parser.add_argument("--json")
    options = parser.parse_args()
    os.environ["STEPSCOPE_LIBRARY"] = options.library
    try:
        import torch
    except ImportError:
        print("skipped: this Python has no torch")
        return 77
    import stepscope

    rows = []
    for name in options.models.split(","):
        torch.manual_seed(0)
        try:
            model, arguments, labels = {"bert": bert, "gpt2": gpt2, "resnet": resnet}[name](torch, options.scale == "small")
        except ImportError as error:
            print(f"{name}: skipped: {error}")
            continue
        model.train()
        folder = tempfile.TemporaryDirectory()
        stepscope.capture(model, lambda output, labels: loss_of(torch, output, labels), [(arguments, labels)], folder.name, with_golden=False)
        ours = stepscope.Module(copy.deepcopy(model), policy="raise")
        sides = {"eager": loop(torch, model, arguments, labels), "module": loop(torch, ours, arguments, labels)}
        times = {side: [] for side in sides}
        losses, program = {side: [] for side in sides}, []
        for block in range(options.steps // 3 + 1):
            for side, step in sides.items():
                for _ in range(3):
                    whole, passes, loss = step()
                    losses[side].append(loss)
                    if block > 0:
                        times[side].append((whole, passes))
            program += of_program(options.program, folder.name) if block > 0 else []
        medians = {side: [statistics.median(t[i] for t in of) / 1e6 for i in (0, 1)] for side, of in times.items()}
        alone = statistics.median(program) / 1e6
        row = {"model": name, "scale": options.scale, "threads": torch.get_num_threads(), "eager_ms": medians["eager"][0], "module_ms": medians["module"][0],
               "eager_passes_ms": medians["eager"][1], "module_passes_ms": medians["module"][1], "train_ms": alone,
               "ratio": medians["module"][0] / medians["eager"][0], "passes_ratio": medians["module"][1] / medians["eager"][1],
               "over_train": medians["module"][0] / alone - 1, "loss_apart": max(abs(a - b) for a, b in zip(losses["eager"], losses["module"]))}  # fmt: skip
        rows.append(row)
        print(json.dumps(row, indent=1))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""`stepscope artifacts`: its graphs compute what a training does, each alone; what they hold, and what is left out when nominal.

    artifacts_test.py STEPSCOPE SAMPLES
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(77)

PROGRAM, SAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL, DATA = SAMPLES / "digits/model.onnx", SAMPLES / "digits/batches.npz"
OPTIONS = ["--optimizer", "adamw", "--lr", "0.01", "--weight-decay", "0.1", "--threads", "2"]


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def tensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    types = {"F32": np.float32, "I64": np.int64}
    return {n: np.frombuffer(data[e["data_offsets"][0] : e["data_offsets"][1]], types[e["dtype"]]).reshape(e["shape"]) for n, e in header.items() if n != "__metadata__"}


def fetched(model, data, names, folder):
    """What `stepscope run` computes of these outputs."""
    run("run", model, "--data", data, "--threads", "2", *[a for i, name in enumerate(names) for a in ("--fetch", f"{name}={folder / f'{i}.npy'}")])
    return {name: np.load(folder / f"{i}.npy") for i, name in enumerate(names)}


def near(a, b, what, tolerance=2e-5):
    assert a.shape == b.shape, f"{what}: {a.shape} and {b.shape}"
    worst = np.abs(a - b).max() if a.size else 0
    assert worst <= tolerance * max(1.0, np.abs(b).max()), f"{what}: off by {worst}"


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    out = folder / "artifacts"
    told = run("artifacts", MODEL, "--data", DATA, *OPTIONS, "-o", out)
    for name in ("training.onnx", "evaluation.onnx", "optimizer.onnx", "checkpoint.safetensors", "artifacts.json"):
        assert (out / name).is_file() and name in told, name
    said = json.loads((out / "artifacts.json").read_text())
    trained = [p["name"] for p in said["parameters"] if p["trained"]]
    assert len(trained) > 3 and f"{len(trained)} trained parameters" in told

    run("train", MODEL, "--data", DATA, *OPTIONS, "--steps", "1", "--dump-grads", folder / "grads", "--dump-params", folder / "params")
    gradients, after = tensors(folder / "grads"), tensors(folder / "params")

    with np.load(DATA) as batches:
        first = {name: batches[name][0] for name in batches.files}
    np.savez(folder / "first.npz", **first)
    names = [said["loss"], *(f"{name}_grad" for name in trained)]
    assert names == [value["name"] for value in said["training"]["outputs"]], said["training"]["outputs"]
    got = fetched(out / "training.onnx", folder / "first.npz", names, folder)
    for name in trained:
        near(got[f"{name}_grad"], gradients[name], f"gradient of {name}")

    evaluated = fetched(out / "evaluation.onnx", folder / "first.npz", [said["loss"]], folder)[said["loss"]]
    lines = [json.loads(line) for line in run("evaluate", MODEL, "--data", DATA, "--batches", "1", "--json").splitlines() if line.startswith("{")]
    near(evaluated.astype(np.float64), np.float64(next(e["loss"] for e in lines if e["event"] == "evaluation")), "evaluation")

    start = tensors(out / "checkpoint.safetensors")
    inputs = {value["name"] for value in said["optimizer"]["inputs"]}
    arrays = {name: start[name] for name in inputs & set(start)}
    arrays.update({f"{name}_grad": gradients[name] for name in trained})
    arrays["learning_rate"], arrays["update"] = np.float32(0.01), np.int64(1)
    assert set(arrays) == inputs, inputs ^ set(arrays)
    np.savez(folder / "update.npz", **arrays)
    updates = said["optimizer"]["updates"]
    assert sorted(u["state"] for u in updates if u["parameter"]) == sorted(trained)
    assert len(updates) == 3 * len(trained)  # and two moments of each
    got = fetched(out / "optimizer.onnx", folder / "update.npz", [u["next"] for u in updates], folder)
    for update in updates:
        if update["parameter"]:
            near(got[update["next"]], after[update["state"]], f"{update['state']} after the update")
            assert np.abs(after[update["state"]] - start[update["state"]]).max() > 0

    nominal = folder / "nominal"
    told = run("artifacts", MODEL, "--data", DATA, *OPTIONS, "-o", nominal, "--nominal")
    assert not (nominal / "checkpoint.safetensors").exists()
    assert (nominal / "training.onnx").stat().st_size < (out / "training.onnx").stat().st_size
    assert "error" in run("run", nominal / "training.onnx", "--data", folder / "first.npz", code=1)
    run("run", nominal / "training.onnx", "--data", folder / "first.npz", "--missing-weights", "random")

    assert "-o" in run("artifacts", MODEL, code=2)
    (folder / "file").write_text("")
    assert "file" in run("artifacts", MODEL, "--data", DATA, "-o", folder / "file", code=1)
    rows = [json.loads(line) for line in run("artifacts", MODEL, "--data", DATA, *OPTIONS, "-o", out, "--json").splitlines() if line.startswith("{")]
    assert [pathlib.Path(r["path"]).name for r in rows if r["event"] == "artifact"][-1] == "artifacts.json"
    assert rows[-1]["event"] == "done"
print("ok")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twenty functions end in values or in errors that name what was found: misbehaving.py, through `stepscope train --plugin`.

    test_host.py STEPSCOPE PLUGIN [CASE…]

Exit code 77 where this Python has no torch or no onnx.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import torch
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}; needs torch and onnx")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "torch"))
from stepscope_capture.safetensors import load_safetensors  # noqa: E402

W = np.random.RandomState(0).randn(2, 5).astype(np.float32)
X = [{"tensor": 0}]
FLOAT, INT64 = 1, 7


def call(op, name, arguments=X, inputs=("w",), results=((FLOAT, (2, 5)),), file=str(HERE / "misbehaving.py"), captured=None):
    """`captured`: extents of the one input when it was captured, where they count."""
    names = ["y"] + [f"y{i}" for i in range(1, len(results))]
    more = {"file": file} if op == "Function" else {}
    if captured:
        more.update(input_ranks=[len(captured)], input_shapes=list(captured))
    return helper.make_node(
        op, list(inputs), names, domain="stepscope.python", call=name, arguments=json.dumps(arguments), types=[kind for kind, _ in results],
        ranks=[len(shape) for _, shape in results], shapes=[e for _, shape in results for e in shape], **more,
    )  # fmt: skip


def function(name, *arguments, **more):
    return call("Function", name, *arguments, **more)


# name: (node, factor between the gradient of the sum of the result and w, or an array; or words of the error)
GOOD = {
    "plain": (function("Plain"), 3 * W),
    "seeded": (function("Seeded"), np.full_like(W, 1)),
    "numbers": (function("WithNumbers", [{"tensor": 0}, {"value": 2.5}, {"value": "twice"}, {"value": [True, None]}]), np.full_like(W, 2.5)),
    "two_results": (function("TwoResults", results=((FLOAT, (2, 5)), (INT64, (2,)))), np.full_like(W, 5)),
    "two_arguments": (function("TwoArguments", [{"tensor": 0}, {"tensor": 1}], inputs=("w", "w")), 2 * W),
    "no_gradient": (function("NoGradient"), 0 * W),
    "dirty": (function("Dirty"), np.full_like(W, 2)),
    "not_materialized": (function("NotMaterialized", results=((FLOAT, (2, 5)), (FLOAT, (2, 5)))), np.full_like(W, 1)),
    "alias": (function("Alias"), np.full_like(W, 1)),
    "prints": (function("Prints"), 3 * W),
    "leaks": (function("Leaks"), 3 * W),
    "operator": (call("Aten", "aten::atan.default"), 1 / (1 + W * W)),
    "same_extents": (function("WithNumPy", captured=(2, 5)), 3 * W),
    "other_extents": (function("Plain", captured=(7, 5), results=((FLOAT, (7, 5)),)), 3 * W),
    "operator_of_other_extents": (call("Aten", "aten::atan.default", captured=(7, 5), results=((FLOAT, (7, 5)),)), 1 / (1 + W * W)),
    "random_operator": (call("Aten", "aten::dropout.default", [{"tensor": 0}, {"value": 0.5}, {"value": True}]), None),
}
BAD = {
    "raises": (function("Raises"), "Raises: ValueError: this cannot be computed ({here}/misbehaving.py:"),
    "raises_backward": (function("RaisesBackward"), "RaisesBackward: KeyError: 'slope' ({here}/misbehaving.py:"),
    "raises_unspeakable": (function("RaisesUnspeakable"), "RaisesUnspeakable: Strange: line one"),
    "wrong_shape": (function("WrongShape"), "WrongShape: ValueError: result 0 is [2, 4] float32; expected [2, 5] float32"),
    "wrong_type": (function("WrongType"), "WrongType: ValueError: result 0 is [2, 5] float64; expected [2, 5] float32"),
    "no_tensor": (function("NoTensor"), "NoTensor: TypeError: result 0 is a int; expected a tensor"),
    "wrong_gradient": (function("WrongGradient"), "WrongGradient: RuntimeError: Function WrongGradientBackward returned an invalid gradient"),
    "slow": (function("Slow"), "took longer than 3 s and was ended"),
    "killed": (function("Killed"), "was ended by signal 9"),
    "exits": (function("Exits"), "ended with code 3"),
    "not_there": (function("Nowhere"), "function 'Nowhere': not in {here}/misbehaving.py; expected an autograd.Function"),
    "no_function": (function("NoFunction"), "function 'NoFunction': not in"),
    "no_file": (function("Plain", file="/nowhere/f.py"), "file '/nowhere/f.py': not found"),
    "no_operator": (call("Aten", "aten::nonsense.default"), "operator 'aten::nonsense.default': torch"),
    "other_code": (call("Aten", "os::system.default"), "operator 'os::system.default': not one that this host runs"),
    "other_extents_numpy": (
        function("WithNumPy", captured=(7, 5), results=((FLOAT, (7, 5)),)),
        "WithNumPy: its inputs are [2, 5]; expected those of the capture, [7, 5] with results [7, 5], or one that runs on meta tensors: TypeError:",
    ),
    "other_rank": (function("OtherRank", captured=(7, 5), results=((FLOAT, (7, 5)),)), "OtherRank: its inputs are [2, 5]; expected those of the capture, [7, 5] with results [7, 5], or one that runs on meta tensors: result 0 is [10]"),
    "few_results": (call("Aten", "aten::atan.default", results=((FLOAT, (2, 5)), (FLOAT, (2, 5)))), "1 results; expected 2"),
}


def save(node, path):
    nodes = [node, helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("loss", FLOAT, [])], [numpy_helper.from_array(W, "w")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("stepscope.python", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def check(stepscope, plugin, name, folder, python=sys.executable):
    node, expected = {**GOOD, **BAD}[name]
    save(node, folder / "model.onnx")
    command = [stepscope, "train", str(folder / "model.onnx"), "--plugin", plugin, "--steps", "3", "--lr", "0", "--optimizer", "sgd", "--json", "--dump-grads", str(folder / "g.safetensors")]
    environment = {**os.environ, "STEPSCOPE_PYTHON": python, "STEPSCOPE_PYTHON_TIMEOUT": "3" if name == "slow" else "120"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    if name in BAD:
        words = expected.format(here=HERE)
        assert done.returncode == 1 and words in done.stdout + done.stderr, f"exit code {done.returncode}: {(done.stdout + done.stderr)[-600:]}; expected '{words}'"
        return
    assert done.returncode == 0, done.stderr[-600:]
    losses = [event["loss"] for event in map(json.loads, done.stdout.splitlines()) if event.get("event") == "step"]
    assert len(losses) == 3, f"{losses}"
    gradient = load_safetensors(folder / "g.safetensors")["w"]
    if expected is None:  # the mask of the backward phase is that of the forward phase: the result is linear in w
        assert set(np.unique(gradient)) == {0.0, 2.0} and abs(float((gradient * W).sum()) - losses[-1]) < 1e-5, f"{gradient}, {losses}"
        assert len(set(losses)) > 1, f"the same numbers in every step: {losses}"
    else:
        assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-7), f"gradient {gradient}; expected {expected}"


def without_python(stepscope, plugin, folder):
    """The model opens and says what it needs."""
    save(GOOD["operator"][0], folder / "model.onnx")
    shown = subprocess.run([stepscope, "inspect", str(folder / "model.onnx")], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and "stepscope.python.Aten" in shown.stdout, shown.stdout + shown.stderr
    done = subprocess.run([stepscope, "train", str(folder / "model.onnx"), "--steps", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--plugin python_host" in done.stderr, done.stderr
    for python, words in (("/nowhere/python", "'/nowhere/python' cannot be started"), ("/bin/false", "ended with code 1")):
        command = [stepscope, "train", str(folder / "model.onnx"), "--plugin", plugin, "--steps", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "STEPSCOPE_PYTHON": python})
        assert done.returncode == 1 and words in done.stderr, done.stderr


def leak_list(stepscope, plugin, folder):
    """Contexts end with their step; those that a function keeps are listed on demand."""
    for name, words in (("plain", "contexts that outlive their step: none"), ("leaks", "of Leaks (")):
        save(GOOD[name][0], folder / "model.onnx")
        command = [stepscope, "train", str(folder / "model.onnx"), "--plugin", plugin, "--steps", "3"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "STEPSCOPE_PYTHON": sys.executable, "STEPSCOPE_PYTHON_LEAKS": "1"})
        assert done.returncode == 0 and words in done.stderr, done.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    stepscope, plugin = sys.argv[1:3]
    cases = {name: lambda folder, name=name: check(stepscope, plugin, name, folder) for name in {**GOOD, **BAD}}
    cases["leak_list"] = lambda folder: leak_list(stepscope, plugin, folder)
    cases["without_python"] = lambda folder: without_python(stepscope, plugin, folder)
    failed, wished = 0, sys.argv[3:] or list(cases)
    for name in wished:
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases[name](pathlib.Path(folder))
                print(f"ok    {name}", flush=True)
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(wished) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

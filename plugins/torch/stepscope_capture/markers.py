# SPDX-License-Identifier: Apache-2.0
"""What ONNX has no word for, as nodes of domain "stepscope" in the exported graph.

    StopGradient(x)             x; no gradient goes back
    GradientOf(y)               stands for d loss / d y in the nodes that compute a gradient from it
    CustomGradient(y, g, x, d)  y; in the backward phase d loss / d y goes back to y, and to x what d is with d loss / d y in place of g

and nodes of operators that exporters lack (natives.py).
"""

import contextlib
import json

import torch
from torch.utils._python_dispatch import _disable_current_modes

_LIBRARY = None
_COUNTS = set()  # of results, for which there is an operator "hosted_N"
_HOSTED = []  # (node, attributes, results, function that computes them), by the number that the traced graph has
VALUES = {}  # what PyTorch computes for a node of natives.py, by its name; called with the inputs and the attributes of the node
DIFFERENTIABLE = {}  # likewise, for a pass whose gradients are written out, where the value has none that can be


def _operators():
    """The operators of PyTorch that the TorchScript exporter writes as these nodes."""
    global _LIBRARY
    if _LIBRARY is None:
        _LIBRARY = torch.library.Library("stepscope", "DEF")
        _LIBRARY.define("gradient_of(Tensor y) -> Tensor")
        _LIBRARY.define("custom_gradient(Tensor y, Tensor g, Tensor x, Tensor d) -> Tensor")
        _LIBRARY.define("stop(Tensor y) -> Tensor")
        _LIBRARY.impl("stop", torch.clone, "CompositeExplicitAutograd")
        _LIBRARY.define("native(Tensor[] inputs, str op, str attributes) -> Tensor")
        _LIBRARY.impl("native", lambda inputs, op, attributes: VALUES[op](*inputs, **json.loads(attributes)).contiguous(), "CompositeExplicitAutograd")
        _LIBRARY.impl("gradient_of", torch.ones_like, "CompositeExplicitAutograd")
        _LIBRARY.impl("custom_gradient", lambda y, g, x, d: y.clone(), "CompositeExplicitAutograd")
    return torch.ops.stepscope


def symbolics():
    """For torch.onnx.register_custom_op_symbolic."""

    def node(name):
        return lambda graph, y, *others: graph.op(f"stepscope::{name}", y, *others).setType(y.type())

    def native(graph, inputs, op, attributes):
        named = {f"{name}_{'i' if isinstance(value, int) else 's'}": value for name, value in json.loads(attributes.node().s("value")).items()}
        made = graph.op(f"stepscope::{op.node().s('value')}", *inputs.node().inputs(), **named)
        return made.setType(next(graph.original_node.outputs()).type())

    def hosted(graph, inputs, key):
        name, attributes, kinds, _ = _HOSTED[int(key.node().s("value"))]
        named = {f"{k}_{'s' if isinstance(v, str) else 'i'}": v for k, v in attributes.items() if v != []}
        made = graph.op(name, *inputs.node().inputs(), outputs=len(kinds), **named)
        for value, output in zip(made if isinstance(made, tuple) else (made,), graph.original_node.outputs()):
            value.setType(output.type())
        return made

    _operators()
    several = {f"stepscope::hosted_{count}": hosted for count in _COUNTS}
    return {**several, "stepscope::native": native, "stepscope::stop": node("StopGradient"), "stepscope::gradient_of": node("GradientOf"), "stepscope::custom_gradient": node("CustomGradient"), "aten::detach": node("StopGradient")}


def _hosted_operator(count):
    """The operator of PyTorch whose `count` results a function computes."""
    name = f"hosted_{count}"
    if count not in _COUNTS:
        from torch.onnx import register_custom_op_symbolic

        _operators()
        _LIBRARY.define(f"{name}(Tensor[] inputs, str key) -> ({', '.join(['Tensor'] * count)})")
        _LIBRARY.impl(name, lambda inputs, key: (lambda found: found[0] if count == 1 else tuple(found))(_HOSTED[int(key)][3](*inputs)), "CompositeExplicitAutograd")
        _COUNTS.add(count)
        register_custom_op_symbolic(f"stepscope::{name}", symbolics()[f"stepscope::{name}"], 9)
    return getattr(torch.ops.stepscope, name)


@contextlib.contextmanager
def apart():
    """What is computed in it is not part of the pass that is traced."""
    tracing = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            yield
    finally:
        torch._C._set_tracing_state(tracing)


class Markers:
    """Makes the nodes while a forward pass is traced for an exporter."""

    def __init__(self, exporter, writes_gradients=False):
        self.symbolic, self.writes_gradients = exporter == "dynamo", writes_gradients
        self.kept = not self.symbolic or hasattr(torch.onnx, "ops")  # an older dynamo exporter has no such nodes

    def _node(self, name, y, *others):
        return torch.onnx.ops.symbolic(f"stepscope::{name}", (y, *others), dtype=y.dtype, shape=y.shape, version=1)

    def native(self, op, inputs, shape, **attributes):
        """A node `op` of what comes in; its result has the type of the first input. Where gradients are written out: what PyTorch differentiates."""
        if self.writes_gradients:
            with torch._C.DisableTorchFunction():  # the mode that called would make a node of it again
                return {**VALUES, **DIFFERENTIABLE}[op](*inputs, **attributes)
        if self.symbolic:
            return torch.onnx.ops.symbolic(f"stepscope::{op}", inputs, attributes, dtype=inputs[0].dtype, shape=shape, version=1)
        return _operators().native(list(inputs), op, json.dumps(attributes))

    def stop(self, x):
        if self.writes_gradients:
            return _operators().stop(x.detach())
        if not self.symbolic or not self.kept:
            return x.detach()
        with torch.no_grad():
            return self._node("StopGradient", x)

    def gradient_of(self, y):
        with torch.no_grad():
            return self._node("GradientOf", y) if self.symbolic else _operators().gradient_of(y)

    def custom_gradient(self, y, g, x, d):
        return self._node("CustomGradient", y, g, x, d) if self.symbolic else _operators().custom_gradient(y, g, x, d)

    def hosted(self, name, inputs, attributes, results, compute):
        """A node of the Python host (domain::op). `results`: (type, extents) of each; `compute`: takes the inputs, returns them."""
        if self.symbolic:
            kinds, shapes = [kind for kind, _ in results], [shape for _, shape in results]
            return torch.onnx.ops.symbolic_multi_out(name, inputs, {k: v for k, v in attributes.items() if v != []}, dtypes=kinds, shapes=shapes, version=1)
        _HOSTED.append((name, attributes, results, compute))
        found = _hosted_operator(len(results))(list(inputs), str(len(_HOSTED) - 1))
        return (found,) if isinstance(found, torch.Tensor) else found

# SPDX-License-Identifier: Apache-2.0
"""A module as an ONNX file without a loss: what it computes of its arguments, as it stands (mode of every layer, frozen or not).

The file belongs to one signature of arguments: shapes, types, what is no tensor. Parameters and buffers are initializers "model.<name>".
"""

import copy
import dataclasses
import pathlib

import onnx
import torch
from torch import nn
from torch.utils import _pytree as pytree

from stepscope_capture.exported_file import DRAWS, count_axes, mark_detached, name_by_model, restore, train_batch_norms, write_state
from stepscope_capture.exporters import exported
from stepscope_capture.data_dependence import DataDependence
from stepscope_capture.functions import seen_functions, untouched_functions
from stepscope_capture.meaning import changed_state, state_of
from stepscope_capture.natives import write_public
from stepscope_capture.replaced import both_branches

PREFIX = "model."
_LARGEST_PROTO = 2**31 - 2**24  # bytes; above this the weights go into a file beside the model


_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


class Refused(Exception):
    """Why a module cannot be taken as it is."""


@dataclasses.dataclass
class FunctionFile:
    path: pathlib.Path
    inputs: list  # (name, position among the tensors of the arguments); an exporter drops what no output depends on
    outputs: list  # names of the tensors of the result, in order
    floats: list  # those of them that can have a gradient
    result: object  # pytree of the result
    constants: dict  # position → what of the result is no tensor
    initializers: set
    draws: bool  # whether it draws random numbers
    changed: list  # names of state that the forward pass changes, besides statistics of a batch normalization
    expected: list  # what PyTorch returned for these arguments, tensors in the order of `outputs`
    after: dict  # name → what became of `changed`
    gradients: dict  # initializer of a trained parameter → its gradient where arriving() arrives at the results


class WithOutputs(nn.Module):
    """Takes the tensors of the arguments as one flat list, and returns those of the result. Hooks of the module itself are its caller's."""

    def __init__(self, model, spec, constants, count):
        super().__init__()
        self.model, self._loss_fn = model, None
        self._spec, self._constants, self._count = spec, constants, count
        self.result = None  # (pytree, constants) of the newest call

    def forward(self, *tensors):
        tensors = iter(tensors)
        leaves = [self._constants[i] if i in self._constants else next(tensors) for i in range(self._count)]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        found, spec = pytree.tree_flatten(self.model.forward(*args, **kwargs))
        constants = {i: leaf for i, leaf in enumerate(found) if not isinstance(leaf, torch.Tensor)}
        for leaf in constants.values():
            if leaf is not None and not isinstance(leaf, (bool, int, float, str)):
                raise Refused(f"its result holds a {type(leaf).__name__}; expected tensors, numbers, texts and containers of them")
        self.result = (spec, constants)
        return tuple(leaf for leaf in found if isinstance(leaf, torch.Tensor))


def _copied(module):
    """A deep copy without the hooks of parameters: these run where the gradients arrive."""
    made = [t for m in module.modules() for t in vars(m).values() if isinstance(t, torch.Tensor) and not t.is_leaf]
    return copy.deepcopy(module, {id(t): t.detach().clone() for t in made})


def arriving(result):
    """The gradient that checks let arrive at a result: another number at each element."""
    return torch.cos(torch.arange(result.numel(), dtype=torch.float32) * 0.7 + 0.3).reshape(result.shape).to(result.dtype)


def _gradients(module, results):
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    reached = [t for t in results if t.requires_grad]
    if not trained or not reached:
        return {}
    try:
        found = torch.autograd.grad(reached, list(trained.values()), [arriving(t) for t in reached], allow_unused=True)
    except RuntimeError as error:
        raise Refused(f"PyTorch has no gradient of it: {str(error).splitlines()[0]}") from error
    return {name: gradient for name, gradient in zip(trained, found) if gradient is not None}


def _refuse_reads(module, row, changed):
    """Raises Refused where Python sees a number that the next call may have another of: the file would keep the branch of this one."""
    watched = _copied(module)
    decide = [*row, *(p for p in watched.parameters() if p.requires_grad), *(state_of(watched)[name] for name in changed)]
    with both_branches(), DataDependence(decide) as mode, untouched_functions(mode):
        watched(*row)
    if mode.reads_of_state:
        raise Refused(f"{mode.reads_of_state[0]}: Python reads a number that arguments, parameters or a state decide (an if, item(), an assert); expected none, since the engine would keep that of one call")


def write_function(model, leaves, spec, folder, exporter="torchscript", opset=17):
    """Writes `folder`/model.onnx of model(*args, **kwargs), arguments flattened to `leaves` by `spec`. Raises Refused, or what an exporter raises."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    constants = {i: leaf for i, leaf in enumerate(leaves) if not isinstance(leaf, torch.Tensor)}
    names = [f"input_{i}" for i in range(len(tensors))]
    row = tuple(t.detach().clone() for t in tensors)
    random = torch.get_rng_state()
    try:
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):
            module = _copied(WithOutputs(model, spec, constants, len(leaves)))
            state = {name: tensor.detach().clone() for name, tensor in module.state_dict(keep_vars=False).items()}
            probe = _copied(module)
            results = probe(*row)
            result, of_result = probe.result
            expected, after = [t.detach().clone() for t in results], state_of(probe)
            gradients = _gradients(probe, results)
            outputs = [f"output_{i}" for i in range(result.num_leaves - len(of_result))]
            with seen_functions() as functions:
                changed, _ = changed_state(module, row)
            functions.sources = None
            _refuse_reads(module, row, changed)
            path = pathlib.Path(folder) / "model.onnx"
            exported(module, changed, functions, row, names, path, exporter, max(opset, 18) if exporter == "dynamo" else opset, outputs)
    finally:
        torch.set_rng_state(random)
    proto = onnx.load(str(path))
    mark_detached(proto)
    count_axes(proto)
    write_public(proto)
    name_by_model(proto, module)
    restore(proto, state)
    write_state(proto, state, changed, outputs)
    train_batch_norms(proto, module)
    large = proto.ByteSize() > _LARGEST_PROTO
    onnx.save(proto, str(path), save_as_external_data=large, **({"location": "model.onnx.data"} if large else {}))
    present = {value.name for value in proto.graph.input}
    inputs = [(name, i) for i, name in enumerate(names) if name in present]
    floats = [value.name for value in proto.graph.output if value.type.tensor_type.elem_type in _FLOATS]
    draws = any(node.op_type in DRAWS for node in (*proto.graph.node, *(n for function in proto.functions for n in function.node)))
    return FunctionFile(path, inputs, outputs, floats, result, of_result, {t.name for t in proto.graph.initializer}, draws, changed, expected, {name: after[name].detach() for name in changed}, gradients)

# SPDX-License-Identifier: Apache-2.0
"""A module as an ONNX file without a loss: what it computes of its arguments, as it stands (mode of every layer, frozen or not).

The file belongs to one signature of arguments: shapes, types, what is no tensor. Parameters and buffers are initializers "model.<name>".
"""

import contextlib
import dataclasses
import pathlib
from unittest import mock

import onnx
import torch
from torch import nn
from torch.utils import _pytree as pytree

from stepscope_capture.exported_file import DRAWS, mark_detached, name_by_model, put_numbers_right, restore, train_batch_norms, write_state
from stepscope_capture.exporters import exported
from stepscope_capture.data_dependence import DataDependence, attributes_of, changed_attributes
from stepscope_capture.function_source import Sources
from stepscope_capture.golden import drops_inside, dropout_off
from stepscope_capture.functions import seen_functions, untouched_functions
from stepscope_capture.meaning import changed_state, deep_copied, state_of
from stepscope_capture.natives import write_public
from stepscope_capture.replaced import both_branches

PREFIX = "model."
_LARGEST_PROTO = 2**31 - 2**24  # bytes; above this the weights go into a file beside the model


_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


class Refused(Exception):
    """Why a module cannot be taken as it is. `settles`: a pass by PyTorch may make it one that can be taken."""

    settles = False


class Unsettled(Refused):
    settles = True


@dataclasses.dataclass
class Expected:
    """What PyTorch computes of one call, dropout switched off, which leaves the module as it was."""

    result: object  # pytree of the result
    constants: dict  # position → what of the result is no tensor
    tensors: list  # of the result, in order
    after: dict  # state by initializer name, as it is then
    gradients: dict  # initializer of a trained parameter → its gradient where arriving() arrives at the results


@dataclasses.dataclass
class FunctionFile:
    path: pathlib.Path
    inputs: list  # (name, position among the tensors of the arguments); an exporter drops what no output depends on
    outputs: list  # names of the tensors of the result, in order
    floats: list  # those of them that can have a gradient
    expected: Expected
    initializers: set
    draws: bool  # whether it draws random numbers
    check: object  # path of a file that computes what `expected` has: where it draws, without dropout; None where it draws otherwise
    changed: list  # names of state that the forward pass changes, besides statistics of a batch normalization
    numbers: list  # lines where Python makes numbers of extents that have symbols


def _flat(result):
    """Leaves and structure; dataclasses are containers, as named tuples are."""
    found, spec = pytree.tree_flatten(result)
    unknown = {type(leaf) for leaf in found if dataclasses.is_dataclass(leaf)}
    for kind in unknown:
        names = [field.name for field in dataclasses.fields(kind) if field.init]
        pytree.register_pytree_node(kind, lambda one, names=names: ([getattr(one, n) for n in names], None), lambda parts, _, kind=kind, names=names: kind(**dict(zip(names, parts))))
    return _flat(result) if unknown else (found, spec)


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
        found, spec = _flat(self.model.forward(*args, **kwargs))
        constants = {i: leaf for i, leaf in enumerate(found) if not isinstance(leaf, torch.Tensor)}
        for leaf in constants.values():
            if leaf is not None and not isinstance(leaf, (bool, int, float, str)):
                raise Refused(f"its result holds a {type(leaf).__name__}; expected tensors, numbers, texts and containers of them")
        self.result = (spec, constants)
        # A result has a name of its own in the file: what comes in, a parameter, and what is returned already are copied.
        named, results = {id(t) for t in (*leaves, *self.parameters(), *self.buffers())}, []
        for leaf in found:
            if isinstance(leaf, torch.Tensor):
                results.append(leaf.clone() if id(leaf) in named else leaf)
                named.add(id(leaf))
        return tuple(results)


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
    return {name: gradient.to_dense() if gradient.is_sparse else gradient for name, gradient in zip(trained, found) if gradient is not None}


def _refuse_reads(module, row, changed):
    """Raises Refused where Python sees a number that the next call may have another of: the file would keep the branch of this one."""
    watched = deep_copied(module)
    decide = [*row, *(p for p in watched.parameters() if p.requires_grad), *(state_of(watched)[name] for name in changed)]
    with both_branches(), DataDependence(decide) as mode, untouched_functions(mode):
        watched(*row)
    if mode.nested:
        raise Refused(f"{mode.nested[0]}{_of(mode, mode.nested[0])}: a nested tensor, which the engine has no type for; expected tensors that are padded, with lengths or a mask")
    if mode.reads_of_state:
        place = mode.reads_of_state[0]
        function = mode.by.get(place, ("", ""))[1]
        how = f"{function} reads" if function else "Python reads"
        raise Unsettled(f"{place}{_of(mode, place)}: {how} a number that arguments, parameters or a state decide{'' if function else ' (an if, item(), an assert)'}; expected none, since the engine would keep that of one call")


def _of(mode, place):
    owner = mode.by.get(place, ("", ""))[0]
    return f" ({owner})" if owner else ""


def _refuse_complex(model):
    for name, t in (*model.named_parameters(), *model.named_buffers()):
        if t.is_complex():
            raise Refused(f"'{name}' is {str(t.dtype).removeprefix('torch.')}, which the engine has no type for; expected real tensors (torch.view_as_real)")


def _inputs(leaves):
    """(what is no tensor, by position; the tensors as a row)"""
    row = tuple(leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor))
    return {i: leaf for i, leaf in enumerate(leaves) if not isinstance(leaf, torch.Tensor)}, row


@contextlib.contextmanager
def _undisturbed():
    random = torch.get_rng_state()
    try:
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_rng_state(random)


def _refuse_seed(_):
    raise Refused("its forward() calls torch.manual_seed, and the engine draws anew in each call; expected a generator of numbers outside of it")


def _expected(module, row):
    probe = deep_copied(module)
    for layer in probe.modules():
        if drops_inside(layer):
            layer.dropout = 0.0
    before = attributes_of(probe.model, contents=False)
    with dropout_off(), mock.patch.object(torch, "manual_seed", _refuse_seed):
        results = probe(*row)
    after = attributes_of(probe.model, contents=False)
    if left := [name for name in after if name not in before] + changed_attributes(before, after):
        raise Unsettled(f"its forward() changes attribute '{left[0]}', which is no parameter and no buffer, and the engine runs no Python; expected a result of forward(), or register_buffer")
    result, constants = probe.result
    state = {name: t.detach() for name, t in state_of(probe).items()}
    return Expected(result, constants, [t.detach().clone() for t in results], state, _gradients(probe, results))


def expected_of(model, leaves, spec):
    """Of the same module and other arguments. Raises Refused."""
    constants, row = _inputs(leaves)
    with _undisturbed():
        return _expected(WithOutputs(model, spec, constants, len(leaves)), row)


def autocast_types(model, leaves, spec, dtype):
    """Types of the tensors of the result under torch.autocast("cpu", dtype), by a pass of PyTorch that leaves the module as it was."""
    constants, row = _inputs(leaves)
    random = torch.get_rng_state()
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype):
            return [t.dtype for t in deep_copied(WithOutputs(model, spec, constants, len(leaves)))(*row)]
    finally:
        torch.set_rng_state(random)


def in_float64(model, leaves, spec):
    """The same of the module in float64, to tell rounding from another meaning; None where the module refuses that type."""
    constants, row = _inputs(leaves)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _undisturbed():
            module = deep_copied(WithOutputs(model, spec, constants, len(leaves))).double()
            return _expected(module, tuple(t.double() if t.is_floating_point() else t for t in row))
    except Exception:  # noqa: BLE001  whatever a model does with a type that it does not expect
        return None
    finally:
        torch.set_default_dtype(default)


def _write_check(proto, path):
    """Writes the same file with Dropout that hands its input on. Returns whether there is one."""
    nodes = [*proto.graph.node, *(n for function in proto.functions for n in function.node)]
    drawing = [node for node in nodes if node.op_type in DRAWS]
    read = {name for node in nodes for name in node.input}
    if any(node.op_type != "Dropout" or len(node.output) > 1 and node.output[1] in read for node in drawing):
        return False
    for node in drawing:
        node.op_type = "Identity"
        del node.input[1:], node.output[1:], node.attribute[:]
    _save(proto, path)
    return True


def _save(proto, path):
    large = proto.ByteSize() > _LARGEST_PROTO
    onnx.save(proto, str(path), save_as_external_data=large, **({"location": f"{path.name}.data"} if large else {}))


def write_function(model, leaves, spec, folder, exporter="torchscript", opset=17, axes=None):
    """Writes `folder`/model.onnx of model(*args, **kwargs), arguments flattened to `leaves` by `spec`. `axes`: {number of a tensor among them: {axis: symbol}}
    of extents that other calls have otherwise (exporter torchscript). Raises Refused, or what an exporter raises."""
    _refuse_complex(model)
    constants, row = _inputs(leaves)
    names = [f"input_{i}" for i in range(len(row))]
    named_axes = {f"input_{i}": dict(symbols) for i, symbols in (axes or {}).items()}
    with _undisturbed():
        module = deep_copied(WithOutputs(model, spec, constants, len(leaves)))
        state = {name: tensor.detach().clone() for name, tensor in module.state_dict(keep_vars=False).items()}
        expected = _expected(module, row)
        outputs = [f"output_{i}" for i in range(len(expected.tensors))]
        with seen_functions() as functions:
            changed, _ = changed_state(module, row)
        functions.sources = Sources(pathlib.Path(folder).resolve())
        _refuse_reads(module, row, changed)
        path = pathlib.Path(folder) / "model.onnx"
        traced = exported(module, changed, functions, row, names, path, exporter, max(opset, 18) if exporter == "dynamo" else opset, outputs, named_axes)
    if traced.notes:
        raise Refused(traced.notes[0])
    functions.sources.write()
    proto = onnx.load(str(path))
    if named_axes:  # extents of what is computed are those of the call that was traced
        del proto.graph.value_info[:]
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
    mark_detached(proto)
    put_numbers_right(proto)
    write_public(proto)
    name_by_model(proto, module)
    restore(proto, state)
    write_state(proto, state, changed, outputs)
    train_batch_norms(proto, module)
    _save(proto, path)
    present = {value.name for value in proto.graph.input}
    inputs = [(name, i) for i, name in enumerate(names) if name in present]
    floats = [value.name for value in proto.graph.output if value.type.tensor_type.elem_type in _FLOATS]
    draws = any(node.op_type in DRAWS for node in (*proto.graph.node, *(n for function in proto.functions for n in function.node)))
    initializers = {t.name for t in proto.graph.initializer}
    check = path.with_name("check.onnx") if draws else path
    if draws and not _write_check(proto, check):
        check = None
    return FunctionFile(path, inputs, outputs, floats, expected, initializers, draws, check, changed, list(traced.numbers_of_extents))

# SPDX-License-Identifier: Apache-2.0
"""What is put right in the exported file, and what it has of parameters and buffers."""

import re

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from stepscope_capture.batches import LOSS
from stepscope_capture.safetensors import array_of

DRAWS = ("Dropout", "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")  # operators that draw random numbers


def mark_detached(proto):
    """Turns the Identity that the dynamo exporter writes for detach() into a node that stops the gradient."""
    found = False
    for node in proto.graph.node:
        origin = next((p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.fx_node"), "")
        if node.op_type == "Identity" and "target=torch.ops.aten.detach." in origin:
            node.op_type, node.domain, found = "StopGradient", "stepscope", True
    if found:
        proto.opset_import.append(onnx.helper.make_opsetid("stepscope", 1))


def put_numbers_right(proto):
    """The TorchScript exporter hands negative axes of permute() on, where ONNX counts from 0; and where types meet it casts to bfloat16 by PyTorch's
    number of it, which is that of a complex type in ONNX."""
    for node in proto.graph.node:
        for attribute in node.attribute if node.op_type == "Cast" else ():
            if attribute.name == "to" and attribute.i == onnx.TensorProto.COMPLEX128:
                attribute.i = onnx.TensorProto.BFLOAT16
        for attribute in node.attribute if node.op_type == "Transpose" else ():
            if attribute.name == "perm":
                attribute.ints[:] = [axis % len(attribute.ints) for axis in attribute.ints]


def _initializer(array, name):
    return onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)  # a number keeps no axis


def write_state(proto, state, changed, results=(LOSS,)):
    """Says in the file which values are the next contents of which initializers."""
    if any(node.op_type == "CustomGradient" for node in proto.graph.node):
        del proto.graph.value_info[:]  # of the results of a Function the TorchScript exporter declares each other's shapes
    graph, made = proto.graph, {output for node in proto.graph.node for output in node.output}
    initializers = {t.name for t in graph.initializer}
    for number, name in enumerate(changed):
        output = following = f"{name}.next"
        if output not in made:  # the exporter handed an input or an initializer on under this name
            continue
        always, contents = _constant(proto, following, state), array_of(state[name])
        if always is not None and np.array_equal(always, contents):  # written in every pass with what it has
            continue
        if name not in initializers:
            graph.initializer.append(_initializer(contents, name))
        if always is not None:  # a flag that is set: the step has to compute what it writes
            is_there, following = f"{name}.is_there", f"{name}.kept"
            graph.node.append(onnx.helper.make_node("Equal", [name, output], [is_there], name=is_there))
            graph.node.append(onnx.helper.make_node("Where", [is_there, name, output], [following], name=following))
        for part, value in (("state", name), ("next", following)):
            proto.metadata_props.add(key=f"stepscope.update.{number}.{part}", value=value)
    outputs = [value for value in graph.output if value.name in results]
    del graph.output[:]
    graph.output.extend(outputs)


def _constant(proto, name, state):
    """The contents of value `name` where it is computed of constants alone, of no input and nothing of `state`; else None."""
    producer = {output: node for node in proto.graph.node for output in node.output}
    initializers, needed, constants = {t.name: t for t in proto.graph.initializer}, {}, {}
    wanted = [(name, False)]  # value, whether only its type or shape is asked for
    while wanted:
        value, outside = wanted.pop()
        if value in initializers and (outside or value not in state):
            constants[value] = initializers[value]
            continue
        node = producer.get(value)
        stops = node is not None and (node.domain, node.op_type) == ("stepscope", "StopGradient")
        if node is None or node.domain not in ("", "ai.onnx") and not stops or node.op_type in DRAWS or any(a.HasField("g") for a in node.attribute):
            return None
        if id(node) not in needed:
            needed[id(node)] = onnx.helper.make_node("Identity", node.input, node.output) if stops else node
            wanted += [(v, node.op_type == "Shape" or node.op_type == "CastLike" and i == 1) for i, v in enumerate(node.input) if v]
    nodes = [needed[id(node)] for node in proto.graph.node if id(node) in needed]
    graph = onnx.helper.make_graph(nodes, "constant", [], [onnx.ValueInfoProto(name=name)], initializer=list(constants.values()))
    try:
        return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=proto.opset_import)).run(None, {})[0]
    except Exception:  # noqa: BLE001  an operator that the evaluator of onnx lacks: the engine judges it
        return None


def written_state(path):
    """Names of the state whose next contents a file computes."""
    properties = onnx.load(str(path), load_external_data=False).metadata_props
    return {p.value for p in properties if p.key.startswith("stepscope.update.") and p.key.endswith(".state")}


def restore(proto, state):
    """Gives every initializer the value that the model had before the export ran its forward pass."""
    for initializer in proto.graph.initializer:
        tensor = state.get(initializer.name)
        if tensor is None:
            continue
        array = array_of(tensor)
        if array.shape == tuple(initializer.dims) and not np.array_equal(array, onnx.numpy_helper.to_array(initializer)):
            initializer.CopyFrom(_initializer(array, initializer.name))


def train_batch_norms(proto, module):
    """Turns BatchNormalization back into its training form where its module trains: the dynamo exporter writes the other one."""
    modules = dict(module.named_modules())
    for node in proto.graph.node:
        if node.op_type != "BatchNormalization" or len(node.input) < 5 or any(a.name == "training_mode" for a in node.attribute):
            continue
        owner = modules.get(node.input[3].rpartition(".")[0])
        if owner is None or not owner.training:
            continue
        _forget_updates(proto, node.input[3:5])
        node.attribute.append(onnx.helper.make_attribute("training_mode", 1))
        node.output.extend(f"{node.output[0]}_running_{statistic}" for statistic in ("mean", "var"))


def say_statistics(proto):
    """Running statistics are PyTorch's: of the variance of a sample, and without a batch that is still to come."""
    if any(node.op_type == "BatchNormalization" and len(node.output) > 1 for node in proto.graph.node):
        proto.metadata_props.add(key="stepscope.statistics", value="pytorch")


def _forget_updates(proto, names):
    """The exporter's own next contents of statistics, which are those of before: the training form writes them."""
    numbers = {p.key.rpartition(".")[0] for p in proto.metadata_props if p.key.endswith(".state") and p.value in names}
    left = [p for p in proto.metadata_props if p.key.rpartition(".")[0] not in numbers]
    del proto.metadata_props[:]
    proto.metadata_props.extend(left)


def name_by_model(proto, module):
    """A parameter that the loss function reads as well has the name that the model gives it."""
    present, names = {t.name for t in proto.graph.initializer}, {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    renamed = {n: known[0] for known in names.values() if known[0] not in present for n in known if n in present and n.startswith("_loss_fn.")}
    for value in (*proto.graph.initializer, *proto.graph.input):
        value.name = renamed.get(value.name, value.name)
    for node in proto.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)


def parameters_of(module, proto):
    """(initializer name, tensor) of every parameter; a tied parameter stands once, under the name that the file has."""
    initializers = {t.name for t in proto.graph.initializer}
    names = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), (tensor, []))[1].append(name)
    rows, missing = [], []
    for tensor, known in names.values():
        exported = next((name for name in known if name in initializers), None)
        if exported is not None:
            rows.append((exported, tensor))
        elif tensor.requires_grad:
            missing.append(known[0])
    if missing:
        print(f"warning: parameters that the loss does not reach: {', '.join(missing)}; not in the captured model")
    return rows


def buffers_of(proto, parameters):
    """Names of float initializers and constants that are no parameters: buffers, and tensors that forward() writes down. None of them is trained."""
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    known = {name for name, _ in parameters}
    statistics = ("running_mean", "running_var")  # the training form of BatchNormalization says what these are
    tensors = [(t.name, t) for t in proto.graph.initializer]
    tensors += [(node.output[0], a.t) for node in proto.graph.node if node.op_type == "Constant" for a in node.attribute if a.name == "value" and a.t.dims]
    return [name for name, t in tensors if t.data_type in floats and name not in known and name.rpartition(".")[2] not in statistics]


def trained_by_name(proto, parameters):
    """The option `train` for a file whose parameters look like something else (numbers, ones of a normalization that a file is written out with,
    elements that are infinite), which programs leave as they are unless they are named; None for other files."""
    trained = [(name, tensor) for name, tensor in parameters if tensor.requires_grad]
    written_out = {name for node in proto.graph.node if node.op_type in ("InstanceNormalization", "GroupNormalization") for name in node.input[1:]}
    if not any(name in written_out or not tensor.dim() or not bool(tensor.detach().isfinite().all()) for name, tensor in trained):
        return None
    return "^(" + "|".join(re.escape(name) for name, _ in trained) + ")$"

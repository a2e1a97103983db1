# SPDX-License-Identifier: Apache-2.0
"""Writes the folder that `stepscope train FOLDER` takes as it is.

    model.onnx           the model with the loss inside, as it trains: nothing folded, no initializers merged
    batches.npz          one array per graph input; the leading axis counts the batches
    capture.json         name of the loss, parameters (trained or not), export time, and with a golden the losses
    golden.safetensors   of the first batch: "grad/<parameter>", "state/<buffer>" after it, "state2/<buffer>" after the second, "output/<module>" on request (optional)
"""

import contextlib
import copy
import inspect
import json
import pathlib
import tempfile
import time
from unittest import mock

import numpy as np
import onnx
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from stepscope_capture import host_nodes
from stepscope_capture.auto import capture_auto
from stepscope_capture.complex import real_parts
from stepscope_capture.exact import exact_functions
from stepscope_capture.functions import traced_functions
from stepscope_capture.loss_function import LossFunction
from stepscope_capture.markers import Markers, symbolics as marker_symbolics
from stepscope_capture.meaning import KeepMeaning, changed_state, copied, data_dependence, hooks_of, state_of
from stepscope_capture.natives import write_public
from stepscope_capture.safetensors import save_safetensors

LOSS = "loss"
LARGE = 2**27  # elements of all parameters; from there on a step is run less often for its tolerance
LARGEST_PROTO = 2**31 - 2**24  # bytes; above this the weights go into a file beside the model


class _WithLoss(nn.Module):
    """Takes inputs and targets as one flat list and returns the loss; keywords are handed on by name."""

    def __init__(self, model, loss_fn, keywords, positional):
        super().__init__()
        self.model = model
        self._loss_fn, self._keywords, self._positional = loss_fn if isinstance(loss_fn, nn.Module) else LossFunction(loss_fn), keywords, positional

    def forward(self, *values):
        end = self._positional + len(self._keywords)
        output = self.model(*values[: self._positional], **dict(zip(self._keywords, values[self._positional : end])))
        return self._loss_fn(output, *values[end:])


class _Traced(nn.Module):
    """What the exporter sees: the loss, and the next contents of the state that forward() changes."""

    def __init__(self, module, exporter, changed):
        super().__init__()
        # Parameters and buffers keep the names that they have in `module`.
        self.model, self._loss_fn = module.model, module._loss_fn
        self._whole, self._exporter, self._changed, self.notes = [module], exporter, changed, []
        self._hooks = hooks_of(self)

    def forward(self, *values):
        mode = KeepMeaning(Markers(self._exporter), state_of(self))
        with traced_functions(mode), exact_functions(), mode:
            mode.hook_parameters(self._hooks)
            loss = self._whole[0](*values)
            after = state_of(self)
            following = [mode.next_of(after[name]) for name in self._changed]
        self.notes[:] = mode.notes
        return (loss, *following) if following else loss


def _as_tuple(value):
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(value.values()) if isinstance(value, dict) else tuple(value)


def _forward_names(model, count):
    """Names of the first `count` parameters of forward(); input_N for what arrives through *args."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in kinds]
    return [names[i] if i < len(names) else f"input_{i}" for i in range(count)]


def _signature(model, batch):
    """(names of all graph inputs, keywords of the model, number of its positional inputs) of one batch."""
    inputs, targets = batch
    keywords = list(inputs) if isinstance(inputs, dict) else []
    names = keywords or _forward_names(model, len(_as_tuple(inputs)))
    positional = 0 if keywords else len(names)
    if isinstance(targets, dict):
        names = names + list(targets)
    else:
        count = len(_as_tuple(targets))
        names = names + (["labels"] if count == 1 else [f"labels_{i}" for i in range(count)])
    if len(set(names)) != len(names) or LOSS in names:
        raise ValueError(f"inputs {names}: a name stands twice or is '{LOSS}'; expected different names")
    return names, keywords, positional


def _stack(names, batches):
    """One array per name with a leading axis over the batches."""
    rows = [_as_tuple(inputs) + _as_tuple(targets) for inputs, targets in batches]
    arrays = {}
    for index, name in enumerate(names):
        values = []
        for number, row in enumerate(rows):
            if len(row) != len(names):
                raise ValueError(f"batch {number}: {len(row)} tensors; expected {len(names)} as in the first")
            if row[index].shape != rows[0][index].shape or row[index].dtype != rows[0][index].dtype:
                raise ValueError(
                    f"input '{name}' of batch {number}: {tuple(row[index].shape)} {row[index].dtype}; expected "
                    f"{tuple(rows[0][index].shape)} {rows[0][index].dtype} as in the first (pad the batches, or capture each shape by itself)"
                )
            values.append(row[index].detach().cpu().numpy())
        arrays[name] = np.stack(values)
    return arrays


# Exporters spell distances out as roots of sums, whose gradient is no number where two points coincide; PyTorch's is 0 there, as a norm's is.
# The TorchScript exporter also loses the absolute value when p is odd.
def _cdist(original):
    def cdist(a, b, p=2.0, *others, **options):
        if p not in (1, 2):
            return original(a, b, p, *others, **options)
        return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)

    return cdist


def _pairwise_distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return torch.linalg.vector_norm(a - b + eps, p, -1, keepdim)


def _scatter_reduce(original):
    """Tensor.scatter_reduce whose means, and whose reductions without the tensor itself, are sums, products and extremes that ONNX has.

    Of exporters, TorchScript refuses these and dynamo writes a mean as a scatter that overwrites.
    """

    def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
        if reduce != "mean" and include_self:
            return original(x, dim, index, src, reduce, include_self=True)
        start = {"prod": 1.0, "amax": -float("inf"), "amin": float("inf")}.get(reduce, 0.0)
        base = x if include_self else torch.full_like(x, start)
        if reduce in ("sum", "mean"):
            result = base.scatter_add(dim, index, src)
        else:
            result = original(base, dim, index, src, reduce, include_self=True)
        count = torch.full_like(x, 1.0 if include_self else 0.0).scatter_add(dim, index, torch.ones_like(src))
        if reduce == "mean":
            result = result / count.clamp(min=1)
        return result if include_self else torch.where(count > 0, result, x)

    return scatter_reduce


@contextlib.contextmanager
def _exportable():
    """PyTorch functions as compositions that exporters keep as they are, while one runs."""
    functions = [
        (nn.functional, "pairwise_distance", _pairwise_distance),
        (torch, "pairwise_distance", _pairwise_distance),
        (torch, "cdist", _cdist(torch.cdist)),
        (torch, "scatter_reduce", _scatter_reduce(torch.scatter_reduce)),
        (torch.Tensor, "scatter_reduce", _scatter_reduce(torch.Tensor.scatter_reduce)),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, function in functions:
            stack.enter_context(mock.patch.object(owner, name, function))
        yield


def _index_add(graph, x, dim, index, source, alpha=None):
    """The exporter writes a ScatterElements that overwrites, so of repeated indices one is added."""
    rank = source.type().dim()
    axis = int(dim.node().t("value")) % rank
    others = graph.op("Constant", value_t=torch.tensor([i for i in range(rank) if i != axis], dtype=torch.int64))
    column = graph.op("Unsqueeze", index, others) if rank > 1 else index
    if alpha is not None and float(alpha.node().t("value")) != 1:
        source = graph.op("Mul", source, graph.op("CastLike", alpha, source))
    spread = graph.op("Expand", column, graph.op("Shape", source))
    return graph.op("ScatterElements", x, spread, source, axis_i=axis, reduction_s="add").setType(x.type())


def _index_put(original):
    """index_put(accumulate=True) likewise: the exporter scatters the values into zeros, where the last of repeated indices stays, and adds that."""

    def index_put(graph, x, indices, values, accumulate=False):
        result = original(graph, x, indices, values, accumulate)
        accumulates = accumulate.node().t("value") if isinstance(accumulate, torch.Value) else accumulate
        if bool(accumulates) and result.node().kind() == "onnx::Add":
            for scatter in (value.node() for value in result.node().inputs()):
                if scatter.kind() == "onnx::ScatterND":
                    scatter.s_("reduction", "add")
        return result

    return index_put


# The exporters spell these out as log(exp(a) + exp(b)), log(sigmoid(x)) and a product with log(1 - sigmoid(x)), whose gradients are
# 0/0 where PyTorch's are finite: here as max(a, b) + log(1 + exp(-|a - b|)), -log(1 + exp(-x)) and what follows from it.
def _log_add_exp(graph, a, b):
    gap = graph.op("Neg", graph.op("Abs", graph.op("Sub", a, b)))
    return graph.op("Add", graph.op("Max", a, b), graph.op("Softplus", gap))


def _log_sigmoid(graph, value):
    return graph.op("Neg", graph.op("Softplus", graph.op("Neg", value)))


def _reduced(graph, loss, reduction):
    reduce = {0: None, 1: "ReduceMean", 2: "ReduceSum"}[int(reduction.node().t("value"))]
    return loss if reduce is None else graph.op(reduce, loss, keepdims_i=0)


def _scalar(graph, like, value):
    dtype = {"Double": torch.float64, "Half": torch.float16}.get(like.type().scalarType(), torch.float32)
    return graph.op("Constant", value_t=torch.tensor(float(value), dtype=dtype))


# The TorchScript exporter has none of these losses.
def _l1_loss(graph, x, target, reduction):
    return _reduced(graph, graph.op("Abs", graph.op("Sub", x, target)), reduction)


def _round_below(graph, x, target, width, scale):
    """scale * (d - width / 2) of the distance d, with a parabola below `width`: huber (scale = width) and smooth L1 (scale = 1)."""
    distance, half = graph.op("Abs", graph.op("Sub", x, target)), _scalar(graph, x, width / 2)
    straight = graph.op("Mul", _scalar(graph, x, scale), graph.op("Sub", distance, half))
    if width == 0:
        return straight
    parabola = graph.op("Mul", _scalar(graph, x, 0.5 * scale / width), graph.op("Mul", distance, distance))
    return graph.op("Where", graph.op("Less", distance, _scalar(graph, x, width)), parabola, straight)


def _smooth_l1_loss(graph, x, target, reduction, beta):
    return _reduced(graph, _round_below(graph, x, target, float(beta.node().t("value")), 1.0), reduction)


def _huber_loss(graph, x, target, reduction, delta):
    width = float(delta.node().t("value"))
    return _reduced(graph, _round_below(graph, x, target, width, width), reduction)


def _bce_with_logits(graph, x, target, weight, pos_weight, reduction):
    dtype = {"Double": torch.float64, "Half": torch.float16}.get(x.type().scalarType(), torch.float32)
    one = graph.op("Constant", value_t=torch.tensor(1.0, dtype=dtype))
    rest = graph.op("Softplus", graph.op("Neg", x))  # -log sigmoid(x)
    if not pos_weight.node().mustBeNone():
        factor = graph.op("Mul", graph.op("Sub", pos_weight, one), target)
        rest = graph.op("Mul", graph.op("Add", factor, one), rest)
    loss = graph.op("Add", graph.op("Mul", graph.op("Sub", one, target), x), rest)
    if not weight.node().mustBeNone():
        loss = graph.op("Mul", loss, weight)
    return _reduced(graph, loss, reduction)


def _stable_translations():
    """The same for the dynamo exporter."""
    from onnxscript import FLOAT
    from onnxscript import opset18 as op

    def log_add_exp(self: FLOAT, other: FLOAT) -> FLOAT:
        return op.Add(op.Max(self, other), op.Softplus(op.Neg(op.Abs(op.Sub(self, other)))))

    def log_sigmoid(self: FLOAT) -> FLOAT:
        return op.Neg(op.Softplus(op.Neg(self)))

    return {torch.ops.aten.logaddexp.default: log_add_exp, torch.ops.aten.log_sigmoid.default: log_sigmoid}


def _mark_detached(proto):
    """Turns the Identity that the dynamo exporter writes for detach() into a node that stops the gradient."""
    found = False
    for node in proto.graph.node:
        origin = next((p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.fx_node"), "")
        if node.op_type == "Identity" and "target=torch.ops.aten.detach." in origin:
            node.op_type, node.domain, found = "StopGradient", "stepscope", True
    if found:
        proto.opset_import.append(onnx.helper.make_opsetid("stepscope", 1))


def _write_state(proto, state, changed):
    """Says in the file which values are the next contents of which initializers."""
    if any(node.op_type == "CustomGradient" for node in proto.graph.node):
        del proto.graph.value_info[:]  # of the results of a Function the TorchScript exporter declares each other's shapes
    graph, made = proto.graph, {output for node in proto.graph.node for output in node.output}
    initializers = {t.name for t in graph.initializer}
    for number, name in enumerate(changed):
        output = following = f"{name}.next"
        if output not in made:  # the exporter handed an input or an initializer on under this name
            continue
        if name not in initializers:
            graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(state[name].detach().cpu().numpy()), name))
        for part, value in (("state", name), ("next", following)):
            proto.metadata_props.add(key=f"stepscope.update.{number}.{part}", value=value)
    outputs = [value for value in graph.output if value.name == LOSS]
    del graph.output[:]
    graph.output.extend(outputs)


def _export(module, inputs, names, path, exporter, opset, kept):
    """Exports a module in training mode; the module's buffers change, as its forward pass runs. `kept`: operators that become nodes of the host."""
    if exporter == "dynamo":
        # optimize=False: the optimiser merges equal initializers, and so ties parameters that have to be trained apart
        table = _stable_translations()
        for name in kept:
            table.update(host_nodes.dynamo_translations(name))
        own = {"custom_translation_table": table} if "custom_translation_table" in inspect.signature(torch.onnx.export).parameters else {}
        program = torch.onnx.export(
            module, inputs, None, input_names=names, output_names=[LOSS] + [f"{name}.next" for name in module._changed], opset_version=opset, dynamo=True, optimize=False, **own
        )
        # Inputs get the names of forward's parameters, which the exporter may have given to a value already ("t" of x.t()).
        taken = set(names) | {LOSS}
        for node in program.model.graph:
            for value in node.outputs:
                if value.name in taken and value not in program.model.graph.outputs:
                    value.name = f"{value.name}_of_{node.name}"
        host_nodes.write_results(program.model.graph)
        program.save(str(path))
        return
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    # ONNX has no detach: without this the exporter drops it, and gradients flow where PyTorch's do not.
    symbolics = {
        **marker_symbolics(),
        "aten::logaddexp": _log_add_exp,
        "aten::log_sigmoid": _log_sigmoid,
        "aten::binary_cross_entropy_with_logits": _bce_with_logits,
        "aten::huber_loss": _huber_loss,
        "aten::l1_loss": _l1_loss,
        "aten::smooth_l1_loss": _smooth_l1_loss,
    }
    if opset >= 16:  # the first ScatterElements that adds
        from torch.onnx import symbolic_opset11

        symbolics["aten::index_add"] = _index_add
        symbolics["aten::index_put"] = _index_put(symbolic_opset11.index_put)
    symbolics.update({f"aten::{name}": host_nodes.torchscript_symbolic(name) for name in kept})
    for name, symbolic in symbolics.items():
        torch.onnx.register_custom_op_symbolic(name, symbolic, opset)
    try:
        torch.onnx.export(
            module, inputs, str(path), input_names=names, output_names=[LOSS] + [f"{name}.next" for name in module._changed], opset_version=opset,
            training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, custom_opsets={"stepscope": 1, host_nodes.DOMAIN: 1}, **options,
        )  # fmt: skip
    finally:
        for name in symbolics:
            torch.onnx.unregister_custom_op_symbolic(name, opset)


def _exported(module, changed, row, names, path, exporter, opset):
    """(what was traced, operators that are left to the host): exported as often as an operator turns up that the exporter lacks."""
    kept = []
    while True:
        traced = _Traced(copied(module), exporter, changed).train()
        try:
            with _exportable():
                _export(traced, row, names, path, exporter, opset, kept)
            return traced, kept
        except Exception as error:
            name = host_nodes.lacking(error)
            if name is None or name in kept or not hasattr(torch.ops.aten, name):
                raise
            kept.append(name)


def _restore(proto, state):
    """Gives every initializer the value that the model had before the export ran its forward pass."""
    for initializer in proto.graph.initializer:
        tensor = state.get(initializer.name)
        if tensor is None:
            continue
        array = tensor.detach().cpu().numpy()
        if array.shape == tuple(initializer.dims) and not np.array_equal(array, onnx.numpy_helper.to_array(initializer)):
            initializer.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array), initializer.name))


def _train_batch_norms(proto, module):
    """Turns BatchNormalization back into its training form where its module trains: the dynamo exporter writes the other one."""
    modules = dict(module.named_modules())
    for node in proto.graph.node:
        if node.op_type != "BatchNormalization" or len(node.input) < 5 or any(a.name == "training_mode" for a in node.attribute):
            continue
        owner = modules.get(node.input[3].rpartition(".")[0])
        if owner is None or not owner.training:
            continue
        node.attribute.append(onnx.helper.make_attribute("training_mode", 1))
        node.output.extend(f"{node.output[0]}_running_{statistic}" for statistic in ("mean", "var"))


def _parameters(module, proto):
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


def _buffers(proto, parameters):
    """Names of float initializers and constants that are no parameters: buffers, and tensors that forward() writes down. None of them is trained."""
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    known = {name for name, _ in parameters}
    statistics = ("running_mean", "running_var")  # the training form of BatchNormalization says what these are
    tensors = [(t.name, t) for t in proto.graph.initializer]
    tensors += [(node.output[0], a.t) for node in proto.graph.node if node.op_type == "Constant" for a in node.attribute if a.name == "value" and a.t.dims]
    return [name for name, t in tensors if t.data_type in floats and name not in known and name.rpartition(".")[2] not in statistics]


class _WithoutDropout(TorchFunctionMode):
    """Dropout hands its input on while this mode is on. `replaced` counts those that would have drawn."""

    def __init__(self):
        super().__init__()
        self.replaced = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            drops = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
            self.replaced += drops > 0
            kwargs.update({"dropout_p": 0.0} if len(args) <= 4 else {})
            return func(*args[:4], *((0.0,) if len(args) > 4 else ()), *args[5:], **kwargs)
        if name.rstrip("_").endswith("dropout") or name in ("dropout1d", "dropout2d", "dropout3d"):
            training = kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else "alpha" not in name))
            if training and kwargs.get("p", args[1] if len(args) > 1 else 0.5) > 0:
                self.replaced += 1
                x = kwargs.get("input", args[0] if args else None)
                return (x, torch.ones_like(x, dtype=torch.bool)) if name == "native_dropout" else x
        return func(*args, **kwargs)


def _drops_inside(layer):
    """Whether the dropout of a layer is inside of one call, which the mode does not see."""
    return (isinstance(layer, nn.RNNBase) and layer.num_layers > 1 or isinstance(layer, nn.MultiheadAttention)) and layer.dropout > 0


def _quiet(module):
    """A copy whose layers have no dropout inside."""
    module = copied(module)
    for layer in module.modules():
        if _drops_inside(layer):
            layer.dropout = 0.0
    return module


def _changed(module, before):
    """Float buffers and frozen parameters that are not what they were."""
    state = {name: t for name, t in state_of(module).items() if not t.requires_grad or isinstance(t, nn.Parameter) is False}
    return {
        name: buffer.detach().cpu().clone()
        for name, buffer in state.items()
        if buffer.is_floating_point() and not (name in before and buffer.shape == before[name].shape and torch.equal(buffer, before[name]))
    }


def _one_step(module, row, names, outputs=None, second=None):
    """(loss, {"grad/…", "state/…"}, parameters without a gradient) of one forward and backward pass of `module`, which it changes; and
    "state2/…" after the forward pass of another batch."""
    known, before = dict(module.named_parameters(remove_duplicate=False)), {n: b.detach().clone() for n, b in state_of(module).items()}
    hooks = []
    for name, layer in module.named_modules() if outputs is not None else ():
        # The last call counts, as in the file.
        keep = lambda _, __, result, name=name: outputs.update({f"output/{name}": result.detach()} if isinstance(result, torch.Tensor) and result.is_floating_point() else {})
        hooks.append(layer.register_forward_hook(keep))
    module.zero_grad(set_to_none=True)
    loss = module(*row)
    for hook in hooks:
        hook.remove()
    loss.backward()
    found = {f"grad/{n}": torch.zeros_like(known[n]) if known[n].grad is None else known[n].grad for n in names}
    found = {key: gradient.detach().cpu().clone() for key, gradient in found.items()}
    found.update({f"state/{name}": buffer for name, buffer in _changed(module, before).items()})
    if second is not None and any(key.startswith("state/") for key in found):
        module(*second)
        found.update({f"state2/{name}": buffer for name, buffer in _changed(module, before).items()})
    return float(loss.detach().double()), found, [n for n in names if known[n].grad is None]


def _perturbed(module, seed):
    """The module with every parameter one rounding up or down."""
    module, generator = _quiet(module), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            up = torch.randint(0, 2, parameter.shape, generator=generator).bool()
            if parameter.is_floating_point():
                parameter.copy_(torch.nextafter(parameter, torch.where(up, float("inf"), -float("inf")).to(parameter.dtype)))
    return module


def _in_float64(module, row, names, second):
    """The same step in float64; nothing where the model has a type written down and so refuses."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        wide = [r and tuple(t.double() if t.is_floating_point() else t for t in r) for r in (row, second)]
        return _one_step(_quiet(module).double(), wide[0], names, second=wide[1])
    except Exception:  # noqa: BLE001  whatever a model does with a type that it does not expect
        return None
    finally:
        torch.set_default_dtype(default)


def _tolerances(loss, found, others, wide):
    """What float32 permits: 4 times the worst of PyTorch's own steps that differ by roundings, at least 2e-5 of the largest element."""

    def tolerance(of, value):
        near = [(of(other) - value).abs().max().item() if value.numel() else 0.0 for other in others]
        worst = max(near)
        if wide is not None:
            far = (of(wide).to(value.dtype) - value).abs().max().item() if value.numel() else 0.0
            # Further off than a hundred roundings, it is not rounding: the model does something else in float64.
            worst = max(worst, far if far <= 100 * worst or far <= 1e-3 * value.abs().max().item() else 0.0)
        return max(4 * worst, 2e-5 * value.abs().max().item() if value.numel() else 0.0)

    tolerances = {key: tolerance(lambda step, key=key: step[1][key], value) for key, value in found.items() if all(key in step[1] for step in (*others, *([wide] if wide else [])))}
    ofLoss = tolerance(lambda step: torch.tensor(step[0], dtype=torch.float64), torch.tensor(loss, dtype=torch.float64))
    return max(ofLoss, 2e-6) if np.isfinite(ofLoss) else 2e-6, {key: value for key, value in tolerances.items() if np.isfinite(value)}


def _golden(module, parameters, rows, module_outputs):
    """(what capture.json says of it, arrays of golden.safetensors): loss of every batch at the captured parameters, and of the first one
    gradients and what became of the buffers, in training mode, dropout switched off."""
    names, second = [name for name, tensor in parameters if tensor.requires_grad], rows[1] if len(rows) > 1 else None
    outputs = {} if module_outputs else None
    seed = torch.get_rng_state()
    with _WithoutDropout() as mode:
        quiet = _quiet(module)
        loss, found, unused = _one_step(quiet, rows[0], names, outputs, second)
        drawn = not torch.equal(seed, torch.get_rng_state())
        inner = any(_drops_inside(layer) for layer in module.modules())
        draws = "drawn" if drawn else "switched off" if mode.replaced or inner else "none"
        losses = [loss]
        for row in rows[1:]:
            losses.append(float(_quiet(module)(*row).detach().double()))
        several = 3 if sum(t.numel() for _, t in parameters) < LARGE else 1
        others = [_one_step(_perturbed(module, i), rows[0], names, second=second) for i in range(several)]
        wide = _in_float64(module, rows[0], names, second) if several > 1 else None
    torch.set_rng_state(seed)
    loss_tolerance, tolerances = _tolerances(loss, found, others, wide)
    arrays = {key: value.numpy().copy() for key, value in {**found, **(outputs or {})}.items()}
    losses = [x if np.isfinite(x) else "NaN" if np.isnan(x) else "Infinity" if x > 0 else "-Infinity" for x in losses]  # JSON has none of these
    return {"losses": losses, "loss_tolerance": loss_tolerance, "tolerances": tolerances, "draws": draws, "unused": unused}, arrays


def capture(model, loss_fn, batches, folder, exporter="torchscript", opset=17, with_golden=True, module_outputs=False):
    """Exports `model` with `loss_fn` inside, and everything that `stepscope train FOLDER` needs.

    model      nn.Module; captured as it is now. It is copied, so neither its mode nor its buffers change.
    loss_fn    called as loss_fn(output, *targets); returns a scalar tensor.
    batches    list of (inputs, targets), all of the same shapes. `inputs`: a tensor, a tuple (positional) or a dict
               (keywords of forward; the keys name the graph inputs). `targets`: likewise; () when the model has the loss inside.
    folder     created; files of an earlier capture in it are replaced.
    exporter   "torchscript" or "dynamo" (torch >= 2.5 and onnxscript); "auto": dynamo, then TorchScript at rising opsets, until one
               exports the model and `stepscope verify` (where there is one) finds nothing that differs. It prints a line for each.
    opset      of the exported file; dynamo needs 18 or more, and the default becomes 18 there.
    with_golden  also records what PyTorch computes at the captured parameters, with dropout switched off: the loss of every batch,
               and of the first one gradients and updates of running statistics, each with the error that float32 permits.
               `stepscope verify` and `stepscope train` compare with it. Other random numbers leave the model unchecked.
    module_outputs  also records what every module returns for the first batch, so that the first one that differs is named.

    Returns the folder as a path.
    """
    if exporter not in ("torchscript", "dynamo", "auto"):
        raise ValueError(f"exporter '{exporter}': unknown; expected torchscript, dynamo or auto")
    batches = list(batches)
    if not batches:
        raise ValueError("batches: none; expected at least one (inputs, targets)")
    if exporter == "auto":
        if not with_golden:
            raise ValueError('exporter "auto" compares with the golden; expected with_golden=True')
        return capture_auto(lambda way, version: capture(model, loss_fn, batches, folder, way, version, True, module_outputs), folder)
    if exporter == "dynamo":
        opset = max(opset, 18)
    names, keywords, positional = _signature(model, batches[0])
    arrays = _stack(names, batches)
    rows = [tuple(t.detach().cpu() for t in _as_tuple(inputs) + _as_tuple(targets)) for inputs, targets in batches]
    module = real_parts(copied(_WithLoss(model, loss_fn, keywords, positional))).cpu().train()
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}

    changed = changed_state(module, rows[0])
    notes = data_dependence(module, rows)

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in ("model.onnx", "model.onnx.data", "batches.npz", "capture.json", "golden.safetensors"):
        (folder / old).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "model.onnx"
        begin = time.monotonic_ns()
        traced, kept = _exported(module, changed, rows[0], names, path, exporter, opset)
        export_ns = time.monotonic_ns() - begin
        proto = onnx.load(str(path))
    _mark_detached(proto)
    write_public(proto)
    _restore(proto, state)
    _write_state(proto, state, changed)
    _train_batch_norms(proto, module)
    if proto.ByteSize() > LARGEST_PROTO:
        onnx.save(proto, str(folder / "model.onnx"), save_as_external_data=True, location="model.onnx.data")
    else:
        onnx.save(proto, str(folder / "model.onnx"))

    # An exporter drops an input that the loss does not reach; a batch must not have more arrays than the graph has inputs.
    inputs = {value.name for value in proto.graph.input}
    np.savez(folder / "batches.npz", **{name: array for name, array in arrays.items() if name in inputs})

    parameters = _parameters(module, proto)
    description = {
        "loss": LOSS,
        "exporter": exporter,
        "opset": opset,
        "torch": torch.__version__,
        "export_ns": export_ns,
        "parameters": [{"name": name, "trained": tensor.requires_grad} for name, tensor in parameters]
        + [{"name": name, "trained": False} for name in _buffers(proto, parameters)],
    }
    notes += list(dict.fromkeys(traced.notes))
    if calls := host_nodes.host_operators(proto):
        description["host"] = calls
        notes.append(host_nodes.note({call.partition("::")[2].partition(".")[0] for call in calls}))
    for note in notes:
        print(f"warning: {note}")
    description["notes"] = notes
    if with_golden:
        numbers, arrays = _golden(module, parameters, rows, module_outputs)
        description.update(numbers)
        if any(host_nodes.draws(call) for call in description.get("host", [])):  # others than PyTorch's, which the golden has not
            description["draws"] = "drawn"
        save_safetensors(folder / "golden.safetensors", arrays)
    (folder / "capture.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return folder

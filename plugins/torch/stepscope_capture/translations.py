# SPDX-License-Identifier: Apache-2.0
"""What the exporters write otherwise, or not at all: symbolics of TorchScript's, translations of dynamo's."""

import torch

from stepscope_capture.bounds import dynamo_bounds, torchscript_bounds
from stepscope_capture.markers import symbolics as marker_symbolics


def _index_add(graph, x, dim, index, source, alpha=None, overwrite=False):
    """The exporter writes a ScatterElements that overwrites, so of repeated indices one is added."""
    rank = x.type().dim()
    axis = (dim if isinstance(dim, int) else int(dim.node().t("value"))) % rank
    others = graph.op("Constant", value_t=torch.tensor([i for i in range(rank) if i != axis], dtype=torch.int64))
    column = graph.op("Unsqueeze", index, others) if rank > 1 else index
    if alpha is not None and float(alpha.node().t("value")) != 1:
        source = graph.op("Mul", source, graph.op("CastLike", alpha, source))
    spread = graph.op("Expand", column, graph.op("Shape", source))
    return graph.op("ScatterElements", x, spread, source, axis_i=axis, reduction_s="none" if overwrite else "add").setType(x.type())


def _only_mask(indices):
    """The mask of x[mask] = …, None for other indices."""
    found = list(indices.node().inputs()) if indices.node().kind() == "prim::ListConstruct" else []
    return found[0] if len(found) == 1 and str(found[0].type().scalarType()) == "Bool" else None


def _only_axis(indices):
    """The axis of x[:, index] = …, whose index has one axis; None for other indices. The exporter loses its colons."""
    found = list(indices.node().inputs()) if indices.node().kind() == "prim::ListConstruct" else []
    given = [i for i, value in enumerate(found) if not value.node().mustBeNone()]
    if len(given) != 1 or given[0] == 0 or found[given[0]].type().dim() != 1 or str(found[given[0]].type().scalarType()) != "Long":
        return None
    return given[0]


def _index_put(original):
    """index_put(accumulate=True) likewise: the exporter scatters the values into zeros, where the last of repeated indices stays, and adds that.
    Of a mask of rows it scatters as many values as one row has: here the rows are chosen."""

    def index_put(graph, x, indices, values, accumulate=False):
        accumulates = accumulate.node().t("value") if isinstance(accumulate, torch.Value) else accumulate
        axis = _only_axis(indices)
        if axis is not None and x.type().dim() is not None and None not in (x.type().sizes() or [None]):
            index = list(indices.node().inputs())[axis]
            chosen = graph.op("Gather", x, index, axis_i=axis).setType(x.type().with_sizes([*x.type().sizes()[:axis], None, *x.type().sizes()[axis + 1 :]]))
            return _index_add(graph, x, axis, index, graph.op("Expand", values, graph.op("Shape", chosen)), overwrite=not bool(accumulates))
        mask = _only_mask(indices)
        ranks = [value.type().dim() for value in (x, mask, values)] if mask is not None and not bool(accumulates) else [None]
        if None not in ranks and ranks[2] <= ranks[0] - ranks[1]:  # each place that is named gets the same values
            axes = graph.op("Constant", value_t=torch.arange(ranks[1], ranks[0]))
            chosen = graph.op("Unsqueeze", mask, axes) if ranks[1] < ranks[0] else mask
            return graph.op("Where", chosen, values, x).setType(x.type())
        result = original(graph, x, indices, values, accumulate)
        if bool(accumulates) and result.node().kind() == "onnx::Add":
            for value in result.node().inputs():  # x may be what an earlier one wrote
                if value.node().kind() == "onnx::ScatterND" and value.debugName() != x.debugName():
                    value.node().s_("reduction", "add")
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


def _softplus(graph, x, beta, threshold):
    """The exporter drops the threshold, beyond which the result is x: with the usual 20 that is rounding, with a small one another function."""
    factor, bound = (float(value.node().t("value")) for value in (beta, threshold))
    scaled = x if factor == 1 else graph.op("Mul", x, _scalar(graph, x, factor))
    y = graph.op("Softplus", scaled)
    y = y if factor == 1 else graph.op("Div", y, _scalar(graph, x, factor))
    return y if bound >= 16 else graph.op("Where", graph.op("Greater", scaled, _scalar(graph, x, bound)), x, y)


def _cumsum(original):
    """Sums of bools and of small integers are int64; the exporter writes them in the type of the elements."""

    def cumsum(graph, x, dim, dtype=None):
        small = str(x.type().scalarType()) in ("Bool", "Byte", "Char", "Short", "Int")
        if small and (dtype is None or dtype.node().mustBeNone()):
            x = graph.op("Cast", x, to_i=7).setType(x.type().with_dtype(torch.int64))
        return original(graph, x, dim, dtype)

    return cumsum


def dynamo_table():
    """The same for the dynamo exporter."""
    from onnxscript import FLOAT
    from onnxscript import opset18 as op

    def log_add_exp(self: FLOAT, other: FLOAT) -> FLOAT:
        return op.Add(op.Max(self, other), op.Softplus(op.Neg(op.Abs(op.Sub(self, other)))))

    def log_sigmoid(self: FLOAT) -> FLOAT:
        return op.Neg(op.Softplus(op.Neg(self)))

    return {**dynamo_bounds(), torch.ops.aten.logaddexp.default: log_add_exp, torch.ops.aten.log_sigmoid.default: log_sigmoid}


def torchscript_table(opset):
    """Symbolics by operator."""
    # ONNX has no detach: without this the exporter drops it, and gradients flow where PyTorch's do not.
    symbolics = {
        **marker_symbolics(),
        **torchscript_bounds(),
        "aten::logaddexp": _log_add_exp,
        "aten::log_sigmoid": _log_sigmoid,
        "aten::binary_cross_entropy_with_logits": _bce_with_logits,
        "aten::huber_loss": _huber_loss,
        "aten::l1_loss": _l1_loss,
        "aten::smooth_l1_loss": _smooth_l1_loss,
        "aten::softplus": _softplus,
    }
    if opset >= 16:  # the first ScatterElements that adds
        from torch.onnx import symbolic_opset11

        symbolics["aten::cumsum"] = _cumsum(symbolic_opset11.cumsum)
        symbolics["aten::index_add"] = _index_add
        symbolics["aten::index_put"] = _index_put(symbolic_opset11.index_put)
    return symbolics

# SPDX-License-Identifier: Apache-2.0
"""clamp, hardtanh and relu6 with the slope that this PyTorch has exactly at the bounds, which is 1 or 0 by version. ONNX's Clip has one, exporters write Max and Min too."""

import functools

import torch
import torch.nn.functional as F


@functools.cache
def _slope_is_zero(kind):
    x = torch.zeros(1, requires_grad=True)
    (F.hardtanh(x, 0.0, 1.0) if kind == "hardtanh" else torch.clamp(x, 0.0, 1.0)).sum().backward()
    return float(x.grad) == 0.0


def _beyond(kind):
    """Comparisons with the lower and the upper bound: where they hold, the bound is the result and has no slope."""
    return ("LessOrEqual", "GreaterOrEqual") if _slope_is_zero(kind) else ("Less", "Greater")


def _crossed(low, high):
    return low is not None and high is not None and low > high


# --- TorchScript


def _number(value):
    """(whether it is a number or None that is written down, it)."""
    if not isinstance(value, torch.Value):
        return True, value
    if value.node().mustBeNone():
        return True, None
    if value.node().kind() in ("onnx::Constant", "prim::Constant"):
        tensor = value.node().t("value") if value.node().kindOf("value") == "t" else None
        if tensor is not None and tensor.dim() == 0:
            return True, tensor.item()
    return False, None


def _symbolic(kind, original, bounds):
    """`bounds(args)`: (low, high) of the arguments after the tensor."""

    def symbolic(graph, x, *args):
        found = [_number(value) for value in bounds(args)]
        low, high = (number for _, number in found)
        dtype = {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16}.get(x.type().scalarType())
        if dtype is None or not all(known for known, _ in found) or _crossed(low, high):
            return original(graph, x, *args)
        result = x
        for compare, bound in zip(_beyond(kind), (low, high)):
            if bound is not None:
                number = graph.op("Constant", value_t=torch.tensor(bound, dtype=dtype))
                result = graph.op("Where", graph.op(compare, x, number), number, result)
        return result.setType(x.type())

    return symbolic


def torchscript_bounds():
    from torch.onnx import symbolic_opset9, symbolic_opset11

    def zero_and_six(_):
        return 0.0, 6.0

    return {
        "aten::clamp": _symbolic("clamp", symbolic_opset11.clamp, lambda args: (*args, None, None)[:2]),
        "aten::clamp_min": _symbolic("clamp", symbolic_opset11.clamp_min, lambda args: (args[0], None)),
        "aten::clamp_max": _symbolic("clamp", symbolic_opset11.clamp_max, lambda args: (None, args[0])),
        "aten::hardtanh": _symbolic("hardtanh", symbolic_opset11.hardtanh, lambda args: args[:2]),
        "aten::relu6": _symbolic("hardtanh", getattr(symbolic_opset11, "relu6", symbolic_opset9.relu6), zero_and_six),
    }


# --- dynamo


def dynamo_bounds():
    from onnxscript import opset18 as op

    def bounded(kind, x, low, high):
        if _crossed(low, high):
            x, low = op.Max(x, op.CastLike(op.Constant(value_float=float(low)), x)), None
        result = x
        for compare, bound in zip(_beyond(kind), (low, high)):
            if bound is not None:
                number = op.CastLike(op.Constant(value_float=float(bound)), x)
                result = op.Where(getattr(op, compare)(x, number), number, result)
        return result

    def tensors(self, min=None, max=None):
        """The exporter turns numbers into tensors without axes first; other tensors share the slope at a tie, as Max and Min do."""
        result, bounds = self, [(b, i) for i, b in enumerate((min, max)) if b is not None]
        alone = all(b.shape is not None and len(b.shape) == 0 for b, _ in bounds)
        for bound, which in bounds:
            bound = op.CastLike(bound, self)
            result = op.Where(getattr(op, _beyond("clamp")[which])(self, bound), bound, result) if alone else (op.Max, op.Min)[which](result, bound)
        return result

    aten = torch.ops.aten
    return {
        aten.clamp.Tensor: tensors,
        aten.clamp_min.Tensor: lambda self, min: tensors(self, min),
        aten.clamp_max.Tensor: lambda self, max: tensors(self, None, max),
        aten.clamp.default: lambda self, min=None, max=None: bounded("clamp", self, min, max),
        aten.clamp_min.default: lambda self, min: bounded("clamp", self, min, None),
        aten.clamp_max.default: lambda self, max: bounded("clamp", self, None, max),
        aten.hardtanh.default: lambda self, min_val=-1.0, max_val=1.0: bounded("hardtanh", self, min_val, max_val),
        aten.relu6.default: lambda self: bounded("hardtanh", self, 0.0, 6.0),
    }

# SPDX-License-Identifier: Apache-2.0
"""Layers of bitsandbytes with weights in four bits (Linear4bit, LinearNF4, LinearFP4) as nodes MatMulBnb4 of domain com.microsoft: packed weight and scales
are initializers as the layer has them, and are not trained."""

import functools

import torch

from stepscope_capture import markers

# The value of each code, as bitsandbytes has it (functional.get_4bit_type); kernels/four_bit.h is the engine's.
TABLES = {
    "fp4": (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
            -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25),
    "nf4": (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
            0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170036792755, 0.7229568362236023, 1.0),
}  # fmt: skip
KINDS = ("fp4", "nf4")  # by attribute quant_type


def _product(x, packed, absmax, *, K, N, block_size, quant_type):  # noqa: N803  as the attributes are called
    codes = torch.stack((packed >> 4, packed & 15), -1).reshape(-1).long()
    weight = torch.tensor(TABLES[KINDS[quant_type]])[codes] * absmax.repeat_interleave(block_size)[: codes.numel()]
    return x @ weight.reshape(N, K).T.to(x.dtype)


markers.VALUES["MatMulBnb4"] = _product


def _scales(state):
    """One for each block, float32; where these are packed too, as numbers."""
    if not state.nested:
        return state.absmax.float()
    from bitsandbytes.functional import dequantize_blockwise

    return (dequantize_blockwise(state.absmax, state.state2) + state.offset).float()


def _forward(layer, marks, rows, columns, block, kind, x):
    given = x if layer.compute_dtype is None else x.to(layer.compute_dtype)
    y = marks.native("MatMulBnb4", (given, layer.weight.reshape(-1), layer.weight_absmax), (*x.shape[:-1], rows), K=columns, N=rows, block_size=block, quant_type=kind)
    return (y if layer.bias is None else y + layer.bias.to(y.dtype)).to(x.dtype)


def keep_four_bit(model, marks):
    """Makes nodes of such layers of a copied model, whose weights are packed already."""
    for layer in list(model.modules()):
        if not any(made.__name__ == "Linear4bit" and made.__module__.startswith("bitsandbytes") for made in type(layer).__mro__):
            continue
        state = getattr(layer.weight, "quant_state", None)
        if state is None or getattr(state, "packing_format_for_cpu", False) or state.quant_type not in KINDS:
            continue  # bitsandbytes says itself what is lacking; another packing is traced as it computes
        packed, (rows, columns) = layer.weight.data.view(torch.uint8), state.shape
        layer._parameters.pop("weight")
        layer.register_buffer("weight", packed)
        layer.register_buffer("weight_absmax", _scales(state))
        layer.compute_dtype = getattr(layer, "compute_dtype", None)
        layer.forward = functools.partial(_forward, layer, marks, int(rows), int(columns), int(state.blocksize), KINDS.index(state.quant_type))

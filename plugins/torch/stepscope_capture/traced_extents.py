# SPDX-License-Identifier: Apache-2.0
"""The TorchScript exporter infers extents of the ONNX values that it has written, and loses them behind some (Pad, ScatterElements); then it refuses operators that need
one. The trace knows them all."""

from stepscope_capture.registered import symbolic_of

_NEED = (
    "unfold", "chunk", "unsafe_chunk", "split", "unsafe_split", "tensor_split", "tensordot", "repeat_interleave", "glu", "std", "var", "std_mean", "var_mean", "_weight_norm",
    "pixel_shuffle", "pixel_unshuffle", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip


def _known(value):
    sizes = value.type().sizes() if value.type().kind() == "TensorType" else None
    return sizes is not None and None not in sizes


def _restored(original):
    def symbolic(graph, *args, **kwargs):
        for value, traced in zip(args, graph.original_node.inputs()):
            if value.type().kind() == "TensorType" and not _known(value) and _known(traced):
                value.setType(value.type().with_sizes(traced.type().sizes()))
        return original(graph, *args, **kwargs)

    return symbolic


def with_traced_extents(opset):
    """Symbolics by operator. Not for a file whose extents are symbols."""
    found = {f"aten::{name}": symbolic_of(f"aten::{name}", opset) for name in _NEED}
    return {name: _restored(original) for name, original in found.items() if original is not None}

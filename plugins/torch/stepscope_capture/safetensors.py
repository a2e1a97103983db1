# SPDX-License-Identifier: Apache-2.0
"""The safetensors format: eight bytes with the length of a JSON header, the header, the tensors one after another."""

import json
import pathlib
import struct

import numpy as np

_NAMES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL", "uint8": "U8",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
}  # fmt: skip
try:
    from ml_dtypes import bfloat16  # comes with onnx
except ImportError:  # older onnx
    bfloat16 = None
else:
    _NAMES["bfloat16"] = "BF16"
_DTYPES = {name: np.dtype(bfloat16 if dtype == "bfloat16" else dtype) for dtype, name in _NAMES.items()}


def array_of(tensor):
    """A tensor's NumPy array; NumPy itself has no bfloat16."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) != "torch.bfloat16":
        return tensor.numpy()
    if bfloat16 is None:
        raise TypeError("bfloat16: needs the package ml_dtypes, which newer versions of onnx bring along")
    import torch

    return tensor.contiguous().view(torch.int16).numpy().view(bfloat16)


def save_safetensors(path, arrays, metadata=None):
    """Writes NumPy arrays by name, sorted. `metadata`: texts by name."""
    header, blobs, offset = {"__metadata__": metadata} if metadata else {}, [], 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        blob = array.tobytes()
        header[name] = {"dtype": _NAMES[str(array.dtype)], "shape": list(np.shape(arrays[name])), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load_safetensors(path):
    """NumPy arrays by name."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays

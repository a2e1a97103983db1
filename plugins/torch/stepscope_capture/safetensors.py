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
_DTYPES = {name: np.dtype(dtype) for dtype, name in _NAMES.items()}


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

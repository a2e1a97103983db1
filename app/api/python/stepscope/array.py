"""Arrays on both sides of the border."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import TYPE_CHECKING, Any, Sequence

from .library import Error, TensorStruct, sized

if TYPE_CHECKING:
    import numpy

# By ONNX number: name, code of memoryview (None: it has none), bytes.
_TYPES = {1: ("float32", "f", 4), 2: ("uint8", "B", 1), 3: ("int8", "b", 1), 4: ("uint16", "H", 2), 5: ("int16", "h", 2),
          6: ("int32", "i", 4), 7: ("int64", "q", 8), 9: ("bool", "?", 1), 10: ("float16", None, 2), 11: ("float64", "d", 8),
          12: ("uint32", "I", 4), 13: ("uint64", "Q", 8), 16: ("bfloat16", None, 2)}  # fmt: skip
_NUMBERS = {name: number for number, (name, _, _) in _TYPES.items()}
_OF_CODES = {code: number for number, (_, code, _) in _TYPES.items() if code} | {"l": 7, "L": 13, "e": 10}


def dtype_name(number: int) -> str:
    return "string" if number == 8 else _TYPES[number][0] if number in _TYPES else "undefined"


class Array:
    """Numbers of the library: row-major, of its own memory. numpy.asarray(array), torch.from_dlpack(array) and memoryview(array.data)
    look at them without a copy; bfloat16 is seen as uint16 by NumPy, which has no such type."""

    def __init__(self, dtype: str, shape: Sequence[int], data: bytearray):
        self.dtype, self.shape, self._bytes = dtype, tuple(shape), data

    @property
    def data(self) -> memoryview:
        """The elements, in one dimension; those of float16 and bfloat16 as their bits."""
        code = _TYPES[_NUMBERS[self.dtype]][1]
        return memoryview(self._bytes).cast(code or "H")

    def tolist(self) -> Any:
        """Nested lists of Python's numbers; a number for no dimensions."""
        if self.dtype == "float16":
            flat = list(struct.unpack(f"<{len(self._bytes) // 2}e", self._bytes))
        elif self.dtype == "bfloat16":
            flat = [struct.unpack("<f", b"\0\0" + half.to_bytes(2, "little"))[0] for half in self.data]
        else:
            flat = self.data.tolist()
        for extent in reversed(self.shape[1:]):
            if extent == 0:
                return [] if 0 in self.shape[:1] else [[] for _ in range(self.shape[0])]
            flat = [flat[i : i + extent] for i in range(0, len(flat), extent)]
        return flat if self.shape else flat[0]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"stepscope.Array({self.dtype}{list(self.shape)})"

    @property
    def __array_interface__(self) -> dict:
        kind = {"f": "f", "b": "i", "u": "u"}.get(self.dtype[0], "i")
        if self.dtype == "bool":
            kind = "b"
        if self.dtype == "bfloat16":
            kind = "u"
        size = _TYPES[_NUMBERS[self.dtype]][2]
        holder = (ctypes.c_char * len(self._bytes)).from_buffer(self._bytes)
        return {"version": 3, "shape": self.shape, "typestr": ("|" if size == 1 else "<") + kind + str(size),
                "data": (ctypes.addressof(holder), False), "holder": holder}  # fmt: skip

    def numpy(self) -> "numpy.ndarray":
        """The same memory as a numpy.ndarray."""
        import numpy

        return numpy.asarray(self)

    def __dlpack__(self, **arguments):
        return self.numpy().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple:
        return (1, 0)


def array_of(tensor: TensorStruct) -> Array:
    """A copy of what the library gave out, which lives only until the next call."""
    data = bytearray(tensor.bytes)
    if tensor.bytes:
        ctypes.memmove((ctypes.c_char * tensor.bytes).from_buffer(data), tensor.data, tensor.bytes)
    return Array(dtype_name(tensor.dtype), tensor.dims[: tensor.rank], data)


class Memory:
    """Memory of a caller as a tensor of the library, to be written: an Array, a torch tensor, or a writable buffer; never a copy. `struct` is
    valid as long as this object."""

    def __init__(self, name: str, value: Any):
        self._keeps = value
        if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # torch
            number, shape = _NUMBERS.get(str(value.dtype).rpartition(".")[2]), tuple(value.shape)
            if number is None or not value.is_contiguous() or value.device.type != "cpu":
                raise Error(1, f"memory '{name}': {value.dtype} on {value.device}, strides {value.stride()}; expected contiguous numbers on the CPU")
            address = value.data_ptr()
        else:
            view = value.data if isinstance(value, Array) else memoryview(value)
            number = _NUMBERS[value.dtype] if isinstance(value, Array) else _OF_CODES.get(view.format.lstrip("<=@"))
            shape = value.shape if isinstance(value, Array) else view.shape
            if number is None or view.readonly or not view.c_contiguous:
                raise Error(1, f"memory '{name}': format '{view.format}', read-only {view.readonly}; expected contiguous numbers that can be written")
            size = view.nbytes
            self._holder = (ctypes.c_char * size).from_buffer(view.cast("B")) if size else ctypes.create_string_buffer(1)
            address = ctypes.addressof(self._holder)
        self._dims = (ctypes.c_int64 * len(shape))(*shape)
        self.struct = sized(TensorStruct)
        self.struct.dtype, self.struct.rank, self.struct.data = number, len(shape), address
        self.struct.bytes = math.prod(shape) * _TYPES[number][2]
        self.struct.dims = ctypes.cast(self._dims, ctypes.POINTER(ctypes.c_int64))


class Given:
    """What a caller gave as a tensor of the library, borrowed where it is contiguous. `struct` is valid as long as this object."""

    def __init__(self, name: str, value: Any):
        if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # torch: of any type, those that NumPy lacks too
            tensor = value.detach().cpu().contiguous()
            number = _NUMBERS.get(str(tensor.dtype).rpartition(".")[2])
            if number is None:
                raise Error(1, f"array '{name}': elements of {tensor.dtype}; expected numbers or booleans")
            self._keeps: Any = tensor
            self._describe(number, tuple(tensor.shape))
            self.struct.data = tensor.data_ptr()
            return
        view = self._view(name, value)
        if not view.c_contiguous:
            view = memoryview(view.tobytes()).cast(view.format, view.shape) if view.ndim > 0 else view
        number = _OF_CODES.get(view.format.lstrip("<=@"))
        if isinstance(value, Array):
            number = _NUMBERS[value.dtype]
        if number is None:
            raise Error(1, f"array '{name}': elements of format '{view.format}'; expected numbers or booleans")
        self._keeps = (value, view)
        size = self._describe(number, value.shape if isinstance(value, Array) else view.shape)
        if view.readonly and hasattr(view.obj, "__array_interface__"):
            self.struct.data = view.obj.__array_interface__["data"][0]
            return
        if view.readonly:  # ctypes borrows only what could be written
            self._buffer: Any = ctypes.create_string_buffer(view.tobytes(), max(size, 1))
        else:
            self._buffer = (ctypes.c_char * size).from_buffer(view.cast("B") if view.ndim and size else bytearray(view.tobytes()))
        self.struct.data = ctypes.addressof(self._buffer)

    def _describe(self, number: int, shape: Sequence[int]) -> int:
        """The struct but for its data; the bytes of that."""
        self._dims = (ctypes.c_int64 * len(shape))(*shape)
        size = math.prod(shape) * _TYPES[number][2]
        self.struct = sized(TensorStruct)
        self.struct.dtype, self.struct.rank, self.struct.bytes = number, len(shape), size
        self.struct.dims = ctypes.cast(self._dims, ctypes.POINTER(ctypes.c_int64))
        return size

    @staticmethod
    def _view(name: str, value: Any) -> memoryview:
        if isinstance(value, Array):
            return value.data
        try:
            return memoryview(value)
        except TypeError:
            pass
        if hasattr(value, "__dlpack__"):
            import numpy

            return memoryview(numpy.from_dlpack(value))
        if hasattr(value, "__array__"):
            return memoryview(value.__array__())
        raise Error(1, f"array '{name}': {type(value).__name__}; expected an object with the buffer protocol, such as numpy.ndarray")

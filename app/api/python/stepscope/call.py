"""One forward pass of a model as a function, whose backward pass may follow."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional

from . import library as _c
from .array import Array, Given, Memory, array_of


def borrowed(arrays: Mapping[str, Any]) -> tuple:
    """(names, pointers, how many, what has to live until the library returns) of arrays, which are not copied where they are contiguous."""
    given = {name: Memory(name, v) if hasattr(v, "data_ptr") and v.is_contiguous() else Given(name, v) for name, v in arrays.items()}
    names, count = _c.texts(given)
    return names, (ctypes.POINTER(_c.TensorStruct) * count)(*[ctypes.pointer(g.struct) for g in given.values()]), count, given


class Call:
    """Made by Session.forward(). Its memory goes to the next call when it is closed or collected."""

    def __init__(self, session: Any, handle: ctypes.c_void_p):
        self._of, self._handle = session, handle  # the session must not be closed before

    def close(self) -> None:
        """Gives the memory back; a second time does nothing."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle and self._of._handle:
            _c.library.call_free(handle)

    def __del__(self) -> None:
        self.close()

    def _call(self) -> ctypes.c_void_p:
        if not self._handle:
            raise _c.Error(1, "call: it was closed; expected an open one")
        return self._handle

    def output_struct(self, name: str) -> _c.TensorStruct:
        """Where an output lies, until the call is closed."""
        struct = _c.sized(_c.TensorStruct)
        _c.library.call_output(self._call(), name.encode(), ctypes.byref(struct))
        return struct

    def gradient_struct(self, name: str) -> Optional[tuple[_c.TensorStruct, bool]]:
        """Where a gradient lies, until the call is closed, and whether that memory is its alone and may be written to."""
        struct, present = _c.sized(_c.TensorStruct), ctypes.c_int32()
        _c.library.call_gradient(self._call(), name.encode(), ctypes.byref(struct), ctypes.byref(present))
        return (struct, present.value == _c.PRESENT_ALONE) if present.value else None

    def output(self, name: str) -> Array:
        """An output of the model."""
        return array_of(self.output_struct(name))

    def backward(self, gradients: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        """Gradients of the outputs that differentiate() named; those that are not given are zero. Once: activations are given up on the way."""
        names, pointers, count, _keep = borrowed({**(gradients or {}), **more})
        _c.library.backward(self._call(), names, pointers, count)

    def gradient(self, name: str) -> Optional[Array]:
        """Of a trained parameter or a wanted input; None where no output with a gradient depends on it."""
        found = self.gradient_struct(name)
        return None if found is None else array_of(found[0])

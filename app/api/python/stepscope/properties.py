"""What a program keeps beside the state of a session, as a dict."""

from __future__ import annotations

import ctypes
from collections.abc import MutableMapping
from typing import Any, Iterator, Union

from . import library as _c
from .array import Array, Given, array_of

Property = Union[int, float, str, Array]
_INT64, _DOUBLE, _STRING, _TENSOR = 1, 2, 3, 4


class Properties(MutableMapping):
    """By name: int (64 bits), float, str, or an array of numbers, which is read back as a stepscope.Array. Session.save() writes them into the
    file; those of a file that is loaded replace those of their names."""

    def __init__(self, session: Any):
        self._session = session

    def _all(self) -> dict[str, Property]:
        found: dict[str, Property] = {}
        for p in _c.items_of(_c.library.properties, self._session._session(), _c.PropertyStruct):
            values = {_INT64: lambda p=p: p.integer, _DOUBLE: lambda p=p: p.number, _STRING: lambda p=p: p.text.decode(),
                      _TENSOR: lambda p=p: array_of(p.tensor.contents)}  # fmt: skip
            found[p.name.decode()] = values[p.kind]()
        return found

    def __getitem__(self, name: str) -> Property:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __setitem__(self, name: str, value: Any) -> None:
        p, given = _c.sized(_c.PropertyStruct), None
        p.name = name.encode()
        if isinstance(value, (bool, int)):
            if not -(2**63) <= value < 2**63:
                raise _c.Error(1, f"property '{name}': {value}; expected an integer of 64 bits")
            p.kind, p.integer = _INT64, value
        elif isinstance(value, float):
            p.kind, p.number = _DOUBLE, value
        elif isinstance(value, str):
            p.kind, p.text = _STRING, value.encode()
        else:
            given = Given(name, value)
            p.kind, p.tensor = _TENSOR, ctypes.pointer(given.struct)
        _c.library.set_property(self._session._session(), ctypes.byref(p))

    def __delitem__(self, name: str) -> None:
        if name not in self._all():
            raise KeyError(name)
        _c.library.drop_property(self._session._session(), name.encode())

    def __repr__(self) -> str:
        return f"stepscope.Properties({self._all()})"

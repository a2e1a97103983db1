"""libstepscope through ctypes: the structs and functions of app/api/stepscope.h, and its errors as exceptions.

ctypes gives up Python's global lock while a function of the library runs.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

API_MAJOR = 1
PRESENT_ALONE = 2


class TensorStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("dtype", c_int32), ("dims", POINTER(c_int64)), ("rank", c_size_t), ("data", c_void_p),
                ("bytes", c_size_t)]  # fmt: skip


class ValueInfoStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("dtype", c_int32), ("name", c_char_p), ("dims", POINTER(c_int64)), ("rank", c_size_t),
                ("text", c_char_p), ("trained", c_int32), ("elements", c_int64)]  # fmt: skip


class OptionInfoStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("choice_count", c_uint32), ("name", c_char_p), ("value", c_char_p), ("default_value", c_char_p),
                ("set_by", c_char_p), ("doc", c_char_p), ("kind", c_char_p), ("choices", POINTER(c_char_p))]  # fmt: skip


class InstructionInfoStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("index", c_int32), ("name", c_char_p), ("op", c_char_p), ("phase", c_char_p),
                ("flops", c_double), ("bytes_read", c_int64), ("bytes_written", c_int64)]  # fmt: skip


class StepRecordStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("has_loss", c_int32), ("has_gradient_norm", c_int32), ("updated", c_int32), ("skipped", c_int32),
                ("step", c_int64), ("loss", c_double), ("learning_rate", c_double), ("gradient_norm", c_double),
                ("loss_scale", c_double), ("ns", c_int64), ("planned_bytes", c_int64), ("peak_bytes", c_int64)]  # fmt: skip


class PositionStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("in_step", c_int32), ("instruction", c_int32), ("has_loss", c_int32), ("step", c_int64),
                ("loss", c_double), ("stopped_by", c_char_p)]  # fmt: skip


class EvaluationStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("synthetic", c_int32), ("batches", c_int64), ("loss", c_double), ("labels", c_int64),
                ("correct", c_int64), ("ns", c_int64)]  # fmt: skip


class PropertyStruct(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("kind", c_int32), ("name", c_char_p), ("integer", c_int64), ("number", c_double),
                ("text", c_char_p), ("tensor", POINTER(TensorStruct))]  # fmt: skip


class Error(Exception):
    """What the library refused: `code` as in stepscope.h ("invalid_argument" …), the message says what was found and expected."""

    CODES = {1: "invalid_argument", 2: "not_found", 3: "unsupported", 4: "limit_exceeded", 5: "corrupt", 6: "out_of_memory",
             7: "io", 8: "cancelled", 9: "internal"}  # fmt: skip

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = self.CODES.get(code, "internal")


_TEXTS = POINTER(c_char_p)
_SESSION = c_void_p


def _list_of(struct):
    return [_SESSION, POINTER(POINTER(POINTER(struct))), POINTER(c_size_t)]


# Arguments of the functions that return an error.
_FUNCTIONS = {
    "open": [c_char_p, _TEXTS, _TEXTS, c_size_t, POINTER(c_void_p)],
    "inputs": _list_of(ValueInfoStruct),
    "set": [_SESSION, c_char_p, c_char_p],
    "apply": [_SESSION],
    "options": _list_of(OptionInfoStruct),
    "feed": [_SESSION, _TEXTS, POINTER(POINTER(TensorStruct)), c_size_t],
    "keep_gradients": [_SESSION, c_int32],
    "keep_values": [_SESSION, _TEXTS, c_size_t],
    "build": [_SESSION],
    "build_forward": [_SESSION, _TEXTS, c_size_t],
    "instructions": _list_of(InstructionInfoStruct),
    "step": [_SESSION, POINTER(StepRecordStruct)],
    "begin_step": [_SESSION, POINTER(PositionStruct)],
    "move": [_SESSION, c_int32, POINTER(PositionStruct)],
    "run_to": [_SESSION, c_int32, POINTER(PositionStruct)],
    "run_to_break": [_SESSION, c_int32, POINTER(PositionStruct)],
    "move_phase": [_SESSION, c_int32, POINTER(PositionStruct)],
    "finish_step": [_SESSION, POINTER(StepRecordStruct)],
    "abandon_step": [_SESSION],
    "rewind": [_SESSION, c_int64],
    "where": [_SESSION, POINTER(PositionStruct)],
    "break_on": [_SESSION, _TEXTS, c_size_t],
    "value": [_SESSION, c_char_p, POINTER(TensorStruct)],
    "edit": [_SESSION, c_char_p, POINTER(TensorStruct)],
    "parameters": _list_of(ValueInfoStruct),
    "state": [_SESSION, c_char_p, POINTER(TensorStruct)],
    "set_state": [_SESSION, c_char_p, POINTER(TensorStruct)],
    "place": [_SESSION, c_char_p, POINTER(TensorStruct), c_int32],
    "flat_size": [_SESSION, c_int32, POINTER(c_int64)],
    "place_flat": [_SESSION, c_int32, POINTER(TensorStruct), c_int32],
    "learning_rate": [_SESSION, POINTER(c_double)],
    "set_learning_rate": [_SESSION, c_double],
    "evaluate": [_SESSION, _TEXTS, POINTER(POINTER(TensorStruct)), c_size_t, c_int64, POINTER(EvaluationStruct)],
    "differentiate": [_SESSION, _TEXTS, c_size_t, _TEXTS, c_size_t],
    "forward": [_SESSION, _TEXTS, POINTER(POINTER(TensorStruct)), c_size_t, c_uint64, POINTER(c_void_p)],
    "call_output": [c_void_p, c_char_p, POINTER(TensorStruct)],
    "backward": [c_void_p, _TEXTS, POINTER(POINTER(TensorStruct)), c_size_t],
    "call_gradient": [c_void_p, c_char_p, POINTER(TensorStruct), POINTER(c_int32)],
    "set_property": [_SESSION, POINTER(PropertyStruct)],
    "drop_property": [_SESSION, c_char_p],
    "properties": _list_of(PropertyStruct),
    "gradient": [_SESSION, c_char_p, POINTER(TensorStruct)],
    "save": [_SESSION, c_char_p],
    "load": [_SESSION, c_char_p, c_int32],
    "attach_open": [c_char_p, c_char_p],
    "attach": [_SESSION],
    "attach_path": [POINTER(c_char_p)],
    "attach_place": [c_char_p],
    "attach_steps": [POINTER(c_int32)],
}


def _candidates():
    """Where the library may lie: $STEPSCOPE_LIBRARY, this package, the builds of the tree it stands in, the system."""
    named = os.environ.get("STEPSCOPE_LIBRARY")
    if named:
        yield named
        return
    here = pathlib.Path(__file__).resolve().parent
    yield str(here / "_programs/lib/libstepscope.so.1")
    yield str(here / "libstepscope.so.1")
    for parent in here.parents:
        if (parent / "CMakePresets.json").is_file():
            yield str(parent / "build/release/lib/libstepscope.so.1")
    yield "libstepscope.so.1"


class Library:
    """The loaded library. Its functions raise Error where the C function returns one."""

    def __init__(self):
        tried = []
        for candidate in _candidates():
            try:
                self._c = ctypes.CDLL(candidate)
                break
            except OSError as error:
                tried.append(str(error))
        else:
            raise ImportError("libstepscope: not found; set STEPSCOPE_LIBRARY to its path; tried:\n  " + "\n  ".join(tried))
        self._c.ss_api_version.restype = c_uint32
        found = self._c.ss_api_version() >> 16
        if found != API_MAJOR:
            raise ImportError(f"libstepscope: version {found} of the API; expected {API_MAJOR}")
        self._c.ss_version.restype = c_char_p
        self._c.ss_error_code.argtypes = self._c.ss_error_message.argtypes = self._c.ss_error_free.argtypes = [c_void_p]
        self._c.ss_error_message.restype = c_char_p
        self._c.ss_close.argtypes = self._c.ss_cancel.argtypes = self._c.ss_call_free.argtypes = [c_void_p]
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._c, "ss_" + name)
            function.restype, function.argtypes = c_void_p, arguments
            setattr(self, name, self._raising(function))
        self._c.ss_attach_close.argtypes, self._c.ss_attach_close.restype = [], None
        self.attach_close = self._c.ss_attach_close
        self.close, self.cancel, self.call_free = self._c.ss_close, self._c.ss_cancel, self._c.ss_call_free

    def version(self) -> str:
        return self._c.ss_version().decode()

    def _raising(self, function):
        def call(*arguments):
            error = function(*arguments)
            if error:
                code, message = self._c.ss_error_code(error), self._c.ss_error_message(error).decode(errors="replace")
                self._c.ss_error_free(error)
                raise Error(code, message)

        return call


class _WhenUsed:
    """The library, loaded when the first of its functions is: what only captures a model does without."""

    def __getattr__(self, name):
        loaded = Library()
        vars(self).update(vars(loaded), version=loaded.version)
        return vars(self)[name]


library = _WhenUsed()


def texts(items) -> tuple:
    """A list of strings as C wants it, and how many."""
    encoded = [item.encode() for item in items]
    return (c_char_p * len(encoded))(*encoded), len(encoded)


def items_of(function, session, struct) -> list:
    """The structs that a function lists."""
    pointers, count = POINTER(POINTER(struct))(), c_size_t()
    function(session, ctypes.byref(pointers), ctypes.byref(count))
    return [pointers[i].contents for i in range(count.value)]


def sized(struct):
    """An empty struct that says how long it is."""
    made = struct()
    made.size = ctypes.sizeof(struct)
    return made

"""Stepscope's training engine in Python: open an ONNX model, train it, and walk through a step both ways.

    import stepscope

    with stepscope.open("model.onnx", optimizer="adamw", lr=1e-3) as session:
        for x, y in batches:
            session.feed(x=x, y=y)
            print(session.step().loss)
        session.save("state.safetensors")

Options are those of `stepscope options`; a dash or a point in a name is written as it is in a dict: open(path, {"pass.cse": "off"}).
One session is used by one thread at a time; cancel() may come from any. Python's lock is free while the engine works.

What needs torch is loaded when it is named; help(stepscope.Module) tells of each:

    Module, Refused                      a module whose forward and backward pass the engine computes
    backend, compiled                    a backend of torch.compile, and what it took
    compare, Comparison                  PyTorch and Stepscope side by side
    attach, detach                       a window at the loop of this script (without torch too)
    capture, verify, Differs, watch, NotRecorded, ModuleWithLoss, TrainerCallback, LightningCallback, apply_checkpoint_policy
                                         from a training script to a folder that Stepscope opens (package stepscope_capture)
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional

from . import library as _c
from .array import Array, Given, Memory, array_of, dtype_name
from .call import Call, borrowed
from .library import Error
from .properties import Properties

if TYPE_CHECKING:  # __getattr__ has them below
    from stepscope_capture import (Differs, LightningCallback, ModuleWithLoss, NotRecorded, TrainerCallback, apply_checkpoint_policy, capture,
                                   verify, watch)  # fmt: skip

    from . import compiled
    from .attached import attach, detach
    from .comparison import Comparison, compare
    from .compiled import backend
    from .module import Module, Refused

__all__ = ["Array", "Call", "Error", "Evaluation", "Instruction", "Option", "Position", "Properties", "Session", "StepRecord", "ValueInfo", "open",
           "version"]  # fmt: skip

# What needs torch: from the package stepscope_capture (plugins/torch), when it is asked for.
_OF_CAPTURE = ("Differs", "LightningCallback", "ModuleWithLoss", "NotRecorded", "TrainerCallback", "apply_checkpoint_policy", "capture", "verify",
               "watch")  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("Comparison", "compare"):
        return getattr(importlib.import_module("stepscope.comparison"), name)
    if name in ("attach", "detach"):
        return getattr(importlib.import_module("stepscope.attached"), name)
    if name in ("Module", "Refused"):
        return getattr(importlib.import_module("stepscope.module"), name)
    if name in ("backend", "compiled"):
        found = importlib.import_module("stepscope.compiled")
        return found if name == "compiled" else found.backend
    if name not in _OF_CAPTURE:
        raise AttributeError(f"module 'stepscope' has no attribute '{name}'")
    return getattr(capture_parts(), name)


def capture_parts(part: str = "") -> Any:
    """The package stepscope_capture (plugins/torch), or a module of it."""
    wanted = "stepscope_capture" + (f".{part}" if part else "")
    try:
        return importlib.import_module(wanted)
    except ModuleNotFoundError as error:
        if error.name != "stepscope_capture":
            raise
    for parent in pathlib.Path(__file__).resolve().parents:  # in the tree it lies elsewhere
        if (parent / "plugins/torch/stepscope_capture").is_dir():
            sys.path.append(str(parent / "plugins/torch"))
            return importlib.import_module(wanted)
    raise ImportError(f"{wanted}: needs the package stepscope_capture (plugins/torch); install it with pip")


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """An input or a parameter. `shape`: None for an extent that is no number before there is a batch; None at all: unknown rank."""

    name: str
    dtype: str
    shape: Optional[tuple]
    text: str  # "float32[batch, 8]"
    trained: bool
    elements: Optional[int] = None  # None where an extent is no number


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Loss and metrics of some batches. Of a cross entropy `labels` is how many labels count, `correct` those whose class has the largest
    score; None for other losses. The loss of a mean over labels is weighted by them, else it is the mean over the batches."""

    loss: float
    batches: int
    labels: Optional[int]
    correct: Optional[int]
    synthetic: bool  # the data was
    ns: int  # of computing


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of the session, with who set it: "default", "api", "environment" …"""

    name: str
    value: str
    default: str
    set_by: str
    doc: str
    kind: str  # "switch", "choice", "bytes", "count", "number", "text"
    choices: tuple


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One entry of the plan: a node and what it moves and computes."""

    index: int
    name: str
    op: str
    phase: str  # "forward", "backward", "recompute", "optimizer"
    flops: float
    bytes_read: int
    bytes_written: int


@dataclasses.dataclass(frozen=True)
class StepRecord:
    """A micro step that was committed. `loss_scale` is 0 without one."""

    step: int
    loss: Optional[float]
    learning_rate: float
    gradient_norm: Optional[float]  # global, before clipping
    loss_scale: float
    updated: bool  # the optimizer ran
    skipped: bool  # it did not, because gradients were not finite
    ns: int
    planned_bytes: int
    peak_bytes: int


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a step stands: `instruction` would run next."""

    in_step: bool
    step: int
    instruction: int
    loss: Optional[float]
    stopped_by: str  # "step", "breakpoint 3: NaN in 'x'", "end of step", "cancelled"


def version() -> str:
    """Of the library, with the commit it was built from."""
    return _c.library.version()


def open(model: "str | os.PathLike", options: Optional[Mapping[str, Any]] = None, **more: Any) -> "Session":
    """A session of an .onnx file. Options as a mapping or by keyword; True and False are on and off. Raises Error."""
    return Session(model, {**(options or {}), **more})


def _text(value: Any) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


class Session:
    """One model with its options, its plan and its state. A with-statement closes it."""

    def __init__(self, model: "str | os.PathLike", options: Mapping[str, Any]):
        self._handle = ctypes.c_void_p()
        self._placed: list[Memory] = []  # borrowed by the library until it is closed
        names, count = _c.texts(options.keys())
        values, _ = _c.texts(_text(value) for value in options.values())
        _c.library.open(os.fsencode(model), names, values, count, ctypes.byref(self._handle))

    # --- life
    def close(self) -> None:
        """Gives everything back; a second time does nothing."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            _c.library.close(handle)
            self._placed.clear()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _session(self) -> ctypes.c_void_p:
        if not self._handle:
            raise Error(1, "session: it was closed; expected an open one")
        return self._handle

    # --- what there is
    @property
    def inputs(self) -> list[ValueInfo]:
        """Of the model, as the file declares them."""
        return [self._value(info) for info in _c.items_of(_c.library.inputs, self._session(), _c.ValueInfoStruct)]

    @property
    def parameters(self) -> list[ValueInfo]:
        """Of the model, trained or not; known after the build."""
        return [self._value(info) for info in _c.items_of(_c.library.parameters, self._session(), _c.ValueInfoStruct)]

    @property
    def options(self) -> dict[str, Option]:
        """By name, those of plugins too."""
        infos = _c.items_of(_c.library.options, self._session(), _c.OptionInfoStruct)
        options = [
            Option(i.name.decode(), i.value.decode(), i.default_value.decode(), i.set_by.decode(), i.doc.decode(), i.kind.decode(),
                   tuple(i.choices[k].decode() for k in range(i.choice_count)))
            for i in infos
        ]  # fmt: skip
        return {option.name: option for option in options}

    @property
    def instructions(self) -> list[Instruction]:
        """Of the plan that runs, in order."""
        infos = _c.items_of(_c.library.instructions, self._session(), _c.InstructionInfoStruct)
        return [
            Instruction(i.index, i.name.decode(), i.op.decode(), i.phase.decode(), i.flops, i.bytes_read, i.bytes_written) for i in infos
        ]

    # --- options
    def set(self, options: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        """Changes options. After a build they wait for apply(), or for the next step to begin."""
        for name, value in {**(options or {}), **more}.items():
            _c.library.set(self._session(), name.encode(), _text(value).encode())

    def apply(self) -> None:
        """Builds with the changed options beside the plan that runs; a begun step is replayed to its place."""
        _c.library.apply(self._session())

    # --- data and building
    def feed(self, arrays: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        """The arrays of the coming micro step by input: NumPy, torch, stepscope.Array, or whatever has the buffer protocol. They are
        copied. Once fed, a session takes no batch from elsewhere."""
        given = {name: Given(name, value) for name, value in {**(arrays or {}), **more}.items()}
        names, count = _c.texts(given)
        pointers = (ctypes.POINTER(_c.TensorStruct) * count)(*[ctypes.pointer(g.struct) for g in given.values()])
        _c.library.feed(self._session(), names, pointers, count)

    def build(self, keep_gradients: bool = False, keep: Iterable[str] = ()) -> None:
        """Makes the step. `keep`: values that can be read until the step ends. Without a call, step() builds."""
        names, count = _c.texts(keep)
        _c.library.keep_gradients(self._session(), keep_gradients)
        _c.library.keep_values(self._session(), names, count)
        _c.library.build(self._session())

    def build_forward(self, fetch: Iterable[str]) -> None:
        """Without loss, gradient and optimizer; keeps the values `fetch`."""
        names, count = _c.texts(fetch)
        _c.library.build_forward(self._session(), names, count)

    # --- as a function
    def differentiate(self, outputs: Iterable[str] = (), inputs: Iterable[str] = ()) -> None:
        """From here on forward() runs the model as a function. `outputs`: whose gradients Call.backward() is given; none: there is no backward
        pass. `inputs`: whose gradients are wanted besides those of trained parameters; names of parameters among them are the trained ones."""
        of, count = _c.texts(outputs)
        wanted, wanted_count = _c.texts(inputs)
        _c.library.differentiate(self._session(), of, count, wanted, wanted_count)

    def forward(self, arrays: Optional[Mapping[str, Any]] = None, seed: int = 0, **more: Any) -> Call:
        """One forward pass of the model as a function, without its loss. Several may be open at once. `seed`: of Dropout, in both passes."""
        names, pointers, count, _keep = borrowed({**(arrays or {}), **more})
        handle = ctypes.c_void_p()
        _c.library.forward(self._session(), names, pointers, count, seed, ctypes.byref(handle))
        return Call(self, handle)

    # --- running
    def step(self) -> StepRecord:
        """One micro step at full speed; a begun step is finished instead."""
        return self._record(_c.library.step)

    def begin_step(self) -> Position:
        """At the first instruction of the coming micro step; a begun one is thrown away."""
        return self._moved(_c.library.begin_step)

    def move(self, instructions: int) -> Position:
        """That many instructions on; negative: back."""
        return self._moved(_c.library.move, instructions)

    def run_to(self, instruction: int) -> Position:
        """To where that instruction comes next, either way."""
        return self._moved(_c.library.run_to, instruction)

    def run_to_break(self, backwards: bool = False) -> Position:
        """To the next breakpoint, or the end (the start) of the step."""
        return self._moved(_c.library.run_to_break, backwards)

    def move_phase(self, backwards: bool = False) -> Position:
        """To where the next phase begins: forward, backward, optimizer, end."""
        return self._moved(_c.library.move_phase, backwards)

    def where(self) -> Position:
        """Where the step stands; moves nothing."""
        return self._moved(_c.library.where)

    def finish_step(self) -> StepRecord:
        """Runs what is left of the begun step and commits it."""
        return self._record(_c.library.finish_step)

    def abandon_step(self) -> None:
        """Throws the begun step away; the state is that of before."""
        _c.library.abandon_step(self._session())

    def rewind(self, step: int) -> None:
        """To the start of an earlier micro step, as far as states of it are kept."""
        _c.library.rewind(self._session(), step)

    def break_on(self, *conditions: str) -> None:
        """Replaces all breakpoints: "nan", "inf", "op Softmax", "node NAME", "phase backward", "instruction 12", "loss max > 10"."""
        texts, count = _c.texts(conditions)
        _c.library.break_on(self._session(), texts, count)

    def cancel(self) -> None:
        """From any thread: what runs, or runs next, ends with Error "cancelled"."""
        _c.library.cancel(self._session())

    # --- values and state
    def value(self, name: str) -> Array:
        """A value of the step, by its name in the graph that runs."""
        return self._array(_c.library.value, name)

    def edit(self, name: str, contents: Any) -> None:
        """Other contents for a value, of its type and shape; part of the step when it is replayed."""
        given = Given(name, contents)
        _c.library.edit(self._session(), name.encode(), ctypes.byref(given.struct))

    def state(self, name: str) -> Array:
        """A parameter or optimizer state."""
        return self._array(_c.library.state, name)

    def gradient(self, parameter: str) -> Array:
        """Of the newest step; needs build(keep_gradients=True)."""
        return self._array(_c.library.gradient, parameter)

    def set_state(self, name: str, contents: Any) -> None:
        """Between steps: other contents for a parameter, a running statistic or optimizer state, of its shape."""
        given = Given(name, contents)
        _c.library.set_state(self._session(), name.encode(), ctypes.byref(given.struct))

    def place(self, name: str, memory: Any, take: bool = False) -> None:
        """Between steps: a parameter or state lives in `memory` from now on, an array of its type and shape that the session keeps alive (torch,
        NumPy, stepscope.Array). What is written there counts from the next step on, and steps leave their results there. `take`: its contents
        become those of the memory, else they are copied into it."""
        placed = Memory(name, memory)
        _c.library.place(self._session(), name.encode(), ctypes.byref(placed.struct), take)
        self._placed.append(placed)

    def flat_parameters(self, memory: Any = None, trained_only: bool = True, take: bool = False) -> Any:
        """All parameters in one piece of memory, float32, one after the other as `parameters` lists them: where they live from now on, so that
        nothing is copied in or out. `memory`: of float32[n]; default: a new stepscope.Array. `take`: they become what is there. After the build."""
        count = ctypes.c_int64()
        _c.library.flat_size(self._session(), trained_only, ctypes.byref(count))
        if memory is None:
            memory = Array("float32", [count.value], bytearray(4 * count.value))
        placed = Memory("parameters", memory)
        _c.library.place_flat(self._session(), trained_only, ctypes.byref(placed.struct), take)
        self._placed.append(placed)
        return memory

    @property
    def learning_rate(self) -> float:
        """What the coming update takes: the option lr by the schedule, from the first update on. Setting replaces the option at once, without a
        build; the schedule goes on from where it is."""
        rate = ctypes.c_double()
        _c.library.learning_rate(self._session(), ctypes.byref(rate))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, base: float) -> None:
        _c.library.set_learning_rate(self._session(), base)

    def evaluate(self, batches: "int | Mapping[str, Any] | Iterable[Mapping[str, Any]]" = 0) -> Evaluation:
        """Loss and metrics as the model is used: Dropout hands on, BatchNormalization takes its running statistics; nothing of the session changes.
        `batches`: arrays by input, one batch or several; or how many entries of the data that the options name, 0 for all."""
        given: list[Given] = []
        names: list[str] = []
        count = batches if isinstance(batches, int) else 0
        if not isinstance(batches, int):
            for batch in [batches] if isinstance(batches, Mapping) else batches:
                names = names or list(batch)
                if set(names) != set(batch):
                    raise Error(1, f"evaluate: batch {count} has {sorted(batch)}; expected {sorted(names)} as the first")
                given += [Given(name, batch[name]) for name in names]
                count += 1
        texts, of_each = _c.texts(names)
        pointers = (ctypes.POINTER(_c.TensorStruct) * len(given))(*[ctypes.pointer(g.struct) for g in given])
        e = _c.sized(_c.EvaluationStruct)
        _c.library.evaluate(self._session(), texts, pointers, of_each, count, ctypes.byref(e))
        return Evaluation(e.loss, e.batches, e.labels if e.labels >= 0 else None, e.correct if e.correct >= 0 else None, bool(e.synthetic), e.ns)

    @property
    def properties(self) -> Properties:
        """What the program keeps beside the state, as a dict: save() writes it, load() reads it."""
        return Properties(self)

    def save(self, path: "str | os.PathLike") -> None:
        """Parameters, optimizer state, counters and properties as safetensors."""
        _c.library.save(self._session(), os.fsencode(path))

    def load(self, path: "str | os.PathLike", resume: bool = False) -> None:
        """Parameters and properties; with `resume` optimizer state and counters too, so that a schedule goes on where it was."""
        _c.library.load(self._session(), os.fsencode(path), resume)

    # --- structs
    def _array(self, function: Any, name: str) -> Array:
        struct = _c.sized(_c.TensorStruct)
        function(self._session(), name.encode(), ctypes.byref(struct))
        return array_of(struct)

    def _moved(self, function: Any, *arguments: int) -> Position:
        p = _c.sized(_c.PositionStruct)
        function(self._session(), *arguments, ctypes.byref(p))
        return Position(bool(p.in_step), p.step, p.instruction, p.loss if p.has_loss else None, p.stopped_by.decode())

    def _record(self, function: Any) -> StepRecord:
        r = _c.sized(_c.StepRecordStruct)
        function(self._session(), ctypes.byref(r))
        return StepRecord(r.step, r.loss if r.has_loss else None, r.learning_rate, r.gradient_norm if r.has_gradient_norm else None,
                          r.loss_scale, bool(r.updated), bool(r.skipped), r.ns, r.planned_bytes, r.peak_bytes)  # fmt: skip

    @staticmethod
    def _value(info: _c.ValueInfoStruct) -> ValueInfo:
        shape = tuple(None if d < 0 else d for d in info.dims[: info.rank]) if info.rank < 1 << 32 else None
        return ValueInfo(info.name.decode(), dtype_name(info.dtype), shape, info.text.decode(), bool(info.trained),
                         info.elements if info.elements >= 0 else None)  # fmt: skip

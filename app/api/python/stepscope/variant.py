"""What the engine has built of a module of torch, and a pass of it for autograd. Of module.py."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import io
import tempfile
import time
import warnings
import weakref
from typing import Any, Callable, Optional

import torch
from torch import nn
from torch.utils import _pytree as pytree

from . import attached, capture_parts
from . import open as open_session
from .library import library

TYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16,
         11: torch.float64, 16: torch.bfloat16}  # fmt: skip
NORMS = nn.modules.batchnorm._BatchNorm


class Refused(RuntimeError):
    """The engine does not take this module, or this call of it; the message says why. `settles`: it may take the next one."""

    settles = False


@dataclasses.dataclass
class Variant:
    """One signature of calls, and why it was made."""

    reason: str
    signature: str
    exporter: str
    export_ns: int
    build_ns: int
    calls: int = 0


def tensor_at(struct: Any, lender: Any = None) -> torch.Tensor:
    """A copy of what the library has there; or that memory itself, which keeps `lender` alive."""
    shape = tuple(struct.dims[i] for i in range(struct.rank))
    if not struct.bytes:
        return torch.empty(shape, dtype=TYPES[struct.dtype])
    memory = (ctypes.c_char * struct.bytes).from_address(struct.data)
    memory.lender = lender
    there = torch.frombuffer(memory, dtype=TYPES[struct.dtype])
    return there.view(shape).clone() if lender is None else torch.empty(0, dtype=there.dtype).set_(there.untyped_storage(), 0, shape)


class Pass(torch.autograd.Function):
    """Forward of the engine. `values`: tensors of the arguments, then trained parameters."""

    @staticmethod
    def forward(ctx: Any, built: "Built", told: Variant, *values: torch.Tensor) -> tuple:
        call = built.run(values, told)
        built.follow()
        ctx.built, ctx.call, ctx.values = built, call, values[len(values) - len(built.trained) :]
        ctx.versions = [p._version for p in ctx.values]
        ctx.set_materialize_grads(False)
        results = tuple(tensor_at(call.output_struct(name)) for name in built.file.outputs)
        ctx.mark_non_differentiable(*[r for r, name in zip(results, built.file.outputs) if name not in built.floats])
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Optional[torch.Tensor]) -> tuple:
        built, call, ctx.call = ctx.built, ctx.call, None
        if call is None:
            raise Refused(
                "backward of a stepscope.Module: it ran already, and the engine gives activations up on the way, so retain_graph=True keeps nothing; "
                "run the forward pass again, or add the losses up before one backward()"
            )
        changed = [name for (name, _), p, v in zip(built.trained, ctx.values, ctx.versions) if p._version != v]
        if changed:
            raise Refused(f"backward of a stepscope.Module: parameter '{changed[0]}' was changed in place since the forward pass; expected its backward pass before")
        call.backward({n: g.contiguous() for n, g in zip(built.file.outputs, gradients) if g is not None and n in built.floats})
        found: list = [None, None]  # of `built` and `told`
        wanted = {i for i in built.wanted}
        names = dict((i, name) for name, i in built.file.inputs)
        for i in range(built.tensor_count):
            place = call.gradient_struct(names[i]) if i in wanted and i in names else None
            found.append(None if place is None else tensor_at(place[0]))
        lends = built.lends.begin(call)
        for _, initializer in built.trained:
            place = call.gradient_struct(initializer)
            found.append(None if place is None else built.lends.lend(place[0], call) if lends and place[1] else tensor_at(place[0]))
        if not lends:
            call.close()
        built.follow()
        return tuple(found)


def exported(model: nn.Module, leaves: list, spec: Any, folder: str, exporter: str, axes: Optional[dict]) -> Any:
    """The file. Raises Refused."""
    parts = capture_parts("function_file")
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # exporters tell their progress
            warnings.simplefilter("ignore")
            return parts.write_function(model, leaves, spec, folder, exporter, axes=axes)
    except parts.Refused as error:
        raise _refused(error) from None
    except Exception as error:  # noqa: BLE001  whatever an exporter does with a model that it cannot export
        text = str(error).strip().splitlines()
        raise Refused(f"{type(error).__name__}: {text[0] if text else ''}") from error


def _rounded(ours: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor, allowed: float) -> bool:
    """Whether it is at most twice as far from float64 as PyTorch in float32, which is off by at most a quarter of the largest number: where the terms of long sums cancel."""
    if exact.shape != theirs.shape or not theirs.numel():
        return False
    off = float((theirs - exact).abs().max())
    return off <= 0.25 * float(exact.abs().max()) and torch.allclose(ours, exact, rtol=0, atol=2 * off + allowed)


def _refused(error: Exception) -> Refused:
    refused = Refused(str(error))
    refused.settles = getattr(error, "settles", False)
    return refused


def _lay_out(name: str, tensor: torch.Tensor, held: Any) -> None:
    """Gives a tensor (transposed, channels last) contiguous memory, which the engine reads. The object stays the same. Raises Refused where others are
    views of its memory."""
    storage = tensor.untyped_storage()
    shared = any(t is not tensor and t.untyped_storage().data_ptr() == storage.data_ptr() for t in held)
    if shared or storage.nbytes() != tensor.numel() * tensor.element_size():
        raise Refused(f"'{name}' has strides {tensor.stride()} and shares its memory; expected contiguous memory: {name}.data = {name}.contiguous()")
    with torch.no_grad():
        tensor.data = tensor.detach().contiguous()


class Lends:
    """Gradients of parameters stay where the engine computed them, until the next forward pass. A `grad` that is kept beyond gets memory of torch then, to which
    torch adds from there on. Where a loop keeps them elsewhere (in a list), each would hold the memory of a whole pass: gradients are copied from then on.
    """

    def __init__(self) -> None:
        self.call: Any = None  # a weak reference to what lends
        self.places: set = set()
        self.refused = False

    def begin(self, call: Any) -> bool:
        """Whether the gradients of this call are lent. Those of one call are at a time."""
        if self.refused or (self.call is not None and self.call() is not None):
            return False
        self.call, self.places = weakref.ref(call), set()
        return True

    def lend(self, struct: Any, call: Any) -> torch.Tensor:
        self.places.add(struct.data)
        return tensor_at(struct, call)

    def end(self, parameters: list) -> None:
        """Before a forward pass: takes the memory back."""
        if self.call is None or self.call() is None:
            return
        for p in parameters:
            if p.grad is not None and p.grad.data_ptr() in self.places:
                p.grad.data = p.grad.data.clone()
        self.refused = self.call() is not None


class Built:
    """A file of a module and its session. `axes`: extents that calls may have otherwise (function_file.py); none: one signature."""

    def __init__(self, model: nn.Module, leaves: list, spec: Any, grad: bool, exporter: str, options: dict, axes: Optional[dict] = None):
        self.folder = tempfile.TemporaryDirectory(prefix="stepscope_module_")
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.tensor_count, self.axes, self.exporter, self.extents = len(tensors), axes, exporter, [tuple(t.shape) for t in tensors]
        begin = time.monotonic_ns()
        self.file = exported(model, leaves, spec, self.folder.name, exporter, axes)
        self.export_ns = time.monotonic_ns() - begin
        self.attached = False  # a window may look on
        self.lends = Lends()
        self.autocast: Optional[list] = None  # types of the results where PyTorch casts by itself; asked for when it does
        held = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}
        prefix = capture_parts("function_file").PREFIX
        named = {prefix + name: (name, tensor) for name, tensor in held.items()}
        self.placed = [(initializer, *named[initializer]) for initializer in sorted(self.file.initializers) if initializer in named]
        norms = [(name, m) for name, m in model.named_modules() if isinstance(m, NORMS) and m.training and m.track_running_stats and m.num_batches_tracked is not None]
        self.norms = [m for name, m in norms if f"{prefix}{name}.num_batches_tracked" not in self.file.changed]  # whose counters the file does not write
        trained, self.trained, seen = [], [], set()
        for initializer, name, tensor in self.placed:
            if isinstance(tensor, nn.Parameter) and tensor.requires_grad and id(tensor) not in seen:
                trained.append(initializer)
                seen.add(id(tensor))
                self.trained.append((name, initializer))
        self.parameters = [held[name] for name, _ in self.trained]
        settings = {"threads": torch.get_num_threads(), "seed": 0, **options}
        if not trained:
            settings["freeze"] = "."
        for _, name, tensor in self.placed:
            if tensor.device.type != "cpu":
                raise Refused(f"'{name}' is on {tensor.device}; expected the CPU")
            if not tensor.is_contiguous():
                _lay_out(name, tensor, held.values())
        self.addresses = [(name, tensor, tensor.data_ptr()) for _, name, tensor in self.placed]
        # Statistics are written by both passes; without gradients they have to be asked for.
        updates = bool(self.norms) or bool(self.file.changed)
        self.backward = grad or updates and bool(trained)
        if updates and not self.backward:
            raise Refused("it changes buffers in a forward pass without gradients, and nothing in it is trained; expected eval()")
        self.floats = self.file.floats if self.backward else []
        self.wanted = [i for _, i in self.file.inputs if grad and tensors[i].requires_grad]
        if self.backward and not self.floats:
            raise Refused("none of its results is a tensor of floats; expected one to take a gradient of")
        names = dict((i, name) for name, i in self.file.inputs)
        asked = [*(names[i] for i in self.wanted), *(trained if self.backward else [])]
        self.session = self._session(self.file.path, settings, asked)
        self.checks = self.file.check is not None and not settings.get("precision")
        if self.checks:  # what drops is compared in a session that does not
            self.checked = self._session(self.file.check, settings, asked) if self.file.draws else self.session
            self.check(tensors, self.file.expected, lambda: capture_parts("function_file").in_float64(model, leaves, spec))
        if not axes:
            self.checked = None

    def _session(self, path: Any, settings: dict, asked: list) -> Any:
        session = open_session(path, settings)
        for initializer, _, tensor in self.placed:
            session.place(initializer, tensor.detach(), take=True)
        session.differentiate(self.floats, asked)
        return session

    def attach(self) -> None:
        """A window may look at its passes, and at what the script does between them."""
        self.attached = True
        library.attach(self.session._session())

    def follow(self) -> None:
        """After a pass: the script's own code comes."""
        if self.attached:
            attached.follow()

    def takes(self, tensors: list) -> bool:
        """Whether it is of these extents too: others only where it has symbols, which stand for one number each."""
        meant: dict[str, int] = {}
        for i, (t, known) in enumerate(zip(tensors, self.extents)):
            for axis, extent in enumerate(t.shape):
                symbol = (self.axes or {}).get(i, {}).get(axis)
                if extent != known[axis] if symbol is None else meant.setdefault(symbol, extent) != extent:
                    return False
        return True

    def check_call(self, model: nn.Module, leaves: list, spec: Any) -> None:
        """Raises Refused where another call has other results than PyTorch's."""
        parts = capture_parts("function_file")
        try:
            expected = parts.expected_of(model, leaves, spec)
        except parts.Refused as error:
            raise _refused(error) from None
        if expected.result != self.file.expected.result or expected.constants != self.file.expected.constants:
            raise Refused("its result has another structure, or other numbers, for other extents of its arguments")
        self.check([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)], expected, lambda: parts.in_float64(model, leaves, spec))

    def check(self, tensors: list, expected: Any, in_float64: Callable[[], Any]) -> None:
        """Raises Refused where results or state of a call are others than PyTorch's, by more than PyTorch's own rounding. It leaves the state as it was."""
        written = {initializer: (name, tensor, tensor.detach().clone()) for initializer, name, tensor in self.placed if not tensor.requires_grad}
        call = self.checked.forward({name: tensors[i].detach().contiguous() for name, i in self.file.inputs}, 0)
        found = [(f"result {i}", tensor_at(call.output_struct(name)), result, lambda e, i=i: e.tensors[i]) for i, (name, result) in enumerate(zip(self.file.outputs, expected.tensors))]
        found += [(f"'{written[i][0]}'", written[i][1].detach().clone(), expected.after[i], lambda e, i=i: e.after[i]) for i in self.file.changed if i in written]
        if self.backward:
            arriving = capture_parts("function_file").arriving
            call.backward({name: arriving(t) for name, t in zip(self.file.outputs, expected.tensors) if name in self.floats})
            places = {i: call.gradient_struct(i) for _, i in self.trained if i in expected.gradients}
            found += [(f"the gradient of '{i}'", tensor_at(place[0]), expected.gradients[i], lambda e, i=i: e.gradients[i]) for i, place in places.items() if place is not None]
        call.close()
        with torch.no_grad():
            for _, tensor, before in written.values():
                tensor.copy_(before)
        largest = max((float(g.abs().max()) for g in expected.gradients.values() if g.numel()), default=0.0)
        exact: list = []  # what PyTorch computes in float64, once it is needed
        for what, ours, theirs, of in found:
            if what.startswith("result") and not theirs.is_floating_point():  # which of equal ones is the largest …
                if ours.shape != theirs.shape:
                    raise Refused(f"{what} has extents {list(ours.shape)} where PyTorch has {list(theirs.shape)}")
                continue
            a, b = ours.double(), theirs.double()
            finite = b[b.isfinite()].abs()
            allowed = 1e-3 * (float(finite.max()) if finite.numel() else 0.0) + (1e-4 * largest if what.startswith("the gradient") else 0.0) + 1e-6
            if a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=allowed, equal_nan=True):
                continue
            exact = exact or [in_float64()]
            if a.shape != b.shape or exact[0] is None or not _rounded(a, b, of(exact[0]), allowed):
                raise Refused(f"{what} of the first call is another than PyTorch's: a part is lost on the way (a write through a view, a state that is read and then written …)")

    def run(self, values: tuple, told: Variant) -> Any:
        self.lends.end(self.parameters)
        seed = int(torch.randint(0, 2**62, ()).item()) if self.file.draws else 0
        begin = time.monotonic_ns()
        call = self.session.forward({name: values[i].detach().contiguous() for name, i in self.file.inputs}, seed)
        if not told.calls:
            told.build_ns = time.monotonic_ns() - begin
        for norm in self.norms:
            norm.num_batches_tracked.add_(1)
        told.calls += 1
        return call

    def result(self, tensors: tuple) -> Any:
        """The tensors in the structure that forward() returns."""
        of, found = self.file.expected, iter(tensors)
        return pytree.tree_unflatten([of.constants[i] if i in of.constants else next(found) for i in range(of.result.num_leaves)], of.result)

    def in_autocast(self, model: nn.Module, leaves: list, spec: Any, tensors: tuple) -> tuple:
        """The tensors in the types that PyTorch returns in the present torch.autocast. Raises what PyTorch raises there."""
        if self.autocast is None:
            self.autocast = capture_parts("function_file").autocast_types(model, leaves, spec, torch.get_autocast_dtype("cpu"))
        return tuple(t.to(kind) if t.is_floating_point() and kind.is_floating_point else t for t, kind in zip(tensors, self.autocast))

    def moved(self) -> Optional[str]:
        """What lies elsewhere by now."""
        return next((name for name, tensor, address in self.addresses if tensor.data_ptr() != address), None)

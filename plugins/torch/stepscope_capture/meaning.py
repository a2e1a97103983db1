# SPDX-License-Identifier: Apache-2.0
"""Keeps what an export drops: while the forward pass is traced, a mode sees every function of PyTorch that it calls.

    no_grad, inference_mode    what comes in from outside is detached, as a node of the graph
    .data, detach              likewise
    tensor and parameter hooks a node that changes the gradient
    autograd.Function          a node whose gradient is what its backward() computes (functions.py)
    state that changes         buffers and frozen parameters that forward() writes: their next contents are outputs
"""

import contextlib
import copy

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from stepscope_capture import complex as complex_numbers
from stepscope_capture import tracing
from stepscope_capture.diagonals import with_diagonal
from stepscope_capture.markers import apart
from stepscope_capture.natives import NATIVES
from stepscope_capture.rebound import rebind
from stepscope_capture.views import NO_WRITES, Views

_GET_DATA, _SET_DATA = torch.Tensor.data.__get__, torch.Tensor.data.__set__
_SET_REQUIRES_GRAD = torch.Tensor.requires_grad.__set__
_TRANSPOSED = [getattr(torch.Tensor, name).__get__ for name in ("H", "mH", "mT")]  # exporters lack them
_MARKERS = ("gradient_of", "custom_gradient", "native", "_symbolic.default")
# Functions in place whose other form has another name or other arguments.
_IN_PLACE = {
    "copy_": lambda t, source, *_, **__: source.expand_as(t),
    "fill_": lambda t, value: torch.full_like(t, int(value) if isinstance(value, bool) else value) if not isinstance(value, torch.Tensor) else value.expand_as(t),
    "zero_": torch.zeros_like,
    "__setitem__": lambda t, index, value: _with_item(t, index, value),
    "set_": lambda t, source: source,
}


def _number(bound):
    return float(bound) if type(bound) is int else bound


def _with_item(t, index, value):
    t = t.clone()
    t[index] = value
    return t


def deep_copied(module):
    """A deep copy. What Python cannot copy (locks, generators, open files) the copy shares."""
    # What weight_norm leaves in a module is made again by each forward pass, and deepcopy refuses it.
    made = [t for m in module.modules() for t in vars(m).values() if isinstance(t, torch.Tensor) and not t.is_leaf]
    known = {id(t): t.detach().clone() for t in made}
    try:
        return _deep_copy(module, known)
    except Exception:  # noqa: BLE001  whatever an object says to being copied
        alone = {**known, **{id(m): m for m in module.modules()}}
        shared = [value for m in module.modules() for value in vars(m).values() if not _is_copied(value, alone)]
        if not shared:
            raise
        return _deep_copy(module, {**known, **{id(value): value for value in shared}})


def _deep_copy(module, known):
    known = dict(known)
    other = copy.deepcopy(module, known)
    rebind(other, known)
    return other


def _is_copied(value, known):
    try:
        copy.deepcopy(value, dict(known))
    except Exception:  # noqa: BLE001
        return False
    return True


def copied(module):
    """A deep copy that keeps the hooks of parameters, which deepcopy drops."""
    other = deep_copied(module)
    for (_, mine), (_, theirs) in zip(module.named_parameters(), other.named_parameters()):
        for hook in (mine._backward_hooks or {}).values():
            theirs.register_hook(hook)
    return other


def tree(value, change):
    """`value` with every tensor in it replaced by change(tensor)."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(tree(v, change) for v in value)
    if type(value) is dict:
        return {k: tree(v, change) for k, v in value.items()}
    return value


def _is_view(index):
    """Whether x[index] shows a part of x; tensors with axes, lists and masks of indices make a copy."""

    def shows(part):
        if isinstance(part, torch.Tensor):
            return not part.dim() and part.dtype not in (torch.bool, torch.uint8)
        return part is None or part is Ellipsis or isinstance(part, (int, slice)) and not isinstance(part, bool)

    return all(map(shows, index if isinstance(index, tuple) else (index,)))


class KeepMeaning(TorchFunctionMode):
    """Entered inside of the traced forward(). `state`: tensors by name that the forward pass may change; `functions`: what autograd.Functions do in it;
    `changed`: names of the state whose next contents the file writes itself."""

    def __init__(self, markers, state, functions, changed=()):
        super().__init__()
        self.markers, self.functions = markers, functions
        self._refused = []  # names of functions, and the error that a call of them raises
        functions.begin()
        self._state = dict(state)
        self._trained = {id(t) for t in self._state.values() if t.requires_grad}
        self._names = {id(t): name for name, t in self._state.items()}
        self._written = {id(self._state[name]) for name in changed}
        self._now = {}  # id → the tensor that stands for it now
        self._root = {}  # id of an alias of a whole state tensor → that tensor
        self._parts = {}  # id of a view of a part of a state tensor → (that tensor, index)
        self._diagonals = {}  # id of what diagonal() returned → (of what, its other arguments)
        self._views = Views()
        self._stopped = {}  # id → its detached form
        self._frozen = set()  # ids of parameters that forward() does not train now (requires_grad_(False), as GANs do)
        self._hooks = {}  # id → (tensor, hooks in order)
        self._alive = []  # whose ids stand above
        self.notes = []  # what could not be kept

    def __enter__(self):
        tracing.begin(self)
        return super().__enter__()

    def __exit__(self, *exception):
        tracing.end()
        return super().__exit__(*exception)

    def hook_parameters(self, hooks):
        """`hooks`: by parameter name; an exporter may have put other tensors in the place of the parameters."""
        for name, known in hooks.items():
            for hook in known:
                self._hook(self._state[name], hook)

    def writes(self, tensor):
        """Whether it is a state whose next contents the file writes itself."""
        return id(tensor) in self._written

    def next_of(self, tensor):
        """What became of a state; `tensor`: what the module has under its name after the pass."""
        return self.stop(self._resolve(tensor))

    def stop(self, t):
        if not t.is_floating_point():
            return t
        if id(t) not in self._stopped:
            self._alive.append(t)
            self._stopped[id(t)] = self.markers.stop(t)
        return self._stopped[id(t)]

    def current(self, t, stop=True):
        """What stands for `t` now; detached where no gradient is wanted."""
        return self._argument(t) if stop else self._resolve(t)

    def _resolve(self, t):
        if id(t) in self._parts:
            owner, index = self._parts[id(t)]
            return self._now[id(owner)][index] if id(owner) in self._now else t
        root = self._root.get(id(t))
        if root is not None and id(root) in self._now:
            return self.stop(self._now[id(root)])
        if id(t) in self._now:
            return self._now[id(t)]
        shown = self._views.now(t, self._resolve)
        return t if shown is None else shown

    def _argument(self, t):
        now = self._resolve(t)
        return self.stop(now) if not torch.is_grad_enabled() and now.requires_grad or id(t) in self._frozen else now

    def _becomes(self, target, value):
        value = value.detach() if not value.is_floating_point() else value
        self._alive.append(target)
        value = value.to(target.dtype)
        if id(target) in self._trained and value.shape == target.shape:  # has other values now; its gradient is that of the parameter still
            present = self._now.get(id(target), target)
            value = self.stop(value) + (present - self.stop(present))
        self._now[id(target)] = value
        return target

    def becomes(self, target, value):
        """From now on `value` stands for `target`, which a function changed in place."""
        self._alive.append(target)
        self._now[id(self._owner(target) if self._owner(target) is not None else target)] = value
        return value

    @contextlib.contextmanager
    def refusing(self, names, error):
        """While it is on, a call of a function of these names raises `error`."""
        self._refused.append((names, error))
        try:
            yield
        finally:
            self._refused.pop()

    def refuse(self, reason):
        """Raises the error of the innermost refusing(), where there is one."""
        if self._refused:
            raise self._refused[-1][1](reason)

    def _owner(self, t):
        """The state tensor that `t` is all of, or None."""
        t = self._root.get(id(t), t)
        return t if id(t) in self._names else None

    def _hook(self, t, hook):
        base, hooks = self._hooks.setdefault(id(t), (self._resolve(t), []))
        hooks.append(hook)
        gradient = placeholder = self.markers.gradient_of(self.stop(base))
        with torch.no_grad():
            for one in hooks:
                changed = one(gradient)
                gradient = gradient if changed is None else changed
        if gradient is placeholder:
            return
        self._alive.append(t)
        self._now[id(t)] = self.markers.custom_gradient(self.stop(base), placeholder, base, gradient)

    def _extreme(self, name, x, dim, keepdim=False):
        """max and min along an axis give the gradient to the element that they pick; exporters write a reduction, which shares it among equal ones."""
        x = self._argument(x)
        index = getattr(x.detach(), "arg" + name)(dim, True) if x.dim() else torch.zeros((), dtype=torch.int64)
        values = x.gather(dim, index) if x.dim() else x
        return getattr(torch.return_types, name)((values, index) if keepdim or not x.dim() else (values.squeeze(dim), index.squeeze(dim)))

    def _in_place(self, name, owner, args, kwargs):
        return self._becomes(owner, self._changed(name, owner, args, kwargs))

    def _part_in_place(self, name, part, args, kwargs):
        """A write through a view of a part of a state is one into the state."""
        owner, index = self._parts[id(part)]
        value = self._changed(name, part, args, kwargs)
        self._becomes(owner, _with_item(self._argument(owner), index, value))
        return part

    def _diagonal(self, x, args, kwargs):
        with self:
            part = NATIVES["diagonal"](self.markers.native, x, *args, **kwargs)
        if part is not NotImplemented:
            self._alive += [x, part]
            self._diagonals[id(part)] = (x, args, kwargs)
        return part

    def _diagonal_in_place(self, name, part, args, kwargs):
        """A write through diagonal() is one into what it was taken of."""
        x, where, named = self._diagonals[id(part)]
        value = self._changed(name, part, args, kwargs).to(x.dtype)
        with self:
            whole = with_diagonal(x, value.expand(part.shape), *where, **named)
        owner = self._owner(x)
        if owner is not None:
            self._becomes(owner, whole)
        else:
            self._now[id(x)] = whole
        self._now[id(part)] = value
        return part

    def _view_in_place(self, name, tensor, args, kwargs):
        """A write into a view, or into what has views; NotImplemented where it has to be left to the exporter."""
        value = self._changed(name, tensor, args, kwargs)
        found = self._views.written(tensor, value.to(tensor.dtype), self._resolve)
        if found is None:
            return NotImplemented
        root, whole = found
        self._alive.append(root)
        self._now[id(root)] = whole
        return tensor

    def _changed(self, name, owner, args, kwargs):
        if name in _IN_PLACE:
            change = _IN_PLACE[name]
        elif name.startswith("__i"):
            change = getattr(torch.Tensor, "__" + name[3:])
        else:
            change = getattr(torch.Tensor, name.rstrip("_"), None) or getattr(torch, name.rstrip("_"))
        arguments, named = tree(list(args[1:]), self._argument), tree(kwargs, self._argument)
        return change(self._argument(owner), *arguments, **named)

    def _replaced(self, name, args, kwargs):
        """The result of a function that exporters lack, computed under this mode of others; else NotImplemented."""
        if not self.markers.kept:
            return NotImplemented
        if complex_numbers.concerns(name, args, kwargs):
            with self:
                return complex_numbers.computed(name, args, kwargs, self)
        if name == "diagonal" and args:
            return self._diagonal(args[0], args[1:], kwargs)
        if name in NATIVES:
            with self:
                return NATIVES[name](self.markers.native, *args, **kwargs)
        return NotImplemented

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name in _MARKERS or name.startswith(("hosted_", "_symbolic_multi_out")):
            return func(*args, **kwargs)
        if self._refused and name in self._refused[-1][0]:
            raise self._refused[-1][1](f"it reads numbers in Python ({name})")
        if kwargs.get("generator") is not None and self.markers.kept:
            del kwargs["generator"]
            self.notes.append(OWN_GENERATOR)
        if not self.markers.symbolic and name.strip("_") in _ARITHMETIC and any(type(a) is bool for a in args[:2]) and any(_is_float(a) for a in args[:2]):
            args = tuple(int(a) if type(a) is bool else a for a in args)  # the TorchScript exporter fails on x + True
        if name in ("sort", "argsort") and "stable" in kwargs and self.markers.kept:  # as TopK is, which exporters write only without the word
            del kwargs["stable"]
        if any(_is_sparse(a) for a in args):
            func, args = torch.matmul if name in _SPARSE_PRODUCTS else func, tuple(_dense(a) for a in args)
        replaced = self._replaced(name, args, kwargs)
        if replaced is not NotImplemented:
            return replaced
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if func in _TRANSPOSED and first is not None and not first.is_complex():
            return self._argument(first).transpose(-2, -1)
        if name in ("clamp", "clip", "clamp_", "clip_") and first is not None and first.is_floating_point():  # dynamo fails on bounds of two types
            args, kwargs = (tuple(_number(a) for a in args), {key: _number(a) for key, a in kwargs.items()})
        if name == "vdot" and not first.is_complex():
            return torch.sum(self._argument(first) * self._argument(args[1]))
        if name in ("max", "min") and first is not None and first.is_floating_point() and (len(args) > 1 or "dim" in kwargs) and not isinstance((args[1:] or [kwargs.get("dim")])[0], torch.Tensor):
            return self._extreme(name, first, *args[1:], **kwargs)
        if first is not None and self.markers.kept:
            if name == "register_hook" and func is torch.Tensor.register_hook:
                self._hook(first, args[1])
                return contextlib.nullcontext()
            owner = self._owner(first)
            if func == _GET_DATA or name == "detach":
                result = self.stop(self._resolve(first))
                if owner is not None:
                    result = result.view_as(result) if result is owner else result
                    self._alive.append(result)
                    self._root[id(result)] = owner
                return result
            if owner is not None and id(owner) in self._trained and (name == "requires_grad_" or func == _SET_REQUIRES_GRAD):
                trains = kwargs.get("requires_grad", args[1] if len(args) > 1 else True)
                (self._frozen.discard if trains else self._frozen.add)(id(owner))
                return None if func == _SET_REQUIRES_GRAD else first
            if owner is not None and func == _SET_DATA:
                self._becomes(owner, self._resolve(args[1]))
                return None
            writes = name.endswith("_") and not name.endswith("__") or name == "__setitem__" or name.startswith("__i") and name[3:] in _OPERATORS
            if owner is not None and writes and name not in ("requires_grad_", "detach_", "retain_grad_", "apply_", "share_memory_"):
                return self._in_place(name, owner, args, kwargs)
            if id(first) in self._diagonals and writes:
                return self._diagonal_in_place(name, first, args, kwargs)
            if id(first) in self._parts and writes:
                return self._part_in_place(name, first, args, kwargs)
            if owner is None and writes and not self.markers.symbolic and name not in NO_WRITES and self._views.concerns(first):
                with self:
                    result = self._view_in_place(name, first, args, kwargs)
                if result is not NotImplemented:
                    return result
            if owner is not None and name == "__getitem__" and id(owner) not in self._trained and _is_view(args[1]):
                part = func(self._argument(first), *tree(args[1:], self._argument))
                self._alive.append(part)
                self._parts[id(part)] = (owner, args[1])
                return part
        out = kwargs.get("out")
        if isinstance(out, torch.Tensor) and self._owner(out) is not None and self.markers.kept:
            del kwargs["out"]
            return self._becomes(self._owner(out), func(*tree(args, self._argument), **tree(kwargs, self._argument)))
        if name == "__get__" or not self.markers.kept:  # a property has no gradient to stop
            return func(*tree(args, self._resolve), **kwargs)
        result = func(*tree(args, self._argument), **tree(kwargs, self._argument))
        if first is not None and not self.markers.symbolic and self._views.takes(name, result, first) and (name != "__getitem__" or _is_view(args[1])):
            self._alive += [first, result]
            self._views.remember(result, first, func, name, args[1:], kwargs)
        return result


_SPARSE_PRODUCTS = ("mm", "_sparse_mm", "sparse_mm", "spmm", "smm", "hspmm", "matmul", "__matmul__")
OWN_GENERATOR = "forward() draws random numbers by a generator of its own; a run draws others, by its own seed"


_ARITHMETIC = ("add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "multiply", "subtract", "div", "truediv", "rtruediv", "itruediv", "pow", "rpow")


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_sparse(value):
    return isinstance(value, torch.Tensor) and value.layout != torch.strided and not value.is_mkldnn


def _dense(value):
    """A sparse tensor, which no exporter has, as one with all its elements."""
    if not _is_sparse(value):
        return value
    with apart():
        return value.detach().to_dense()


_OPERATORS = ("add__", "sub__", "mul__", "truediv__", "floordiv__", "pow__", "and__", "or__", "xor__", "mod__", "matmul__")


def hooks_of(module):
    """Hooks of parameters, by name."""
    return {name: list(p._backward_hooks.values()) for name, p in module.named_parameters() if p._backward_hooks}


READS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist", "numpy", "__array__")  # functions by which Python sees numbers


def state_of(module):
    """Tensors by name that a forward pass may change: all buffers, and all parameters."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def same(a, b):
    """Equal in shape and contents; NaN equals NaN, as in a run that went wrong."""
    if a.shape != b.shape:
        return False
    return bool(((a == b) | (a.isnan() & b.isnan())).all()) if a.is_floating_point() else torch.equal(a, b)


class _Statistics(TorchFunctionMode):
    """Running statistics that a BatchNormalization node cannot keep: of a layer that is called more than once, or that something else reads or writes too."""

    def __init__(self, module):
        super().__init__()
        norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None]
        self._calls = {_place(t): 0 for m in norms for t in (m.running_mean, m.running_var) if _place(t)}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        if name == "batch_norm" or name != "__get__" and isinstance(result, torch.Tensor):
            for t in pytree.tree_leaves((args, kwargs)):
                if isinstance(t, torch.Tensor) and _place(t) in self._calls:
                    self._calls[_place(t)] += 1 if name == "batch_norm" else 2
        return result

    def written_out(self, module):
        """Names of the statistics whose next contents the file has to compute, and of the counters beside them."""
        found = {name for name, t in module.named_buffers() if self._calls.get(_place(t), 0) > 1}
        return found | {f"{name.rpartition('.')[0]}.num_batches_tracked" for name in found}


def _place(t):
    """Where the elements lie, as a view of all of them does; 0 where there are none (tensors of torch.func, sparse ones)."""
    try:
        return t.data_ptr()
    except RuntimeError:
        return 0


def changed_state(module, row, regions=None):
    """(names of buffers and parameters that a forward pass of a copy changes, what the pass returns). `regions` (checkpointed.py): those that a step computes again."""
    probe = copied(module)
    statistics = _Statistics(probe)
    names, result = _written_by(probe, row, statistics, regions)
    written_out = statistics.written_out(probe)
    # A copy of the model that follows it (an average, a target) begins as its equal, and stays so for one pass.
    nudged = copied(module)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in nudged.parameters():
            if parameter.is_floating_point() and parameter.requires_grad:
                parameter.mul_(1 + 0.01 * torch.rand(parameter.shape, generator=generator).to(parameter.dtype)).add_(0.001)
    with contextlib.suppress(Exception):  # whatever a model says to other parameters
        more = set(_written_by(nudged, row)[0]) | set(names)
        names = [name for name in state_of(module) if name in more]
    return [name for name in names if name in written_out or not _kept_by_norm(probe, name)], result


def _written_by(probe, row, watch=None, regions=None):
    """(names of what a forward pass writes, what it returns); `watch`: a mode that sees the pass; `regions`: as in changed_state.

    What is written in place counts although its contents stay the same this time: a flag that is set one day, a weight that
    is clipped once it is large.
    """
    state = state_of(probe)
    before = {name: t.detach().clone() for name, t in state.items()}
    versions = {name: t._version for name, t in state.items() if not t.is_inference()}
    random = torch.get_rng_state()
    try:
        with watch or contextlib.nullcontext(), regions.found(state.values()) if regions else contextlib.nullcontext():
            result = probe(*row)
    finally:
        torch.set_rng_state(random)
    after = state_of(probe)

    def written(name, t):
        now = after[name]
        return not same(now, t) or now is state[name] and now._version != versions.get(name, now._version)

    return [name for name, t in before.items() if name in after and after[name].shape == t.shape and written(name, t)], result


def _kept_by_norm(module, name):
    """Whether a BatchNormalization node keeps it, or nothing reads it."""
    path, _, last = name.rpartition(".")
    owner = dict(module.named_modules()).get(path)
    if not isinstance(owner, nn.modules.batchnorm._NormBase) or last not in ("running_mean", "running_var", "num_batches_tracked"):
        return False
    return isinstance(owner, nn.modules.batchnorm._BatchNorm) and owner.momentum is not None

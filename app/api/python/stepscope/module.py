"""A torch.nn.Module whose forward and backward pass the engine computes; loss, optimizer and loop stay PyTorch's.

    model = stepscope.Module(model)

The result is the module itself in another class: parameters, buffers, hooks, state_dict(), train() and every attribute are the same objects. The
engine reads and writes them where they are. A signature of arguments (shapes, types, what is no tensor, modes, which parameters are trained, numbers
and texts that layers hold) is a variant. Calls that differ in extents alone share a file from the second one on, where it computes them as PyTorch does.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
import weakref
from typing import Any, Callable, Optional, Union

import torch
from torch import nn
from torch.utils import _pytree as pytree

from . import Error, attached
from .signature import Key, signature, symbols
from .variant import NORMS, TYPES, Built, Pass, Refused, Variant

POLICIES = ("raise", "fall_back", "ask")
_KEPT = 16  # variants, the newest ones: each has memory for its activations
_SHAPES = 8  # of a family, the newest ones, that decide which extents are symbols
_PATIENCE = 3  # passes by PyTorch after which a module may have settled; variants for another number in one attribute


@dataclasses.dataclass
class Report:
    """What became of the calls of a module: those that the engine ran, by variant, and why others were left to PyTorch."""

    variants: list
    refusals: dict  # reason → calls that PyTorch ran

    def __str__(self) -> str:
        lines = [f"{v.calls} calls: {v.signature} ({v.reason}; {v.exporter}, exported in {v.export_ns / 1e9:.2f} s, built in {v.build_ns / 1e9:.2f} s)" for v in self.variants]
        return "\n".join(lines + [f"{calls} calls by PyTorch: {reason}" for reason, calls in self.refusals.items()])


@dataclasses.dataclass
class _Family:
    """Calls that differ in extents alone."""

    shapes: list = dataclasses.field(default_factory=list)
    built: Optional[Built] = None  # of any extents
    alone: str = ""  # why the engine does not compute other extents from one file


class _Engine:
    """What stands behind one module."""

    def __init__(self, policy: Union[str, Callable[[str], bool]], options: dict, exporter: str):
        self.policy, self.options, self.exporter = policy, options, exporter
        self.built: dict[Any, tuple] = {}  # by the whole key: (Built, Variant); the one that was used last comes last
        self.families: dict[Any, _Family] = {}
        self.told: list = []
        self.refused: dict[Any, str] = {}
        self.refusals: dict[str, int] = {}
        self.unsettled = 0
        self.by_attribute: dict[str, int] = {}
        self.newest: Optional[Key] = None
        self.attached = False

    def check(self, model: nn.Module, leaves: list) -> None:
        """Raises Refused for what cannot be seen from the exported graph."""
        if torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") != torch.bfloat16:
            raise Refused(f"autocast to {torch.get_autocast_dtype('cpu')}; expected bfloat16, or none")
        for name, module in model.named_modules():
            hooks = {"_forward_hooks": "a forward hook", "_forward_pre_hooks": "a forward hook", "_backward_hooks": "a backward hook", "_backward_pre_hooks": "a backward hook"}
            for where, what in hooks.items():
                if name and getattr(module, where, None):
                    raise Refused(f"module '{name}' has {what}, and the engine runs no code between two layers; expected hooks on the module itself alone")
            if isinstance(module, NORMS) and module.training and module.track_running_stats and module.momentum is None:
                raise Refused(f"module '{name}' averages its statistics over all batches (momentum=None); expected a number")
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                if leaf.is_nested:
                    raise Refused(f"argument {i}: a nested tensor, which the engine has no type for; expected a tensor that is padded, with lengths or a mask")
                if type(leaf) not in (torch.Tensor, nn.Parameter) or leaf.is_sparse or leaf.device.type != "cpu" or leaf.dtype not in TYPES.values():
                    raise Refused(f"argument {i}: {type(leaf).__name__} of {leaf.dtype} on {leaf.device}; expected a plain tensor on the CPU")
            elif leaf is not None and not isinstance(leaf, (bool, int, float, str)):
                raise Refused(f"argument {i}: {type(leaf).__name__}; expected tensors, numbers, texts and containers of them")

    def exported(self, model: nn.Module, leaves: list, spec: Any, grad: bool, options: dict) -> Built:
        """By the first exporter with which the engine takes the call. Raises Refused."""
        tried: dict[str, str] = {}  # why → by which exporter
        for way in ("torchscript", "dynamo") if self.exporter == "auto" else (self.exporter,):
            try:
                return Built(model, leaves, spec, grad, way, options)
            except (Refused, Error) as error:
                if getattr(error, "settles", False):
                    raise
                tried.setdefault(str(error), way)
        raise Refused("; ".join(f"{why} (exported by {way})" for why, way in tried.items()))

    def of_any_extents(self, model: nn.Module, leaves: list, spec: Any, grad: bool, options: dict, key: Key) -> Optional[Built]:
        """What computes this call and others of its family; None where nothing does, and for the first one."""
        family = self.families.setdefault(key.family, _Family())
        family.shapes = [*[s for s in family.shapes if s != key.shapes][-_SHAPES + 1 :], key.shapes]
        if family.alone or len(family.shapes) < 2 or self.exporter == "dynamo":
            return None
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        try:
            if family.built is not None and family.built.takes(tensors) and not family.built.moved():
                family.built.check_call(model, leaves, spec)
            else:
                family.built = Built(model, leaves, spec, grad, "torchscript", options, symbols(family.shapes))
                if not family.built.checks:
                    family.alone = "it draws random numbers or computes in bf16, and what one file computes of others could be wrong without a word"
        except (Refused, Error) as error:
            numbers = family.built.file.numbers if family.built is not None else []
            family.alone = f"{numbers[0]} makes a number of one (a loop, a count)" if numbers else str(error)
        if family.alone:
            family.built = None
        return family.built

    def made(self, model: nn.Module, leaves: list, spec: Any, grad: bool, options: dict, key: Key, reason: str) -> tuple:
        if self.unsettled >= _PATIENCE:
            raise Refused(self.refused[""])
        if reason.startswith("attribute"):
            name = reason.partition(" is ")[0]
            self.by_attribute[name] = self.by_attribute.get(name, 0) + 1
            if self.by_attribute[name] > _PATIENCE:
                raise Refused(f"{name} has had {_PATIENCE + 1} numbers, and each is a variant of its own; expected a buffer, which the engine reads where it is")
        try:
            before = self.families[key.family].built if key.family in self.families else None
            built = self.of_any_extents(model, leaves, spec, grad, options, key)
            shared = built is not None and built is before
            if built is None and self.families[key.family].alone:
                reason += f"; each of them is a variant, since {self.families[key.family].alone}"
            built = built or self.exported(model, leaves, spec, grad, options)
        except Refused as refused:
            if not refused.settles:
                raise
            self.unsettled += 1
            self.refused[""] = str(refused)
            raise
        self.unsettled = 0
        if self.attached:
            built.attach()
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        told = Variant(reason, signature(tensors, grad), built.exporter + (", any extents" if built.axes else ""), 0 if shared else built.export_ns, 0)
        self.told.append(told)
        return built, told

    def variant(self, model: nn.Module, leaves: list, spec: Any) -> tuple:
        """(what computes the call, what is told of it). Raises Refused."""
        grad = torch.is_grad_enabled() and (any(p.requires_grad for p in model.parameters()) or any(isinstance(t, torch.Tensor) and t.requires_grad for t in leaves))
        self.check(model, leaves)
        options = dict(self.options)
        if torch.is_autocast_enabled("cpu"):
            options["precision"] = "bf16"
        key = Key(model, leaves, spec, grad, options.get("precision", ""))
        if key.whole in self.refused:
            raise Refused(self.refused[key.whole])
        found, reason = self.built.pop(key.whole, None), ""
        if found is None or (moved := found[0].moved()):
            reason = key.news(model, self.newest) if found is None else f"'{moved}' lies in other memory"
            if found is not None:  # all of them point there
                self.built.clear()
                self.families.clear()
                self.told.clear()
            try:
                found = self.made(model, leaves, spec, grad, options, key, reason)
            except Refused as refused:
                if not refused.settles:
                    self.refused[key.whole] = str(refused)
                raise
        self.built[key.whole] = found
        while len(self.built) > _KEPT:
            self.built.pop(next(iter(self.built)))
        self.newest = key
        return found

    def leave(self, name: str, reason: str) -> None:
        """Raises where the policy says so; else PyTorch runs this call."""
        if self.policy == "raise" or callable(self.policy) and not self.policy(reason):
            hint = ' (policy="fall_back" lets PyTorch run such calls)' if self.policy == "raise" else ""
            raise Refused(f"stepscope.Module {name}: {reason}{hint}")
        if self.policy == "ask" and reason not in self.refusals:
            print(f"stepscope.Module {name}: {reason}", file=sys.stderr)
            if not sys.stdin.isatty() or input("Let PyTorch run such calls? [Y/n] ").strip().lower().startswith("n"):
                raise Refused(f"stepscope.Module {name}: {reason}")
        if reason not in self.refusals and self.policy == "fall_back":
            warnings.warn(f"stepscope.Module {name}: {reason}; PyTorch runs it", stacklevel=4)
        self.refusals[reason] = self.refusals.get(reason, 0) + 1


_ENGINES: "weakref.WeakKeyDictionary[nn.Module, _Engine]" = weakref.WeakKeyDictionary()


def _wrap(model: nn.Module, policy: Any, options: dict, exporter: str) -> "Module":
    return Module(model, policy=policy, options=options, exporter=exporter)


class Module:
    """Module(model, policy="fall_back", options=None, exporter="auto", attach=None): `model` with forward and backward by the engine; it shares everything
    with `model`.

    policy    what becomes of a call that the engine does not take: "fall_back" warns once for each reason and lets PyTorch run it, "raise" raises
              Refused, "ask" asks at the terminal (and raises where there is none); or a function of the reason that returns whether PyTorch may.
    options   of the engine, as stepscope.open() takes them ({"recompute.budget": "2GiB"} …).
    exporter  "torchscript", "dynamo", or "auto": the first by which the engine takes the model.
    attach    True: a window may look at its passes and hold them (stepscope.attach). None: where $STEPSCOPE_ATTACH says so (1, or the path of a socket).
    """

    def __new__(cls, model: nn.Module, policy: Any = "fall_back", options: Optional[dict] = None, exporter: str = "auto",
                attach: Optional[bool] = None) -> "Module":  # fmt: skip
        if not isinstance(model, nn.Module):
            raise TypeError(f"stepscope.Module: {type(model).__name__}; expected a torch.nn.Module")
        if policy not in POLICIES and not callable(policy):
            raise ValueError(f"policy {policy!r}: unknown; expected {', '.join(POLICIES)} or a function")
        if isinstance(model, Module):
            raise TypeError("stepscope.Module: it is one already; expected a module of PyTorch")
        if "forward" in vars(model):
            raise Refused("stepscope.Module: the module's forward was replaced on the object; expected the one of its class")
        made = object.__new__(type("Stepscope" + type(model).__name__, (Module, type(model)), {"__module__": __name__}))
        object.__setattr__(made, "__dict__", model.__dict__)
        _ENGINES[made] = _Engine(policy, dict(options or {}), exporter)
        asked = attached.wanted() if attach is None else "" if attach else None
        if asked is not None:
            attached.attach(made, path=asked or None)
        return made

    def __init__(self, *_: Any, **__: Any):
        """The module was initialized before it was wrapped."""

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Copies and pickles are those of the module, wrapped again."""
        engine = _ENGINES[self]
        return _wrap, (self.stepscope_original(), engine.policy, engine.options, engine.exporter)

    def stepscope_original(self) -> nn.Module:
        """The module in its own class; it shares everything with this one."""
        plain = object.__new__(type(self).__mro__[2])
        object.__setattr__(plain, "__dict__", self.__dict__)
        return plain

    def stepscope_attach(self) -> None:
        """A window may look at its passes and hold them; the place is open already (stepscope.attach)."""
        engine = _ENGINES[self]
        engine.attached = True
        for built, _ in engine.built.values():
            built.attach()

    def stepscope_report(self) -> Report:
        """What became of the calls so far."""
        engine = _ENGINES[self]
        return Report(list(engine.told), dict(engine.refusals))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """That of the module, by the engine where it can."""
        if torch.jit.is_tracing() or torch.compiler.is_compiling():
            return super().forward(*args, **kwargs)
        engine = _ENGINES[self]
        if engine.attached:
            attached.rest()
        leaves, spec = pytree.tree_flatten((args, kwargs))
        try:
            built, told = engine.variant(self.stepscope_original(), leaves, spec)
        except Refused as refused:
            engine.leave(type(self).__mro__[2].__name__, str(refused))
            if engine.attached and attached.steps():
                attached.place(f"{type(self).__mro__[2].__name__} by PyTorch: {refused}")
                attached.follow()
            return super().forward(*args, **kwargs)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        results = Pass.apply(built, told, *tensors, *built.parameters)
        if torch.is_autocast_enabled("cpu"):
            results = built.in_autocast(self.stepscope_original(), leaves, spec, results)
        return built.result(results)

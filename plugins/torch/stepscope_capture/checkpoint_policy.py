# SPDX-License-Identifier: Apache-2.0
"""Applies what `stepscope policy PROJECT -o FILE` wrote: modules whose values the backward pass computes again."""

import contextlib
import functools
import json
import pathlib

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

FORMAT = "stepscope checkpoint policy"
_WRAPPER = "model"  # what a captured model is called below the recorder
# Repeated only where the policy says so: what takes long, and what draws random numbers.
_EXPENSIVE = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "convolution", "attention", "lstm", "gru", "rnn", "dropout", "bernoulli", "rand", "normal",
              "embedding", "fft")  # fmt: skip


class AppliedPolicy:
    """`modules`: paths of what is computed again, with the operators (None: all). `remove()` makes the model what it was; a with-statement
    does so at its end."""

    def __init__(self):
        self.modules = {}
        self._forwards = []

    def remove(self):
        for module, forward in self._forwards:
            if forward is None:
                del module.forward
            else:
                module.forward = forward
        self._forwards.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def _wrap(self, path, module, operators, kept):
        inner = module.forward
        self._forwards.append((module, module.__dict__.get("forward")))
        self.modules[path] = operators

        @functools.wraps(inner)
        def forward(*args, **kwargs):
            if not torch.is_grad_enabled():
                return inner(*args, **kwargs)
            contexts = functools.partial(_contexts, module, operators, kept)
            return checkpoint(inner, *args, use_reentrant=False, context_fn=contexts, **kwargs)

        module.forward = forward


def apply_checkpoint_policy(model, file):
    """Wraps the modules of `model` that the policy in `file` names. An entry with operators computes these again, and
    what is cheap and was not kept. Running statistics count a batch once, dropout draws the same mask. Returns an AppliedPolicy. Raises ValueError for what is no
    policy, and for a module that the model does not have."""
    entries = _entries(pathlib.Path(file))
    paths = [entry["module"] for entry in entries]
    names = dict(model.named_modules())
    stripped = [path[len(_WRAPPER) + 1 :] for path in paths]
    if all(f"{path}.".startswith(f"{_WRAPPER}.") for path in paths) and all(path in names for path in stripped):
        paths = stripped
    missing = [path for path in paths if path not in names]
    if missing:
        raise ValueError(f"checkpoint policy '{file}': module '{missing[0]}': {type(model).__name__} has none of that name; expected the model "
                         f"that was captured ({len(missing)} of {len(paths)} modules are missing)")
    applied = AppliedPolicy()
    try:
        for path, entry in zip(paths, entries):
            for place, module in _callable(path, names[path]):
                applied._wrap(place, module, entry.get("operators"), entry.get("kept", []))
    except BaseException:
        applied.remove()
        raise
    return applied


def _entries(file):
    try:
        policy = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"checkpoint policy '{file}': {error}; expected a file of `stepscope policy`") from error
    if not isinstance(policy, dict) or policy.get("format") != FORMAT or policy.get("version") != 1:
        raise ValueError(f"checkpoint policy '{file}': no '{FORMAT}' of version 1; expected a file of `stepscope policy`")
    entries = policy.get("modules")
    if not isinstance(entries, list) or not all(
            isinstance(e, dict) and isinstance(e.get("module"), str) and isinstance(e.get("operators", []), list)
            and isinstance(e.get("kept", []), list) for e in entries):
        raise ValueError(f"checkpoint policy '{file}': 'modules' is no list of modules with their operators")
    return entries


def _callable(path, module):
    """Lists of modules are never called: their elements are."""
    if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
        for name, child in module.named_children():
            yield from _callable(f"{path}.{name}" if path else name, child)
    else:
        yield path, module


def _operator(function):
    """The name that the file has for an operator: "softmax" for aten::_softmax, "layer_norm" for aten::native_layer_norm."""
    name = function.name().split("::")[-1].split(".")[0]
    return name.strip("_").removeprefix("native_")


def _contexts(module, operators, kept):
    """Contexts around the forward pass and around its repetition."""
    first, again = contextlib.nullcontext(), contextlib.nullcontext()
    if operators:

        def policy(_, function, *args, **kwargs):
            # A view holds no memory of its own, and autograd has to see it made.
            views, name = any(r.alias_info is not None for r in function._schema.returns), _operator(function)
            saved = name in kept or any(word in name for word in _EXPENSIVE)
            return CheckpointPolicy.MUST_SAVE if saved and not views and name not in operators else CheckpointPolicy.PREFER_RECOMPUTE

        first, again = create_selective_checkpoint_contexts(policy)
    return first, _Repeated(module, again)


class _Repeated(contextlib.ExitStack):
    """The repetition: it counts a batch into copies of running statistics."""

    def __init__(self, module, around):
        super().__init__()
        self._module, self._around = module, around

    def __enter__(self):
        super().__enter__()
        for norm in self._module.modules():
            if isinstance(norm, torch.nn.modules.batchnorm._NormBase) and norm.training and norm.track_running_stats:
                for name, buffer in list(norm._buffers.items()):
                    if buffer is not None:
                        norm._buffers[name] = buffer.clone()
                        self.callback(norm._buffers.__setitem__, name, buffer)
        self.enter_context(self._around)
        return self

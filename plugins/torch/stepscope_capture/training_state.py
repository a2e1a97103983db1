# SPDX-License-Identifier: Apache-2.0
"""Where a run stands, so that it goes on there: the optimizer and its schedule as options of `stepscope train`, its moments and counters
as a file that option start-state reads."""

import copy
import functools
import re

import torch

STATE = "state.safetensors"
_LOOK_AHEAD = 64  # updates in which a schedule has to agree with the formula that stands for it
_MOMENTS = {"sgd": {"momentum_buffer": ".momentum"}, "adam": {"exp_avg": ".exp_avg", "exp_avg_sq": ".exp_avg_sq"}}
_MOMENTS["adamw"] = _MOMENTS["adam"]


class _Unlike(Exception):
    """Stepscope has nothing that computes the same."""


def _innermost(wrapper, kind, *names):
    """What a framework wraps (accelerate: .optimizer and .scheduler, Lightning: ._optimizer)."""
    while True:
        inner = next((getattr(wrapper, name, None) for name in names if isinstance(getattr(wrapper, name, None), kind)), None)
        if inner is None:
            return wrapper
        wrapper = inner


def _kind_of(optimizer):
    if isinstance(optimizer, torch.optim.AdamW):
        return "adamw"
    if type(optimizer) is torch.optim.Adam:
        return "adamw" if optimizer.defaults.get("decoupled_weight_decay") else "adam"
    if type(optimizer) is torch.optim.SGD:
        return "sgd"
    raise _Unlike(f"optimizer {type(optimizer).__name__}: not one of Stepscope's (SGD, Adam, AdamW)")


def _shared(groups, key):
    values = [tuple(map(float, v)) if isinstance(v, (tuple, list)) else v for v in (group.get(key) for group in groups)]
    if any(value != values[0] for value in values):
        raise _Unlike(f"'{key}' of the parameter groups: {', '.join(map(str, values))}; Stepscope has one for all")
    return values[0]


def _rate(group, scheduled):
    return float(group.get("initial_lr", group["lr"]) if scheduled else group["lr"])


def _group_settings(groups, names, scheduled):
    """The first group by the options themselves, what is different in the others by --group."""
    settings = [("lr", repr(_rate(groups[0], scheduled))), ("weight-decay", repr(float(groups[0]["weight_decay"])))]
    for group in groups[1:]:
        mine = [re.escape(name) for p in group["params"] for name in names.get(id(p), ())]
        if mine:
            settings.append(("group", f"^({'|'.join(mine)})$:lr={_rate(group, scheduled)!r},weight_decay={float(group['weight_decay'])!r}"))
    return settings


def _optimizer_settings(kind, groups):
    if any(group.get(flag) for group in groups for flag in ("maximize", "amsgrad", "dampening")):
        raise _Unlike(f"{kind} with maximize, amsgrad or dampening: Stepscope has none of these")
    settings = [("optimizer", kind)]
    if kind == "sgd":
        settings.append(("momentum", repr(float(_shared(groups, "momentum")))))
        return settings + ([("nesterov", "on")] if _shared(groups, "nesterov") else [])
    first, second = _shared(groups, "betas")
    return settings + [("betas", f"{float(first)!r},{float(second)!r}"), ("eps", repr(float(_shared(groups, "eps"))))]


def _coming_factors(scheduler, optimizer):
    """Learning rate as a share of the initial one, of the update that comes and of those after it. The scheduler itself does not move."""
    stand_in = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": g["lr"], "initial_lr": g.get("initial_lr", g["lr"])} for g in optimizer.param_groups])
    again, factors = copy.deepcopy(scheduler, {id(optimizer): stand_in}), []
    for _ in range(_LOOK_AHEAD):
        factors.append([float(g["lr"]) / float(g["initial_lr"]) if g["initial_lr"] else 1.0 for g in stand_in.param_groups])
        stand_in.step()
        again.step()
    if any(max(f) - min(f) > 1e-6 for f in factors):
        raise _Unlike("a schedule of its own for each group")
    return [f[0] for f in factors]


def _factor(schedule, update, warmup, total):
    """engine/build/schedule.h, past the warm-up."""
    done = min(1.0, (update - warmup) / max(1, total - warmup))
    if schedule == "linear":
        return 1 - done
    if schedule == "polynomial":
        return (1 - done) ** 2
    return 0.5 * (1 + float(torch.cos(torch.tensor(torch.pi * done, dtype=torch.float64)))) if schedule == "cosine" else 1.0


def _extents(scheduler):
    """Updates of warm-up and in all, from where schedulers of PyTorch and of transformers keep them."""
    if isinstance(scheduler, torch.optim.lr_scheduler.CosineAnnealingLR):
        return 0, int(scheduler.T_max)
    made = [f.keywords for f in getattr(scheduler, "lr_lambdas", []) if isinstance(f, functools.partial)]
    words = made[0] if made else {}
    return int(words.get("num_warmup_steps", 0)), int(words.get("num_training_steps", getattr(scheduler, "total_iters", 0)))


def _schedule_settings(scheduler, optimizer, position):
    """(settings, whether the rates are those that the schedule began with). _Unlike: no formula agrees with the coming updates."""
    name = type(scheduler).__name__
    try:
        factors = _coming_factors(scheduler, optimizer)
    except _Unlike:
        raise
    except Exception as error:  # noqa: BLE001  a scheduler that wants a loss, or cannot be copied
        raise _Unlike(f"scheduler {name}: its coming rates are not known ({type(error).__name__})") from error
    warmup, total = _extents(scheduler)
    for schedule in ("constant", "linear", "cosine", "polynomial"):
        if schedule != "constant" and total <= warmup or position < warmup:
            continue
        # Past their end they differ: PyTorch's cosine rises again.
        coming = len(factors) if schedule == "constant" else max(1, min(len(factors), total - position + 1))
        ours = [_factor(schedule, position + i, warmup, total) for i in range(coming)]
        if all(abs(a - b) <= 1e-6 for a, b in zip(ours, factors)):
            return [("lr-schedule", schedule), ("warmup-steps", str(warmup)), ("total-steps", str(total))]
    raise _Unlike(f"scheduler {name}: none of Stepscope's computes its rates from update {position} on")


def _updates(kind, optimizer, given):
    """Updates that the moments know of."""
    if kind == "sgd":  # it does not count; before the first update the engine takes no momentum
        return max(given, int(any(state.get("momentum_buffer") is not None for state in optimizer.state.values())))
    counts = {int(state["step"]) for state in optimizer.state.values() if "step" in state}
    if len(counts) > 1:
        raise _Unlike(f"parameters were updated {min(counts)} to {max(counts)} times; Stepscope counts once for all")
    return counts.pop() if counts else 0


def _moments(kind, optimizer, names, tensors):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            known, state = names.get(id(parameter)), optimizer.state.get(parameter, {})
            for theirs, ours in _MOMENTS[kind].items() if known and parameter.requires_grad else ():
                if kind == "sgd" and not group["momentum"]:
                    continue
                moment = state.get(theirs)
                moment = torch.zeros_like(parameter) if moment is None else moment
                moment = torch.view_as_real(moment) if moment.is_complex() else moment
                tensors[known[0] + ours] = moment.detach().float().cpu().numpy()


def training_state(names, optimizer, scheduler, step, accumulate, clip_grad_norm):
    """Where a run stands, before the micro step `step`.

    names   {id of a parameter: [its names in the file, several where it is tied]}; moments come by the first.
    step    micro steps done; None: as the optimizer counts them.

    Returns (settings: list of (option, text), moments by name, metadata of the state file, notes: what is not kept).
    """
    settings, notes, tensors, scheduled = [], [], {}, False
    optimizer = _innermost(optimizer, torch.optim.Optimizer, "optimizer", "_optimizer")
    scheduler = _innermost(scheduler, torch.optim.lr_scheduler.LRScheduler, "scheduler")
    position = None if scheduler is None else int(scheduler.last_epoch)
    updates = (position or 0) if step is None else step // accumulate
    if accumulate > 1:
        settings.append(("accumulate", str(accumulate)))
    if clip_grad_norm:
        settings.append(("clip-grad-norm", repr(float(clip_grad_norm))))
    if scheduler is not None:
        try:
            settings += _schedule_settings(scheduler, optimizer, position)
            scheduled = True
        except _Unlike as error:
            notes.append(f"{error}; the learning rate stays what it is")
    try:
        kind = _kind_of(optimizer)
        of_kind = _optimizer_settings(kind, optimizer.param_groups)
        updates = _updates(kind, optimizer, updates)
        _moments(kind, optimizer, names, tensors)
        settings += of_kind + _group_settings(optimizer.param_groups, names, scheduled)
    except _Unlike as error:
        notes.append(f"{error}; parameters and batch are kept, its state and rates are not: choose another one by --optimizer and --lr")
        tensors.clear()
    step = updates * accumulate if step is None else step
    before = (updates if position is None else position) - updates
    if before < 0:
        notes.append(f"the schedule has counted {position} updates, the optimizer {updates}; the schedule goes on with {updates}")
    counters = {"version": 1, "step": step, "updates": updates, "updates_before": max(before, 0), "micro": step % accumulate}
    return settings, tensors, {f"stepscope.{key}": str(value) for key, value in counters.items()}, notes

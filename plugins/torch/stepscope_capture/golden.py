# SPDX-License-Identifier: Apache-2.0
"""What PyTorch computes of the captured batches, and what float32 permits."""

import contextlib

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from stepscope_capture.checkpointed import recomputed_in
from stepscope_capture.meaning import copied, same, state_of
from stepscope_capture.safetensors import array_of

LARGE = 2**27  # elements of all parameters; from there on a step is run less often for its tolerance


class WithoutDropout(TorchFunctionMode):
    """Dropout hands its input on while this mode is on. `replaced` counts those that would have drawn."""

    def __init__(self):
        super().__init__()
        self.replaced = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            drops = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
            self.replaced += drops > 0
            kwargs.update({"dropout_p": 0.0} if len(args) <= 4 else {})
            return func(*args[:4], *((0.0,) if len(args) > 4 else ()), *args[5:], **kwargs)
        if name == "multi_head_attention_forward":  # what it calls is not seen by a mode
            drops = kwargs.get("dropout_p", args[10] if len(args) > 10 else 0.0)
            self.replaced += drops > 0 and kwargs.get("training", args[13] if len(args) > 13 else True)
            kwargs.update({"dropout_p": 0.0} if len(args) <= 10 else {})
            return func(*args[:10], *((0.0,) if len(args) > 10 else ()), *args[11:], **kwargs)
        if name.rstrip("_").endswith("dropout") or name in ("dropout1d", "dropout2d", "dropout3d"):
            training = kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else "alpha" not in name))
            if training and kwargs.get("p", args[1] if len(args) > 1 else 0.5) > 0:
                self.replaced += 1
                x = kwargs.get("input", args[0] if args else None)
                return (x, torch.ones_like(x, dtype=torch.bool)) if name == "native_dropout" else x
        return func(*args, **kwargs)


@contextlib.contextmanager
def dropout_off():
    """WithoutDropout, in what a checkpoint computes again too."""
    with WithoutDropout() as mode, recomputed_in(mode):
        yield mode


def drops_inside(layer):
    """Whether the dropout of a layer is inside of one call, which the mode does not see."""
    return (isinstance(layer, nn.RNNBase) and layer.num_layers > 1 or isinstance(layer, nn.MultiheadAttention)) and layer.dropout > 0


def quiet(module):
    """A copy whose layers have no dropout inside."""
    module = copied(module)
    for layer in module.modules():
        if drops_inside(layer):
            layer.dropout = 0.0
    return module


def _changed(module, before):
    """Float buffers and frozen parameters that are not what they were."""
    state = {name: t for name, t in state_of(module).items() if not t.requires_grad or isinstance(t, nn.Parameter) is False}
    return {
        name: buffer.detach().cpu().clone()
        for name, buffer in state.items()
        if buffer.is_floating_point() and not (name in before and same(buffer, before[name]))
    }


def _one_step(module, row, names, outputs=None, second=None, writes_again=False):
    """(loss, {"grad/…", "state/…"}, parameters without a gradient) of one forward and backward pass of `module`, which it changes; and
    "state2/…" after the forward pass of another batch (`writes_again`: and its backward pass, which writes state too)."""
    known, before = dict(module.named_parameters(remove_duplicate=False)), {n: b.detach().clone() for n, b in state_of(module).items()}
    hooks = []
    for name, layer in module.named_modules() if outputs is not None else ():
        # The last call counts, as in the file.
        keep = lambda _, __, result, name=name: outputs.update({f"output/{name}": result.detach()} if isinstance(result, torch.Tensor) and result.is_floating_point() else {})
        hooks.append(layer.register_forward_hook(keep))
    module.zero_grad(set_to_none=True)
    loss = module(*row)
    for hook in hooks:
        hook.remove()
    loss.backward()
    found = {f"grad/{n}": torch.zeros_like(known[n]) if known[n].grad is None else known[n].grad for n in names}
    found = {key: (gradient.to_dense() if gradient.is_sparse else gradient).detach().cpu().clone() for key, gradient in found.items()}
    found.update({f"state/{name}": buffer for name, buffer in _changed(module, before).items()})
    if second is not None and any(key.startswith("state/") for key in found):
        result = module(*second)
        if writes_again:
            result.backward()
        found.update({f"state2/{name}": buffer for name, buffer in _changed(module, before).items()})
    return float(loss.detach().double()), found, [n for n in names if known[n].grad is None]


def perturbed(module, seed):
    """The module with every parameter one rounding up or down."""
    module, generator = quiet(module), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            up = torch.randint(0, 2, parameter.shape, generator=generator).bool()
            if parameter.is_floating_point():
                parameter.copy_(torch.nextafter(parameter, torch.where(up, float("inf"), -float("inf")).to(parameter.dtype)))
    return module


def _in_float64(module, row, names, second, writes_again):
    """The same step in float64; nothing where the model has a type written down and so refuses."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        wide = [r and tuple(t.double() if t.is_floating_point() else t for t in r) for r in (row, second)]
        return _one_step(quiet(module).double(), wide[0], names, None, wide[1], writes_again)
    except Exception:  # noqa: BLE001  whatever a model does with a type that it does not expect
        return None
    finally:
        torch.set_default_dtype(default)


def _tolerances(loss, found, others, wide):
    """What float32 permits: 4 times the worst of PyTorch's own steps that differ by roundings, at least 2e-5 of the largest element."""

    def off(step, key):
        return (step[1][key].to(found[key].dtype) - found[key]).abs().max().item() if found[key].numel() else 0.0

    def large(key):
        return found[key].abs().max().item() if found[key].numel() else 0.0

    # In float64 it computes the same where the loss and nearly all of the rest agree; then a gradient in which terms cancel may be further off.
    largest = max((large(key) for key in found if key.startswith("grad/")), default=0.0)
    apart = [key for key in found if wide is not None and key in wide[1] and large(key) > 1e-4 * largest and not off(wide, key) <= 1e-3 * large(key)]
    most = 1e-2 if wide is not None and abs(wide[0] - loss) <= 1e-5 * abs(loss) and len(apart) <= 0.1 * len(found) else 1e-3

    def tolerance(of, value):
        near = [(of(other) - value).abs().max().item() if value.numel() else 0.0 for other in others]
        worst = max(near)
        if wide is not None:
            far = (of(wide).to(value.dtype) - value).abs().max().item() if value.numel() else 0.0
            # Further off than a hundred roundings, it is not rounding: the model does something else in float64.
            worst = max(worst, far if far <= 100 * worst or far <= most * value.abs().max().item() else 0.0)
        return max(4 * worst, 2e-5 * value.abs().max().item() if value.numel() else 0.0)

    tolerances = {key: tolerance(lambda step, key=key: step[1][key], value) for key, value in found.items() if all(key in step[1] for step in (*others, *([wide] if wide else [])))}
    ofLoss = tolerance(lambda step: torch.tensor(step[0], dtype=torch.float64), torch.tensor(loss, dtype=torch.float64))
    return max(ofLoss, 2e-6) if np.isfinite(ofLoss) else 2e-6, {key: value for key, value in tolerances.items() if np.isfinite(value)}


def golden_of(module, parameters, rows, module_outputs, writes_again=False):
    """(what capture.json says of it, arrays of golden.safetensors): loss of every batch at the captured parameters, and of the first one
    gradients and what became of the buffers, in training mode, dropout switched off. `writes_again`: the backward pass writes state, too (checkpointed.py)."""
    names, second = [name for name, tensor in parameters if tensor.requires_grad], rows[1] if len(rows) > 1 else None
    outputs = {} if module_outputs else None
    seed = torch.get_rng_state()
    with dropout_off() as mode:
        loss, found, unused = _one_step(quiet(module), rows[0], names, outputs, second, writes_again)
        drawn = not torch.equal(seed, torch.get_rng_state())
        inner = any(layer.training and drops_inside(layer) for layer in module.modules())
        draws = "drawn" if drawn else "switched off" if mode.replaced or inner else "none"
        losses = [loss]
        for row in rows[1:]:
            losses.append(float(quiet(module)(*row).detach().double()))
        several = 3 if sum(t.numel() for _, t in parameters) < LARGE else 1
        others = [_one_step(perturbed(module, i), rows[0], names, None, second, writes_again) for i in range(several)]
        wide = _in_float64(module, rows[0], names, second, writes_again) if several > 1 else None
    torch.set_rng_state(seed)
    loss_tolerance, tolerances = _tolerances(loss, found, others, wide)
    arrays = {key: array_of(value).copy() for key, value in {**found, **(outputs or {})}.items()}
    losses = [x if np.isfinite(x) else "NaN" if np.isnan(x) else "Infinity" if x > 0 else "-Infinity" for x in losses]  # JSON has none of these
    return {"losses": losses, "loss_tolerance": loss_tolerance, "tolerances": tolerances, "draws": draws, "unused": unused}, arrays

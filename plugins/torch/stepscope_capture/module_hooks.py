# SPDX-License-Identifier: Apache-2.0
"""Full backward hooks of modules: nodes that change the gradient of what goes into a module, and (pre-hooks) of what comes out of it."""

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


def _changed(mode, x, hook):
    """`x`, whose gradient hook(the gradient that arrives) takes the place of; x where the hook returns None."""
    base = mode.markers.stop(x)
    with torch.no_grad():
        placeholder = mode.markers.gradient_of(base)
        gradient = hook(placeholder)
    if gradient is None or gradient is placeholder:
        return x
    return mode.markers.custom_gradient(base, placeholder, x, gradient)


def _each(mode, module, values, name, call):
    """`values` with every float tensor that has a gradient changed. `call(gradients)`: the hook's answer, of as many gradients."""
    flat, spec = tree_flatten(values)
    places = [i for i, v in enumerate(flat) if isinstance(v, torch.Tensor) and v.is_floating_point() and v.requires_grad]
    if len(places) > 1:
        mode.notes.append(f"{type(module).__name__}: its {name} sees the gradients of several tensors; that is not kept")
        return values
    for i in places:
        of_tensors = [k for k, v in enumerate(flat) if isinstance(v, torch.Tensor)]

        def one(gradient, i=i, of_tensors=of_tensors):
            answer = call(tuple(gradient if k == i else None for k in of_tensors))
            return None if answer is None else (answer if isinstance(answer, (tuple, list)) else (answer,))[of_tensors.index(i)]

        try:
            flat[i] = _changed(mode, flat[i], one)
        except Exception as error:  # noqa: BLE001  a hook that reads what is not known here
            mode.notes.append(f"{type(module).__name__}: its {name} is not kept ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})")
    return tree_unflatten(flat, spec)


def keep_module_hooks(module, tracing):
    """Exchanges the backward hooks of all modules of a copy for hooks of their forward pass. `tracing`: the mode that traces, when it does."""
    for layer in module.modules():
        after, before = list(layer._backward_hooks.values()), list(layer._backward_pre_hooks.values())
        full = layer._is_full_backward_hook
        if not after and not before:
            continue
        layer._backward_hooks.clear()
        layer._backward_pre_hooks.clear()

        def incoming(layer, args, kwargs, after=after, full=full):
            mode = tracing()
            if mode is None or not mode.markers.kept:
                return None
            if after and not full:
                mode.notes.append(f"{type(layer).__name__}: register_backward_hook is not kept; expected register_full_backward_hook")
                return None
            for hook in after:  # the gradient of its output is not known where that of its input is
                args = _each(mode, layer, args, "full backward hook", lambda gradients, hook=hook: hook(layer, gradients, (None,)))
            return args, kwargs

        def outgoing(layer, args, result, before=before):
            mode = tracing()
            if mode is None or not mode.markers.kept:
                return None
            for hook in reversed(before):
                result = _each(mode, layer, result, "full backward pre-hook", lambda gradients, hook=hook: hook(layer, gradients))
            return result

        layer.register_forward_pre_hook(incoming, with_kwargs=True)
        layer.register_forward_hook(outgoing, prepend=True)

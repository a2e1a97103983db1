# SPDX-License-Identifier: Apache-2.0
"""Follows a training loop as it is written: the batch that a model gets, and what the script makes of its output until backward()."""

import contextlib
import inspect

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from stepscope_capture.capture import capture
from stepscope_capture.meaning import tree
from stepscope_capture.recorded_loss import NotRecorded, RecordedLoss, tensors_in


class Pass:
    """One forward pass of the model and what followed."""

    def __init__(self, inputs, buffers):
        self.inputs, self.buffers, self.output, self.calls, self.alive, self.loss = inputs, buffers, None, [], [], None


def _named_inputs(model, args, kwargs):
    """What capture() takes: a dict by the names of forward(), or the tuple where it has no names for them."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(plain):
        return tuple(args)
    named = {**dict(zip(plain, args)), **kwargs}
    return {name: value for name, value in named.items() if value is not None}


class Recorder(TorchFunctionMode):
    """While it is entered, `passes` are the forward passes of `model` since clear(), each with its loss once backward() was called.

    at_backward(pass)  is called after backward() of its loss.
    """

    def __init__(self, model, at_backward=None):
        super().__init__()
        self.model, self.passes, self._at_backward = model, [], at_backward
        self._inside, self._hooks = False, []

    def __enter__(self):
        self.listen()
        return super().__enter__()

    def __exit__(self, *error):
        self.deafen()
        return super().__exit__(*error)

    def listen(self):
        self._hooks = [self.model.register_forward_pre_hook(self._before, with_kwargs=True), self.model.register_forward_hook(self._after, with_kwargs=True)]

    def deafen(self):
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def clear(self):
        self.passes = []

    def begin(self, inputs):
        """A forward pass begins."""
        if self.model.training:
            self.passes.append(Pass(tree(inputs, lambda t: t.detach().clone()), _buffers(self.model)))
            self._inside = True

    def end(self, output):
        if self._inside:
            self.passes[-1].output, self._inside = output, False
            self.passes[-1].alive = tensors_in(output)

    def _before(self, model, args, kwargs):
        self.begin(_named_inputs(model, args, kwargs))

    def _after(self, _, __, ___, output):
        self.end(output)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        now = self.passes[-1] if self.passes and not self._inside else None
        if func is torch.Tensor.backward and now is not None and now.loss is None:
            now.loss = args[0]
            result = func(*args, **kwargs)
            if self._at_backward is not None:
                self._at_backward(now)
            return result
        result = func(*args, **kwargs)
        if now is not None and now.loss is None:
            made = [args[0]] if getattr(func, "__name__", "") == "__setitem__" else tensors_in(result)
            if made:
                now.calls.append((func, args, kwargs, [id(t) for t in made], torch.is_grad_enabled()))
                now.alive += made  # an id is of one tensor as long as that lives
        return result


def _buffers(model):
    """(module, name, contents) of every buffer."""
    return [(m, name, b.detach().clone()) for m in model.modules() for name, b in m._buffers.items() if b is not None]


@contextlib.contextmanager
def _as_before(buffers):
    """The forward pass has changed running statistics: here they are what they were before it."""
    after = [(m, name, m._buffers.get(name)) for m, name, _ in buffers]
    try:
        for m, name, contents in buffers:
            m._buffers[name] = contents
        yield
    finally:
        for m, name, contents in after:
            m._buffers[name] = contents


def capture_passes(model, passes, folder, factor=1.0, **options):
    """Captures `model` with the recorded forward passes as batches, and the loss that the script made of the first. `factor`: of the loss.

    Batches of other shapes than the first are left out, and their number is returned. NotRecorded: no loss was seen.
    """
    if not passes or any(one.loss is None or one.output is None for one in passes):
        raise NotRecorded("no backward() of a loss was seen")
    parameters = list(model.parameters())
    losses = [RecordedLoss(one.output, one.calls, one.loss, parameters, factor) for one in passes]
    batches = [(one.inputs, tuple(loss.targets)) for one, loss in zip(passes, losses)]
    shapes = [[(t.shape, t.dtype) for t in tensors_in(list(batch))] for batch in batches]
    fitting = [batch for batch, shape in zip(batches, shapes) if shape == shapes[0]]
    gradients = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    try:
        with torch.enable_grad(), _as_before(passes[0].buffers):
            capture(model, losses[0], fitting, folder, **options)
    finally:
        for p, gradient in zip(parameters, gradients):
            p.grad = gradient
    return len(batches) - len(fitting)


class ModuleWithLoss(nn.Module):
    """A model with its loss inside, for scripts that train `loss = with_loss(inputs, targets)`; remembers the newest batch.

    inputs, targets  as in a batch of capture(): a tensor, a tuple, or a dict of keywords.
    """

    def __init__(self, model, loss_fn):
        super().__init__()
        self.model, self._loss_fn, self._batch = model, loss_fn, None

    def forward(self, inputs, targets=()):
        self._batch = (tree(inputs, lambda t: t.detach().clone()), tree(targets, lambda t: t.detach().clone()))
        if isinstance(inputs, dict):
            output = self.model(**inputs)
        else:
            output = self.model(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
        values = targets.values() if isinstance(targets, dict) else targets if isinstance(targets, (tuple, list)) else (targets,)
        return self._loss_fn(output, *values)

    def capture(self, folder, batches=None, **options):
        """capture() of the model and its loss, with the newest batch or with `batches`."""
        if batches is None and self._batch is None:
            raise NotRecorded("no batch was seen; call the module, or name batches")
        return capture(self.model, self._loss_fn, batches or [self._batch], folder, **options)

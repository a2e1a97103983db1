# SPDX-License-Identifier: Apache-2.0
"""Forward passes that ask for gradients themselves (torch.autograd.grad: gradient penalties, forces, equations of physics, inner loops): the whole pass is written out
as operators, those of the gradients among them, before an exporter sees it."""

import contextlib
from unittest import mock

import torch
from torch import nn
from torch._functorch import eager_transforms

from stepscope_capture import tracing

_OF_A_TRACE = ("stateless API can't be used with Jitted", "Unsupported value kind: Tensor")


class AsksForGradients(RuntimeError):
    """The forward pass that is traced called torch.autograd.grad, and is not written out yet."""


def _grad(original):
    def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, *others, **named):
        mode = tracing.current()
        if mode is None:
            return original(outputs, inputs, grad_outputs, retain_graph, create_graph, *others, **named)
        mode.refuse("it calls torch.autograd.grad")
        if not mode.markers.writes_gradients:
            raise AsksForGradients("torch.autograd.grad in forward() (exporter torchscript writes it out)")
        found = original(outputs, inputs, grad_outputs, True, create_graph, *others, **named)
        return found if create_graph else tuple(g if g is None else mode.stop(g) for g in found)

    return grad


def _transformed(original):
    """What torch.func's grad, vjp, jacrev and hessian call."""

    def autograd_grad(*args, **kwargs):
        mode = tracing.current()
        if mode is not None and not mode.markers.writes_gradients:
            mode.refuse("it calls torch.func")
            raise AsksForGradients("torch.func in forward() (exporter torchscript writes it out)")
        return original(*args, **kwargs)

    return autograd_grad


def _backward(original):
    def backward(*args, **kwargs):
        mode = tracing.current()
        if mode is None:
            return original(*args, **kwargs)
        mode.refuse("it calls backward()")
        raise RuntimeError("backward() in forward(), whose gradients no exporter keeps; expected torch.autograd.grad")

    return backward


@contextlib.contextmanager
def watched_gradients():
    """While a forward pass is traced: gradients that it asks for are none of the operators that an exporter sees."""
    functions = [
        (torch.autograd, "grad", _grad),
        (torch.autograd, "backward", _backward),
        (eager_transforms, "_autograd_grad", _transformed),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, make in functions:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name))))
        yield


def asks(error):
    """Whether this is why an exporter failed; or what a trace does not take: a module with other parameters (functional_call), tensors of torch.func."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, AsksForGradients) or any(words in str(error) for words in _OF_A_TRACE):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _padded(gradient, sizes, dim, before):
    pads = [0, 0] * (len(sizes) - dim % len(sizes))
    pads[-2:] = before, sizes[dim] - before - gradient.shape[dim]
    return torch.ops.aten.constant_pad_nd.default(gradient, pads)


def _slice_backward(gradient, sizes, dim, start, end, step):
    if step == 1:
        return _padded(gradient, sizes, dim, min(start + sizes[dim] if start < 0 else start, sizes[dim]))
    places = torch.arange(sizes[dim])[start:end:step]
    return torch.ops.aten.index_put.default(gradient.new_zeros(sizes), [None] * (dim % len(sizes)) + [places], gradient, True)


def _of_weight(x, gradient, extents, stride, padding, dilation, groups):
    """[out, in / groups, *extents], of x [batch, in, …] and the gradient [batch, out, …]: a convolution whose batch is the channels."""
    found = []
    for part, arriving in zip(x.chunk(groups, 1), gradient.chunk(groups, 1)):
        one = torch.ops.aten.convolution.default(part.transpose(0, 1), arriving.transpose(0, 1), None, dilation, padding, stride, False, [0] * len(stride), 1)
        for axis, extent in enumerate(extents):
            one = one.narrow(2 + axis, 0, extent)
        found.append(one.transpose(0, 1))
    return found[0] if groups == 1 else torch.cat(found)


def _convolution_backward(gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    extents, convolution = weight.shape[2:], torch.ops.aten.convolution.default
    of_x = of_weight = of_bias = None
    if mask[0] and transposed:
        of_x = convolution(gradient, weight, None, stride, padding, dilation, False, [0] * len(stride), groups)
    elif mask[0]:
        reached = [(g - 1) * s - 2 * p + d * (k - 1) + 1 for g, s, p, d, k in zip(gradient.shape[2:], stride, padding, dilation, extents)]
        of_x = convolution(gradient, weight, None, stride, padding, dilation, True, [a - b for a, b in zip(x.shape[2:], reached)], groups)
    if mask[1]:
        of_weight = _of_weight(*((gradient, x) if transposed else (x, gradient)), extents, stride, padding, dilation, groups)
    if mask[2]:
        of_bias = gradient.sum([axis for axis in range(gradient.dim()) if axis != 1])
    return of_x, of_weight, of_bias


def _table():
    """Gradients as operators that exporters have."""
    from torch._decomp import core_aten_decompositions

    aten, table = torch.ops.aten, dict(core_aten_decompositions())
    table.pop(aten.constant_pad_nd.default, None)
    table[aten.empty_permuted.default] = lambda size, _, **options: torch.zeros(size, **options)  # written to before it is read
    table[aten.convolution_backward.default] = _convolution_backward
    table[aten.slice_backward.default] = _slice_backward
    table[aten.select_backward.default] = lambda gradient, sizes, dim, index: _padded(gradient.unsqueeze(dim), sizes, dim, index % sizes[dim])
    return table


def _diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    if offset or x.shape[dim1] != x.shape[dim2]:
        return NotImplemented
    shape = [1] * x.dim()
    shape[dim1] = shape[dim2] = x.shape[dim1]
    chosen = torch.eye(x.shape[dim1], dtype=torch.bool, device=x.device).reshape(shape)
    ahead = [i for i in range(x.dim()) if i not in (dim1 % x.dim(), dim2 % x.dim())]
    back = [0] * x.dim()
    for place, axis in enumerate([*ahead, dim1 % x.dim(), dim2 % x.dim()]):
        back[axis] = place
    return torch.where(chosen, source.unsqueeze(-1).expand(*source.shape, x.shape[dim2]).permute(back), x)


# What writes into a view or over a whole tensor becomes, as operators that exporters have.
_WITHOUT_WRITES = {
    torch.ops.aten.diagonal_scatter.default: _diagonal_scatter,
    torch.ops.aten.copy.default: lambda x, source, non_blocking=False: source.to(x.dtype).expand(x.shape),
}


class WrittenOut(nn.Module):
    """A traced module as one list of operators. Parameters and buffers keep their names; `traced.exporter` makes markers that outlive it."""

    numbers_of_extents = ()

    def __init__(self, traced, row):
        super().__init__()
        from torch.fx.experimental.proxy_tensor import make_fx

        self.model, self._loss_fn, self._changed, self._traced = traced.model, traced._loss_fn, traced._changed, [traced]
        state = self._state()
        self._names = list(state)

        def run(leaves, *values):
            return torch.func.functional_call(traced, dict(zip(self._names, leaves)), values)

        leaves = [t.detach().clone().requires_grad_(t.requires_grad) for t in state.values()]
        graph = make_fx(run, decomposition_table=_table(), tracing_mode="real")(leaves, *row)
        if any(getattr(getattr(node.target, "_schema", None), "is_mutable", False) for node in graph.graph.nodes):
            graph = make_fx(torch.func.functionalize(graph, remove="mutations"), decomposition_table=_WITHOUT_WRITES)(leaves, *row)
        for node in list(graph.graph.nodes):  # those of the model are markers; these are what autograd reads of results that it kept
            if node.target is torch.ops.aten._to_copy.default and isinstance(node.kwargs.get("dtype"), torch.dtype):
                node.target, node.args, node.kwargs = torch.ops.aten.to.dtype, (node.args[0], node.kwargs["dtype"]), {}
            if node.target is torch.ops.aten.detach.default:
                node.replace_all_uses_with(node.args[0])
                graph.graph.erase_node(node)
        graph.graph.eliminate_dead_code()
        graph.recompile()
        self._graph = [graph]  # none of its constants are parameters of the model

    @property
    def notes(self):
        return self._traced[0].notes

    def _state(self):
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def forward(self, *values):
        state = self._state()
        return self._graph[0]([state[name] for name in self._names], *values)

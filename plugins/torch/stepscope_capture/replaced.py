# SPDX-License-Identifier: Apache-2.0
"""PyTorch functions as compositions that exporters keep as they are."""

import contextlib
import sys
from unittest import mock

import torch
from torch import nn
from torch.utils import _pytree as pytree

from stepscope_capture import tracing
from stepscope_capture.markers import apart


# Exporters spell distances out as roots of sums, whose gradient is no number where two points coincide; PyTorch's is 0 there, as a norm's is (cdist: natives.py).
def _pairwise_distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return torch.linalg.vector_norm(a - b + eps, p, -1, keepdim)


def _lstm(original):
    """An LSTM with projections, step by step: of exporters, TorchScript refuses it and dynamo leaves the projections out."""

    def lstm(input, hx, weights, *more):
        if isinstance(hx, torch.Tensor) or hx[0].size(-1) == hx[1].size(-1):  # of a packed sequence; without projections
            return original(input, hx, weights, *more)
        bias, layers, dropout, training, bidirectional, batch_first = more
        directions = 2 if bidirectional else 1
        each = len(weights) // (layers * directions)
        x = input.transpose(0, 1) if batch_first else input
        hidden, cells = [], []
        for layer in range(layers):
            results = []
            for direction in range(directions):
                number = layer * directions + direction
                of_input, of_hidden, *biases, projection = weights[number * each : (number + 1) * each]
                h, c = hx[0][number], hx[1][number]
                arriving = nn.functional.linear(x, of_input, biases[0] if bias else None).unbind(0)
                steps = []
                for gates in reversed(arriving) if direction else arriving:
                    gates = gates + nn.functional.linear(h, of_hidden, biases[1] if bias else None)
                    i, f, g, o = gates.chunk(4, -1)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    h = nn.functional.linear(torch.sigmoid(o) * torch.tanh(c), projection)
                    steps.append(h)
                results.append(torch.stack(steps[::-1] if direction else steps))
                hidden.append(h)
                cells.append(c)
            x = torch.cat(results, -1) if directions > 1 else results[0]
            if dropout and training and layer < layers - 1:
                x = nn.functional.dropout(x, dropout, True)
        return x.transpose(0, 1) if batch_first else x, torch.stack(hidden), torch.stack(cells)

    return lstm


def _sizes_of(data, batch_sizes):
    """The sizes that the exporter can pair with packed `data`: those of the packing that it came from."""
    return getattr(data, "stepscope_batch_sizes", batch_sizes)


def _layers_apart(original):
    """A stack of recurrent layers with dropout between them, layer by layer: the TorchScript exporter refuses it as one operator."""

    def stack(first, second, *more):
        packed = not isinstance(more[1], bool)  # data and batch sizes; else input and hx
        second = _sizes_of(first, second) if packed else second
        hx, weights, (bias, layers, dropout, training, bidirectional, *batch_first) = (more[0], more[1], more[2:]) if packed else (second, more[0], more[1:])
        if not (dropout and training and layers > 1):
            return original(first, second, *more)
        directions = 2 if bidirectional else 1
        each, x, hidden = len(weights) // layers, first, []
        for layer in range(layers):
            mine = slice(layer * directions, (layer + 1) * directions)
            begins = [h[mine] for h in hx] if isinstance(hx, (tuple, list)) else hx[mine]
            of_layer = (weights[layer * each : (layer + 1) * each], bias, 1, 0.0, training, bidirectional, *batch_first)
            x, *ends = original(x, second, begins, *of_layer) if packed else original(x, begins, *of_layer)
            hidden.append(ends)
            if layer < layers - 1 and packed:  # that exporter takes nothing between packing and padding but the recurrence
                padded, lengths = torch._VF._pad_packed_sequence(x, second, False, 0.0, second.size(0))
                x, second = torch._VF._pack_padded_sequence(nn.functional.dropout(padded, dropout, True), lengths, False)
            elif layer < layers - 1:
                x = nn.functional.dropout(x, dropout, True)
        if packed:
            x.stepscope_batch_sizes = second  # the caller goes on with those that it gave
        return (x, *(torch.cat(parts) for parts in zip(*hidden)))

    return stack


def _pad_packed(original):
    """The TorchScript exporter fills with zeros whatever the value."""

    def pad(data, batch_sizes, batch_first, padding_value, total_length):
        padded, lengths = original(data, _sizes_of(data, batch_sizes), batch_first, 0.0, total_length)
        if padding_value == 0:
            return padded, lengths
        # As floats, since the file has lengths of another type than the trace.
        inside = torch.arange(padded.size(1 if batch_first else 0), dtype=torch.float32) < lengths.to(torch.float32).unsqueeze(1)
        inside = inside if batch_first else inside.transpose(0, 1)
        for _ in range(padded.dim() - 2):
            inside = inside.unsqueeze(-1)
        return torch.where(inside, padded, torch.full((), float(padding_value), dtype=padded.dtype)), lengths

    return pad


def _pack_padded(original):
    """With torch.export lengths are no numbers, and it fails later, on the first state."""

    def pack(input, lengths, batch_first):
        mode = tracing.current()
        if mode is not None and mode.markers.symbolic:
            raise RuntimeError('packed sequences: the dynamo exporter does not take them; exporter="torchscript" does')
        return original(input, lengths, batch_first)

    return pack


def _fill_diagonal(original):
    """Of exporters, TorchScript has no name for it and dynamo writes through a view with strides of its own."""

    def fill_diagonal_(x, fill_value, wrap=False):
        if x.dim() != 2 or wrap:
            return original(x, fill_value, wrap)
        return x.masked_fill_(torch.eye(*x.shape, dtype=torch.bool, device=x.device), fill_value)

    return fill_diagonal_


def _adaptive_log_softmax(layer, input_, target_):
    """nn.AdaptiveLogSoftmaxWithLoss with every cluster computed of every row, of which its own are taken: PyTorch picks rows by their labels."""
    alone = target_.dim() == 0
    x, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if alone else (input_, target_)
    ends = [int(c) for c in layer.cutoffs]
    head = nn.functional.log_softmax(layer.head(x), 1)
    output = head.gather(1, target.clamp(max=ends[0] - 1).unsqueeze(1)).squeeze(1)
    for i, (low, high) in enumerate(zip(ends, ends[1:])):
        inside = nn.functional.log_softmax(layer.tail[i](x), 1).gather(1, (target - low).clamp(0, high - low - 1).unsqueeze(1)).squeeze(1)
        output = torch.where((target >= low) & (target < high), head[:, ends[0] + i] + inside, output)
    return type(layer).__init__.__globals__["_ASMoutput"](output[0] if alone else output, (-output).mean())


def _cond(pred, true_fn, false_fn, operands=()):
    if isinstance(pred, bool):
        return true_fn(*operands) if pred else false_fn(*operands)
    return pytree.tree_map(lambda a, b: torch.where(pred, a, b), true_fn(*operands), false_fn(*operands))


@contextlib.contextmanager
def both_branches():
    """torch.cond computes both branches and takes the results of one: neither exporters nor modes that look on take it as it is. transformers
    makes each mask, as it does for exporters: otherwise Python reads whether one hides anything, to leave it out, and whether to warn of padding."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch, "cond", _cond))
        for name in ("transformers.masking_utils", "transformers.modeling_utils"):
            if hasattr(module := sys.modules.get(name), "is_tracing"):
                stack.enter_context(mock.patch.object(module, "is_tracing", lambda *_: True))
        yield


def _check_with(original):
    """Of extents, which are tensors while TorchScript traces; newer torch takes nothing but a bool."""

    def check(error_type, cond, message):
        if isinstance(cond, torch.Tensor):
            with apart():
                cond = bool(cond)
        return original(error_type, cond, message)

    return check


def _in_projection_packed(q, k, v, w, b=None):
    """Of nn.MultiheadAttention, without the view after which the TorchScript exporter writes extents down."""
    if q is k and k is v:
        return tuple(part.contiguous() for part in nn.functional.linear(q, w, b).chunk(3, -1))
    return tuple(nn.functional.linear(x, *weights) for x, *weights in zip((q, k, v), w.chunk(3), (None,) * 3 if b is None else b.chunk(3)))


@contextlib.contextmanager
def exportable(any_extents=False):
    """PyTorch functions as compositions that exporters keep as they are, while one runs. `any_extents`: of symbols, too."""
    functions = [
        (nn.functional, "pairwise_distance", _pairwise_distance),
        (torch, "pairwise_distance", _pairwise_distance),
        (torch._VF, "lstm", _layers_apart(_lstm(torch._VF.lstm))),
        *((torch._VF, name, _layers_apart(getattr(torch._VF, name))) for name in ("gru", "rnn_tanh", "rnn_relu")),
        (torch._VF, "_pack_padded_sequence", _pack_padded(torch._VF._pack_padded_sequence)),
        (torch._VF, "_pad_packed_sequence", _pad_packed(torch._VF._pad_packed_sequence)),
        (nn.AdaptiveLogSoftmaxWithLoss, "forward", _adaptive_log_softmax),
        (torch.Tensor, "fill_diagonal_", _fill_diagonal(torch.Tensor.fill_diagonal_)),
    ]
    if hasattr(torch, "_check_with"):
        functions.append((torch, "_check_with", _check_with(torch._check_with)))
    if any_extents:
        functions.append((nn.functional, "_in_projection_packed", _in_projection_packed))
    if hasattr(nn.functional, "_linear_cross_entropy_chunked_applies"):  # in chunks it is an operator of its own, with the numbers of the whole
        functions.append((nn.functional, "_linear_cross_entropy_chunked_applies", lambda *_: False))
    with both_branches(), contextlib.ExitStack() as stack:
        for owner, name, function in functions:
            stack.enter_context(mock.patch.object(owner, name, function))
        yield

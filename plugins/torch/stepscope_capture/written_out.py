# SPDX-License-Identifier: Apache-2.0
"""Functions that PyTorch computes of others, and an exporter lacks, as those others (ATen's Loss.cpp, rms_norm of layer_norm.cpp, torch.nn.functional)."""

import math

import torch
import torch.nn.functional as F

from stepscope_capture import tracing


def _reduction(size_average, reduce, reduction):
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def _reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _cosine_embedding_loss(a, b, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    axis = 1 if target.dim() == 1 else 0
    squares = ((a * a).sum(axis) + 1e-12) * ((b * b).sum(axis) + 1e-12)
    cosine = (a * b).sum(axis) / squares.sqrt()
    none = torch.zeros_like(cosine)
    loss = torch.where(target == 1, 1 - cosine, none) + torch.where(target == -1, (cosine - margin).clamp_min(0), none)
    return _reduced(loss, _reduction(size_average, reduce, reduction))


def _hinge_embedding_loss(x, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    none = torch.zeros_like(x)
    loss = torch.where(target == 1, none, (margin - x).clamp_min(0)) + torch.where(target == -1, none, x)
    return _reduced(loss, _reduction(size_average, reduce, reduction))


def _margin_ranking_loss(a, b, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return _reduced((-target * (a - b) + margin).clamp_min(0), _reduction(size_average, reduce, reduction))


def _triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    near, far = F.pairwise_distance(anchor, positive, p, eps), F.pairwise_distance(anchor, negative, p, eps)
    far = torch.minimum(far, F.pairwise_distance(positive, negative, p, eps)) if swap else far
    return _reduced((margin + near - far).clamp_min(0), _reduction(size_average, reduce, reduction))


def _poisson_nll_loss(x, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    loss = torch.exp(x) - target * x if log_input else x - target * torch.log(x + eps)
    if full:  # Stirling's formula
        some = torch.where(target > 1, target, torch.ones_like(target))
        loss = loss + torch.where(target > 1, target * torch.log(some) - target + 0.5 * torch.log(2 * math.pi * some), torch.zeros_like(loss))
    return _reduced(loss, _reduction(size_average, reduce, reduction))


def _bilinear(a, b, weight, bias=None):
    y = torch.einsum("...i,oij,...j->...o", a, weight, b)
    return y if bias is None else y + bias


def _max_unpool(axes):
    """Exporters have none, and what extents the result has is computed in the trace of TorchScript's."""

    def max_unpool(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        every = lambda value: [value] * axes if isinstance(value, int) else list(value)  # noqa: E731
        extents, before = [int(e) for e in x.shape[-axes:]], [int(e) for e in x.shape[:-axes]]
        sizes = [(e - 1) * s - 2 * p + k for e, k, s, p in zip(extents, every(kernel_size), every(stride or kernel_size), every(padding))]
        sizes = sizes if output_size is None else [int(e) for e in output_size][-axes:]
        flat = torch.zeros((*before, math.prod(sizes)), dtype=x.dtype)
        return flat.scatter(-1, indices.flatten(-axes), x.flatten(-axes)).reshape(*before, *sizes)

    return max_unpool


def _gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """Without the question whether a variance is negative, which the dynamo exporter does not get past."""
    var = var * torch.ones_like(x) if isinstance(var, float) else var
    var = var.unsqueeze(-1) if var.shape == x.shape[:-1] else var
    var = var + (var.clamp(min=eps) - var).detach()  # PyTorch's gradient is that of the variance as it was
    loss = 0.5 * (torch.log(var) + (x - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)
    return _reduced(loss, reduction)


def _rms_norm(input, normalized_shape, weight=None, eps=None):
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    y = wide * torch.rsqrt((wide * wide).mean(list(range(-len(normalized_shape), 0)), keepdim=True) + eps)
    return (y if weight is None else y * weight).to(input.dtype)


def _rrelu(original):
    """Of exporters, dynamo writes one that draws even where it evaluates."""

    def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
        return original(input, lower, upper, training, inplace) if training or inplace else F.leaky_relu(input, (lower + upper) / 2)

    return rrelu


def _embedding_bag(original):
    """Without the padding row, which the TorchScript exporter refuses: with weights that are 0 there."""

    def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
        tracer = tracing.current()
        if tracer is None or tracer.markers.symbolic or padding_idx is None or mode == "max":
            return original(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
        counts = (input != padding_idx % weight.size(0)).to(weight.dtype)
        weights = counts if per_sample_weights is None else counts * per_sample_weights
        sums = original(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, "sum", sparse, weights, include_last_offset)
        if mode == "sum":
            return sums
        if offsets is None:
            return sums / counts.sum(1, keepdim=True).clamp(min=1)
        starts = offsets[:-1] if include_last_offset else offsets
        bags = (torch.arange(input.size(0)).unsqueeze(1) >= starts).sum(1) - 1  # the last bag that begins at or before an element
        total = torch.zeros(sums.shape[0], dtype=weight.dtype).index_add(0, bags, counts)
        return sums / total.clamp(min=1).unsqueeze(1)

    return embedding_bag


def _traced(written_out, dynamo=False):
    """`dynamo`: for that exporter too."""

    def make(original):
        def function(*args, **kwargs):
            mode = tracing.current()
            as_it_is = mode is None or mode.markers.symbolic and not dynamo
            return original(*args, **kwargs) if as_it_is else written_out(*args, **kwargs)

        return function

    return make


WRITTEN_OUT = [
    (F, "rrelu", _rrelu),
    (F, "embedding_bag", _embedding_bag),
    (F, "bilinear", _traced(_bilinear)),
    (F, "cosine_embedding_loss", _traced(_cosine_embedding_loss)),
    (F, "hinge_embedding_loss", _traced(_hinge_embedding_loss)),
    (F, "margin_ranking_loss", _traced(_margin_ranking_loss)),
    (F, "triplet_margin_loss", _traced(_triplet_margin_loss)),
    *((F, f"max_unpool{axes}d", _traced(_max_unpool(axes), dynamo=True)) for axes in (1, 2, 3)),
    (F, "gaussian_nll_loss", _traced(_gaussian_nll_loss, dynamo=True)),
    (F, "poisson_nll_loss", _traced(_poisson_nll_loss)),
    (F, "rms_norm", _traced(_rms_norm)),
    (torch, "rms_norm", _traced(_rms_norm)),
]  # of exact_functions()

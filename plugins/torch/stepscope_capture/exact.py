# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch as compositions that exporters keep as they are, gradients and updates of statistics included."""

import contextlib
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from stepscope_capture import tracing
from stepscope_capture.written_out import WRITTEN_OUT


def with_gradient(y, x, gradient):
    """y, and gradient(what arrives at y) for x. While nothing is traced for markers: nothing but y."""
    mode = tracing.current()
    if mode is None or not mode.markers.kept or not x.requires_grad or not torch.is_grad_enabled():
        return y
    base = mode.markers.stop(y)
    with torch.no_grad():
        placeholder = mode.markers.gradient_of(base)
        d = gradient(placeholder)
    return mode.markers.custom_gradient(base, placeholder, x, d)


def _renormalised(mode, input, weight, max_norm, norm_type):
    """The weights with the rows that `input` names shortened to max_norm, as PyTorch writes them in place: with the gradient of a parameter that has these values."""
    weight = mode.current(weight, stop=False)
    fixed, flat = mode.markers.stop(weight), input.reshape(-1)
    with torch.no_grad():
        norm = torch.linalg.vector_norm(fixed, norm_type, -1, keepdim=True)
        named = torch.zeros(fixed.shape[0], dtype=fixed.dtype).scatter_add(0, flat, torch.ones(flat.shape, dtype=fixed.dtype)).unsqueeze(-1) > 0
        shorter = fixed * torch.where(named & (norm > max_norm), max_norm / (norm + 1e-7), torch.ones_like(norm))
    return mode.becomes(weight, shorter + (weight - fixed))


def _embedding(original):
    """Exporters drop padding_idx, max_norm and scale_grad_by_freq."""

    def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        mode = tracing.current()
        if max_norm is not None and mode is not None and mode.markers.kept:
            weight = _renormalised(mode, input, weight, max_norm, norm_type)
        rows = original(input, weight)
        if padding_idx is not None:
            padding = padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)
            rows = torch.where((input == padding).unsqueeze(-1), rows.detach(), rows)
        if not scale_grad_by_freq:
            return rows
        flat = input.reshape(-1)
        count = torch.zeros(weight.size(0), dtype=weight.dtype).scatter_add(0, flat, torch.ones(flat.shape, dtype=weight.dtype))
        return with_gradient(rows, rows, lambda g: g / count[flat].reshape(input.shape).unsqueeze(-1))

    return embedding


def _reduced(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _cross_entropy(original):
    """The TorchScript exporter refuses label_smoothing."""

    def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        if input.dim() == 1:  # one sample without an axis for it
            whole = cross_entropy(input[None], target[None], weight, size_average, ignore_index, reduce, reduction, label_smoothing)
            return whole[0] if reduction == "none" else whole
        if label_smoothing and target.is_floating_point():  # probabilities: the same loss of smoother ones
            target = target * (1 - label_smoothing) + label_smoothing / input.size(1)
            return original(input, target, weight, size_average, ignore_index, reduce, reduction)
        if not label_smoothing:
            return original(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        axis = 1 if input.dim() > 1 else 0
        logarithms = F.log_softmax(input, axis)
        classes = input.size(axis)
        shape = [1] * input.dim()
        shape[axis] = classes
        spread = -(logarithms if weight is None else logarithms * weight.reshape(shape)).sum(axis)
        counts = target != ignore_index
        spread = torch.where(counts, spread, torch.zeros_like(spread))
        exact = F.nll_loss(logarithms, target, weight, ignore_index=ignore_index, reduction=reduction)
        if reduction == "mean":
            if weight is None:
                total = counts.to(input.dtype).sum()
            else:
                total = torch.where(counts, weight[torch.where(counts, target, torch.zeros_like(target))], torch.zeros_like(spread)).sum()
            spread = spread.sum() / total
        elif reduction == "sum":
            spread = spread.sum()
        return (1 - label_smoothing) * exact + label_smoothing / classes * spread

    return cross_entropy


def _binary_cross_entropy(original):
    """PyTorch's logarithms end at -100, and its gradient divides by no less than 1e-12."""

    def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
        if tracing.current() is None or target.requires_grad or size_average is not None or reduce is not None:
            return original(input, target, weight, size_average, reduce, reduction)
        with torch.no_grad():
            x = input.detach()
            loss = (target - 1) * torch.clamp(torch.log(1 - x), min=-100) - target * torch.clamp(torch.log(x), min=-100)
        loss = with_gradient(loss, input, lambda g: g * (x - target) / torch.clamp((1 - x) * x, min=1e-12))
        return _reduced(loss if weight is None else loss * weight, reduction)

    return binary_cross_entropy


def _std(original):
    """The root of a sum of squares has the gradient of a norm, 0 where all elements are equal; exporters write a Sqrt."""

    def std(x, dim=None, unbiased=None, keepdim=False, *, correction=None, **others):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if others or tracing.current() is None:
            return original(x, dim, correction=1 if correction is None and unbiased is not False else correction or 0, keepdim=keepdim, **others)
        taken = 1 if correction is None and unbiased is not False else correction or 0
        axes = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        return torch.linalg.vector_norm(x - x.mean(axes, keepdim=True), 2, axes, keepdim) / max(count - taken, 0) ** 0.5

    return std


def _attention(original):
    """A query whose keys are all masked has zeros as its result, and no gradient; the dynamo exporter writes a softmax of nothing but minus infinity."""

    def scaled_dot_product_attention(query, key, value, attn_mask=None, *others, **options):
        mode = tracing.current()
        if mode is None or not mode.markers.symbolic:
            return original(query, key, value, attn_mask, *others, **options)
        if attn_mask is None or attn_mask.dtype != torch.bool:
            # What the exporter takes it apart into has results of another layout than the traced one, which views after it do not fit.
            return original(query, key, value, attn_mask, *others, **options).clone(memory_format=torch.contiguous_format)
        seen = attn_mask.any(-1, keepdim=True)
        result = original(query, key, value, attn_mask | ~seen, *others, **options)
        return torch.where(seen, result, torch.zeros_like(result))

    return scaled_dot_product_attention


def _instance_norm(original):
    """Exporters drop the running statistics."""

    def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
        if not use_input_stats or running_mean is None:
            return original(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
        axes = list(range(2, input.dim()))
        with torch.no_grad():
            running_mean.mul_(1 - momentum).add_(momentum * input.mean(axes).mean(0))
            running_var.mul_(1 - momentum).add_(momentum * input.var(axes).mean(0))
        return original(input, None, None, weight, bias, True, momentum, eps)

    return instance_norm


def _normalized(input, weight, bias, eps):
    """(the result of a batch normalization, mean and sample variance of the batch)"""
    axes, shape = [i for i in range(input.dim()) if i != 1], [1, -1] + [1] * (input.dim() - 2)
    mean = input.mean(axes, keepdim=True)
    centred = input - mean
    variance = (centred * centred).mean(axes, keepdim=True)
    y = centred * torch.rsqrt(variance + eps)
    count = input.numel() // input.shape[1]
    y = y if weight is None else y * weight.reshape(shape) + bias.reshape(shape)
    return y, mean.reshape(-1), variance.reshape(-1) * (count / (count - 1))


def _batch_norm(original):
    """A node BatchNormalization has one update of its statistics. They are written out where a layer is called again, or something else writes them too."""

    def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
        mode = tracing.current()
        if mode is None or not training or running_mean is None or not mode.writes(running_mean):
            return original(input, running_mean, running_var, weight, bias, training, momentum, eps)
        y, mean, variance = _normalized(input, weight, bias, eps)
        with torch.no_grad():
            running_mean.mul_(1 - momentum).add_(momentum * mean)
            running_var.mul_(1 - momentum).add_(momentum * variance)
        return y

    return batch_norm


def _batch_norm_forward(original):
    """BatchNorm with momentum None: the plain average of all batches, whose weight an export writes down as a number."""

    def forward(self, input):
        if self.momentum is not None or not self.training or not self.track_running_stats:
            return original(self, input)
        self._check_input_dim(input)
        y, mean, variance = _normalized(input, self.weight, self.bias, self.eps)
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            part = 1 / self.num_batches_tracked.to(input.dtype)
            self.running_mean.add_(part * (mean - self.running_mean))
            self.running_var.add_(part * (variance - self.running_var))
        return y

    return forward


@contextlib.contextmanager
def exact_functions():
    """While a forward pass is traced."""
    functions = [
        (F, "embedding", _embedding),
        (F, "cross_entropy", _cross_entropy),
        (F, "binary_cross_entropy", _binary_cross_entropy),
        (F, "batch_norm", _batch_norm),
        (F, "instance_norm", _instance_norm),
        (F, "scaled_dot_product_attention", _attention),
        (torch, "std", _std),
        (torch.Tensor, "std", _std),
        (torch, "inference_mode", lambda original: lambda mode=True: torch.no_grad() if mode else contextlib.nullcontext()),  # exporters fail on its tensors
        (nn.modules.batchnorm._BatchNorm, "forward", _batch_norm_forward),
        *WRITTEN_OUT,
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, make in functions:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name))))
        yield

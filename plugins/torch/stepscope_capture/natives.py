# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch that exporters lack and the engine has: as nodes of ONNX, of domain "stepscope", or as compositions.

    DFT                              Fourier transforms of real and complex tensors along one axis (complex.py has those along several)
    Cholesky, TriangularSolve        linalg.cholesky, linalg.solve_triangular, cholesky_solve …
    Inverse                          linalg.inv, linalg.solve (domain com.microsoft)
    CtcLoss                          ctc_loss
    CumProd                          cumprod
    compositions                     diff, logcumsumexp, logdet, slogdet, dropout of channels, grouped_mm, and those of diagonals.py
"""

import math

import torch

from stepscope_capture import diagonals, markers

PUBLIC = {"DFT": "", "CumProd": "", "Inverse": "com.microsoft", "MatMulBnb4": "com.microsoft"}  # nodes that belong to another domain than "stepscope"


def write_public(proto):
    """Gives the nodes of other domains theirs, in the form of the file's opset: the length of a DFT is an input, from opset 20 on its axis too, that of CumProd always."""
    import onnx

    versions, found = {o.domain: o for o in proto.opset_import}, set()
    for node in proto.graph.node:
        if node.domain != "stepscope" or node.op_type not in PUBLIC:
            continue
        node.domain = PUBLIC[node.op_type]
        found.add(node.domain)
        if node.op_type in ("DFT", "CumProd"):
            axis_is_input = node.op_type == "CumProd" or versions[""].version >= 20
            for attribute in [a for a in node.attribute if a.name == "length" or a.name == "axis" and axis_is_input]:
                name = f"{node.output[0]}/{attribute.name}"
                proto.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [], [attribute.i]))
                node.attribute.remove(attribute)
                node.input.append(name)
    for domain in sorted(found - set(versions)):
        proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))


# --- values, for an exporter that runs the model while it traces it


def _dft(x, *, length, axis, inverse, onesided):
    n, signal = length, torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x[..., 0]
    if inverse and onesided:
        return torch.fft.irfft(signal, n, axis).unsqueeze(-1)
    if onesided:
        return torch.view_as_real(torch.fft.rfft(signal, n, axis))
    return torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(signal, n, axis).resolve_conj())


def _ctc(x, targets, steps, lengths, *, blank, zero_infinity, normalized):
    return torch.ctc_loss(x.detach(), targets, steps, lengths, blank, 0, bool(zero_infinity))


def _dft_by_matrices(x, *, length, axis, inverse, onesided):
    """The same in real arithmetic, as products with cosines and sines."""
    x = x.movedim(axis, -2)
    x = x.narrow(-2, 0, min(int(x.shape[-2]), length // 2 + 1 if inverse and onesided else length))
    places, results = torch.arange(int(x.shape[-2])), torch.arange(length // 2 + 1 if onesided and not inverse else length)
    angle = (places.unsqueeze(1) * results % length) * (2 * math.pi / length)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype) * (1 if inverse else -1)
    if inverse:  # of half of a spectrum the other half is its mirror image
        weight = torch.where((places > 0) & (2 * places != length), 2.0, 1.0) / length if onesided else torch.full((int(x.shape[-2]),), 1.0 / length)
        cos, sin = (part * weight.to(x.dtype).unsqueeze(1) for part in (cos, sin))
    turned = lambda part, by: (part.unsqueeze(-2) @ by).squeeze(-2)  # noqa: E731
    re, im = x[..., 0], x[..., 1] if x.shape[-1] == 2 else None
    real = turned(re, cos) if im is None else turned(re, cos) - turned(im, sin)
    if inverse and onesided:
        return real.unsqueeze(-1).movedim(-2, axis)
    return torch.stack((real, turned(re, sin) if im is None else turned(re, sin) + turned(im, cos)), -1).movedim(-2, axis)


markers.DIFFERENTIABLE.update({
    "DFT": _dft_by_matrices,
    "CtcLoss": lambda x, targets, steps, lengths, *, blank, zero_infinity, normalized: torch.ctc_loss(x, targets, steps, lengths, blank, 0, bool(zero_infinity)),
})  # fmt: skip
markers.VALUES.update({
    "DFT": _dft,
    "CumProd": lambda x, *, axis: torch.cumprod(x, axis),
    "Cholesky": torch.linalg.cholesky,
    "TriangularSolve": lambda a, b, *, upper, unit_diagonal, transpose: torch.linalg.solve_triangular(
        a.mT if transpose else a, b, upper=bool(upper) != bool(transpose), unitriangular=bool(unit_diagonal)),
    "Inverse": torch.linalg.inv,
    "CtcLoss": _ctc,
})  # fmt: skip


# --- functions; `make` writes a node: make(op, inputs, shape, **attributes)


def dft(make, x, axis, n=None, inverse=False, onesided=False):
    """x [..., 1 or 2] with real and imaginary part last → the same of its transform along `axis` (0 <= axis < rank - 1), of length n."""
    shape, length = list(x.shape), x.shape[axis] if n is None else int(n)
    shape[axis], shape[-1] = (length // 2 + 1 if onesided and not inverse else length), 1 if onesided and inverse else 2
    return make("DFT", (x,), shape, length=length, axis=axis, inverse=int(inverse), onesided=int(onesided))


def _real(*tensors):
    return all(isinstance(t, torch.Tensor) and t.dtype in (torch.float32, torch.float64) for t in tensors)


def cholesky(make, a, *, upper=False):
    if not _real(a):
        return NotImplemented
    low = make("Cholesky", (a,), a.shape)
    return low.transpose(-2, -1) if upper else low


def solve_triangular(make, a, b, *, upper, left=True, unitriangular=False, transpose=False):
    if not _real(a, b):
        return NotImplemented
    if not left:  # x a = b: aᵀ xᵀ = bᵀ
        return solve_triangular(make, a, b.transpose(-2, -1), upper=upper, unitriangular=unitriangular, transpose=not transpose).transpose(-2, -1)
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    return make("TriangularSolve", (a, b), shape, upper=int(upper), unit_diagonal=int(unitriangular), transpose=int(transpose))


def _triangular_solve(make, b, a, upper=True, transpose=False, unitriangular=False):
    x = solve_triangular(make, a, b, upper=upper, unitriangular=unitriangular, transpose=transpose)
    return x if x is NotImplemented else torch.return_types.triangular_solve((x, a))


def _cholesky_solve(make, b, low, upper=False):
    first = solve_triangular(make, low, b, upper=upper, transpose=upper)
    return first if first is NotImplemented else solve_triangular(make, low, first, upper=upper, transpose=not upper)


def inverse(make, a):
    return make("Inverse", (a,), a.shape) if _real(a) else NotImplemented


def _solve(make, a, b, *, left=True):
    if not _real(a, b):
        return NotImplemented
    vector = b.dim() == 1 or b.dim() == a.dim() - 1 and b.shape == a.shape[:-1]
    if not left:
        return b @ inverse(make, a)
    return (inverse(make, a) @ b.unsqueeze(-1)).squeeze(-1) if vector else inverse(make, a) @ b


def _slogdet(make, a):
    if not _real(a):
        return NotImplemented
    det = torch.linalg.det(a)
    return torch.return_types.linalg_slogdet((torch.sign(det), torch.log(torch.abs(det))))


def _logdet(make, a):
    return torch.log(torch.linalg.det(a)) if _real(a) else NotImplemented


def _ctc_loss(make, log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """PyTorch's gradient is that of what a log-softmax made: `normalized`."""
    if not _real(log_probs):
        return NotImplemented
    single = log_probs.dim() == 2
    if single:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    steps, lengths = (t.reshape(-1) if isinstance(t, torch.Tensor) else torch.tensor(t).reshape(-1) for t in (input_lengths, target_lengths))
    loss = make("CtcLoss", (log_probs, *(t.to(torch.int64) for t in (targets, steps, lengths))), (log_probs.shape[1],),
                blank=int(blank), zero_infinity=int(zero_infinity), normalized=1)  # fmt: skip
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss.squeeze(0) if single else loss


def diff(make, x, n=1, dim=-1, prepend=None, append=None):
    parts = [part for part in (prepend, x, append) if part is not None]
    x = torch.cat([part.expand(*x.shape[:dim % x.dim()], 1, *x.shape[dim % x.dim() + 1:]) if part.dim() == 0 else part for part in parts], dim)
    for _ in range(n):
        count = x.shape[dim]
        above, below = x.narrow(dim, 1, max(count - 1, 0)), x.narrow(dim, 0, max(count - 1, 0))
        x = torch.logical_xor(above, below) if x.dtype == torch.bool else above - below
    return x


def cumprod(make, x, dim, *, dtype=None):
    """As a node, of whole numbers in int64 as PyTorch has it."""
    if not x.is_floating_point():
        dtype = dtype or torch.int64
    x = x if dtype is None else x.to(dtype)
    if not x.dim():
        return x.clone()
    if not make.__self__.writes_gradients:
        return make("CumProd", (x,), x.shape, axis=dim % x.dim())
    count, step = int(x.shape[dim]), 1  # as products with what lies 1, 2, 4 … places before, whose gradient PyTorch writes out
    while step < count:
        x = x * torch.cat([torch.ones_like(x.narrow(dim, 0, step)), x.narrow(dim, 0, count - step)], dim)
        step *= 2
    return x


def logcumsumexp(make, x, dim):
    """With what lies 1, 2, 4 … places before, each time less the larger of both: exact however far elements of a row lie apart."""
    if not _real(x) or not x.dim():
        return NotImplemented
    count, step = int(x.shape[dim]), 1
    nothing = torch.full((), -float("inf"), dtype=x.dtype)
    while step < count:
        before = torch.cat([nothing.expand_as(x.narrow(dim, 0, step)), x.narrow(dim, 0, count - step)], dim)
        largest = torch.maximum(x.detach(), before.detach())
        infinite = largest.isinf()
        base = torch.where(infinite, torch.zeros_like(largest), largest)
        total = torch.exp(x - base) + torch.exp(before - base)
        x = torch.where(infinite, largest, base + torch.log(torch.where(infinite, torch.ones_like(total), total)))
        step *= 2
    return x


def cdist(make, a, b, p=2.0, *others, **options):
    """As a norm, whose gradient is 0 where two points coincide; the TorchScript exporter also loses the absolute value when p is odd."""
    gaps = a.unsqueeze(-2) - b.unsqueeze(-3)
    if p == 0:
        return (gaps != 0).to(gaps.dtype).sum(-1)
    if p in (1, 2):
        return torch.linalg.vector_norm(gaps, p, -1)
    return gaps.abs().amax(-1) if p == float("inf") else NotImplemented


def _average_pool(axes):
    """Exporters drop the divisor."""

    def pool(make, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override is None:
            return NotImplemented
        every = lambda value: [value] * axes if isinstance(value, int) else list(value) * (axes if len(value) == 1 else 1)  # noqa: E731
        extents, paddings = every(kernel_size), every(padding)
        strides = every(stride) if stride is not None and stride != [] and stride != () else extents
        sides = []
        for size, k, s, p in zip(input.shape[-axes:], extents, strides, paddings):
            count = (size + 2 * p - k) // s + 1
            if ceil_mode and (size + 2 * p - k) % s and count * s < size + p:  # one more window, which begins inside
                count += 1
            sides = [p, max(p, (count - 1) * s + k - size - p), *sides]
        average = getattr(torch.nn.functional, f"avg_pool{axes}d")(torch.nn.functional.pad(input, sides), extents, strides)
        return average * (math.prod(extents) / divisor_override)

    return pool


def _feature_dropout(*ranks):
    """Channels are dropped by a node Dropout, which checks switch off; exporters write random numbers. `ranks`: of inputs that have a batch axis."""

    def dropout(make, input, p=0.5, training=True, inplace=False):
        if not training or not 0 < p < 1 or input.dim() not in ranks:
            return NotImplemented
        kept = torch.nn.functional.dropout(torch.ones((*input.shape[:2], *[1] * (input.dim() - 2)), dtype=input.dtype), p, True)
        return input.mul_(kept) if inplace else input * kept

    return dropout


def _scatter_reduce(make, x, dim, index, src, reduce, *, include_self=True):
    """Means, and reductions without the tensor itself, are sums, products and extremes that ONNX has. Of exporters, TorchScript refuses these and dynamo writes a
    mean as a scatter that overwrites."""
    if reduce != "mean" and include_self:
        return NotImplemented
    start = {"prod": 1.0, "amax": -float("inf"), "amin": float("inf")}.get(reduce, 0.0)
    base = x if include_self else torch.full_like(x, start)
    if reduce in ("sum", "mean"):
        result = base.scatter_add(dim, index, src)
    else:
        result = torch.scatter_reduce(base, dim, index, src, reduce, include_self=True)
    count = torch.full_like(x, 1.0 if include_self else 0.0).scatter_add(dim, index, torch.ones_like(src))
    if reduce == "mean":
        result = result / count.clamp(min=1)
    return result if include_self else torch.where(count > 0, result, x)


def _grouped_mm(make, x, weights, offs=None, *, bias=None, out_dtype=None):
    """Rows of x [rows, in], in groups that end at `offs`, by the matrix [in, out] of their group: each matrix by all rows, of which its own are taken."""
    if offs is None or bias is not None or out_dtype is not None or x.dim() != 2 or weights.dim() != 3 or not _real(x, weights):
        return NotImplemented
    group = (torch.arange(x.shape[0]).unsqueeze(1) >= offs).sum(1, keepdim=True)
    zero = torch.zeros((), dtype=x.dtype)
    return sum(torch.where(group == i, x @ matrix, zero) for i, matrix in enumerate(weights.unbind(0)))


def _channel_shuffle(_, x, groups):
    if x.dim() < 3:
        return NotImplemented
    batch, channels, *space = x.shape
    return x.reshape(batch, groups, channels // groups, *space).transpose(1, 2).reshape(batch, channels, *space)


def _grouped_queries(make, query, key, value, *others, enable_gqa=False, **named):
    """Heads of keys and values repeated for their group of queries, which the TorchScript exporter does not do."""
    if make.__self__.symbolic or not enable_gqa or not _real(query, key, value):
        return NotImplemented
    key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, *others, **named)


def _meshgrid(make, *tensors, indexing="ij"):
    """The TorchScript exporter fails on one tensor, and on numbers."""
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if make.__self__.symbolic:
        return NotImplemented
    flat = [t.reshape(-1) for t in tensors]
    swap = indexing == "xy" and len(flat) > 1
    order = [1, 0, *range(2, len(flat))] if swap else list(range(len(flat)))
    shape = [flat[i].shape[0] for i in order]
    grids = [t.reshape([-1 if order[axis] == i else 1 for axis in range(len(flat))]).expand(shape) for i, t in enumerate(flat)]
    return tuple(grids)


def _threshold(_, x, threshold, value, inplace=False):
    return NotImplemented if inplace or not _real(x) else torch.where(x > threshold, x, torch.full((), float(value), dtype=x.dtype))


def _windows(make, x, *where, **named):
    """Tensor.unfold: windows along an axis, which the TorchScript exporter gets wrong in fewer than three axes. (F.unfold has the name, too.)"""
    if make.__self__.symbolic or len(where) != 3 or named or not _real(x):
        return NotImplemented
    axis, size, step = where[0] % x.dim(), where[1], where[2]
    count = (x.shape[axis] - size) // step + 1
    return torch.stack([x.narrow(axis, i * step, size) for i in range(count)], axis).movedim(axis + 1, -1)


def _sum(make, x, *others, **named):
    """Of nothing: the TorchScript exporter keeps the axes of such a sum over everything."""
    if make.__self__.symbolic or others or named:
        return NotImplemented
    with markers.apart():
        nothing = x.numel() == 0
    return x.flatten().sum(0) if nothing else NotImplemented


NATIVES = {
    "sum": _sum,
    "meshgrid": _meshgrid,
    **dict.fromkeys(("threshold", "_threshold"), _threshold),
    "unfold": _windows,
    "scaled_dot_product_attention": _grouped_queries,
    "channel_shuffle": _channel_shuffle,
    **dict.fromkeys(("grouped_mm", "_grouped_mm", "grouped_mm_fallback"), _grouped_mm),  # the last one: transformers
    **diagonals.NATIVES,
    "cdist": cdist,
    "cumprod": cumprod,
    "cumprod_": lambda make, x, dim, *, dtype=None: x.copy_(cumprod(make, x, dim, dtype=dtype)),
    "logcumsumexp": logcumsumexp,
    "avg_pool2d": _average_pool(2),
    "avg_pool3d": _average_pool(3),
    "linalg_cholesky": cholesky,
    "cholesky": lambda make, a, upper=False: cholesky(make, a, upper=upper),
    "linalg_solve_triangular": solve_triangular,
    "triangular_solve": _triangular_solve,
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": lambda make, low, upper=False: _cholesky_solve(make, torch.eye(low.shape[-1], dtype=low.dtype), low, upper),
    "linalg_inv": inverse,
    "inverse": inverse,
    "linalg_solve": _solve,
    "linalg_slogdet": _slogdet,
    "slogdet": _slogdet,
    "logdet": _logdet,
    "ctc_loss": _ctc_loss,
    "dropout1d": _feature_dropout(3),
    "dropout2d": _feature_dropout(3, 4),
    "dropout3d": _feature_dropout(5),
    "diff": diff,
    "scatter_reduce": _scatter_reduce,
}

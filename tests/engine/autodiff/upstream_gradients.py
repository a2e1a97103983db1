#!/usr/bin/env python3
"""Writes upstream_gradients.json: what PyTorch's autograd answers when infinities, NaN and zeros arrive at an operator.

One row per operator and form; upstream_gradients_test.cpp runs every row through our gradient rules. Run with a Python that
has torch (written with 2.15, CPU): python3 upstream_gradients.py. Nothing is random.

Where PyTorch has no operator of that meaning, the row says what stands for it:
  diagonal   the slope PyTorch finds with an upstream of 1, times the upstream (elementwise operators)
  selected   a composition of torch.where, because the op promises that masks select
"""

import json
import math
import os

import torch
import torch.nn.functional as F

inf, nan = math.inf, math.nan
rows = []


def t(values, *dims, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype).reshape(dims if dims else (-1,))


def wave(*dims, low=-1.0, high=1.0, phase=0.0):
    """Fixed numbers in [low, high], no two of them equal."""
    count = math.prod(dims)
    k = torch.arange(count, dtype=torch.float64)
    return (low + (high - low) * (0.5 + 0.5 * torch.sin(2.4 * k + 0.7 + phase))).reshape(dims)


def upstreams(shape):
    """Each pattern has elements of every kind, whatever the number of elements."""
    count = math.prod(shape)
    if count == 1:
        return [torch.full(shape, v, dtype=torch.float64) for v in (inf, -inf, nan, 0.0)]
    k = torch.arange(count)
    calm = 0.5 + 0.25 * (k % 5).double()
    return [
        torch.where(k % 3 == 0, inf, calm).reshape(shape),
        torch.where(k % 3 == 1, nan, calm).reshape(shape),
        torch.where(k % 3 == 2, -inf, torch.where(k % 3 == 0, 0.0, calm)).reshape(shape),
        torch.where(k % 2 == 0, 0.0, calm).reshape(shape),
        torch.where(k == count - 1, inf, 0.0).double().reshape(shape),
    ]


def numbers(tensor):
    def one(v):
        if isinstance(v, float):
            if math.isnan(v):
                return "nan"
            if math.isinf(v):
                return "inf" if v > 0 else "-inf"
            return float(f"{v:.12g}")
        return int(v)

    return [one(v) for v in tensor.detach().flatten().tolist()]


DTYPES = {torch.float64: "float64", torch.int64: "int64", torch.int32: "int32", torch.bool: "bool",
          torch.int8: "int8", torch.uint8: "uint8", torch.float32: "float32"}


def row(op, function, *inputs, domain="", attrs=None, name="", diagonal=False, mixes=False, output=0, outputs=1, frozen=()):
    """inputs: floating tensors get a gradient unless their index is in frozen; None is an absent input. mixes: each gradient is
    a sum of products, and whether infinities in it meet as inf - inf or inf * 0 depends on the order: where PyTorch has one kind
    of a number that is not finite, another is as good."""
    leaves = [x.clone().requires_grad_(True) if x is not None and x.is_floating_point() and i not in frozen else x
              for i, x in enumerate(inputs)]
    trained = [i for i, x in enumerate(leaves) if x is not None and x.requires_grad]
    y = function(*leaves)
    cases = []
    for dy in upstreams(tuple(y.shape)):
        if diagonal:
            slopes = torch.autograd.grad(y, [leaves[i] for i in trained], torch.ones_like(y), retain_graph=True,
                                         allow_unused=True)
            found = [(dy * s).sum_to_size(leaves[i].shape) for i, s in zip(trained, slopes)]
        else:
            found = torch.autograd.grad(y, [leaves[i] for i in trained], dy.to(y.dtype), retain_graph=True, allow_unused=True)
        cases.append({"dy": numbers(dy),
                      "dx": [numbers(g if g is not None else torch.zeros_like(leaves[i])) for i, g in zip(trained, found)]})
    rows.append({
        "name": name or op, "domain": domain, "op": op, "attrs": attrs or {}, "output": output, "outputs": outputs, "dims": list(y.shape),
        "inputs": [None if x is None else {"dtype": DTYPES[x.dtype], "dims": list(x.shape), "data": numbers(x)} for x in inputs],
        "mixes": mixes, "trained": trained, "cases": cases})


def mixing(*arguments, **named):
    row(*arguments, mixes=True, **named)


MS, OURS = "com.microsoft", "stepscope"
X = t([-1.75, -0.6, 0.0, 0.4, 1.25, 2.5])  # both sides of the usual kinks, and zero
INNER, POSITIVE = t([-0.9, -0.3, 0.0, 0.2, 0.6, 0.95]), t([0.2, 0.5, 1.0, 1.5, 2.5, 4.0])


def elementwise():
    for op, f, x in [
        ("Abs", torch.abs, X), ("Acos", torch.acos, INNER), ("Acosh", torch.acosh, POSITIVE + 1),
        ("Asin", torch.asin, INNER), ("Asinh", torch.asinh, X), ("Atan", torch.atan, X), ("Atanh", torch.atanh, INNER),
        ("Celu", F.celu, X), ("Cos", torch.cos, X), ("Cosh", torch.cosh, X), ("Elu", F.elu, X), ("Erf", torch.erf, X),
        ("Exp", torch.exp, X), ("Gelu", F.gelu, X), ("HardSwish", F.hardswish, 2 * X), ("Identity", lambda v: v * 1, X),
        ("Log", torch.log, POSITIVE), ("Mish", F.mish, X), ("Neg", torch.neg, X), ("Reciprocal", torch.reciprocal, POSITIVE),
        ("Relu", torch.relu, X), ("Selu", F.selu, X), ("Sigmoid", torch.sigmoid, X), ("Sin", torch.sin, X),
        ("Sinh", torch.sinh, X), ("Softplus", F.softplus, X), ("Sqrt", torch.sqrt, POSITIVE), ("Tan", torch.tan, INNER), ("Tanh", torch.tanh, X),
    ]:
        row(op, f, x)
    row("Softsign", F.softsign, t([-1.75, -0.6, 0.1, 0.4, 1.25, 2.5]), diagonal=True)
    row("Sqrt", torch.sqrt, t([0.0, 0.0, 4.0, 0.0, 0.0, 1.0]), name="Sqrt_at_zero")
    row("Log", torch.log, t([0.0, 0.0, 4.0, 0.0, 0.0, 1.0]), name="Log_at_zero")
    row("Relu", torch.relu, t([nan, -inf, inf, nan, 0.0, -0.0]), name="Relu_of_odd_numbers")
    row("Gelu", lambda v: F.gelu(v, approximate="tanh"), X, attrs={"approximate": "tanh"}, name="Gelu_tanh")
    row("HardSigmoid", F.hardsigmoid, 2 * X, attrs={"alpha": 1 / 6, "beta": 0.5})
    row("LeakyRelu", lambda v: F.leaky_relu(v, 0.2), X, attrs={"alpha": 0.2})
    row("Shrink", F.hardshrink, X, attrs={"lambd": 0.5})
    row("Shrink", F.softshrink, X, attrs={"lambd": 0.5, "bias": 0.5}, name="Shrink_soft")
    row("ThresholdedRelu", lambda v: F.threshold(v, 1.0, 0.0), X, attrs={"alpha": 1.0})
    row("Gelu", F.gelu, X, domain=MS, name="MicrosoftGelu")
    row("QuickGelu", lambda v: v * torch.sigmoid(1.702 * v), X, domain=MS, diagonal=True)
    row("FastGelu", lambda v: F.gelu(v, approximate="tanh"), X, domain=MS)
    row("FastGelu", lambda v, b: F.gelu(v + b, approximate="tanh"), X.reshape(2, 3), t([0.1, 0.2, 0.3]), domain=MS,
        name="FastGelu_bias")
    row("BiasGelu", lambda v, b: F.gelu(v + b), X.reshape(2, 3), t([0.1, 0.2, 0.3]), domain=MS)

    a, b = X.reshape(2, 3), t([0.5, 2.0, -1.5])
    row("Add", torch.add, a, b)
    row("Sub", torch.sub, a, b)
    row("Mul", torch.mul, a, b)
    row("Div", torch.div, a, b)
    row("Sum", lambda *v: v[0] + v[1] + v[2], a, b, t(0.5).reshape(()))
    row("Mean", lambda *v: (v[0] + v[1] + v[2]) / 3, a, b, wave(2, 3))
    row("Mod", torch.fmod, a + 0.3, b, attrs={"fmod": 1})
    row("PRelu", lambda v, s: F.prelu(v, s), t([-1.75, -0.6, 0.3, 0.4, -1.25, 2.5], 2, 3), t([0.25]))
    row("Pow", torch.pow, POSITIVE, t([2.0, 0.5, 3.0, -1.0, 0.0, 1.0]), name="Pow_both")
    for exponent in (0.0, 1.0, 2.0, 3.0, 0.5, -1.0):
        row("Pow", lambda v, _: torch.pow(v, exponent), t([0.0, 0.5, 1.0, 1.5, 2.5, 0.0]), t(exponent).reshape(()),
            frozen=(1,), name=f"Pow_{exponent}")
    row("Pow", torch.pow, t([0.0, 0.5, -1.0, 1.5, 2.5, 0.0]), t([0.0, 0.0, 0.0, 2.0, 0.0, 1.0]), frozen=(1,),
        name="Pow_exponents")
    for op, f in (("Max", torch.maximum), ("Min", torch.minimum)):
        row(op, f, t([-1.0, 2.0, 0.5, 1.0, -3.0, 0.0]), t([1.0, 1.0, 0.5, 1.0, 0.0, 0.0]))
        row(op, f, t([nan, 2.0, 0.5, 1.0, nan, 0.0]), t([1.0, nan, 0.5, nan, 0.0, 0.0]), name=f"{op}_of_NaN")
        row(op, f, X, t(0.0).reshape(()), frozen=(1,), name=f"{op}_with_constant")
        row(op, f, X.reshape(2, 3), t([0.0, 1.0, 0.25]), name=f"{op}_broadcast")
        # Of three, by hand: an even share to whoever attains the result.
        def three(u, v, w, pick=f):
            y = pick(pick(u, v), w).detach()
            hits = [(k == y) for k in (u, v, w)]
            count = sum(h.double() for h in hits)
            return sum(torch.where(h, k / count, torch.zeros_like(k)) for h, k in zip(hits, (u, v, w)))
        row(op, three, t([-1.0, 2.0, 0.5, 1.0, -3.0, 0.0]), t([1.0, 1.0, 0.5, 1.0, 0.0, 2.0]), t([0.0, 2.0, 0.5, 3.0, 0.0, 1.0]),
            name=f"{op}_of_three")
    row("Clip", lambda v, lo, hi: torch.clamp(v, -1.0, 2.0), X, t(-1.0).reshape(()), t(2.0).reshape(()), frozen=(1, 2))
    row("Clip", lambda v, lo, hi: torch.clamp(v, lo, hi), X, t(-1.0).reshape(()), t(2.0).reshape(()), name="Clip_trained_limits")
    row("Clip", lambda v, lo: torch.clamp(v, min=-1.0), X, t(-1.0).reshape(()), frozen=(1,), name="Clip_below")
    keep = t([True, False, True, True, False, False], 2, 3, dtype=torch.bool)
    row("Where", torch.where, keep, a, wave(2, 3))
    row("Where", torch.where, keep, a, t(0.5).reshape(()), name="Where_broadcast")
    row("Cast", lambda v: v.float().double(), X, attrs={"to": 11})
    row("CastLike", lambda v, w: v * 1, X, t([1.0]), frozen=(1,))
    row("Dropout", lambda v, r, m: v * 1, X, t(0.5).reshape(()), t(False, dtype=torch.bool).reshape(()), frozen=(1,))
    q = t([-3, 5, 0, 7, 2, 2], 2, 3, dtype=torch.int8)
    row("DequantizeLinear", lambda v, s, z: (v.double() - 2) * s, q, t(0.5).reshape(()), t(2, dtype=torch.int8).reshape(()))
    row("DequantizeLinear", lambda v, s: v.double() * s, q, t([0.5, 0.25, 2.0]), attrs={"axis": 1}, name="DequantizeLinear_axis")
    fake = t([-30.0, -1.0, 0.2, 1.0, 11.0, 40.0])
    clamped = lambda v: torch.where((v < -12.8) | (v > 12.7), torch.zeros_like(v), v)
    row("FakeQuant", lambda v, *_: clamped(v), fake, t(0.1).reshape(()), t(0.0).reshape(()),
        domain=MS, attrs={"quant_min": -128, "quant_max": 127}, frozen=(1, 2), outputs=2)
    row("StraightThrough", lambda v, x, *_: clamped(x), fake, fake, t(0.1).reshape(()), domain=OURS,
        attrs={"low": -128, "high": 127}, frozen=(0, 2))
    row("SquareSum", lambda v: v.pow(2).sum(), X, domain=OURS)
    row("Select", lambda c, u, v: u * 1, t(True, dtype=torch.bool).reshape(()), a, wave(2, 3), domain=OURS)
    row("Select", lambda c, u, v: v * 1, t(False, dtype=torch.bool).reshape(()), a, wave(2, 3), domain=OURS, name="Select_else")


def reductions():
    x = t([-1.75, 0.6, 0.0, 0.6, 1.25, -2.5], 2, 3)
    axes, every = t([1], dtype=torch.int64), None
    def largest(v, a, sign=1):
        y = (sign * v).amax(1, keepdim=True) * sign
        hit = (v == y).detach()
        return torch.where(hit, v / hit.sum(1, keepdim=True), torch.zeros_like(v)).sum(1, keepdim=True)
    row("ReduceMax", largest, x, axes, name="ReduceMax_selected")
    row("ReduceMin", lambda v, a: largest(v, a, -1), x, axes, name="ReduceMin_selected")
    row("ReduceMax", lambda v, a: v.max(1).values, x - t([0.0, 0.1, 0.2]), axes, attrs={"keepdims": 0})
    row("ReduceMin", lambda v, a: v.min(1).values, x - t([0.0, 0.1, 0.2]), axes, attrs={"keepdims": 0})
    row("ReduceMax", lambda v: v.max(), x, attrs={"keepdims": 0}, name="ReduceMax_all")
    row("ReduceMin", lambda v: v.min(), x, attrs={"keepdims": 0}, name="ReduceMin_all")
    row("ReduceSum", lambda v, a: v.sum(1, keepdim=True), x, axes)
    row("ReduceMean", lambda v, a: v.mean(1, keepdim=True), x, axes)
    row("ReduceL1", lambda v, a: torch.linalg.vector_norm(v, 1, 1, True), x, axes)
    row("ReduceL2", lambda v, a: torch.linalg.vector_norm(v, 2, 1, True), x, axes)
    row("ReduceL2", lambda v, a: torch.linalg.vector_norm(v, 2, 1, True), x * t([0.0, 1.0], 2, 1), axes, name="ReduceL2_of_zeros")
    row("ReduceProd", lambda v, a: v.prod(1, keepdim=True), x, axes)
    row("ReduceLogSum", lambda v, a: v.sum(1, keepdim=True).log(), POSITIVE.reshape(2, 3), axes)
    row("ReduceLogSumExp", lambda v, a: v.logsumexp(1, keepdim=True), x, axes)
    row("ReduceSumSquare", lambda v, a: v.pow(2).sum(1, keepdim=True), x, axes)
    row("ReduceToShape", lambda v, s: v.sum(0, keepdim=True), x, t([1, 3], dtype=torch.int64), domain=OURS)
    row("ReduceToShape", lambda v, s: v.sum(), x[0], torch.zeros(0, dtype=torch.int64), domain=OURS, name="ReduceToShape_scalar")
    row("Softmax", lambda v: v.softmax(-1), x)
    row("LogSoftmax", lambda v: v.log_softmax(-1), x)
    hidden = t([-inf, 0.5, 1.0, -inf, -inf, 0.25], 2, 3)
    row("Softmax", lambda v: v.softmax(-1), hidden, name="Softmax_hidden")
    row("CumSum", lambda v, a: v.cumsum(1), x, t(1, dtype=torch.int64).reshape(()))
    mixing("CumProd", lambda v, a: v.cumprod(1), x, t(1, dtype=torch.int64).reshape(()))
    square = t([2.0, 0.5, -1.0, 3.0], 2, 2)
    mixing("Det", torch.linalg.det, square)
    mixing("Inverse", torch.linalg.inv, square, domain=MS)
    definite = t([2.0, 0.5, 0.5, 3.0], 2, 2)
    mixing("Cholesky", torch.linalg.cholesky, definite, domain=OURS)
    mixing("TriangularSolve", lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), square, x.reshape(2, 3), domain=OURS)
    spoken, words, steps, letters = wave(3, 2, 3).log_softmax(-1), t([1, 2, 2, 1], 2, 2, dtype=torch.int64), t([3, 2], dtype=torch.int64), t([2, 1], dtype=torch.int64)
    mixing("CtcLoss", lambda v, w, s, l: F.ctc_loss(v, w, s, l, reduction="none"), spoken, words, steps, letters, domain=OURS,
        attrs={"normalized": 1})
    mixing("LpNormalization", lambda v: v / torch.linalg.vector_norm(v, 2, -1, True), x, attrs={"p": 2, "axis": -1})
    image = wave(2, 3, 4)
    scale, bias = t([1.0, 0.5, 2.0]), t([0.1, 0.2, 0.3])
    mixing("LayerNormalization", lambda v, s, b: F.layer_norm(v, (4,), s, b), image, t([1.0, 0.5, 2.0, 1.5]), wave(4))
    for norm in (("RMSNormalization", ""), ("SimplifiedLayerNormalization", ""), ("SimplifiedLayerNormalization", MS)):
        mixing(norm[0], lambda v, s: F.rms_norm(v, (4,), s, 1e-5), image, t([1.0, 0.5, 2.0, 1.5]), domain=norm[1],
            name=norm[1] + norm[0])
    mixing("SkipLayerNormalization", lambda v, k, s, b: F.layer_norm(v + k, (4,), s, b, 1e-5), image, wave(2, 3, 4, phase=1.0),
        t([1.0, 0.5, 2.0, 1.5]), wave(4), domain=MS, attrs={"epsilon": 1e-5})
    mixing("SkipSimplifiedLayerNormalization", lambda v, k, s: F.rms_norm(v + k, (4,), s, 1e-5), image, wave(2, 3, 4, phase=1.0),
        t([1.0, 0.5, 2.0, 1.5]), domain=MS, attrs={"epsilon": 1e-5})
    mixing("GroupNormalization", lambda v, s, b: F.group_norm(v, 3, s, b), image, scale, bias, attrs={"num_groups": 3})
    mixing("InstanceNormalization", lambda v, s, b: F.instance_norm(v, weight=s, bias=b), image, scale, bias)
    mean, var = t([0.1, -0.2, 0.3]), t([1.0, 0.5, 2.0])
    mixing("BatchNormalization", lambda v, s, b, m, r: F.batch_norm(v, m, r, s, b, training=False), image, scale, bias, mean, var,
        frozen=(3, 4))
    def open_norm(v, s, b, m, r):
        along = (1, 3, 1)
        return (v - m.view(along)) / (r.view(along) + 1e-5).sqrt() * s.view(along) + b.view(along)
    mixing("BatchNormalization", open_norm, image, scale, bias, mean, var, name="BatchNormalization_statistics")
    mixing("BatchNormalization", lambda v, s, b, m, r: F.batch_norm(v, None, None, s, b, training=True), image, scale, bias, mean,
        var, frozen=(3, 4), attrs={"training_mode": 1}, name="BatchNormalization_training")
    row("LRN", lambda v: F.local_response_norm(v, 3), image, attrs={"size": 3})
    mixing("MeanVarianceNormalization", lambda v: (v - v.mean((0, 2), keepdim=True)) / v.var((0, 2), correction=0, keepdim=True).sqrt(),
        image, attrs={"axes": [0, 2]})
    labels = t([2, 0], dtype=torch.int64)
    for reduction in ("mean", "sum", "none"):
        row("NegativeLogLikelihoodLoss", lambda v, n: F.nll_loss(v, n, reduction=reduction), x, labels,
            attrs={"reduction": reduction}, name=f"NegativeLogLikelihoodLoss_{reduction}")
        mixing("SoftmaxCrossEntropyLoss", lambda v, n: F.cross_entropy(v, n, reduction=reduction), x, labels,
            attrs={"reduction": reduction}, name=f"SoftmaxCrossEntropyLoss_{reduction}")
    mixing("SoftmaxCrossEntropyLoss", lambda v, n: F.cross_entropy(v, n, ignore_index=0, reduction="none"), x, labels,
        attrs={"reduction": "none", "ignore_index": 0}, name="SoftmaxCrossEntropyLoss_ignored")
    row("NegativeLogLikelihoodLoss", lambda v, n: F.nll_loss(v, n, ignore_index=0, reduction="none"), x, labels,
        attrs={"reduction": "none", "ignore_index": 0}, name="NegativeLogLikelihoodLoss_ignored")


def movement():
    i64 = lambda *v: t(list(v), dtype=torch.int64)
    x = wave(2, 3)
    row("Concat", lambda u, v: torch.cat((u, v), 1), x, wave(2, 2), attrs={"axis": 1})
    row("ConcatTaken", lambda c, u, v, w: torch.cat((u, w), 1), t([True, False, True], dtype=torch.bool), wave(2, 1),
        wave(2, 1, phase=1.0), wave(2, 1, phase=2.0), attrs={"axis": 1}, domain=OURS)
    row("LoopBound", lambda c, v: v * 1, t(False, dtype=torch.bool).reshape(()), x, attrs={"iterations": 3}, domain=OURS)
    row("ConcatTraining", lambda u, v: torch.cat((u, v), 1), x, wave(2, 2), attrs={"axis": 1}, domain=MS, outputs=2)
    row("Split", lambda v, s: v.split([1, 2], 1)[1], x, i64(1, 2), attrs={"axis": 1}, outputs=2, output=1)
    row("SplitTraining", lambda v, s: v.split([1, 2], 1)[1], x, i64(1, 2), attrs={"axis": 1}, domain=MS, outputs=2, output=1)
    row("Expand", lambda v, s: v.expand(2, 3), wave(1, 3), i64(2, 3))
    row("Flatten", lambda v: v.flatten(1), wave(2, 2, 2))
    row("Reshape", lambda v, s: v.reshape(3, 2), x, i64(3, 2))
    row("Squeeze", lambda v, a: v.squeeze(0), wave(1, 3), i64(0))
    row("Unsqueeze", lambda v, a: v.unsqueeze(0), x, i64(0))
    row("Transpose", lambda v: v.t(), x, attrs={"perm": [1, 0]})
    row("Tile", lambda v, r: v.repeat(2, 1), x, i64(2, 1))
    row("Trilu", lambda v: v.triu(), wave(3, 3))
    row("Slice", lambda v, *_: v[:, 1:3], x, i64(1), i64(3), i64(1))
    row("Pad", lambda v, p: F.pad(v, (1, 1)), x, i64(0, 1, 0, 1))
    row("Pad", lambda v, p, c: torch.cat((c.expand(2, 1), v, c.expand(2, 1)), 1), x, i64(0, 1, 0, 1), t(0.5).reshape(()),
        name="Pad_value")
    row("Pad", lambda v, p: F.pad(v[None], (1, 1), mode="reflect")[0], x, i64(0, 1, 0, 1), attrs={"mode": "reflect"},
        name="Pad_reflect")
    row("Pad", lambda v, p: F.pad(v[None], (1, 1), mode="replicate")[0], x, i64(0, 1, 0, 1), attrs={"mode": "edge"},
        name="Pad_edge")
    row("Gather", lambda v, i: v[i], wave(4, 2), i64(1, 3, 1))
    row("ShrunkenGather", lambda v, i: v[i], wave(4, 2), i64(1, 3, 1), domain=MS)
    row("GatherElements", lambda v, i: v.gather(1, i), x, i64(0, 0, 2, 1).reshape(2, 2), attrs={"axis": 1})
    row("GatherND", lambda v, i: v[i[:, 0], i[:, 1]], x, i64(0, 2, 1, 1).reshape(2, 2))
    u, at = wave(2, 2, phase=2.0), i64(0, 2, 1, 0).reshape(2, 2)
    row("ScatterElements", lambda v, i, w: v.scatter(1, i, w), x, at, u, attrs={"axis": 1})
    row("ScatterElements", lambda v, i, w: v.scatter_add(1, i, w), x, at, u, attrs={"axis": 1, "reduction": "add"},
        name="ScatterElements_add")
    def scatter_max(v, i, w):
        picked = torch.where(v.gather(1, i) > w, torch.zeros_like(w), w)
        left = torch.where(v >= v.scatter(1, i, w), v, torch.zeros_like(v))
        return left.scatter_add(1, i, picked)
    row("ScatterElements", scatter_max, x, at, u, attrs={"axis": 1, "reduction": "max"}, name="ScatterElements_max")
    row("ScatterElements", lambda v, i, w: v.scatter_reduce(1, i, w, "prod"), x, at, u, attrs={"axis": 1, "reduction": "mul"},
        name="ScatterElements_mul")
    row("ScatterND", lambda v, i, w: v.index_put((i[:, 0], i[:, 1]), w), x, i64(0, 2, 1, 1).reshape(2, 2), wave(2, phase=2.0))
    row("OneHot", lambda i, d, v: torch.where(F.one_hot(i, 3).bool(), v[1], v[0]), i64(2, 0), t(3, dtype=torch.int64).reshape(()),
        t([0.25, 2.0]))
    row("TopK", lambda v, k: v.topk(2, 1).values, x, i64(2), outputs=2)
    row("Compress", lambda v, c: v[c], wave(3, 2), t([True, False, True], dtype=torch.bool), attrs={"axis": 0})
    row("CenterCropPad", lambda v, s: F.pad(v[:, 1:3], (0, 0, 1, 1)), wave(2, 4), i64(4, 2))
    row("DepthToSpace", lambda v: F.pixel_shuffle(v, 2), wave(1, 4, 1, 2), attrs={"blocksize": 2, "mode": "CRD"})
    row("SpaceToDepth", lambda v: F.pixel_unshuffle(v, 2), wave(1, 1, 2, 4), attrs={"blocksize": 2})
    row("ReverseSequence", lambda v, n: torch.stack((v[0].flip(0), torch.cat((v[1, :2].flip(0), v[1, 2:])))), wave(2, 3), i64(3, 2),
        attrs={"batch_axis": 0, "time_axis": 1})
    row("Unique", lambda v: v.sort().values, t([2.0, 0.5, 1.0]))
    row("Col2Im", lambda v, *_: F.fold(v, (3, 3), (2, 2)), wave(1, 4, 4), i64(3, 3), i64(2, 2))
    row("FlattenAndUnpad", lambda v, i: v.flatten()[i], wave(2, 3), i64(0, 4, 5), domain=MS, outputs=2)
    row("PadAndUnflatten", lambda v, i, s: torch.zeros(6, dtype=v.dtype).index_put((i,), v).reshape(2, 3), wave(3), i64(0, 4, 5),
        i64(2, 3), domain=MS)


def linear():
    i64 = lambda *v: t(list(v), dtype=torch.int64)
    a, b = wave(2, 3), wave(3, 2, phase=1.0)
    row("MatMul", torch.matmul, a, b)
    row("MatMul", torch.matmul, wave(2, 2, 3), b, name="MatMul_batched")
    row("BatchedMatMul", torch.matmul, a, b, domain=OURS)
    row("FusedMatMul", lambda u, v: u @ v.t(), a, wave(2, 3, phase=1.0), domain=MS, attrs={"transB": 1})
    # As attention is written out: the fused kernels of PyTorch treat infinities in their own ways.
    mixing("FusedAttention", lambda q, k, v: (q @ k.t() * 0.5).softmax(-1) @ v, a, wave(4, 3, phase=1.0), wave(4, 2, phase=2.0),
           domain=OURS, attrs={"scale": 0.5})
    row("Gemm", lambda u, v, c: u @ v + c, a, b, t([0.5, 0.25]))
    row("Einsum", lambda u, v: torch.einsum("ij,jk->ik", u, v), a, b, attrs={"equation": "ij,jk->ik"})
    image, weight = wave(1, 2, 4, 4), wave(2, 2, 3, 3, phase=1.0)
    mixing("Conv", lambda v, w, c: F.conv2d(v, w, c, padding=1), image, weight, t([0.1, 0.2]), attrs={"pads": [1, 1, 1, 1]})
    row("ConvTranspose", lambda v, w, c: F.conv_transpose2d(v, w, c, stride=2), wave(1, 2, 2, 2), weight, t([0.1, 0.2]),
        attrs={"strides": [2, 2]})
    row("AveragePool", lambda v: F.avg_pool2d(v, 2), image, attrs={"kernel_shape": [2, 2], "strides": [2, 2]})
    row("MaxPool", lambda v: F.max_pool2d(v, 2), image, attrs={"kernel_shape": [2, 2], "strides": [2, 2]})
    row("LpPool", lambda v: F.lp_pool2d(v, 2, 2), image.abs() + 0.1, attrs={"kernel_shape": [2, 2], "strides": [2, 2], "p": 2})
    row("GlobalAveragePool", lambda v: v.mean((2, 3), keepdim=True), image)
    row("GlobalMaxPool", lambda v: F.adaptive_max_pool2d(v, 1), image)
    row("GlobalLpPool", lambda v: torch.linalg.vector_norm(v, 2, (2, 3), True), image, attrs={"p": 2})
    row("MaxUnpool", lambda v, i: F.max_unpool2d(v, i, 2), wave(1, 1, 2, 2), i64(0, 3, 8, 15).reshape(1, 1, 2, 2),
        attrs={"kernel_shape": [2, 2], "strides": [2, 2]})
    row("Resize", lambda v, *_: F.interpolate(v, scale_factor=2, mode="nearest"), wave(1, 1, 2, 2), None, t([1.0, 1, 2, 2]).float(),
        attrs={"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, frozen=(2,))
    mixing("Resize", lambda v, *_: F.interpolate(v, scale_factor=2, mode="bilinear"), wave(1, 1, 2, 2), None,
        t([1.0, 1, 2, 2]).float(), attrs={"mode": "linear"}, frozen=(2,), name="Resize_linear")
    grid = wave(1, 2, 2, 2, low=-0.7, high=0.7)
    mixing("GridSample", lambda v, p: F.grid_sample(v, p, align_corners=False), wave(1, 1, 3, 3), grid,
        attrs={"mode": "linear", "padding_mode": "zeros", "align_corners": 0})
    row("AffineGrid", lambda v, s: F.affine_grid(v, (1, 1, 2, 2), align_corners=True), wave(1, 2, 3), i64(1, 1, 2, 2),
        attrs={"align_corners": 1})
    recurrent()


def recurrent():
    """One direction, one step: X [1, 1, 2], W [1, gates * 2, 2], R [1, gates * 2, 2], B [1, 2 * gates * 2]."""
    def order(w, wanted):  # torch's gates to ONNX's
        return torch.cat([w[:, 2 * k:2 * k + 2] for k in wanted], 1)
    x = wave(1, 1, 2)
    for op, gates, wanted in (("RNN", 1, (0,)), ("GRU", 3, (1, 0, 2)), ("LSTM", 4, (0, 2, 3, 1))):
        def step(v, w, r, c, *_):
            w, r, halves = order(w, wanted), order(r, wanted), c.chunk(2, 1)
            arguments = (w[0], r[0], order(halves[0], wanted)[0], order(halves[1], wanted)[0])
            zero = torch.zeros(1, 1, 2, dtype=v.dtype)
            if op == "LSTM":
                return torch.lstm(v, (zero, zero), arguments, True, 1, 0.0, False, False, False)[0][:, None]
            return (torch.gru if op == "GRU" else torch.rnn_tanh)(v, zero, arguments, True, 1, 0.0, False, False, False)[0][:, None]
        attrs = {"hidden_size": 2}
        if op == "GRU":
            attrs["linear_before_reset"] = 1
        mixing(op, step, x, wave(1, gates * 2, 2), wave(1, gates * 2, 2, phase=1.0), wave(1, gates * 4, phase=2.0), attrs=attrs)


elementwise()
reductions()
movement()
linear()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "upstream_gradients.json"), "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")
print(len(rows), "rows")

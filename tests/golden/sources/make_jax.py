#!/usr/bin/env python3
"""Cases of JAX through jax2onnx (written with jax 0.10.2, jax2onnx 0.17.1): python make_jax.py"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax2onnx import to_onnx

from case import save, wave


def case(name, function, weights, x, least):
    weights = [jnp.asarray(w) for w in weights]
    proto = to_onnx(lambda v: function(weights, v), inputs=[jax.ShapeDtypeStruct(x.shape, x.dtype)], model_name=name)
    y = function(weights, x)
    target = wave(*y.shape, phase=0.3)
    slopes = jax.grad(lambda w: jnp.mean((function(w, x) - target) ** 2))(weights)
    pairs = [(np.asarray(w), np.asarray(g)) for w, g in zip(weights, slopes)]
    save(name, proto, {proto.graph.input[0].name: x}, {proto.graph.output[0].name: np.asarray(y)}, target, pairs, least)


def norm(h, scale):
    return (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-6) * scale


w = [wave(6, 8, scale=0.5), wave(8, scale=0.2, phase=1), wave(8, 3, scale=0.5, phase=2), wave(3, scale=0.1, phase=3)]
case("jax_mlp", lambda p, x: jax.nn.silu(x @ p[0] + p[1]) @ p[2] + p[3], w, wave(4, 6), 4)
case("jax_gelu_norm", lambda p, x: norm(jax.nn.gelu(x @ p[0] + p[1]), p[3]) @ p[2], [*w[:3], 1 + wave(8, scale=0.3)], wave(4, 6), 4)
case("jax_conv",
     lambda p, x: jnp.mean(jax.nn.relu(jax.lax.conv_general_dilated(x, p[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))),
                           (1, 2)) @ p[1], [wave(3, 3, 3, 4, scale=0.5), wave(4, 2, phase=1)], wave(2, 6, 6, 3), 2)


def attention(p, x):
    q, k, v = (x @ m for m in p[:3])
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((5, 5), bool)), q @ k.swapaxes(-1, -2) / 3.0, -1e9), -1) @ v @ p[3]


case("jax_attention", attention, [wave(8, 8, scale=0.4, phase=k) for k in range(4)], wave(2, 5, 8), 4)


def recurrent(p, x):
    def cell(h, e):
        h = jnp.tanh(e @ p[0] + h @ p[1])
        return h, h
    return jnp.swapaxes(jax.lax.scan(cell, jnp.zeros((2, 4)), jnp.swapaxes(x, 0, 1))[1], 0, 1)


case("jax_scan", recurrent, [wave(3, 4, scale=0.7), wave(4, 4, scale=0.7, phase=1)], wave(2, 5, 3), 2)

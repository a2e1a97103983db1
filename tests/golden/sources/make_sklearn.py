#!/usr/bin/env python3
"""Cases of scikit-learn through skl2onnx (written with skl2onnx 1.20): python make_sklearn.py

Scikit-learn tells no gradients; those of its multi-layer perceptrons are written out here with NumPy in double.
"""

import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPRegressor

from case import save, wave

x, y = wave(40, 5), wave(40, phase=1)
for activation, act, slope in (("tanh", np.tanh, lambda h, a: 1 - a * a), ("logistic", lambda h: 1 / (1 + np.exp(-h)), lambda h, a: a * (1 - a)),
                               ("relu", lambda h: np.maximum(h, 0), lambda h, a: (h > 0) * 1.0)):
    model = MLPRegressor(hidden_layer_sizes=(7,), activation=activation, max_iter=60, random_state=0).fit(x, y)
    proto = to_onnx(model, x[:1], target_opset=17)
    batch = x[:6]
    (w, v), (b, c) = model.coefs_, model.intercepts_
    h = batch @ w + b
    a = act(h)
    out = a @ v + c
    target = wave(6, 1, phase=0.3)
    dy = 2 * (out - target) / out.size
    dh = dy @ v.T * slope(h, a)
    pairs = [(np.float32(p), np.float32(g)) for p, g in ((w, batch.T @ dh), (b, dh.sum(0)), (v, a.T @ dy), (c, dy.sum(0)))]
    save(f"sklearn_{activation}", proto, {proto.graph.input[0].name: batch}, {proto.graph.output[0].name: np.float32(out)}, target, pairs, 3)

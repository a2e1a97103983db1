#!/usr/bin/env python3
"""Cases of Paddle through Paddle2ONNX (written with paddlepaddle 3.3.1, paddle2onnx 2.1.0): python make_paddle.py"""

import pathlib
import tempfile

import onnx
import paddle
import paddle.nn.functional as F
from paddle import nn

from case import save, wave

paddle.seed(0)


def case(name, model, x, least, dims=None, training=False):
    model.train() if training else model.eval()
    y = model(paddle.to_tensor(x))
    target = wave(*y.shape, phase=0.3)
    F.mse_loss(y, paddle.to_tensor(target)).backward()
    pairs = [(p.numpy(), p.grad.numpy()) for p in model.parameters() if p.grad is not None]
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model")
        paddle.onnx.export(model, path, input_spec=[paddle.static.InputSpec(dims or [None, *x.shape[1:]], "float32", "x")],
                           opset_version=14)
        proto = onnx.load(path + ".onnx")
    save(name, proto, {proto.graph.input[0].name: x}, {proto.graph.output[0].name: y.numpy()}, target, pairs, least)


class Recurrent(nn.Layer):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def named(layers):
    """Biases begin at zero, where no two of them could be told apart."""
    for i, p in enumerate(layers.parameters()):
        if p.ndim == 1 and not p.stop_gradient:
            p.set_value(p + paddle.to_tensor(wave(*p.shape, scale=0.1, phase=i)))
    return layers


case("paddle_mlp", named(nn.Sequential(nn.Linear(6, 8), nn.Hardswish(), nn.Linear(8, 3))), wave(4, 6), 3)
case("paddle_cnn", named(nn.Sequential(nn.Conv2D(3, 6, 3, padding=1), nn.BatchNorm2D(6), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(),
                                       nn.Linear(96, 3))), wave(2, 3, 8, 8), 3)
case("paddle_lstm", named(Recurrent()), wave(2, 4, 3), 1, training=True)  # its gradient wants what training keeps
case("paddle_norm", named(nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax())), wave(4, 6), 3)

#!/usr/bin/env python3
"""Cases of Keras 3 and TensorFlow through tf2onnx (written with keras 3.15, tensorflow 2.21, tf2onnx 1.17): python make_keras.py"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import layers

from case import save, wave

keras.utils.set_random_seed(0)


def case(name, model, x, variables, dims=None, least=1, opset=17):
    """dims: of the input as the file declares them; None = those of the batch with an open batch."""
    signature = [tf.TensorSpec(dims or [None, *x.shape[1:]], x.dtype, name="x")]
    graph = tf.function(lambda v: model(v))
    proto, _ = tf2onnx.convert.from_function(graph, input_signature=signature, opset=opset)
    with tf.GradientTape() as tape:
        y = model(x)
        target = wave(*y.shape, phase=0.3)
        loss = tf.reduce_mean((y - target) ** 2)
    slopes = tape.gradient(loss, variables)
    pairs = [(v.numpy(), tf.convert_to_tensor(g).numpy()) for v, g in zip(variables, slopes) if g is not None]
    save(name, proto, {proto.graph.input[0].name: x}, {proto.graph.output[0].name: y.numpy()}, target, pairs, least)


def layered(name, parts, x, **options):
    model = keras.Sequential([layers.Input(x.shape[1:]), *parts])
    # Biases begin at zero, where no two of them could be told apart.
    for i, v in enumerate(model.trainable_variables):
        if v.value.numpy().ndim == 1 and v.shape[0] > 1:
            v.assign(v.value.numpy() + wave(*v.shape, scale=0.1, phase=i))
    case(name, model, x, [v.value for v in model.trainable_variables], **options)


layered("keras_mlp", [layers.Dense(8, activation=lambda v: keras.activations.gelu(v, approximate=True)), layers.LayerNormalization(), layers.Dense(3, activation="tanh")], wave(4, 6), least=4)
layered("keras_cnn", [layers.Conv2D(6, 3, padding="same", activation="relu"), layers.MaxPooling2D(), layers.DepthwiseConv2D(3),
                      layers.GlobalAveragePooling2D(), layers.Dense(3)], wave(2, 8, 8, 3), least=4)
layered("keras_batchnorm", [layers.Conv1D(4, 3), layers.BatchNormalization(), layers.ReLU(6.0), layers.Flatten(), layers.Dense(2)],
        wave(2, 7, 3), least=2)
layered("keras_transposed", [layers.Conv2DTranspose(4, 3, strides=2, padding="same"), layers.UpSampling2D(), layers.Conv2D(2, 1)],
        wave(1, 4, 4, 3), least=2)
layered("keras_lstm", [layers.LSTM(5, return_sequences=True), layers.Dense(2)], wave(2, 4, 3), dims=[None, None, 3], least=1)
layered("keras_gru", [layers.GRU(5), layers.Dense(2)], wave(2, 4, 3), dims=[None, None, 3], least=1)
layered("keras_rnn_bidirectional", [layers.Bidirectional(layers.SimpleRNN(4, return_sequences=True)), layers.Dense(2)], wave(2, 4, 3),
        dims=[None, None, 3], least=2)


class Cell(layers.Layer):
    """A cell that no operator of ONNX stands for, so that the layer is a loop whose count is the length of the batch."""

    state_size = 4

    def build(self, shape):
        self.mix = self.add_weight(shape=(shape[-1], 4), name="mix")
        self.keep = self.add_weight(shape=(4, 4), name="keep")

    def call(self, x, states):
        h = keras.ops.tanh(x @ self.mix + keras.ops.sigmoid(states[0]) @ self.keep)
        return h, [h]


layered("keras_custom_rnn", [layers.RNN(Cell(), return_sequences=True), layers.Dense(2)], wave(2, 4, 3), dims=[None, None, 3], least=3)


class Attend(keras.Model):
    def __init__(self):
        super().__init__()
        self.attend, self.norm = layers.MultiHeadAttention(2, 4), layers.LayerNormalization()

    def call(self, x):
        return self.norm(x + self.attend(x, x))


attend, x = Attend(), wave(2, 5, 8)
attend(x)
for i, v in enumerate(attend.trainable_variables):
    if len(v.shape) < 3:
        v.assign(v.value.numpy() + wave(*v.shape, scale=0.1, phase=i))
case("keras_attention", attend, x, [v.value for v in attend.trainable_variables], least=3)


class Until(tf.Module):
    """A loop whose end the data decide."""

    def __init__(self):
        self.w = tf.Variable(wave(3, 3, scale=0.6))

    @tf.function
    def __call__(self, x):
        y = x
        i = tf.constant(0)
        while tf.reduce_sum(y * y) > 0.5 and i < 20:
            y = tf.tanh(tf.matmul(y, self.w))
            i += 1
        return y


until = Until()
case("tf_while_of_the_data", until, wave(2, 3), [until.w])

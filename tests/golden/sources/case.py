"""One case of the table: a model file, a batch, and what the framework that made the file answers.

A case is a folder: model.onnx; case.npz with the batch as `in.NAME`, the targets as `target`, outputs as `out.NAME` and the
gradients of mean((first output - target)²) as `grad.INITIALIZER`.
"""

import itertools
import pathlib
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = pathlib.Path(__file__).parent


def initializers(model):
    """Every float constant of the file by the name under which the program shows it, in branches and functions too."""
    found = {}

    def walk(graph):
        for tensor in graph.initializer:
            found[tensor.name] = numpy_helper.to_array(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    found[node.output[0]] = numpy_helper.to_array(attribute.t)
                if attribute.HasField("g"):
                    walk(attribute.g)

    walk(model.graph)
    return {name: value for name, value in found.items() if value.dtype in (np.float32, np.float64)}


def placed(model, gradients):
    """Gradients of variables as gradients of the initializers that hold them: the same numbers, transposed or in another shape.

    gradients: list of (value, gradient). A variable that stands in no initializer as it is (folded, split) is left out.
    """
    result = {}
    for name, held in initializers(model).items():
        for value, gradient in gradients:
            value, gradient = np.asarray(value), np.asarray(gradient)
            if value.size != held.size or value.size < 2:
                continue
            orders = [None] + [order for order in itertools.permutations(range(value.ndim))][1:]
            for order in orders:
                turned, slope = (value, gradient) if order is None else (value.transpose(order), gradient.transpose(order))
                if np.array_equal(turned.reshape(held.shape), held):
                    result[name] = slope.reshape(held.shape)
                    break
            if name in result:
                break
    return result


def save(name, model, inputs, outputs, target=None, gradients=None, least=1):
    """least: how many gradients must have found their initializer."""
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(str(model))
    found = placed(model, gradients) if isinstance(gradients, list) else dict(gradients or {})
    if gradients is not None and len(found) < least:
        raise SystemExit(f"{name}: {len(found)} of {len(gradients)} gradients found their initializer; expected {least}")
    onnx.save(model, str(folder / "model.onnx"))
    arrays = {f"in.{key}": value for key, value in inputs.items()}
    arrays.update({f"out.{key}": value for key, value in outputs.items()})
    arrays.update({f"grad.{key}": value for key, value in found.items()})
    if target is not None:
        arrays["target"] = target
    np.savez(folder / "case.npz", **{key: np.ascontiguousarray(value) for key, value in arrays.items()})
    size = (folder / "model.onnx").stat().st_size
    if size > 2 << 20:
        warnings.warn(f"{name}: {size} bytes; expected at most 2 MiB")
    print(f"{name}: {size} bytes, {len(outputs)} outputs, {len(found)} gradients")


def wave(*dims, scale=1.0, phase=0.0):
    """Fixed numbers between -scale and scale."""
    k = np.arange(int(np.prod(dims)), dtype=np.float64)
    return (scale * np.sin(2.4 * k + 0.7 + phase)).reshape(dims).astype(np.float32)

#!/usr/bin/env python3
"""Cases of com.microsoft.GroupQueryAttention, answered by ONNX Runtime on the CPU (written with 1.32): python make_group_query.py

A prompt that is packed, rotary, in windows; one of which a row is shorter (without windows, because behind that length ONNX
Runtime then reads beyond its scores); and one token behind pasts of two lengths, with present keys.
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from case import save, wave

HEADS, KEY_HEADS, SIZE, BATCH = 4, 2, 16, 2


def case(name, operands, fed, outputs, **attributes):
    """operands: name → array, "" for an absent one. Those of `fed` are inputs of the graph, others initializers."""
    node = helper.make_node("GroupQueryAttention", list(operands), outputs, name="attention", domain="com.microsoft",
                            num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1, **attributes)
    declared = lambda key: helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(operands[key].dtype),
                                                         operands[key].shape)
    held = [helper.make_tensor(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape, value.tobytes(), raw=True)
            for key, value in operands.items() if key.strip("_") and key not in fed]
    for i, key in enumerate(node.input):
        if not key.strip("_"):
            node.input[i] = ""
    graph = helper.make_graph([node], name, [declared(key) for key in fed],
                              [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in outputs], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {key: operands[key] for key in fed}
    save(name, model, inputs, dict(zip(outputs, session.run(None, inputs))))


def main():
    angles = np.arange(10)[:, None] / 10.0 ** np.linspace(0, 2, SIZE // 2)
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    int32 = lambda *values: np.array(values, np.int32)
    packed = {"qkv": wave(BATCH, 5, (HEADS + 2 * KEY_HEADS) * SIZE), "_": None, "__": None, "___": None, "____": None}
    total = np.array(5, np.int32)
    case("ort_group_query_prompt", {**packed, "last": int32(4, 4), "total": total, **tables}, ["qkv", "last"],
         ["y", "present_key", "present_value"], local_window_size=3, softcap=2.0, rotary_interleaved=1)
    case("ort_group_query_padded", {**packed, "last": int32(4, 2), "total": total, **tables}, ["qkv", "last"],
         ["y", "present_key", "present_value"])
    past = (BATCH, KEY_HEADS, 4, SIZE)
    case("ort_group_query_past",
         {"query": wave(BATCH, 1, HEADS * SIZE), "key": wave(BATCH, 1, KEY_HEADS * SIZE, phase=1),
          "value": wave(BATCH, 1, KEY_HEADS * SIZE, phase=2), "past_key": wave(*past, phase=3), "past_value": wave(*past, phase=4),
          "last": int32(4, 2), "total": total, **tables},
         ["query", "key", "value", "past_key", "past_value", "last"], ["y", "present_key", "present_value"], scale=0.5)


if __name__ == "__main__":
    main()

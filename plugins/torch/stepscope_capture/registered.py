# SPDX-License-Identifier: Apache-2.0
"""The table of the TorchScript exporter, which torch keeps to itself."""


def _registry():
    try:
        from torch.onnx._internal.torchscript_exporter.registration import registry
    except ImportError:  # older torch
        from torch.onnx._internal.registration import registry
    return registry


def symbolic_of(name, opset):
    """torch's symbolic function of an operator ("aten::name"), None where it has none."""
    group = _registry().get_function_group(name)
    return None if group is None else group.get(opset)


def forget_empty_groups(names):
    """torch leaves an entry without a version behind, and its own error of a missing operator fails on that."""
    table = _registry()._registry
    for name in names:
        group = table.get(name)
        if group is not None and not group._functions:
            del table[name]

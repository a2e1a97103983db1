# SPDX-License-Identifier: Apache-2.0
"""Operators that neither an exporter nor the engine has: kept as nodes stepscope.python.Aten, which the plugin python_host runs with torch.

A node names the operator with its overload, its arguments in order (JSON), types and extents of its results as they were when it was captured, and the extents of its inputs.
"""

import json
import re

import onnx
import torch

DOMAIN = "stepscope.python"
ONNX_TYPES = {
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9, torch.float16: 10, torch.float64: 11, torch.bfloat16: 16,
}  # fmt: skip
_LITERALS = (bool, int, float, str)
_LACKING = (
    re.compile(r"ONNX export of operator (?:aten::)?(\w+)"),
    re.compile(r"Exporting the operator 'aten::(\w+)'"),
    re.compile(r"OpOverload\(op='aten\.(\w+)', overload='\w+'\)"),
    re.compile(r"target=torch\.ops\.aten\.(\w+)\.\w+\]"),
)


def lacking(error):
    """The operator that an exporter refused, by its name without "aten::"; None where it failed for something else."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for pattern in _LACKING:
            if found := pattern.search(str(error)):
                return found[1]
        error = error.__cause__ or error.__context__
    return None


# What the dynamo exporter takes apart into operators whose gradient is no number, or a rougher one, than PyTorch's.
INEXACT = ("special_log_ndtr", "_safe_softmax", "logcumsumexp")


def inexact(operators):
    """Names of these among the operators that a model calls."""
    return [name for name in INEXACT if any(o._schema.name == f"aten::{name}" for o in operators)]


_PRIMITIVE = re.compile(r"OpOverload\(op='prims\.(\w+)'")


def taken_apart(error, operators):
    """Of `operators` (those that the model calls) the ones that the dynamo exporter takes apart into a primitive that it lacks: all that it has no function for."""
    if not any(_PRIMITIVE.search(str(e)) for e in (error, error.__cause__, error.__context__) if e is not None):
        return []
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    registry = ONNXRegistry.from_torchlib()
    views = ("view", "_to_copy", "detach", "alias", "lift", "clone", "copy_", "empty", "fill_", "set_", "_local_scalar_dense")
    lacking = [o for o in operators if not registry.is_registered(o) and not o._schema.is_mutable]
    return sorted({o._schema.name.removeprefix("aten::") for o in lacking} - set(views))


class CannotKeep(RuntimeError):
    """An operator with arguments or results that the host does not take."""


def _attributes(schema, arguments):
    call = f"{schema.name}.{schema.overload_name or 'default'}"
    return {"call": call, "arguments": json.dumps(arguments)}


def result_attributes(name, parts):
    """`parts`: (ONNX type, extents) of each result."""
    if any(kind is None or shape is None or any(not isinstance(e, int) for e in shape) for kind, shape in parts):
        raise CannotKeep(f"{name}: a result of unknown or complex type, or of unknown extents")
    return {"types": [kind for kind, _ in parts], "ranks": [len(shape) for _, shape in parts], "shapes": [e for _, shape in parts for e in shape]}


def input_attributes(shapes):
    """Extents of the inputs, of which the results are; nothing where the exporter does not know them."""
    if any(shape is None or any(not isinstance(e, int) for e in shape) for shape in shapes):
        return {}
    return {"input_ranks": [len(shape) for shape in shapes], "input_shapes": [e for shape in shapes for e in shape]}


def _named(argument, entry):
    """Arguments behind the star of a schema are passed by name."""
    return {"name": argument.name, **entry} if argument.kwarg_only else entry


def _literal(value):
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return {"value": None}
    if value is None or isinstance(value, _LITERALS) or isinstance(value, (list, tuple)) and all(v is None or isinstance(v, _LITERALS) for v in value):
        return {"value": list(value) if isinstance(value, tuple) else value}
    raise CannotKeep(f"an argument of type {type(value).__name__}")


# --- TorchScript


def _constant(value):
    """The Python value of a constant of the traced graph; raises where it is none."""
    node = value.node()
    kind = node.kind()
    if node.mustBeNone():
        return None
    if kind == "prim::ListConstruct":
        return [_constant(v) for v in node.inputs()]
    if kind in ("onnx::Constant", "prim::Constant"):
        if node.kindOf("value") == "t":
            tensor = node.t("value")
            return tensor.tolist()
        return getattr(node, node.kindOf("value"))("value")
    raise CannotKeep(f"an argument that is computed ({kind})")


def _is_tensor_type(argument):
    return "Tensor" in str(argument.type)


def _traced_schema(name, args):
    """The overload whose arguments are as many and of the kinds that the traced node has; of several the one that takes numbers as numbers."""
    fitting = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if len(schema.arguments) != len(args) or any(a.is_out for a in schema.arguments):
            continue
        good, numbers = True, 0
        for argument, value in zip(schema.arguments, args):
            node, kind = value.node(), str(argument.type)
            constant = node.mustBeNone() or node.kind() in ("onnx::Constant", "prim::Constant")
            if kind == "Tensor":
                good &= not node.mustBeNone()
                numbers += constant
            elif "Tensor" not in kind:
                good &= constant or node.kind() == "prim::ListConstruct"
                good &= ("[]" in kind or "List" in kind) == (node.kind() == "prim::ListConstruct") or constant
        if good:
            fitting.append((numbers, len(fitting), schema))
    if not fitting:
        raise CannotKeep(f"no overload of aten::{name} has its arguments")
    return min(fitting)[2]


_CONVERT = {"int": int, "bool": bool, "float": float}


def torchscript_symbolic(name):
    """For torch.onnx.register_custom_op_symbolic."""

    def symbolic(graph, *args, _outputs=1):
        if _outputs != 1:
            raise CannotKeep(f"aten::{name}: a list of {_outputs} tensors as result")
        schema, arguments, inputs, traced = _traced_schema(name, args), [], [], []
        for argument, value, before in zip(schema.arguments, args, graph.original_node.inputs()):
            kind = str(argument.type)
            if kind in ("Tensor", "Optional[Tensor]") and not value.node().mustBeNone():
                arguments.append(_named(argument, {"tensor": len(inputs)}))
                inputs.append(value)
                traced.append(before)
            elif kind == "List[Tensor]" and value.node().kind() == "prim::ListConstruct":
                parts = list(value.node().inputs())
                arguments.append({"tensors": list(range(len(inputs), len(inputs) + len(parts)))})
                inputs += parts
                traced += before.node().inputs()
            else:
                try:
                    literal = _constant(value)
                except CannotKeep as error:
                    raise CannotKeep(f"aten::{name}, '{argument.name}': {error}; expected a constant, as the Python host takes it") from None
                convert = _CONVERT.get(kind.removeprefix("Optional[").rstrip("]"))
                arguments.append(_named(argument, _literal(convert(literal) if convert and literal is not None else literal)))
        results = []
        for output in graph.original_node.outputs():
            kind = output.type()
            if kind.kind() != "TensorType" or kind.dtype() not in ONNX_TYPES:
                raise CannotKeep(f"aten::{name}: a result of type {kind}")
            results.append((ONNX_TYPES[kind.dtype()], kind.sizes()))
        shapes = [value.type().sizes() if value.type().kind() == "TensorType" else None for value in traced]
        named = {**_attributes(schema, arguments), **result_attributes(name, results), **input_attributes(shapes)}
        named = {f"{key}_{'s' if isinstance(value, str) else 'i'}": value for key, value in named.items() if value != []}
        made = graph.op(f"{DOMAIN}::Aten", *inputs, outputs=len(results), **named)
        for value, output in zip(made if isinstance(made, tuple) else (made,), graph.original_node.outputs()):
            value.setType(output.type())
        return made

    return symbolic


# --- dynamo


def _own_schema(inputs, outputs, attributes):
    every = [f"tensor({kind})" for kind in ("float", "double", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")]
    made, kinds = onnx.defs.OpSchema, onnx.defs.OpSchema.AttrType
    return made(
        "Aten", DOMAIN, 1,
        inputs=[made.FormalParameter(f"x{i}", f"X{i}") for i in range(inputs)],
        outputs=[made.FormalParameter(f"y{i}", f"Y{i}") for i in range(outputs)],
        type_constraints=[(f"{letter}{i}", every, "") for letter, count in (("X", inputs), ("Y", outputs)) for i in range(count)],
        attributes=[made.Attribute(key, kinds.STRING, required=False) for key in attributes],
    )  # fmt: skip


def dynamo_translations(name):
    """{overload: function} for torch.onnx.export(custom_translation_table=…); write_results fills in what the results are."""
    import onnxscript

    def translation(overload):
        schema = overload._schema

        def translate(*args, **kwargs):
            arguments, inputs = [], []
            given = [args[i] if i < len(args) else kwargs.get(a.name, a.default_value) for i, a in enumerate(schema.arguments)]
            for argument, value in zip(schema.arguments, given):
                kind = str(argument.type)
                if kind in ("Tensor", "Optional[Tensor]") and value is not None:
                    arguments.append(_named(argument, {"tensor": len(inputs)}))
                    inputs.append(value)
                elif kind == "List[Tensor]":
                    arguments.append({"tensors": list(range(len(inputs), len(inputs) + len(value)))})
                    inputs += list(value)
                else:
                    if "ScalarType" in str(argument.real_type) and isinstance(value, int):  # the exporter has put ONNX's number for it
                        value = next(dtype for dtype, number in ONNX_TYPES.items() if number == value)
                    arguments.append(_named(argument, _literal(value)))
            named = _attributes(schema, arguments)
            own = _own_schema(len(inputs), len(schema.returns), named)
            return onnxscript.values.Op(onnxscript.values.Opset(DOMAIN, 1), "Aten", own)(*inputs, **named)

        return translate

    packet = getattr(torch.ops.aten, name)
    return {getattr(packet, o): translation(getattr(packet, o)) for o in packet.overloads() if "out" not in o}


def write_results(graph):
    """Fills in types and extents of the results of the nodes of an onnxscript graph, which the exporter knows when all is translated."""
    for node in graph:
        if node.domain != DOMAIN or "types" in node.attributes:
            continue
        parts = []
        for value in node.outputs:
            shape = None if value.shape is None else [e if isinstance(e, int) else None for e in value.shape]
            parts.append((None if value.dtype is None else int(value.dtype), shape))
        from onnxscript import ir

        inputs = [None if value is None or value.shape is None else [e if isinstance(e, int) else None for e in value.shape] for value in node.inputs]
        for key, numbers in {**result_attributes(node.name, parts), **input_attributes(inputs)}.items():
            node.attributes[key] = ir.AttrInt64s(key, numbers)


def notes(calls):
    """Words about the operators and functions that a file keeps."""
    operators = sorted({call.partition(".")[0] for call in calls if "::" in call})
    functions = sorted(call for call in calls if "::" not in call and call != "ComplexOperator")
    words = [f"{', '.join(operators)}: ONNX has no such operator; kept as stepscope.python.Aten, which --plugin python_host runs with this Python"] if operators else []
    if "ComplexOperator" in calls:
        words.append("operators of complex tensors that have no real form here (linalg.eig, log, sqrt …): kept as stepscope.python.Function, which --plugin python_host runs with this Python")
    if functions:
        words.append(f"autograd.Function {', '.join(functions)}: cannot be traced; kept as stepscope.python.Function, which --plugin python_host runs with this Python")
    return words


def draws(call):
    """Whether an operator ("aten::name.overload") draws random numbers; of functions that is seen when they run."""
    if "::" not in call or call.partition(".")[0].endswith("_backward"):  # which gets the mask that was drawn
        return False
    name, _, overload = call.partition("::")[2].partition(".")
    tags = getattr(getattr(torch.ops.aten, name), overload).tags
    return torch.Tag.nondeterministic_seeded in tags or any(word in name for word in ("dropout", "bernoulli", "rand", "normal", "multinomial", "exponential"))


def host_operators(proto):
    return sorted({a.s.decode() for node in proto.graph.node if node.domain == DOMAIN for a in node.attribute if a.name == "call"})

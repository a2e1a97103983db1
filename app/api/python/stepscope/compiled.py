"""torch.compile(model, backend="stepscope"): graphs of AOTAutograd, forward and backward, whose parts the engine computes.

A graph is cut where an operator is not taken: one that the exporter has no translation for, or that draws random numbers. What is left in one piece
is exported when it first runs, for the shapes that come; a piece that cannot be exported or built stays with PyTorch too. report() lists all of it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import io
import pathlib
import tempfile
import time
import warnings
from typing import Any, Callable

import torch
from torch import fx, nn

from . import Error
from . import open as open_session
from .variant import tensor_at

_RANDOM = ("rand", "dropout", "bernoulli", "normal_", "multinomial", "philox")
# Operators that mean where elements lie in memory, which the engine is free to choose; and one of whose results exporters write the first alone.
_STRIDED = ("as_strided", "set_.", "_scaled_dot_product")
_LEAST = 2  # operators that compute something; a piece of fewer is not worth its border


@dataclasses.dataclass
class Piece:
    """A part of a graph that the engine computes, or was to compute."""

    operators: int
    calls: int = 0
    plans: int = 0  # one for each signature of shapes
    build_ns: int = 0
    bytes_in: int = 0  # that cross the border, in all calls
    bytes_out: int = 0
    refused: str = ""  # why PyTorch computes it


@dataclasses.dataclass
class Graph:
    """What became of one graph of AOTAutograd."""

    phase: str  # "forward", "backward"
    operators: int
    pieces: list
    eager: dict  # operator → how often it stands in the graph; these stay with PyTorch

    def __str__(self) -> str:
        taken = sum(p.operators for p in self.pieces if not p.refused)
        lines = [f"{self.phase}: {taken} of {self.operators} operators in {sum(not p.refused for p in self.pieces)} pieces"]
        for p in self.pieces:
            if p.refused:
                lines.append(f"  {p.operators} operators by PyTorch: {p.refused}")
            else:
                per_call = (p.bytes_in + p.bytes_out) // max(p.calls, 1)
                lines.append(f"  {p.operators} operators: {p.calls} calls, {p.plans} plans, {per_call} bytes cross the border in a call")
        lines += [f"  {count} × {name} by PyTorch" for name, count in sorted(self.eager.items())]
        return "\n".join(lines)


_GRAPHS: list[Graph] = []


def report() -> list[Graph]:
    """Every graph that the backend was given since the last reset()."""
    return list(_GRAPHS)


def reset() -> None:
    """Forgets what was reported; compiled graphs go on."""
    _GRAPHS.clear()


class _Taken:
    """Which nodes the engine may compute."""

    def __init__(self, registry: Any):
        self._registry = registry

    def is_node_supported(self, _: Any, node: fx.Node) -> bool:
        if node.op != "call_function":
            return False
        name = str(node.target)
        if name.endswith("getitem>"):
            source = node.args[0]
            return isinstance(source, fx.Node) and self.is_node_supported(_, source)
        if any(part in name for part in (*_RANDOM, *_STRIDED)) or not self._registry.is_registered(node.target):
            return False
        values = [node.meta.get("val"), *(a.meta.get("val") for a in node.all_input_nodes)]
        flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
        return all(v is None or isinstance(v, torch.Tensor) and not v.is_complex() and not v.is_sparse for v in flat)


class _Run(nn.Module):
    """A piece in the place of its part of the graph."""

    def __init__(self, part: fx.GraphModule, told: Piece, options: dict):
        super().__init__()
        self._part, self._told, self._options = [part], told, options
        self._plans: dict[Any, Any] = {}
        output = next(n for n in part.graph.nodes if n.op == "output").args[0]
        self._values = [n.meta.get("val") for n in ([output] if isinstance(output, fx.Node) else output)]

    def forward(self, *values: Any) -> Any:
        part, told = self._part[0], self._told
        if told.refused or not all(isinstance(v, torch.Tensor) for v in values):
            told.refused = told.refused or "an argument is a number that is known only when it runs; compile with dynamic=False"
            return part(*values)
        key = tuple((v.dtype, tuple(v.shape)) for v in values)
        if key not in self._plans:
            begin = time.monotonic_ns()
            try:
                # In a thread of its own: here autograd is switched off in a way that an exporter cannot work under.
                with concurrent.futures.ThreadPoolExecutor(1) as alone:
                    self._plans[key] = alone.submit(self._build, values).result()
            except Exception as error:  # noqa: BLE001  whatever an exporter does with operators that it cannot translate
                cause = error.__cause__ or error
                text = str(cause).strip().splitlines()
                told.refused = f"{type(cause).__name__}: {text[0] if text else ''}"
                return part(*values)
            told.plans += 1
            told.build_ns += time.monotonic_ns() - begin
        session, _folder, inputs, outputs, single = self._plans[key]
        try:
            call = session.forward({name: values[i].detach().contiguous() for name, i in inputs})
        except Error as error:
            told.refused = str(error)
            return part(*values)
        results = [_laid_out(tensor_at(call.output_struct(name)), value) for name, value in zip(outputs, self._values)]
        call.close()
        told.calls += 1
        told.bytes_in += sum(values[i].nbytes for _, i in inputs)
        told.bytes_out += sum(r.nbytes for r in results)
        return results[0] if single else tuple(results)

    def _build(self, values: tuple) -> tuple:
        import onnx

        part = self._part[0]
        output = next(n for n in part.graph.nodes if n.op == "output").args[0]
        single = isinstance(output, fx.Node)
        outputs = [f"output_{i}" for i in range(1 if single else len(output))]
        names = [f"input_{i}" for i in range(len(values))]
        folder = tempfile.TemporaryDirectory(prefix="stepscope_compiled_")
        path = pathlib.Path(folder.name) / "model.onnx"
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            given = tuple(v.detach().contiguous().clone() for v in values)
            program = torch.onnx.export(part, given, None, input_names=names, output_names=outputs, opset_version=18, dynamo=True, optimize=False)
        program.save(str(path))
        proto = onnx.load(str(path), load_external_data=False)
        present = {value.name for value in proto.graph.input}
        inputs = [(name, i) for i, name in enumerate(names) if name in present]
        session = open_session(path, {"threads": torch.get_num_threads(), **self._options})
        session.differentiate()
        return session, folder, inputs, [o.name for o in proto.graph.output], single


def _laid_out(result: torch.Tensor, value: Any) -> torch.Tensor:
    """With its elements where the traced graph has them, which what follows may rely on."""
    if not isinstance(value, torch.Tensor) or value.is_contiguous() or value.shape != result.shape:
        return result
    return torch.empty_strided(value.shape, value.stride(), dtype=result.dtype).copy_(result)


def _registry() -> Any:
    from torch.onnx._internal.exporter import _registration

    return _registration.ONNXRegistry.from_torchlib()


def _compiler(phase: str, options: dict) -> Callable:
    from functorch.compile import make_boxed_func
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

    def compile_graph(graph: fx.GraphModule, _example: Any) -> Callable:
        taken = _Taken(_registry())
        operators = [n for n in graph.graph.nodes if n.op == "call_function" and not str(n.target).endswith("getitem>")]
        told = Graph(phase, len(operators), [], {})
        for node in operators:
            if not taken.is_node_supported(None, node):
                told.eager[str(node.target)] = told.eager.get(str(node.target), 0) + 1
        fused = CapabilityBasedPartitioner(graph, taken, allows_single_node_partition=False).partition_and_fuse()
        for name, part in list(fused.named_children()):
            count = sum(n.op == "call_function" and not str(n.target).endswith("getitem>") for n in part.graph.nodes)
            piece = Piece(count)
            told.pieces.append(piece)
            if count < _LEAST:
                piece.refused = "too small for a piece of its own"
                continue
            setattr(fused, name, _Run(part, piece, options))
        _GRAPHS.append(told)
        return make_boxed_func(fused.forward)

    return compile_graph


def backend(graph: fx.GraphModule, example: Any, options: Any = None) -> Callable:
    """The backend itself: torch.compile(model, backend=stepscope.backend). `options`: of the engine, as stepscope.open() takes them."""
    from torch._decomp import core_aten_decompositions
    from torch._dynamo.backends.common import aot_autograd

    of = dict(options or {})
    whole = aot_autograd(fw_compiler=_compiler("forward", of), bw_compiler=_compiler("backward", of), decompositions=core_aten_decompositions())
    # As products and a softmax: of the operator that keeps statistics for its backward pass, exporters write the result alone.
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
        return whole(graph, example)


def register() -> None:
    """Makes the backend known as "stepscope"; the installed package does it by its entry point."""
    if "stepscope" not in torch._dynamo.list_backends(exclude_tags=()):
        torch._dynamo.register_backend(backend, name="stepscope")

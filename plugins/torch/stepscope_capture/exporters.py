# SPDX-License-Identifier: Apache-2.0
"""The module that is exported, and both exporters."""

import contextlib
import inspect
import logging
import warnings
from unittest import mock

import torch
from torch import nn

from stepscope_capture import host_nodes, tracing
from stepscope_capture.batches import LOSS, Unfit
from stepscope_capture.exact import exact_functions
from stepscope_capture.extents import NumbersOfExtents
from stepscope_capture.four_bit import keep_four_bit
from stepscope_capture.functions import traced_functions
from stepscope_capture.gradients import WrittenOut, asks, watched_gradients
from stepscope_capture.golden import dropout_off
from stepscope_capture.loss_function import LossFunction
from stepscope_capture.markers import Markers
from stepscope_capture.meaning import KeepMeaning, copied, hooks_of, state_of
from stepscope_capture.module_hooks import keep_module_hooks
from stepscope_capture.registered import forget_empty_groups
from stepscope_capture.replaced import exportable
from stepscope_capture.traced_extents import with_traced_extents
from stepscope_capture.translations import dynamo_table, torchscript_table


class WithLoss(nn.Module):
    """Takes inputs and targets as one flat list and returns the loss; `structure` says how a batch is made of them."""

    def __init__(self, model, loss_fn, structure, without_dropout=False):
        super().__init__()
        self.model = model
        self._structure, self._without_dropout = structure, without_dropout
        self._loss_fn = loss_fn if isinstance(loss_fn, nn.Module) else LossFunction(loss_fn)

    def forward(self, *values):
        with dropout_off() if self._without_dropout else contextlib.nullcontext():
            arguments, keywords, targets = self._structure.arguments(values)
            return _scalar(self._loss_fn(self.model(*arguments, **keywords), *targets))


def _scalar(loss):
    """The loss without axes of one; Unfit says what loss_fn returned instead of it."""
    if not isinstance(loss, torch.Tensor):
        hint = {"tuple": "[0]", "list": "[0]"}.get(type(loss).__name__, '["loss"]' if isinstance(loss, dict) else ".loss" if hasattr(loss, "loss") else "")
        raise Unfit(f"loss_fn returned a {type(loss).__name__}; expected a scalar tensor, the loss" + (f": lambda output, *targets: loss_fn(output, *targets){hint}" if hint else ""))
    if loss.numel() != 1:
        raise Unfit(f"loss_fn returned a tensor of shape {list(loss.shape)}; expected a scalar: its mean or its sum")
    return loss.reshape(()) if loss.dim() else loss


def as_it_trains(whole):
    """A WithLoss in the modes that a training script has: a model that evaluates as a whole trains, layers that evaluate in one that trains go on doing so,
    and those that a train() of the model's own freezes evaluate too."""
    evaluate = [layer for layer in whole.modules() if not layer.training] if whole.model.training else []
    whole.train()
    for layer in evaluate:
        layer.training = False
    return whole


_PLAIN = (bool, int, float, str, type(None))


class _Told:
    """Notes of the newest pass; torch.export puts lists back that a pass changes."""

    def __init__(self):
        self.notes, self.numbers = [], []


class _Traced(nn.Module):
    """What the exporter sees: the loss, and the next contents of the state that forward() changes."""

    def __init__(self, module, exporter, changed, functions, writes_gradients=False, any_extents=False):
        super().__init__()
        # Parameters and buffers keep the names that they have in `module`.
        self.model, self._loss_fn = module.model, module._loss_fn  # a function has no loss
        self._whole, self._markers, self._changed, self._told = [module], Markers(exporter, writes_gradients), changed, _Told()
        self._hooks, self._functions, self._any_extents = hooks_of(self), functions, any_extents
        self._plain = [(vars(layer), {k: v for k, v in vars(layer).items() if type(v) in _PLAIN}) for layer in module.modules()]
        keep_module_hooks(module, tracing.current)
        keep_four_bit(module.model, self._markers)

    @property
    def notes(self):
        return self._told.notes

    @property
    def numbers_of_extents(self):
        """Lines where Python makes numbers of extents that have symbols."""
        return self._told.numbers

    def forward(self, *values):
        for attributes, plain in self._plain:  # an exporter may run the pass more than once, and each is the first one
            attributes.update(plain)
        mode = KeepMeaning(self._markers, state_of(self), self._functions, self._changed)
        numbers = NumbersOfExtents()
        with traced_functions(mode), exact_functions(), watched_gradients(), mode, numbers if self._any_extents else contextlib.nullcontext():
            mode.hook_parameters(self._hooks)
            with self._functions.regions.kept():
                loss = self._whole[0](*values)
            after = state_of(self)
            following = [mode.next_of(after[name]) for name in self._changed]
        self._told.notes, self._told.numbers = list(mode.notes), numbers.places
        return (*(loss if isinstance(loss, tuple) else (loss,)), *following) if following else loss


@contextlib.contextmanager
def _without_advice():
    """Exporters advise against a model that trains, and warn of numbers that Python reads: data_dependence.py looks at those, with the line of the user's code."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Exporting a model while it is in training mode")
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
        warnings.filterwarnings("ignore", "Exporting aten::index operator of advanced indexing")  # negative indices: the engine counts them from the end
        log = logging.getLogger("torch.onnx._internal.exporter._registration")
        log.addFilter(_of_torchvision)
        try:
            yield
        finally:
            log.removeFilter(_of_torchvision)


def _of_torchvision(record):
    """A model that uses torchvision has it."""
    return "torchvision is not installed" not in record.getMessage()


def _export(module, inputs, names, path, exporter, opset, kept, outputs, axes=None):
    """Exports a module in the modes that its layers have; the module's buffers change, as its forward pass runs. `kept`: operators that become nodes of the host."""
    if exporter == "dynamo":
        # optimize=False: the optimiser merges equal initializers, and so ties parameters that have to be trained apart
        table = dynamo_table()
        for name in kept:
            table.update(host_nodes.dynamo_translations(name))
        own = {"custom_translation_table": table} if "custom_translation_table" in inspect.signature(torch.onnx.export).parameters else {}
        program = torch.onnx.export(
            module, inputs, None, input_names=names, output_names=[*outputs, *(f"{name}.next" for name in module._changed)], opset_version=opset, dynamo=True, optimize=False,
            verbose=False, **own,
        )
        # Inputs get the names of forward's parameters, which the exporter may have given to a value already ("t" of x.t()).
        taken = {*names, *outputs}
        for node in program.model.graph:
            for value in node.outputs:
                if value.name in taken and value not in program.model.graph.outputs:
                    value.name = f"{value.name}_of_{node.name}"
        host_nodes.write_results(program.model.graph)
        program.save(str(path))
        return
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    symbolics = {**({} if axes else with_traced_extents(opset)), **torchscript_table(opset)}
    symbolics.update({f"aten::{name}": host_nodes.torchscript_symbolic(name) for name in kept})
    for name, symbolic in symbolics.items():
        torch.onnx.register_custom_op_symbolic(name, symbolic, opset)
    torch._C._jit_set_onnx_log_enabled(False)
    try:
        # The exporter switches a log on that shows the whole graph for each operator that is lacking.
        with mock.patch.object(torch._C, "_jit_set_onnx_log_enabled", lambda _: None):
            torch.onnx.export(
                module, inputs, str(path), input_names=names, output_names=[*outputs, *(f"{name}.next" for name in module._changed)], opset_version=opset,
                training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, dynamic_axes=axes or None, **options,
            )  # fmt: skip
    finally:
        for name in symbolics:
            torch.onnx.unregister_custom_op_symbolic(name, opset)
        forget_empty_groups(symbolics)


def exported(module, changed, functions, row, names, path, exporter, opset, outputs=(LOSS,), axes=None):
    """What was traced: exported as often as an operator turns up that the exporter lacks. `outputs`: names of what the module returns;
    `axes`: of inputs, by name, that have a symbol instead of an extent (TorchScript)."""
    kept, writes_gradients = host_nodes.inexact(functions.operators) if exporter == "dynamo" else [], False
    while True:
        traced = _Traced(copied(module), exporter, changed, functions, writes_gradients, bool(axes))
        try:
            with exportable(bool(axes)), _without_advice():
                if writes_gradients:
                    traced = WrittenOut(traced, row)
                _export(traced, row, names, path, exporter, opset, kept, outputs, axes)
            return traced
        except Exception as error:
            if asks(error) and exporter == "torchscript" and not writes_gradients:
                writes_gradients = True
                continue
            name = host_nodes.lacking(error)
            lacking = host_nodes.taken_apart(error, functions.operators) if name is None and exporter == "dynamo" else [name]
            lacking = [n for n in lacking if n is not None and n not in kept and hasattr(torch.ops.aten, n)]
            if not lacking:
                raise
            kept += lacking

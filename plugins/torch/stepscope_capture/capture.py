# SPDX-License-Identifier: Apache-2.0
"""Writes the folder that `stepscope train FOLDER` takes as it is.

    model.onnx           the model with the loss inside, as it trains: nothing folded, no initializers merged
    batches.npz          one array per graph input; the leading axis counts the batches
    capture.json         name of the loss, parameters (trained or not), export time, and with a golden the losses
    golden.safetensors   of the first batch: "grad/<parameter>", "state/<buffer>" after it, "state2/<buffer>" after the second, "output/<module>" on request (optional)
    functions.py         definitions of autograd.Functions that the Python host runs (where there are such)
    state.safetensors    of a run: parameters, optimizer state and counters, from which `train` goes on (optional)
"""

import json
import pathlib
import tempfile
import time

import numpy as np
import onnx
import torch

from stepscope_capture import host_nodes
from stepscope_capture.auto import capture_auto, why
from stepscope_capture.batches import LOSS, Structure, Unfit, stacked
from stepscope_capture.complex import real_parts
from stepscope_capture.exported_file import buffers_of, mark_detached, name_by_model, parameters_of, put_numbers_right, restore, say_statistics, train_batch_norms, trained_by_name, write_state
from stepscope_capture.exporters import WithLoss, as_it_trains, exported
from stepscope_capture.function_source import FILE, Sources
from stepscope_capture.functions import seen_functions
from stepscope_capture.golden import golden_of, quiet
from stepscope_capture.data_dependence import data_dependence
from stepscope_capture.meaning import OWN_GENERATOR, changed_state, copied
from stepscope_capture.natives import write_public
from stepscope_capture.safetensors import array_of, save_safetensors
from stepscope_capture.training_state import STATE, training_state

LARGEST_PROTO = 2**31 - 2**24  # bytes; above this the weights go into a file beside the model


@torch.enable_grad()
def capture(model, loss_fn, batches, folder, exporter="torchscript", opset=17, with_golden=True, module_outputs=False, *,
            optimizer=None, scheduler=None, step=None, accumulate=1, clip_grad_norm=0.0, without_dropout=False):  # fmt: skip
    """Exports `model` with `loss_fn` inside, and everything that `stepscope train FOLDER` needs.

    model      nn.Module; captured as it is now. It is copied, so neither its mode nor its buffers change. One that evaluates is put into training as
               a whole; in one that trains, layers that evaluate go on doing so (statistics that are frozen).
    loss_fn    called as loss_fn(output, *targets); returns a scalar tensor.
    batches    list of (inputs, targets), all of the same shapes. `inputs`: a tensor, a tuple (positional) or a dict (keywords of forward; the keys name
               the graph inputs). `targets`: likewise; () or None when the model has the loss inside. Both may hold lists, tuples, dicts and dataclasses of tensors, which
               become inputs "name.key.0"; what is no tensor is handed on as the first batch has it, and a note says where another batch differs.
    folder     created; files of an earlier capture in it are replaced.
    exporter   "torchscript" or "dynamo" (torch >= 2.5 and onnxscript); "auto": dynamo, then TorchScript at rising opsets, until one
               exports the model and `stepscope verify` (where there is one) finds nothing that differs. It prints a line for each.
    opset      of the exported file; dynamo needs 18 or more, and the default becomes 18 there.
    with_golden  also records what PyTorch computes at the captured parameters, with dropout switched off: the loss of every batch,
               and of the first one gradients and updates of running statistics, each with the error that float32 permits.
               `stepscope verify` and `stepscope train` compare with it. Other random numbers leave the model unchecked.
    module_outputs  also records what every module returns for the first batch, so that the first one that differs is named.

    optimizer  of a run that is captured where it stands (over parameters of `model`): `stepscope train FOLDER` and the window go on
               with its rates, moments and counters. SGD, Adam and AdamW; of another one a note says that it is not kept.
    scheduler  likewise; a schedule that Stepscope does not have leaves the rate as it is, and a note says so.
    step       micro steps that were done; default: as the optimizer counts them. The first batch is the one that comes.
    accumulate, clip_grad_norm  micro steps per update; largest norm of the gradients, 0: not clipped.
    without_dropout  nothing is dropped in what is exported, so that two runs can be compared.

    Returns the folder as a path.
    """
    if exporter not in ("torchscript", "dynamo", "auto"):
        raise ValueError(f"exporter '{exporter}': unknown; expected torchscript, dynamo or auto")
    batches = list(batches)
    if not batches:
        raise ValueError("batches: none; expected at least one (inputs, targets)")
    if exporter == "auto":
        if not with_golden:
            raise ValueError('exporter "auto" compares with the golden; expected with_golden=True')
        run = {"optimizer": optimizer, "scheduler": scheduler, "step": step, "accumulate": accumulate, "clip_grad_norm": clip_grad_norm, "without_dropout": without_dropout}
        return capture_auto(lambda way, version: capture(model, loss_fn, batches, folder, way, version, True, module_outputs, **run), folder)
    if exporter == "dynamo":
        opset = max(opset, 18)
    model = getattr(model, "_orig_mod", model)  # torch.compile computes the same
    scripted = next((name for name, m in model.named_modules() if isinstance(m, torch.jit.ScriptModule)), None)
    if scripted is not None:
        raise Unfit(f"module '{scripted or 'model'}' is TorchScript (torch.jit); expected the nn.Module that it was made of")
    structure = Structure(model, batches[0])
    names = structure.names
    whole = WithLoss(model, loss_fn, structure, without_dropout)
    if lazy := [name for name, t in (*whole.named_parameters(), *whole.named_buffers()) if torch.nn.parameter.is_lazy(t)]:
        raise Unfit(f"parameter '{lazy[0]}' has no shape yet (a lazy module); expected a model that ran once: model(*inputs)")
    run = None
    if optimizer is not None:
        known = {}
        for name, parameter in whole.named_parameters(remove_duplicate=False):
            known.setdefault(id(parameter), []).append(name)
        run = training_state(known, optimizer, scheduler, step, accumulate, clip_grad_norm)
        first = int(run[2]["stepscope.step"]) % len(batches)  # the entry of batches.npz that a run takes at that step
        batches = batches[len(batches) - first :] + batches[: len(batches) - first]
    rows = [structure.row(batch, number) for number, batch in enumerate(batches)]
    arrays = stacked(names, rows)
    module = (quiet if without_dropout else copied)(whole)
    module = as_it_trains(real_parts(module).cpu())
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}

    try:
        with seen_functions() as functions:
            changed, loss = changed_state(module, rows[0], functions.regions)
    except Unfit:
        raise
    except Exception as error:  # noqa: BLE001  whatever the user's code raises: no exporter would get further
        raise Unfit(f"model and loss do not run on the first batch: {why(error)}") from error
    if not loss.requires_grad:
        trained = sum(p.requires_grad for p in module.parameters())
        raise Unfit(f"the loss has no gradient: {'no parameter is trained (requires_grad)' if not trained else f'it reaches none of the {trained} parameters that are trained'}")
    notes = structure.notes(batches) + data_dependence(module, rows, changed)

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    functions.sources = Sources(folder.resolve())
    for old in (FILE, "model.onnx", "model.onnx.data", "batches.npz", "capture.json", "golden.safetensors", STATE):
        (folder / old).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "model.onnx"
        begin = time.monotonic_ns()
        traced = exported(module, changed, functions, rows[0], names, path, exporter, opset)
        export_ns = time.monotonic_ns() - begin
        proto = onnx.load(str(path))
    mark_detached(proto)
    put_numbers_right(proto)
    write_public(proto)
    name_by_model(proto, module)
    restore(proto, state)
    write_state(proto, state, changed)
    train_batch_norms(proto, module)
    say_statistics(proto)
    if proto.ByteSize() > LARGEST_PROTO:
        onnx.save(proto, str(folder / "model.onnx"), save_as_external_data=True, location="model.onnx.data")
    else:
        onnx.save(proto, str(folder / "model.onnx"))

    # An exporter drops an input that the loss does not reach; a batch must not have more arrays than the graph has inputs.
    inputs = {value.name for value in proto.graph.input}
    np.savez(folder / "batches.npz", **{name: array for name, array in arrays.items() if name in inputs})

    parameters = parameters_of(module, proto)
    description = {
        "loss": LOSS,
        "exporter": exporter,
        "opset": opset,
        "torch": torch.__version__,
        "export_ns": export_ns,
        "parameters": [{"name": name, "trained": tensor.requires_grad} for name, tensor in parameters]
        + [{"name": name, "trained": False} for name in buffers_of(proto, parameters)],
    }
    notes += list(dict.fromkeys(traced.notes))
    if run is not None:
        settings, moments, counters, lost = run
        notes += lost
        kept = {id(tensor): name for name, tensor in parameters if tensor.requires_grad}
        of_tied = {name: kept[id(tensor)] for name, tensor in module.named_parameters(remove_duplicate=False) if id(tensor) in kept}
        tensors = {name: array_of(tensor) for name, tensor in parameters if tensor.requires_grad}
        for name, moment in moments.items():
            owner, _, what = name.rpartition(".")
            if owner in of_tied:
                tensors[f"{of_tied[owner]}.{what}"] = moment
        save_safetensors(folder / STATE, tensors, counters)
        description["settings"] = [*settings, ("start-state", STATE)]
    if (named := trained_by_name(proto, parameters)) is not None:
        description["settings"] = [*description.get("settings", []), ("train", named)]
    if calls := host_nodes.host_operators(proto):
        description["host"] = calls
        notes += host_nodes.notes(calls)
    for note in notes:
        print(f"warning: {note}")
    description["notes"] = notes
    functions.sources.write()
    if with_golden:
        numbers, arrays = golden_of(module, parameters, rows, module_outputs, bool(functions.regions.writing))
        description.update(numbers)
        if OWN_GENERATOR in notes or any(host_nodes.draws(call) for call in description.get("host", [])):  # others than PyTorch's, which the golden has not
            description["draws"] = "drawn"
        save_safetensors(folder / "golden.safetensors", arrays)
    (folder / "capture.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return folder

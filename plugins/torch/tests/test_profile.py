#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`stepscope import`: a trace of torch.profiler and a snapshot of torch.cuda.memory beside a recorded run of the same model.

    test_profile.py STEPSCOPE

There is no GPU here: kernels are added to a trace of the CPU as they stand in one of a GPU, and the snapshot is made of what
really was allocated and freed (a dispatch mode sees every storage), in the structure that torch/cuda/memory.py documents.
Exit code 77 where this Python has no torch or no onnx.
"""

import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import traceback
import weakref

from prerequisites import EXPORTERS  # first
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils._python_dispatch import TorchDispatchMode

from stepscope_capture import capture

STEPSCOPE = sys.argv[1]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.fc2(self.act(self.fc1(x))))


class Net(nn.Module):
    def __init__(self, width=32, blocks=2):
        super().__init__()
        self.emb = nn.Embedding(50, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 10)

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def trained(model, ids, targets, steps, after=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids), targets).backward()
        optimizer.step()
        after()


def trace(folder, name, model, data, **options):
    path = folder / name
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=3),
                 on_trace_ready=lambda p: p.export_chrome_trace(str(path)), **options) as profiler:
        trained(model, *data, 4, profiler.step)
    return path


def with_kernels(folder, source):
    """The same trace as that of a GPU: every outermost operator launches a kernel of 7 microseconds."""
    content = json.loads(source.read_text())
    events, correlation = content["traceEvents"], 1000
    operators = [e for e in events if e.get("cat") == "cpu_op"]
    inner = lambda e: any(o is not e and o["tid"] == e["tid"] and o["ts"] <= e["ts"] and  # noqa: E731
                          e["ts"] + e["dur"] <= o["ts"] + o["dur"] and o["dur"] > e["dur"] for o in operators)
    for e in [e for e in operators if not inner(e)]:
        correlation += 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": e["pid"], "tid": e["tid"],
                       "ts": e["ts"] + e["dur"] / 2, "dur": 0.01, "args": {"correlation": correlation}})
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": e["ts"] + 50, "dur": 7,
                       "args": {"correlation": correlation, "stream": 7}})
    path = folder / "gpu.json"
    path.write_text(json.dumps(content))
    return path


class Allocator(TorchDispatchMode):
    """Every storage that an operator makes, and its end, as the CUDA allocator notes them in its history."""

    def __init__(self):
        super().__init__()
        self.events, self.addresses, self.next = [], set(), 0x7F0000000000

    def frames(self):
        out = [{"name": "c10::alloc", "filename": "CUDACachingAllocator.cpp", "line": 1}]
        stack = traceback.extract_stack()
        return out + [{"name": f.name, "filename": f.filename, "line": f.lineno} for f in reversed(stack)
                      if f.filename != __file__ or f.name not in ("frames", "note", "__torch_dispatch__")]

    def note(self, storage):
        size = (storage.nbytes() + 511) // 512 * 512
        if size == 0 or storage._cdata in self.addresses:
            return
        address, self.next = self.next, self.next + size
        self.addresses.add(storage._cdata)
        entry = {"addr": address, "size": size, "stream": 0, "frames": self.frames(), "time_us": len(self.events)}
        self.events.append({"action": "alloc", **entry})

        def free(cdata=storage._cdata):
            self.addresses.discard(cdata)
            for action in ("free_requested", "free_completed"):
                self.events.append({"action": action, **entry, "frames": []})

        weakref.finalize(storage, free)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        before = {t.untyped_storage()._cdata for t in args if isinstance(t, torch.Tensor)}
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in before:
                self.note(tensor.untyped_storage())
        return out


def snapshot(folder, name, model, data, history=True):
    allocator = Allocator()
    parameters, address = [], 0x100000000
    for p in model.parameters():
        size = (p.nbytes + 511) // 512 * 512
        parameters.append({"size": size, "requested_size": p.nbytes, "address": address, "state": "active_allocated", "frames": []})
        address += size
    with allocator:
        trained(model, *data, 1)
    total = sum(b["size"] for b in parameters)
    content = {"segments": [{"device": 0, "address": 0x100000000, "total_size": total, "allocated_size": total, "active_size": total,
                             "requested_size": total, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
                             "is_expandable": False, "frames": [], "blocks": parameters}],
               "device_traces": [allocator.events if history else []], "allocator_settings": {"expandable_segments": False},
               "external_annotations": []}
    path = folder / name
    with open(path, "wb") as file:
        pickle.dump(content, file)
    return path, total


def stepscope(*arguments, fails=False):
    done = subprocess.run([STEPSCOPE, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def rows(text):
    events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [e for e in events if e["event"] == "import_row"], next(e for e in events if e["event"] == "import")


def ours(folder, exporter, model, data):
    captured, project = folder / exporter, folder / f"{exporter}.stepscope"
    capture(model, nn.functional.cross_entropy, [data], captured, exporter=exporter)
    stepscope("train", captured, "--steps", 4, "--project", project, "--set", "record=instructions", "--lr", 0.1)
    return project


def check_time(project, path, kernels=False, modules=True):
    found, total = rows(stepscope("import", project, "--kineto", path, "--json"))
    paths = ["model.emb", "model.head", *(f"model.blocks.{b}.{m}" for b in (0, 1) for m in ("fc1", "act", "fc2", "norm"))]
    for module in paths:
        for phase in ("forward", "backward"):
            both = [r for r in found if r["module"] == module and r["phase"] == phase and r["theirs"] and r["ours"]]
            assert len(both) == 1, (module, phase, [r for r in found if r["module"] == module])
            row = both[0]
            operator = {"emb": "embedding", "act": "gelu", "norm": "layer_norm"}.get(module.split(".")[-1], "linear")
            assert f"aten::{operator}" in row["theirs"], row
            assert row["their_amount"] > 0 and row["our_amount"] > 0
            assert abs(row["ratio"] - row["our_amount"] / row["their_amount"]) < 1e-9
            if kernels and phase == "forward":
                assert row["their_amount"] == 7000 * (row["theirs"].count("aten::")), row
    alone = [sum(1 for r in found if r["phase"] in ("forward", "backward") and not r[side]) for side in ("ours", "theirs")]
    assert [total["theirs_alone"], total["ours_alone"]] == alone, (total, alone)
    assert any("no modules" in note for note in total["notes"]) != modules, total
    step = next(r for r in found if r["phase"] == "step")
    parts = sum(r["their_amount"] for r in found if r["phase"] in ("forward", "backward", "optimizer"))
    assert kernels or parts <= step["their_amount"], "no operator counts twice"
    return total


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, data = Net(), (torch.randint(0, 50, (8, 16)), torch.randint(0, 10, (8,)))
        full = trace(folder, "full.json", model, data, with_stack=True, record_shapes=True)
        plain = trace(folder, "plain.json", model, data)
        memory, parameters = snapshot(folder, "memory.pickle", model, data)
        for exporter in EXPORTERS:
            project = ours(folder, exporter, model, data)
            total = check_time(project, full)
            assert total["joined"] > 3 * total["theirs_alone"], total
            check_time(project, plain, modules=False)
            check_time(project, with_kernels(folder, full), kernels=True)

            found, total = rows(stepscope("import", project, "--memory-snapshot", memory, "--json"))
            joined = [r for r in found if r["phase"] == "activations" and r["theirs"] and r["ours"]]
            assert len(joined) == total["joined"] >= 4, total
            assert all(0 <= r["their_amount"] - r["our_amount"] < 512 for r in joined), joined
            for r in joined:
                if r["module"].endswith(".act"):
                    assert r["theirs"].startswith("activation.py:"), r
            before = next(r for r in found if r["phase"] == "persistent")
            assert before["their_amount"] == parameters, before
            peak = next(r for r in found if r["phase"] == "peak")
            assert peak["their_amount"] == parameters + sum(r["their_amount"] for r in found if r["phase"] == "activations"), peak
            print(f"{exporter}: memory {total['joined']} joined, {total['theirs_alone']} theirs, {total['ours_alone']} ours")
        text = stepscope("import", project, "--kineto", full, "--memory-snapshot", memory)
        assert "could not be" in text and "model.blocks.1.fc2" in text and "peak" in text, text
        assert "aten::linear" in stepscope("import", project, "--kineto", full, "--by", "row")
        kept = stepscope("sql", project, "SELECT count(*) FROM pytorch_rows r JOIN pytorch_imports USING (run, session) "
                         "WHERE kind = 'time' AND module = 'model.head' AND our_amount > 0 AND their_amount > 0")
        assert int(kept.split()[-1]) >= 2, kept

        other = (torch.randint(0, 50, (4, 16)), torch.randint(0, 10, (4,)))
        text = stepscope("import", project, "--kineto",
                         trace(folder, "batch.json", model, other, with_stack=True, record_shapes=True))
        assert "not the same batch" in text, text

        torch.manual_seed(1)
        wide = Net(width=48)
        foreign = trace(folder, "wide.json", wide, data, with_stack=True, record_shapes=True)
        text = stepscope("import", project, "--kineto", foreign, fails=True)
        assert "operators with a weight" in text and "aten::embedding [48, 50]" in text, text
        text = stepscope("import", project, "--memory-snapshot", snapshot(folder, "wide.pickle", wide, data)[0], fails=True)
        assert "expected at least half" in text, text
        text = stepscope("import", project, "--memory-snapshot", snapshot(folder, "bare.pickle", model, data, history=False)[0],
                         fails=True)
        assert "_record_memory_history" in text, text
        class Evil:
            def __reduce__(self):
                return print, ("called",)
        (folder / "evil.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [Evil()]}))
        text = stepscope("import", project, "--memory-snapshot", folder / "evil.pickle", fails=True)
        assert "object or function" in text and "called" not in text, text
        for content in ("", "{", "[]", '{"traceEvents": 3}', '{"traceEvents": [1, {"ph": "X"}]}'):
            (folder / "bad.json").write_text(content)
            assert "export_chrome_trace" in stepscope("import", project, "--kineto", folder / "bad.json", fails=True), content
        assert "no such file" in stepscope("import", folder / "none.stepscope", "--kineto", full, fails=True)
        stepscope("import", project, fails=True)
    print("ok")


main()

# SPDX-License-Identifier: Apache-2.0
"""The Python side of the host: defines nodes and runs them with torch, on tensors in shared memory. README.md has the protocol.

File descriptors: 3 shared memory, 4 socket of messages, 5 pipe whose end says that the program is gone. A request is one message:

    D<json>                 defines a node; the answer is its number
    R<u32 id><u64 seed>     runs it
    F<u32 id>               forgets it
    S<json>                 shapes of the results of such a node, of a run on meta tensors: of each its rank and extents
    L                       what is kept between runs, for people: nodes, tensors that are alive

An answer is one message: "+" and a text, or "-" and what is wrong.
"""

import gc
import importlib.util
import json
import mmap
import os
import socket
import struct
import sys
import threading
import traceback

TYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64", 16: "bfloat16"}
MODULES = {}  # by file


def words(error):
    """Type and text of an exception, and the last place in code that is not torch's or this file's."""
    place, own = "", os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "/nowhere/") + os.sep
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((own, "<")):
            place = f" ({frame.filename}:{frame.lineno})"
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}{place}"


def shown(dtype, shape):
    return f"{list(shape)} {str(dtype).removeprefix('torch.')}"


def module_of(file):
    if file not in MODULES:
        folder = os.path.dirname(file)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location("stepscope_user_" + str(len(MODULES)), file)
        if spec is None or not os.path.isfile(file):
            raise ValueError(f"file '{file}': not found; expected the Python file of the function")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        MODULES[file] = module
    return MODULES[file]


def operator(call):
    """aten::name.overload of torch. Nothing else: a file must not be able to name other code."""
    space, _, rest = call.partition("::")
    name, _, overload = rest.partition(".")
    if space != "aten" or name in ("from_file",):
        raise ValueError(f"operator '{call}': not one that this host runs; expected aten::NAME.OVERLOAD")
    packet = getattr(torch.ops.aten, name, None)
    found = getattr(packet, overload or "default", None) if packet is not None else None
    if found is None:
        raise ValueError(f"operator '{call}': torch {torch.__version__} does not have it")
    return found


def example():
    """What a node without a file calls: a function that `stepscope plugin check` runs."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    return type("Example", (), {"Twice": Twice})


def imported(name, folder):
    """A module of the user's project, which lies in `folder`."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def function(file, module, name):
    """The `apply` of an autograd.Function at the top of a file, or in a class there; of a module with a name, `file` is the folder that it is imported from."""
    found = imported(module, file) if module else module_of(file) if file else example()
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, torch.autograd.Function)):
        raise ValueError(f"function '{name}': not in {module or file}; expected an autograd.Function at the top of the file")
    return found.apply


class Called:
    """An operator or a function with its arguments."""

    def __init__(self, definition):
        self.call_name, self.arguments = definition["call"], definition["arguments"]
        self.callable = operator(self.call_name) if definition["kind"] == "aten" else function(definition["file"], definition["module"], self.call_name)

    def built(self, argument, tensors):
        if "tensor" in argument:
            return tensors[argument["tensor"]]
        if "tensors" in argument:
            return [tensors[i] for i in argument["tensors"]]
        for kind, made in (("list", list), ("tuple", tuple)):
            if kind in argument:
                return made(self.built(part, tensors) for part in argument[kind])
        if "dict" in argument:
            return {key: self.built(part, tensors) for key, part in argument["dict"].items()}
        return getattr(torch, argument["dtype"]) if "dtype" in argument else argument["value"]

    def called(self, tensors):
        named = {a["name"]: self.built(a, tensors) for a in self.arguments if "name" in a}
        result = self.callable(*[self.built(a, tensors) for a in self.arguments if "name" not in a], **named)
        result = list(result) if isinstance(result, (tuple, list)) else [result]
        for i, part in enumerate(result):
            if part is not None and not isinstance(part, torch.Tensor):
                raise TypeError(f"result {i} is a {type(part).__name__}; expected a tensor")
        return result


def shapes(definition):
    """Of the results, for inputs of these types and shapes. Values are not known: what reads them raises."""
    tensors = [torch.empty(shape, dtype=getattr(torch, TYPES[kind]), device="meta") for kind, shape in definition["inputs"]]
    with torch.no_grad():
        results = Called(definition).called(tensors)
    if any(r is None for r in results):
        raise TypeError("a result is None")
    return " ".join(str(number) for r in results for number in (r.dim(), *r.shape))


class Node(Called):
    def __init__(self, memory, definition):
        super().__init__(definition)
        self.backward, self.wanted = definition["backward"], definition["wanted"]
        self.arriving, self.threads = definition["arriving"], definition["threads"]
        self.fresh = True
        self.inputs = [self.tensor(memory, *part) for part in definition["inputs"]]
        self.outputs = [self.tensor(memory, *part) for part in definition["outputs"]]
        # A function may write into what it gets: into shared memory where no gradient is asked for, else into a copy.
        self.copies = definition["kind"] != "aten" or self.call_name.partition(".")[0].endswith("_")

    @staticmethod
    def tensor(memory, kind, shape, offset):
        if kind not in TYPES:
            raise ValueError(f"element type {kind}: torch has none such")
        dtype, count = getattr(torch, TYPES[kind]), 1
        for extent in shape:
            count *= extent
        return torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(shape) if count else torch.empty(shape, dtype=dtype)

    def put(self, i, found, what):
        expected = self.outputs[i]
        if found is None:
            expected.zero_()
            return
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise ValueError(f"{what} {i} is {shown(found.dtype, found.shape)}; expected {shown(expected.dtype, expected.shape)}, as when it was captured")
        expected.copy_(found.detach())

    def seeded(self, seed):
        """All generators where a device is in use, and the first time, for one that this very run begins to use. Else that of the CPU alone:
        torch.manual_seed notes each seed, with a stack, for devices that have not begun, which takes longer than most functions."""
        if self.fresh or torch.cuda.is_initialized():
            torch.manual_seed(seed)
            self.fresh = False
        else:
            torch.default_generator.manual_seed(seed)

    def run(self, seed):
        torch.set_num_threads(self.threads)
        self.seeded(seed)
        if not self.backward:
            with torch.no_grad():
                result = self.called(self.inputs)
            if len(result) < len(self.outputs):
                raise ValueError(f"{len(result)} results; expected {len(self.outputs)}")
            for i in range(len(self.outputs)):
                self.put(i, result[i], "result")
            return
        arriving, inputs = self.inputs[: len(self.arriving)], self.inputs[len(self.arriving) :]
        leaves = [x.detach().requires_grad_() if i in self.wanted else x for i, x in enumerate(inputs)]
        with torch.enable_grad():
            result = self.called([x.clone() if self.copies else x for x in leaves])
            pairs = [(result[o], dy) for o, dy in zip(self.arriving, arriving) if o < len(result) and result[o] is not None and result[o].requires_grad]
            # The engine hands zeros where no gradient arrives; a function that asks for it is told so by None.
            pairs = [(y, dy) for y, dy in pairs if not getattr(y.grad_fn, "stepscope_asks", False) or dy.any()]
            for y, dy in pairs:
                if y.shape != dy.shape:
                    raise ValueError(f"a result is {shown(y.dtype, y.shape)}; expected {shown(dy.dtype, dy.shape)}, as when it was captured")
            wanted = [leaves[i] for i in self.wanted]
            found = torch.autograd.grad([y for y, _ in pairs], wanted, [dy for _, dy in pairs], allow_unused=True) if pairs else [None] * len(wanted)
        for i, gradient in enumerate(found):
            self.put(i, gradient, "gradient")


def leaks():
    """Contexts of functions that are alive though no function runs, with the bytes of their tensors."""
    gc.collect()
    counts = {}
    for one in gc.get_objects():
        if issubclass(type(one), torch.autograd.function.BackwardCFunction):  # not isinstance, which asks proxies of other libraries
            name = type(one)._forward_cls.__qualname__
            held = [t for t in vars(one).values() if isinstance(t, torch.Tensor)]
            try:
                held += [t for t in one.saved_tensors or () if t is not None]
            except RuntimeError:  # freed by the backward phase
                pass
            count, size = counts.get(name, (0, 0))
            counts[name] = count + 1, size + sum(t.nbytes for t in held)
    return ", ".join(f"{count} of {name} ({size} bytes of tensors)" for name, (count, size) in sorted(counts.items()))


def remember_who_asks():
    """A context whose function wants None for a gradient that does not arrive says so: torch's own attribute cannot be read."""
    context, set_it = torch.autograd.function.FunctionCtx, torch.autograd.function.FunctionCtx.set_materialize_grads

    def set_materialize_grads(self, value):
        self.stepscope_asks = not value
        return set_it(self, value)

    context.set_materialize_grads = set_materialize_grads


class Host:
    def __init__(self):
        remember_who_asks()
        torch.ones(1, requires_grad=True).sum().backward()  # the first one loads libraries: not in the first step
        self.nodes, self.count, self.size, self.memory = {}, 0, 0, None

    def define(self, text):
        definition = json.loads(text)
        if definition["size"] > self.size:  # earlier nodes keep the mapping that they have: it shows the same memory
            self.size = definition["size"]
            self.memory = mmap.mmap(3, self.size)
        node = Node(self.memory, definition)
        self.count += 1
        self.nodes[self.count] = node
        return str(self.count)

    def answer(self, request):
        kind = request[:1]
        if kind == b"R":
            node, seed = struct.unpack("<IQ", request[1:])
            try:
                self.nodes[node].run(seed)
            except Exception as error:  # noqa: BLE001  whatever user code does
                return f"-{self.nodes[node].call_name}: {words(error)}"
            return "+"
        if kind == b"D":
            try:
                return "+" + self.define(request[1:].decode())
            except Exception as error:  # noqa: BLE001
                return "-" + words(error)
        if kind == b"S":
            try:
                return "+" + shapes(json.loads(request[1:].decode()))
            except Exception as error:  # noqa: BLE001
                return "-" + words(error)
        if kind == b"F":
            self.nodes.pop(struct.unpack("<I", request[1:])[0], None)
            return "+"
        return f"+{len(self.nodes)} nodes; contexts that outlive their step: {leaks() or 'none'}"


def gone():
    os.read(5, 1)
    os._exit(0)


def main():
    global torch
    connection = socket.socket(fileno=4)
    threading.Thread(target=gone, daemon=True).start()
    try:
        import torch
    except Exception as error:  # noqa: BLE001
        connection.send(f"-{sys.executable}: {words(error)}; expected a Python that has torch (environment variable STEPSCOPE_PYTHON)".encode())
        return
    host = Host()
    connection.send(f"+torch {torch.__version__}, {sys.executable}".encode())
    while True:
        request = connection.recv(1 << 20)
        if not request:
            return
        try:
            connection.send(host.answer(request).encode()[: 1 << 16])
        except BrokenPipeError:
            return


main()

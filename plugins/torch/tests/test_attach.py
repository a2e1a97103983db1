# SPDX-License-Identifier: Apache-2.0
"""A window at the loop of a running PyTorch script, through the program that stands between both.

    test_attach.py PROGRAM LIBRARY [TEST…]
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError:
    print("skipped: this Python has no torch")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/support"))
from worker_protocol import Worker, field, fields  # noqa: E402

PROGRAM, LIBRARY = sys.argv[1], sys.argv[2]
PACKAGE = pathlib.Path(__file__).parents[3] / "app/api/python"

SCRIPT = """
import json, os, sys, torch
from torch import nn
import stepscope

torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
model = stepscope.Module(plain, policy="raise")
if len(sys.argv) > 1:
    print(stepscope.attach(model), flush=True)
else:
    print(stepscope.attach(), flush=True)  # $STEPSCOPE_ATTACH has opened it
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
os.set_blocking(0, False)
step = 0
while sys.stdin.buffer.read(1) is None:
    x = torch.randn(4 if step % 4 else 2, 6)
    out = model(x)
    before = [p.detach().clone() for p in model.parameters()]
    ((out - 1) ** 2).mean().backward()
    gradient = next(model.parameters()).grad
    print(json.dumps({"step": step, "out": out.flatten().tolist(), "gradient": gradient.flatten().tolist()}), flush=True)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
print(json.dumps({"done": step}), flush=True)
"""


OPEN, BUILD, PLAN, TRAIN, BEGIN, STEP, PHASE, FINISH, REWIND, FETCH = 3, 5, 7, 11, 12, 13, 16, 17, 19, 21
ERROR, MODEL, BUILT, RECORD, POSITION, TENSOR = 3, 5, 6, 12, 13, 14


class Window(Worker):
    def __init__(self, target):
        super().__init__(PROGRAM, "worker", "--attach", target, stderr=subprocess.PIPE)

    def position(self, request, body=b""):
        kind, message = self.ask(request, body)[-1]
        assert kind == POSITION, (kind, message)
        found = fields(message)
        return bool(found.get(1)), found.get(2, [0])[0], found.get(3, [0])[0]  # in a step, its number, the instruction

    def begin(self):
        """Held before the first instruction of a call; in the middle of one at first, maybe."""
        while (place := self.position(BEGIN))[2] > 0:
            self.ask(FINISH)
        return place

    def place(self):
        """Where it stands after one step, in words."""
        kind, message = self.ask(STEP, field(1, 1))[-1]
        assert kind == POSITION, (kind, message)
        return fields(message)[4][0].decode()

    def value(self, name):
        kind, message = self.ask(FETCH, field(2, name) + field(6, 1))[-1]
        assert kind == TENSOR, (kind, message)
        data = fields(message)[7][0]
        return list(struct.unpack(f"<{len(data) // 4}f", data))

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Attached(unittest.TestCase):
    def start(self, *arguments, **environment):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = pathlib.Path(self.folder.name) / "train_it.py"
        path.write_text(SCRIPT)
        os.chmod(self.folder.name, 0o700)
        given = {**os.environ, "STEPSCOPE_LIBRARY": LIBRARY, "PYTHONPATH": str(PACKAGE), "XDG_RUNTIME_DIR": self.folder.name, **environment}
        os.environ["XDG_RUNTIME_DIR"] = self.folder.name
        script = subprocess.Popen([sys.executable, str(path), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=given)
        self.assertIn(self.folder.name, script.stdout.readline())
        self.addCleanup(script.wait)
        self.addCleanup(script.stdout.close)
        self.addCleanup(script.kill)
        return script

    def end(self, script):
        script.stdin.close()
        lines = [json.loads(line) for line in script.stdout]
        self.assertEqual(lines[-1]["done"], lines[-2]["step"] + 1)
        self.assertEqual(script.wait(60), 0)
        return lines[:-1]

    def test_the_window_holds_the_loop_and_reads_what_the_engine_computes(self):
        script = self.start("attach")
        window = Window(script.pid)
        self.assertEqual(window.ask(OPEN)[-1][0], MODEL)
        self.assertEqual(window.ask(BUILD)[-1][0], BUILT)
        self.assertIn("train_it.py", fields(window.ask(OPEN)[-1][1])[1][0].decode())
        in_step, _, instruction = window.begin()
        self.assertTrue(in_step)
        self.assertEqual(window.position(STEP, field(1, 1))[2], instruction + 1)
        window.position(PHASE)
        plan = fields(window.ask(PLAN)[-1][1])
        count, backward = len(plan[1]), plan.get(9, [0])[0]
        self.assertLess(0, backward)
        # What the engine hands to the script is what the window reads there.
        held = window.value("output_0")
        record = window.ask(FINISH)[-1]
        self.assertEqual(record[0], RECORD)
        spans = len(fields(record[1])[13])
        self.assertEqual(spans, count)
        self.assertEqual(window.ask(REWIND)[-1][0], ERROR)
        # From the end of a pass the script goes on line by line: its loss, and from the end of the call its optimizer.
        window.begin()
        window.position(PHASE)
        lines = [window.place()]
        while "backward()" not in lines[-1]:
            lines.append(window.place())
        self.assertTrue(any("before = [" in line for line in lines), lines)
        self.assertTrue(all(line.startswith("script: train_it.py:") for line in lines), lines)
        self.assertEqual(window.place(), "step")  # the backward pass
        window.position(PHASE)
        lines = [window.place() for _ in range(4)]
        self.assertTrue(any("optimizer.step()" in line for line in lines), lines)
        self.assertTrue(window.position(PHASE)[0])  # before the next call
        # Let go, the loop runs on in both of its plans.
        kinds = []
        while kinds.count(RECORD) < 12:
            kinds += [kind for kind, _ in window.ask(TRAIN, field(1, 12) + field(2, 1))]
        self.assertGreaterEqual(kinds.count(BUILT), 2)
        self.assertEqual(window.close(), 0)
        steps = self.end(script)
        self.assertIn(held, [s["out"] for s in steps])

    def test_a_script_that_ends_ends_the_window_and_one_without_a_place_is_named(self):
        script = self.start(STEPSCOPE_ATTACH="1")
        window = Window(script.pid)
        window.ask(OPEN)
        window.position(BEGIN)
        second = Window(script.pid)
        self.assertEqual(second.process.wait(60), 1)
        self.assertIn(b"another window", second.process.stderr.read())
        window.process.kill()  # as it is, with the loop held
        window.process.wait()
        again = Window(script.pid)
        again.ask(OPEN)
        self.end(script)
        self.assertEqual(again.process.wait(60), 1)
        self.assertIn(b"ended", again.process.stderr.read())
        for one in (window, second, again):
            for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        none = subprocess.run([PROGRAM, "worker", "--attach", str(os.getpid())], capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(none.returncode, 1)
        self.assertIn(b"stepscope.attach()", none.stderr)
        self.assertIn(str(os.getpid()).encode(), none.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

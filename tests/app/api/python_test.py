"""import stepscope: what the program computes, arrays of every kind, errors as exceptions, threads.

    python_test.py PROGRAM SAMPLES      with $STEPSCOPE_LIBRARY and $PYTHONPATH set
"""

import array
import ast
import ctypes
import gc
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import stepscope
from stepscope import library as _library
from stepscope.array import Given

PROGRAM, SAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL, DATA = SAMPLES / "digits/model.onnx", SAMPLES / "digits/batches.npz"

try:
    import numpy
except ImportError:
    numpy = None


def batch(rows=2, fill=0.5):
    """Arrays for the digits model, without NumPy."""
    image = memoryview(array.array("f", [fill] * (rows * 64))).cast("B").cast("f", (rows, 1, 8, 8))
    return {"image": image, "label": array.array("q", range(rows))}


class Training(unittest.TestCase):
    def test_losses_are_those_of_the_program(self):
        command = [PROGRAM, "train", MODEL, "--data", DATA, "--optimizer", "adamw", "--lr", "0.01", "--steps", "4", "--threads", "2"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        expected = [event["loss"] for event in events if event["event"] == "step"]
        with stepscope.open(MODEL, data=DATA, optimizer="adamw", lr=0.01, threads=2) as session:
            self.assertEqual([session.step().loss for _ in range(4)], expected)

    def test_steps_both_ways(self):
        with stepscope.open(MODEL, data=DATA) as whole, stepscope.open(MODEL, data=DATA) as by_hand:
            expected = whole.step().loss
            self.assertEqual(by_hand.begin_step().instruction, 0)
            last = len(by_hand.instructions) - 1
            self.assertEqual(by_hand.run_to(last).loss, expected)
            self.assertEqual(by_hand.move(-5).instruction, last - 5)
            self.assertEqual(by_hand.finish_step().loss, expected)
            trained = [p.name for p in whole.parameters if p.trained]
            self.assertTrue(trained)
            for name in trained:
                self.assertEqual(bytes(whole.state(name).data), bytes(by_hand.state(name).data), name)

    def test_resumes(self):
        with tempfile.TemporaryDirectory() as folder, stepscope.open(MODEL, data=DATA, optimizer="adamw") as a:
            a.step()
            a.save(pathlib.Path(folder) / "s.safetensors")
            with stepscope.open(MODEL, data=DATA, optimizer="adamw") as b:
                b.build()
                b.load(pathlib.Path(folder) / "s.safetensors", resume=True)
                self.assertEqual(a.step().loss, b.step().loss)

    def test_options(self):
        with stepscope.open(MODEL, {"data": DATA, "pass.cse": False}) as session:
            option = session.options["pass.cse"]
            self.assertEqual((option.value, option.set_by, option.kind), ("off", "api", "switch"))
            session.step()
            session.set({"pass.cse": True})
            session.apply()
            self.assertEqual(session.options["pass.cse"].value, "on")

    def test_breakpoints_stop(self):
        with stepscope.open(MODEL, data=DATA) as session:
            session.break_on("phase optimizer")
            where = session.run_to_break()
            self.assertIn("breakpoint 1", where.stopped_by)
            self.assertEqual(session.instructions[where.instruction].phase, "optimizer")


class State(unittest.TestCase):
    OPTIONS = {"data": DATA, "optimizer": "adamw", "lr": 0.02, "lr-schedule": "linear", "warmup-steps": 2, "total-steps": 6}

    def trained(self, session):
        return [p for p in session.parameters if p.trained]

    def test_the_schedule_is_right_from_the_first_step(self):
        with stepscope.open(MODEL, self.OPTIONS) as session:
            expected = [0.01, 0.02, 0.02, 0.015, 0.01, 0.005, 0.0]
            for rate in expected:
                self.assertAlmostEqual(session.learning_rate, rate)
                self.assertAlmostEqual(session.step().learning_rate, rate)

    def test_the_rate_is_set_without_a_build(self):
        with stepscope.open(MODEL, self.OPTIONS) as session, stepscope.open(MODEL, {**self.OPTIONS, "lr": 0.002}) as other:
            session.build()
            session.learning_rate = 0.002
            self.assertAlmostEqual(session.learning_rate, 0.001)
            self.assertEqual([session.step().loss for _ in range(3)], [other.step().loss for _ in range(3)])
            self.assertEqual(session.options["lr"].value, "0.002")
            session.set({"pass.cse": False})  # a build that follows keeps it
            self.assertAlmostEqual(session.step().learning_rate, 0.002 * 0.75)
            with self.assertRaises(stepscope.Error):
                session.learning_rate = -1.0

    def test_goes_on_in_the_middle_of_a_schedule(self):
        with tempfile.TemporaryDirectory() as folder, stepscope.open(MODEL, self.OPTIONS) as a:
            for _ in range(3):
                a.step()
            a.properties.update(epoch=-7, best=0.1, note="zwölf", table=array.array("f", [1, 2]))
            a.save(pathlib.Path(folder) / "s.safetensors")
            with stepscope.open(MODEL, self.OPTIONS) as b:
                b.load(pathlib.Path(folder) / "s.safetensors", resume=True)
                self.assertEqual(b.learning_rate, a.learning_rate)
                first, second = a.step(), b.step()
                self.assertEqual((first.step, first.loss, first.learning_rate), (second.step, second.loss, second.learning_rate))
                self.assertEqual({**b.properties, "table": b.properties["table"].tolist()}, {"epoch": -7, "best": 0.1, "note": "zwölf", "table": [1.0, 2.0]})
                del b.properties["note"]
                self.assertEqual(sorted(b.properties), ["best", "epoch", "table"])
                with self.assertRaises(KeyError):
                    del b.properties["note"]
                with self.assertRaises(stepscope.Error):
                    b.properties["large"] = 2**63

    def test_state_is_written_by_name(self):
        with stepscope.open(MODEL, self.OPTIONS) as a, stepscope.open(MODEL, self.OPTIONS) as b:
            for _ in range(2):
                a.step()
            b.step()
            for p in self.trained(a):
                for name in (p.name, p.name + ".exp_avg", p.name + ".exp_avg_sq"):
                    b.set_state(name, a.state(name))
            for p in self.trained(a):
                self.assertEqual(bytes(a.state(p.name).data), bytes(b.state(p.name).data))
            before = bytes(b.state(self.trained(b)[0].name).data)
            b.step()
            self.assertNotEqual(bytes(b.state(self.trained(b)[0].name).data), before)
            with self.assertRaises(stepscope.Error) as caught:
                b.set_state("nobody", array.array("f", [1]))
            self.assertEqual(caught.exception.code, "not_found")
            name = self.trained(b)[0].name
            with self.assertRaises(stepscope.Error) as caught:
                b.set_state(name, array.array("f", [1]))
            self.assertIn(name, str(caught.exception))
            b.begin_step()
            with self.assertRaises(stepscope.Error) as caught:
                b.set_state(name, a.state(name))
            self.assertIn("begun", str(caught.exception))

    def test_parameters_are_one_piece_of_memory(self):
        with stepscope.open(MODEL, self.OPTIONS) as plain, stepscope.open(MODEL, self.OPTIONS) as placed:
            plain.build()
            placed.build()
            flat = placed.flat_parameters()
            self.assertEqual(len(flat), sum(p.elements for p in self.trained(placed)))
            for _ in range(3):
                self.assertEqual(plain.step().loss, placed.step().loss)
            at = 0
            for p in self.trained(placed):
                of = flat.data[at : at + p.elements]
                self.assertEqual(bytes(of), bytes(plain.state(p.name).data), p.name)
                at += p.elements
            before = placed.evaluate(1).loss
            for i in range(len(flat)):  # what is written here, the next step reads
                flat.data[i] = 0.0
            self.assertNotEqual(placed.evaluate(1).loss, before)
            self.assertAlmostEqual(placed.evaluate(1).loss, 2.302585, places=5)  # ten classes, all alike
            placed.step()
            self.assertTrue(any(flat.data))
            with self.assertRaises(stepscope.Error) as caught:
                placed.flat_parameters(array.array("f", [0] * 3))
            self.assertIn("float32[3]", str(caught.exception))
        self.assertTrue(any(flat.data))  # it is ours

    def test_a_parameter_is_placed_before_the_build(self):
        with stepscope.open(MODEL, self.OPTIONS) as a, stepscope.open(MODEL, self.OPTIONS) as b:
            a.step()
            p = self.trained(a)[0]
            memory = a.state(p.name)
            kept = bytes(memory.data)
            b.place(p.name, memory, take=True)
            b.build()
            self.assertEqual(bytes(b.state(p.name).data), kept)
            b.step()
            self.assertNotEqual(bytes(memory.data), kept)
            with self.assertRaises(stepscope.Error):
                b.place(p.name, bytes(4))

    def test_evaluates_what_is_given_and_what_the_data_has(self):
        with stepscope.open(MODEL, self.OPTIONS) as session:
            session.step()
            kept = bytes(session.state(self.trained(session)[0].name).data)
            whole = session.evaluate()
            self.assertGreater(whole.batches, 1)
            self.assertTrue(0 <= whole.correct <= whole.labels)
            self.assertFalse(whole.synthetic)
            one = session.evaluate(batch())
            two = session.evaluate([batch(), batch(rows=3)])
            self.assertEqual((one.batches, one.labels, two.batches, two.labels), (1, 2, 2, 5))
            self.assertEqual(bytes(session.state(self.trained(session)[0].name).data), kept)
            with self.assertRaises(stepscope.Error) as caught:
                session.evaluate([batch(), {"image": batch()["image"]}])
            self.assertIn("batch 1", str(caught.exception))
            session.feed(**batch())
            with self.assertRaises(stepscope.Error) as caught:
                session.evaluate()
            self.assertIn("ss_feed", str(caught.exception))

    def test_the_example_goes_on_as_in_one_go(self):
        example = pathlib.Path(__file__).parents[3] / "app/api/examples/resume.py"
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, example, MODEL, DATA, pathlib.Path(folder) / "s"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("step 11: loss", done.stdout)


class Function(unittest.TestCase):
    """The model as a function; the digits model's loss is one of its outputs, and it has running statistics."""

    def opened(self):
        session = stepscope.open(MODEL, threads=2)
        with stepscope.open(MODEL, data=DATA) as other:
            other.build()
            outputs = [name for name in ("loss", "logits") if self._has(other, name)]
        session.differentiate(outputs[:1])
        return session, outputs[0]

    @staticmethod
    def _has(session, name):
        try:
            session.begin_step()
            session.run_to(len(session.instructions))
            session.value(name)
            return True
        except stepscope.Error:
            return False

    def test_gradients_are_those_of_the_step(self):
        session, output = self.opened()
        with session, stepscope.open(MODEL, threads=2) as whole:
            whole.feed(**batch())
            whole.build(keep_gradients=True)
            loss = whole.step().loss
            statistic = next(p.name for p in whole.parameters if p.name.endswith("running_var"))
            session.set_state(statistic, whole.state(statistic))
            kept = bytes(session.state(statistic).data)
            first, second = session.forward(batch()), session.forward(batch(fill=0.25))  # two are open at once
            self.assertAlmostEqual(first.output(output).tolist(), loss, places=6)
            for call in (second, first):
                call.backward({output: memoryview(array.array("f", [1.0])).cast("B").cast("f", ())})
            for p in (p for p in whole.parameters if p.trained):
                ours, theirs = first.gradient(p.name), whole.gradient(p.name)
                self.assertEqual(ours.shape, theirs.shape)
                for a, b in zip(ours.data, theirs.data):
                    self.assertAlmostEqual(a, b, places=5)
            self.assertNotEqual(bytes(second.gradient(p.name).data), bytes(first.gradient(p.name).data))
            with self.assertRaises(stepscope.Error) as caught:
                first.backward()
            self.assertIn("ran already", str(caught.exception))
            with self.assertRaises(stepscope.Error) as caught:
                first.gradient("nobody")
            self.assertEqual(caught.exception.code, "not_found")
            self.assertNotEqual(bytes(session.state(statistic).data), kept)  # the forward pass writes it
            first.close()
            with self.assertRaises(stepscope.Error):
                first.output(output)

    def test_says_what_is_missing(self):
        with stepscope.open(MODEL, threads=2) as session:
            with self.assertRaises(stepscope.Error) as caught:
                session.forward(batch())
            self.assertIn("ss_differentiate", str(caught.exception))
            session.differentiate(["nobody"])
            with self.assertRaises(stepscope.Error) as caught:
                session.forward(batch())
            self.assertIn("'nobody'", str(caught.exception))
            session.differentiate()
            call = session.forward(batch())
            with self.assertRaises(stepscope.Error) as caught:
                call.backward()
            self.assertIn("without one", str(caught.exception))
            with self.assertRaises(stepscope.Error):
                session.forward({"image": batch()["image"]})


class Arrays(unittest.TestCase):
    def test_whatever_has_a_buffer_is_fed(self):
        with stepscope.open(MODEL, threads=2) as session:
            session.feed(**batch())
            session.build(keep=["image"])
            session.begin_step()
            value = session.value("image")
            self.assertEqual((value.dtype, value.shape, len(value)), ("float32", (2, 1, 8, 8), 2))
            self.assertEqual(value.tolist(), [[[[0.5] * 8] * 8]] * 2)
            session.edit("image", memoryview(array.array("f", [0.25] * 128)).cast("B").cast("f", (2, 1, 8, 8)))
            self.assertEqual(session.value("image").tolist()[1][0][7][7], 0.25)
            self.assertIsNotNone(session.finish_step().loss)

    def test_what_was_given_out_stays(self):
        with stepscope.open(MODEL, data=DATA) as session:
            session.step()
            name = next(p.name for p in session.parameters if p.trained)
            before = session.state(name)
            kept = bytes(before.data)
            session.step()
            self.assertEqual(bytes(before.data), kept)
            self.assertNotEqual(bytes(session.state(name).data), kept)
        self.assertEqual(bytes(before.data), kept)

    def test_low_types_as_lists(self):
        self.assertEqual(stepscope.Array("bfloat16", [2], bytearray(b"\x80\x3f\x00\xc0")).tolist(), [1.0, -2.0])
        self.assertEqual(stepscope.Array("float16", [], bytearray(b"\x00\x3c")).tolist(), 1.0)
        self.assertEqual(stepscope.Array("int64", [2, 0], bytearray()).tolist(), [[], []])

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_numpy(self):
        x = numpy.random.default_rng(0).normal(size=(3, 1, 16, 16))[:, :, ::2, ::2]  # float64, not contiguous
        with stepscope.open(MODEL, threads=2) as session:
            session.feed(image=x, label=numpy.arange(3))
            session.build(keep_gradients=True)
            session.step()
            name = session.parameters[0].name
            gradient = session.gradient(name)
            seen = numpy.asarray(gradient)
            self.assertEqual(seen.shape, gradient.shape)
            self.assertEqual(seen.tolist(), gradient.tolist())
            seen[...] = 7  # the same memory
            self.assertEqual(gradient.data[0], 7)
            self.assertEqual(numpy.from_dlpack(gradient).ctypes.data, seen.ctypes.data)  # no copy
            self.assertTrue((numpy.from_dlpack(session.gradient(name)) == session.gradient(name).numpy()).all())

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_what_is_given_is_borrowed(self):
        class OfDlPackAlone:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__(**arguments)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        fixed = x.copy()
        fixed.flags.writeable = False
        for given, memory in ((x, x), (OfDlPackAlone(x), x), (fixed, fixed)):
            struct = Given("x", given).struct
            self.assertEqual((struct.data, struct.dtype, struct.dims[:2], struct.bytes), (memory.ctypes.data, 1, [2, 3], 24))


class Errors(unittest.TestCase):
    def expect(self, code, part, call, *arguments, **more):
        with self.assertRaises(stepscope.Error) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertIn(part, str(caught.exception))

    def test_are_typed_and_the_session_goes_on(self):
        self.expect("not_found", "nonexistent.onnx", stepscope.open, "/nonexistent.onnx")
        self.expect("invalid_argument", "'much'", stepscope.open, MODEL, lr="much")
        with stepscope.open(MODEL, threads=2) as session:
            self.expect("invalid_argument", "'image'", session.feed, image=["a"])
            self.expect("invalid_argument", "'image'", session.feed, image=None)
            session.feed({**batch(), "other": array.array("f", [1])})
            self.expect("not_found", "'other'", session.step)
            session.feed(image=batch()["image"])
            self.expect("not_found", "'label'", session.step)
            session.feed(**batch())
            session.step()
            self.expect("not_found", "none was fed", session.step)
            self.expect("invalid_argument", "magic", session.set, optimizer="magic")
            self.expect("not_found", "'nobody'", session.value, "nobody")
            session.feed(**batch(rows=3))
            self.assertEqual(session.step().step, 1)

    def test_a_closed_session_says_so(self):
        session = stepscope.open(MODEL)
        session.close()
        session.close()
        self.expect("invalid_argument", "closed", session.step)
        self.expect("invalid_argument", "closed", lambda: session.inputs)

    def test_one_that_failed_to_open_is_collected(self):
        for _ in range(3):
            self.expect("not_found", "nonexistent", stepscope.open, "/nonexistent.onnx")
        gc.collect()


class Library(unittest.TestCase):
    def test_structs_are_those_of_the_header(self):
        sizes = {"Tensor": 40, "ValueInfo": 56, "Evaluation": 48, "Property": 48, "OptionInfo": 64, "InstructionInfo": 56, "StepRecord": 88, "Position": 40}
        for name, size in sizes.items():  # as in abi_test.cpp
            self.assertEqual(ctypes.sizeof(getattr(_library, name + "Struct")), size, name)

    def test_every_function_of_the_header_is_called(self):
        header = (pathlib.Path(__file__).parents[3] / "app/api/stepscope.h").read_text()
        declared = {line.split("ss_error* ss_")[1].split("(")[0] for line in header.splitlines() if line.startswith("SS_API ss_error* ss_")}
        self.assertGreater(len(declared), 25)
        self.assertEqual(declared, set(_library._FUNCTIONS))

    def test_functions_that_return_no_error_are_called_too(self):
        here = pathlib.Path(__file__).parents[3]
        header = (here / "app/api/stepscope.h").read_text()
        others = set(re.findall(r"^SS_API(?:_VOID)? (?!ss_error\*).*?\b(ss_\w+)\(", header, re.MULTILINE))
        self.assertIn("ss_cancel", others)
        called = (here / "app/api/python/stepscope/library.py").read_text()
        self.assertEqual({name for name in others if f"._c.{name}" not in called}, set())

    def test_what_is_loaded_late_is_in_the_help_and_has_types(self):
        source = (pathlib.Path(__file__).parents[3] / "app/api/python/stepscope/__init__.py").read_text()
        tree = ast.parse(source)
        typed = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
        imported = {alias.name for n in typed.body for alias in n.names}
        finder = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__")
        late = set(stepscope._OF_CAPTURE) | {c.value for n in ast.walk(finder) if isinstance(n, ast.Compare) for c in ast.walk(n) if isinstance(c, ast.Constant)}
        self.assertEqual(imported, late)
        self.assertEqual({name for name in late if not re.search(rf"\b{name}\b", stepscope.__doc__)}, set())

    def test_the_readme_runs(self):
        here = pathlib.Path(__file__).parents[3]
        blocks = re.findall(r"^```python\n(.*?)^```", (here / "app/api/README.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 1)
        if numpy is None:
            self.skipTest("NumPy is not installed")
        done = subprocess.run([sys.executable, "-c", blocks[0]], capture_output=True, text=True, cwd=here)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^2\.58\d+\n\(\d+, 10\)\n$")

    def test_everything_has_help(self):
        for owner in [getattr(stepscope, name) for name in stepscope.__all__]:
            self.assertTrue(owner.__doc__ and not owner.__doc__.startswith(owner.__name__ + "("), owner)  # not what a dataclass makes up
            for name, member in vars(owner).items() if inspect.isclass(owner) else ():
                if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                    self.assertTrue(member.__doc__, f"{owner.__name__}.{name}")

    def test_everything_has_types(self):
        for name, member in vars(stepscope.Session).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                said = inspect.signature(member)
                self.assertNotEqual(said.return_annotation, inspect.Signature.empty, name)
                for parameter in list(said.parameters.values())[1:]:
                    self.assertNotEqual(parameter.annotation, inspect.Parameter.empty, f"{name}({parameter.name})")

    def test_the_lock_is_free_while_the_engine_works(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.0005)

        with stepscope.open(MODEL, data=DATA) as session:
            session.build()
            counter = threading.Thread(target=count)
            counter.start()
            before, until = counted[0], time.monotonic() + 0.5
            while time.monotonic() < until:
                session.step()
            done.set()
            counter.join()
        self.assertGreater(counted[0] - before, 10)

    def test_cancel_from_another_thread(self):
        with stepscope.open(MODEL, data=DATA) as session:
            session.build()
            canceller = threading.Thread(target=session.cancel)
            canceller.start()
            canceller.join()
            with self.assertRaises(stepscope.Error) as caught:
                session.step()
            self.assertEqual(caught.exception.code, "cancelled")
            self.assertIsNotNone(session.step().loss)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)

#!/usr/bin/env python3
"""Runs of the bundled digits model, recorded and compared by the program: equal runs, other options, wrong usage.

    compare_test.py STEPSCOPE SAMPLES_FOLDER
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

STEPSCOPE, SAMPLES = None, None


def program(*arguments):
    return subprocess.run([STEPSCOPE, *map(str, arguments)], capture_output=True, text=True, check=False)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.project = pathlib.Path(cls.folder.name) / "digits.stepscope"
        digits = SAMPLES / "digits"
        for rate in ("0.003", "0.003", "0.01"):
            done = program("train", digits / "model.onnx", "--data", digits / "batches.npz", "--optimizer", "adamw", "--lr", rate, "--steps", 5,
                           "--threads", 1, "--project", cls.project)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compare(self, *arguments):
        return program("compare", self.project, *arguments)

    def test_equal_runs_are_equal_in_every_bit(self):
        done = self.compare(1, 2, "--json", "--rtol", 0, "--atol", 0, "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout.splitlines()[0])
        self.assertIsNone(result["first_difference"])
        self.assertEqual(result["steps"], {"both": 5, "only_a": 0, "only_b": 0})
        self.assertEqual(result["options"], [])
        self.assertTrue(result["ops"] and result["step_phases"] and result["build_phases"])
        for row in result["memory"]:
            if row["name"] != "measured peak":
                self.assertEqual(row["a_bytes"], row["b_bytes"], row)

    def test_another_learning_rate_is_named_and_diverges_after_the_first_update(self):
        done = self.compare(1, 3, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout.splitlines()[0])
        self.assertEqual([row["name"] for row in result["options"]], ["lr"])
        # The first loss is computed before the first update. Where statistics were taken in step 1, a parameter tells before the loss does.
        self.assertEqual(result["first_divergence"]["step"], 1)
        self.assertIn(result["first_divergence"]["quantity"], ("loss", "norm"))
        self.assertEqual(self.compare(1, 3, "--check").returncode, 1)

    def test_the_text_names_every_part(self):
        text = self.compare(1, 3).stdout
        for part in ("first divergence", "options that differ", "time per step", "operators", "build", "memory"):
            self.assertIn(part, text)

    def test_a_run_of_another_project(self):
        other = pathlib.Path(self.folder.name) / "other.stepscope"
        digits = SAMPLES / "digits"
        done = program("train", digits / "model.onnx", "--data", digits / "batches.npz", "--optimizer", "adamw", "--lr", "0.003", "--steps", 3,
                       "--threads", 1, "--project", other)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(self.compare(2, 1, "--other", other, "--json").stdout.splitlines()[0])
        self.assertEqual(result["steps"], {"both": 3, "only_a": 2, "only_b": 0})
        self.assertIsNone(result["first_difference"])
        self.assertEqual(result["ops"][0]["b_time"]["n"] % 2, 0)  # two steps after the warm-up
        self.assertEqual(self.compare(1, 1, "--other", other.with_name("none.stepscope")).returncode, 1)

    def test_errors_are_typed(self):
        unknown = self.compare(1, 9)
        self.assertEqual(unknown.returncode, 1)
        self.assertRegex(unknown.stderr, r"^error: run '9': .*1, 2, 3")
        self.assertEqual(self.compare(1).returncode, 2)
        self.assertEqual(self.compare(1, "two").returncode, 2)
        self.assertEqual(self.compare(1, 2, "--rtol", -1).returncode, 2)
        self.assertEqual(program("compare", SAMPLES / "digits" / "model.onnx", 1, 2).returncode, 1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    STEPSCOPE, SAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages that scripts/package wrote, put into an empty root: both programs run there, stripped and wherever it is moved to.

usage: packed_test.py PACKAGES-FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest


def run(*command, **more):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120, **more)


class Packed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def only(self, ending):
        found = sorted(PACKAGES.glob(f"*{ending}"))
        self.assertEqual(len(found), 1, f"{ending} in {PACKAGES}: {found}")
        return found[0]

    def both_programs_run(self, root):
        programs = sorted(root.rglob("bin/stepscope"))
        self.assertEqual(len(programs), 1, sorted(root.rglob("bin/*")))
        bin_folder = programs[0].parent
        digits = bin_folder.parent / "share" / "stepscope" / "samples" / "digits"
        trained = run(programs[0], "train", digits / "model.onnx", "--data", digits / "batches.npz", "--steps", 2, cwd=self.folder)
        self.assertEqual(trained.returncode, 0, trained.stderr)
        picture = self.folder / "window.png"
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HOME": str(self.folder)}
        environment.pop("STEPSCOPE_WORKER", None)
        shown = run(bin_folder / "stepscope-workbench", digits / "model.onnx", "--screenshot", picture, "--steps", 1,
                    env=environment, cwd=self.folder)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))
        for program in ("stepscope", "stepscope-workbench"):
            self.assertNotIn(".symtab", run("readelf", "-SW", bin_folder / program).stdout, f"{program} is not stripped")

    def test_the_deb_installs_into_an_empty_root(self):
        if not shutil.which("dpkg-deb"):
            self.skipTest("no dpkg-deb")
        root = self.folder / "root"
        done = run("dpkg-deb", "-x", self.only(".deb"), root)
        self.assertEqual(done.returncode, 0, done.stderr)
        needs = run("dpkg-deb", "-f", self.only(".deb"), "Depends").stdout
        for library in ("libc6", "libqt6widgets6", "libsqlite3-0"):
            self.assertIn(library, needs)
        self.both_programs_run(root)

    def test_the_archive_runs_where_it_is_moved_to(self):
        first, moved = self.folder / "first", self.folder / "moved here"
        first.mkdir()
        done = run("tar", "xf", self.only(".tar.gz"), "-C", first)
        self.assertEqual(done.returncode, 0, done.stderr)
        first.rename(moved)
        self.both_programs_run(moved)


if __name__ == "__main__":
    PACKAGES = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1])

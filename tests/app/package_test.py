#!/usr/bin/env python3
"""What `cmake --install` puts into an empty root works from there: both programs, pages, completion, menu entry, file type.

    package_test.py CMAKE BUILD_FOLDER
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

CMAKE, BUILD = None, None


def run(*command, **more):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120, **more)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name) / "usr"
        done = run(CMAKE, "--install", BUILD, "--prefix", cls.root, "--strip")
        assert done.returncode == 0, done.stderr
        cls.bin, cls.share = cls.root / "bin", cls.root / "share"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_trains_an_installed_sample(self):
        version = run(self.bin / "stepscope", "--version")
        self.assertRegex(version.stdout, r"^\d+\.\d+\.\d+( \([0-9a-f]{10}\+?\))?\n$")
        digits = self.share / "stepscope" / "samples" / "digits"
        done = run(self.bin / "stepscope", "train", digits / "model.onnx", "--data", digits / "batches.npz", "--steps", 2, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        needed = run("readelf", "-d", self.bin / "stepscope").stdout
        self.assertNotIn("RUNPATH", needed, "of the build folder")

    def test_the_plugin_that_comes_with_it_is_found_by_its_name(self):
        self.assertTrue((self.root / "lib/stepscope/plugins/python_host.so").is_file())
        told = run(self.bin / "stepscope", "options", "--json", "--plugin", "python_host", cwd=self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        missing = run(self.bin / "stepscope", "options", "--plugin", "no_such_plugin", cwd=self.folder.name)
        self.assertEqual(missing.returncode, 2, missing.stdout)
        self.assertIn("no such file", missing.stderr)
        checked = run(self.bin / "stepscope", "plugin", "check", self.root / "lib/stepscope/plugins/python_host.so")
        self.assertIn("Aten", checked.stdout + checked.stderr)

    def test_every_sample_is_installed(self):
        samples = self.share / "stepscope" / "samples"
        for name in ("language_model", "digits", "nan", "padding", "too_large"):
            self.assertTrue((samples / name / "model.onnx").is_file(), name)
        self.assertEqual(run(self.bin / "stepscope", "inspect", samples / "two_runs" / "two_runs.stepscope").returncode, 0)

    def test_the_window_opens_an_installed_sample(self):
        window = self.bin / "stepscope-workbench"
        if not window.exists():
            self.skipTest("built without the window")
        picture = pathlib.Path(self.folder.name) / "window.png"
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HOME": self.folder.name}
        environment.pop("STEPSCOPE_WORKER", None)
        model = self.share / "stepscope" / "samples" / "digits" / "model.onnx"
        done = run(window, model, "--screenshot", picture, "--steps", 1, "--size", "1000x700", env=environment, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))
        bare = {name: value for name, value in environment.items() if name not in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY")}
        self.assertIn("stepscope-workbench", run(window, "--version", env=bare).stdout)
        helped = run(window, "--help", env=bare)
        self.assertEqual(helped.returncode, 0, "needs no display")
        self.assertIn("--screenshot", helped.stdout)

    def test_pages_and_completion_know_every_command(self):
        page = gzip.decompress((self.share / "man/man1/stepscope.1.gz").read_bytes()).decode()
        bash = (self.share / "bash-completion/completions/stepscope").read_text()
        zsh = (self.share / "zsh/vendor-completions/_stepscope").read_text()
        listed = run(self.bin / "stepscope", "--help").stdout.split("Subcommands:")[1]
        commands = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
        self.assertIn("train", commands)
        for command in commands:
            self.assertIn(f'.SS "stepscope {command}"', page)
            self.assertIn(f"'{command}:", zsh)
        self.assertIn("\\-\\-lr\\-schedule", page)
        if shutil.which("groff"):
            told = run("groff", "-man", "-Tutf8", "-ww", input=page)
            self.assertEqual(told.stderr, "")

        def complete(*words, function="_stepscope", bash=bash):
            script = f"{bash}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; {function}; echo ${{COMPREPLY[@]}}"
            done = run("bash", "-c", script)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(complete("stepscope", "trai"), ["train"])
        self.assertIn("--lr-schedule", complete("stepscope", "train", "m.onnx", "--lr"))
        self.assertEqual(sorted(complete("stepscope", "train", "--optimizer", "ad")), ["adam", "adamw"])
        self.assertNotIn("--lr", complete("stepscope", "inspect", "--"))
        # What --set takes, and arguments that are told by their place.
        settings = json.loads("[" + ",".join(run(self.bin / "stepscope", "options", "--json").stdout.splitlines()) + "]")
        for name in (event["name"] for event in settings if event["event"] == "option"):
            self.assertIn("\\fB" + name.replace("-", "\\-") + "\\fR\n", page)
            self.assertIn(f"{name}= ", zsh.replace(")", " "))
        self.assertEqual(complete("stepscope", "train", "--set", "record.k"), ["record.keep="])
        self.assertEqual(complete("stepscope", "train", "--set", "record", "=", "s"), ["steps"])
        self.assertEqual(sorted(complete("stepscope", "train", "--set", "record", "=")), ["instructions", "off", "steps"])
        self.assertEqual(complete("stepscope", "plugin", "c"), ["check"])
        window = self.bin / "stepscope-workbench"
        if not window.exists():
            return
        helped = run(window, "--help").stdout
        page = gzip.decompress((self.share / "man/man1/stepscope-workbench.1.gz").read_bytes()).decode()
        if shutil.which("groff"):
            self.assertEqual(run("groff", "-man", "-Tutf8", "-ww", input=page).stderr, "")
        bash = (self.share / "bash-completion/completions/stepscope-workbench").read_text()
        zsh = (self.share / "zsh/vendor-completions/_stepscope-workbench").read_text()
        flags = [line.split()[0] for line in helped.splitlines() if line.startswith("  --") and "help-all" not in line]
        self.assertIn("--screenshot", flags)
        for flag in flags:
            self.assertIn("\\fB" + flag.replace("-", "\\-") + "\\fR", page)
            self.assertIn(f"*{flag}[", zsh)
            self.assertIn(flag, complete("stepscope-workbench", "--", function="_stepscope_workbench", bash=bash))
        self.assertEqual(complete("stepscope-workbench", "--theme", "d", function="_stepscope_workbench", bash=bash), ["dark"])
        self.assertIn("Profile", complete("stepscope-workbench", "--layout", "P", function="_stepscope_workbench", bash=bash))

    def test_the_desktop_knows_program_and_files(self):
        entry = dict(line.split("=", 1) for line in (self.share / "applications/stepscope.desktop").read_text().splitlines() if "=" in line)
        self.assertTrue((self.bin / entry["Exec"].split()[0]).exists())
        self.assertTrue((self.share / f"icons/hicolor/scalable/apps/{entry['Icon']}.svg").exists())
        namespace = "{http://www.freedesktop.org/standards/shared-mime-info}"
        kind = xml.parse(self.share / "mime/packages/stepscope.xml").getroot().find(f"{namespace}mime-type")
        self.assertEqual(entry["MimeType"], kind.get("type") + ";")
        self.assertEqual(kind.find(f"{namespace}glob").get("pattern"), "*.stepscope")
        # The first bytes of a real project are those the type is told by.
        project = pathlib.Path(self.folder.name) / "p.stepscope"
        digits = self.share / "stepscope" / "samples" / "digits"
        done = run(self.bin / "stepscope", "train", digits / "model.onnx", "--data", digits / "batches.npz", "--project", project)
        self.assertEqual(done.returncode, 0, done.stderr)
        head = project.read_bytes()[:100]
        outer = kind.find(f"{namespace}magic/{namespace}match")
        inner = outer.find(f"{namespace}match")
        self.assertTrue(head.startswith(outer.get("value").encode()))
        self.assertEqual(int.from_bytes(head[68:72], "big"), int(inner.get("value"), 16))
        component = self.share / "metainfo/stepscope.metainfo.xml"
        self.assertEqual(xml.parse(component).getroot().find("launchable").text, "stepscope.desktop")
        if shutil.which("appstreamcli"):
            told = run("appstreamcli", "validate", "--no-net", component)
            self.assertNotIn("E: ", told.stdout)


if __name__ == "__main__":
    CMAKE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])

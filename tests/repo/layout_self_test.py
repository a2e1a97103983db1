#!/usr/bin/env python3
"""Each check of layout_test.py finds what it is there for: made-up trees that break it are reported, a good one is not.

    layout_self_test.py SOURCE_ROOT        the real tree lends its list of views and its .clang-format
"""

import pathlib
import shutil
import sys
import tempfile
import unittest

import layout_test

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
README = "# {0}\n\n**What it is.** x\n\n**What it may include.** x\n\n**How to add one.** x\n\n**Map of files.** {1}\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.root = pathlib.Path(self.place.name)

    def found(self, check, files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")
        return list(layout_test.CHECKS[check](self.root, layout_test.tracked_files(self.root)))

    def reports(self, check, files, *expected):
        """One violation for each of `expected`, which holds that text, and no other."""
        found = self.found(check, files)
        self.assertEqual(len(found), len(expected), found)
        for text in expected:
            self.assertTrue(any(text in line for line in found), f"{text} is not in {found}")


class Terminal(Tree):
    def test_other_ways_to_print(self):
        files = {"app/cli/a.cpp": 'say("{}", name);  // not fmt::print\nfmt::print("{}", name);\nstd::cerr << name;\n'}
        files |= {"app/cli/terminal.cpp": "std::fwrite(text);\n", "engine/a.cpp": 'fmt::print("{}", name);\n'}
        self.reports("terminal", files, "app/cli/a.cpp:2", "app/cli/a.cpp:3")


class Types(Tree):
    def test_two_headers_of_one_type(self):
        head = "namespace stepscope {\n"
        files = {"engine/a.h": head + "class Thing {\n};\n", "views/b.h": head + "class Thing : public Other {\n};\n"}
        files |= {"views/c.h": head + "class Thing;\nstruct Thing::Part {\n};\n", "storage/d.h": "namespace stepscope::storage {\nclass Thing {\n};\n"}
        self.reports("types", files, "views/b.h:2: stepscope::Thing")


class Arrows(Tree):
    def test_between_top_folders(self):
        self.reports("arrows", {"engine/ir/a.cpp": '#include "storage/project.h"\n'}, "engine/ir/a.cpp:1:")
        self.reports("arrows", {"engine/ir/a.cpp": "", "views/x/a.h": '#include "kernels/status.h"\n'}, "views/x/a.h:1:")

    def test_libraries_where_they_belong(self):
        self.reports("arrows", {"app/cli/a.cpp": "#include <QString>\n", "engine/ir/a.cpp": "#  include <sqlite3.h>\n"}, "app/cli", "engine/ir")
        self.reports("arrows", {"app/cli/a.cpp": "", "engine/ir/a.cpp": "", "kernels/cpu/a.cpp": "#include <cuda_runtime.h>\n"}, "kernels/cpu")

    def test_engine_has_an_order(self):
        self.reports("arrows", {"engine/data/npy.cpp": '#include "engine/onnx/limits.h"\n'}, "engine/data may not include engine/onnx")
        self.reports("arrows", {"engine/data/npy.cpp": '#include "engine/ir/graph.h"\n', "engine/onnx/a.cpp": '#include "engine/data/npy.h"\n'})
        self.reports("arrows", {"engine/surprise/a.cpp": '#include "engine/ir/graph.h"\n'}, "engine/surprise stands in no order")

    def test_no_view_includes_another(self):
        self.reports("arrows", {"views/log/a.h": '#include "views/graph/graph_view.h"\n'}, "views/log may not include views/graph")
        self.reports("arrows", {"views/log/a.h": '#include "views/common/view.h"\n#include "views/drawing/zoom.h"\n'})
        self.reports("arrows", {"views/log/a.h": "", "views/common/a.h": '#include "views/drawing/zoom.h"\n'}, "views/common may not include")

    def test_kernels_and_storage_have_an_order(self):
        files = {"kernels/reference/linear/a.cpp": '#include "kernels/cpu/loops/lines.h"\n', "storage/a.cpp": '#include "storage/report/chart.h"\n'}
        self.reports("arrows", files, "kernels/reference may not include kernels/cpu", "storage/. may not include storage/report")


class Clocks(Tree):
    def reports_time(self, body, *expected):
        self.reports("clocks", {"tests/a_test.cpp": "#include <chrono>\nvoid test() {\n" + body + "}\n"}, *expected)

    def test_time_against_a_constant(self):
        begin = "  const auto begin = std::chrono::steady_clock::now();\n  work();\n"
        self.reports_time(begin + "  const auto took = std::chrono::steady_clock::now() - begin;\n  EXPECT_LT(took, 5ms);\n", "a_test.cpp:6:")
        self.reports_time("  QElapsedTimer t;\n  QVERIFY2(t.elapsed() <= 500, \"slow\");\n", "a_test.cpp:4:")
        self.reports_time("  const double s = cpuSeconds();\n  EXPECT_LE(cpuSeconds() - s, 2 * kBound);\n", "a_test.cpp:4:")
        self.reports_time("  const std::int64_t a = monotonicNs();\n  ASSERT_TRUE(monotonicNs() - a < 1'000'000);\n", "a_test.cpp:4:")

    def test_times_against_each_other(self):
        self.reports_time("  const auto a = monotonicNs();\n  const auto b = monotonicNs();\n  EXPECT_LE(a, b);\n  EXPECT_LT(b - a, 3 * a);\n")
        self.reports_time("  const double s = cpuSeconds();\n  EXPECT_LT(cpuSeconds() - s, 3 * slowness());\n")
        self.reports_time("  QElapsedTimer t;\n  while (t.elapsed() < 500) turn();\n  EXPECT_EQ(count, 3);\n")


class Declarations(Tree):
    def reports_header(self, body, *expected):
        text = "// What the file is about.\n#pragma once\n\nnamespace stepscope {\n\n// One.\nint one();\n\n" + body + "\n}  // namespace stepscope\n"
        self.reports("declarations", {"engine/ir/a.h": text}, *expected)

    def test_nothing_said(self):
        self.reports_header("struct Bare {\n  int x = 0;\n};\n", "a.h:9: struct Bare")
        self.reports_header("int two(int a,\n        int b);\n", "a.h:9: int two")
        self.reports_header("template <typename T>\nT* three();\n", "a.h:9: template")
        self.reports_header("using Four = int;\n\nenum class Five { kA };\n", "a.h:9:", "a.h:11:")

    def test_said(self):
        self.reports_header("// Two.\nint two();\nint three();\n\nclass Graph;\n\nint four();  // four\n\nstruct Five {\n  int x = 0;  // bytes\n};\n")
        self.reports_header("#define SS_A(x) \\\n  f(x)\n\n// A.\nclass A {\n public:\n  A();\n\n  int b();\n};\n")

    def test_head_of_the_file(self):
        self.reports("declarations", {"storage/b.h": "// A list.\n#pragma once\n\nint a();\nint b();\n\nclass B {};\n\nint c();\n"}, "b.h:9: int c")


class Names(Tree):
    def test_snake_case(self):
        self.reports("names", {"engine/ir/Graph.h": "", "views/newView/a.cpp": "", "engine/ir/edit_log2.h": "", "README.md": ""}, "Graph.h", "newView")

    def test_licences(self):
        files = {"views/log/a.h": "// nothing\n", "views/log/b.h": "// SPDX-License-Identifier: GPL-3.0-or-later\n", "engine/a.h": "//\n"}
        self.reports("licences", files, "views/log/a.h: no line")
        files = {"views/log/a.h": files["views/log/b.h"], "engine/a.h": files["views/log/b.h"]}
        self.reports("licences", files, "engine/a.h: SPDX line of GPL-3.0-or-later; expected Apache-2.0")


class Readmes(Tree):
    def reports_map(self, text, sources, *expected):
        files = {"README.md": "", "engine/README.md": README.format("engine", "`ir/`"), "engine/ir/README.md": README.format("ir", text)}
        self.reports("readmes", files | {f"engine/ir/{name}": "" for name in sources}, *expected)

    def test_missing_readme_and_part(self):
        self.reports("readmes", {"README.md": "", "storage/a.h": ""}, "storage/README.md: missing")
        self.reports("readmes", {"storage/README.md": README.format("storage", "`a`").replace("How to add", "To add")}, "no part '**How to add one.**'")

    def test_map_names_each_file_and_no_other(self):
        self.reports_map("`graph` nodes · `dim.h` extents", ["graph.h", "graph.cpp", "dim.h"])
        self.reports_map("`graph` nodes · `ghost` nothing", ["graph.h", "dim.h"], "no word on dim.h", "`ghost` is no file here")
        self.reports_map("`*` all", ["dim.h", "graph.h"], "'*' says too little")
        self.reports_map("`gra*` two", ["graph.h", "graft.h", "dim.h"], "no word on dim.h")

    def test_folders_below(self):
        self.reports_map("`small/`", ["small/a.h"])

    def test_large_folders_below(self):
        self.reports_map("`large/`", [f"large/a{i}.h" for i in range(9)], *[f"no word on large/a{i}.h" for i in range(9)])

    def test_promises_name_tests_that_exist(self):
        table = README.format("b", "`b_test`") + "\n| promise | test |\n|---|---|\n| it goes | b_test `GoesFarAway`, tst_none `GoesNowhere` |\n"
        files = {"README.md": "", "tests/README.md": README.format("tests", "`bar/`"), "tests/bar/README.md": table, "tests/bar/b_test.cpp": "TEST(A, GoesFarAway)"}
        self.reports("readmes", files, "tests/bar/README.md: promises: there is no tst_none", "promises: no test has `GoesNowhere`")

    def test_registered_ops(self):
        self.reports_map("`list` · `<op>` one op each", ["list.cpp", "exp.cpp", "helper.cpp"], "no word on exp.cpp", "no word on helper.cpp", "`<op>`")
        files = {"engine/ir/list.cpp": "", "engine/ir/ops.inc": "SS_OP(kExpOp, exp)\n", "engine/ir/exp.cpp": "", "engine/ir/helper.cpp": ""}
        self.reports("readmes", files, "no word on helper.cpp")


class Others(Tree):
    def test_top_level(self):
        self.reports("top_level", {"engine/a.h": "", "diary.txt": ""}, "diary.txt")

    def test_prose(self):
        files = {"app/workbench/a.cpp": "if (e.message.starts_with(\"run '\")) return;\nif (e.code == Code::kNotFound) return;\n"}
        files |= {"views/a/b.cpp": 'bool v = b->decision().starts_with("view");\nbool w = path.startsWith(folder);\n'}
        files |= {"engine/a.cpp": 'bool v = error.message.starts_with("a");\n'}
        files |= {"views/a/c.cpp": 'label->setText(tr("Run"));\nlabel->setText(QStringLiteral("Run"));\nstr("Run");\n'}
        self.reports("prose", files, "app/workbench/a.cpp:1:", "views/a/b.cpp:1:", "views/a/c.cpp:1:")

    def test_sizes(self):
        self.reports("sizes", {"a.h": "x" * 3_000_000, "b.h": ""}, "a.h: 3000000 bytes")
        files = {"a.h": "", "engine/step/stepper.h": "\n" * 151, "engine/step/stepper_walk.cpp": "\n" * 301, "engine/step/values.cpp": "\n" * 301}
        self.reports("sizes", files | {"engine/train/session.h": "\n" * 150}, "stepper.h: 151 lines", "stepper_walk.cpp: 301 lines")

    def test_sizes_of_the_window(self):
        window = {"app/workbench/main_window.h": "\n" * 202, "app/workbench/main_window.cpp": "\n" * 299, "app/workbench/a/b.cpp": "\n" * 301}
        self.reports("sizes", window | {"app/cli/c.cpp": "\n" * 301}, "main_window*: 501 lines", "a/b.cpp: 301 lines")

    @unittest.skipUnless(shutil.which(layout_test.CLANG_FORMAT), f"{layout_test.CLANG_FORMAT} is not installed")
    def test_format(self):
        style = (ROOT / ".clang-format").read_text()
        self.reports("format", {".clang-format": style, "a.cpp": "int  a( );\n", "b.cpp": "int b();\n"}, *["a.cpp:1:"] * 2)

    def test_views(self):
        for name in ("views/views.txt", "views/view_list.cmake", "views/README.md", "views/CMakeLists.txt", "app/workbench/CMakeLists.txt", "app/workbench/view_list.cpp"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        lines = [line.split(None, 2) for line in (ROOT / "views/views.txt").read_text().splitlines() if line and not line.startswith("#")]
        headers = {f"views/{p.split(':')[0]}/{p.split(':')[0]}_view.h": f"class {name} : public View {{}};\n" for p, name, _ in lines}
        self.reports("views", headers)
        self.reports("views", {"views/stray/stray_view.h": "class StrayView : public View {};\n"}, "views/stray: a view that no line")
        gone = next(iter(headers))
        self.reports("views", {gone: ""}, "expected class", "views/stray")


class Every(unittest.TestCase):
    def test_check_is_tested_here(self):
        told = pathlib.Path(__file__).read_text()
        for check in layout_test.CHECKS:
            self.assertIn(f'("{check}"', told.replace("reports(", "("), check)


if __name__ == "__main__":
    unittest.main()

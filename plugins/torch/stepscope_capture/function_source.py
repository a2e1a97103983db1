# SPDX-License-Identifier: Apache-2.0
"""Where the Python host finds a function: in the module that it was imported from, or in a file of definitions that the capture writes.

A script must not run again only to define a function, so of scripts and of functions that are defined inside of others the file holds what they need: the
imports, functions, classes and constants at the top of their file, and of the surrounding function the values that they use.
"""

import ast
import importlib.util
import inspect
import os
import pathlib
import sys
import textwrap

from stepscope_capture.host_nodes import CannotKeep

FILE = "functions.py"
_PLAIN = (bool, int, float, str, type(None))


class _Definition:
    """A statement at the top of a file that defines names and runs nothing else."""

    def __init__(self, node, lines):
        self.names = {a.asname or a.name.partition(".")[0] for a in getattr(node, "names", [])} if isinstance(node, (ast.Import, ast.ImportFrom)) else set()
        self.names |= {n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()
        self.names |= {a.asname or a.name.partition(".")[0] for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names} if isinstance(node, ast.Try) else set()
        self.names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Try)) else set()
        self.uses = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        self.always = isinstance(node, ast.ImportFrom) and (node.module == "__future__" or any(a.name == "*" for a in node.names))
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        self.lines = lines[first - 1 : node.end_lineno]


def _is_constant(node):
    """An assignment that calls nothing."""
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and not any(isinstance(n, (ast.Call, ast.Await)) for n in ast.walk(node.value))


def _defines(node):
    imports = isinstance(node, ast.Try) and any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in node.body)
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) or _is_constant(node) or imports


def _needed(definitions, names):
    """The definitions that `names` need, and what those need, in the order of the file."""
    wanted, kept = set(names), set()
    while True:
        more = {i for i, d in enumerate(definitions) if i not in kept and (d.always or d.names & wanted)}
        if not more:
            return [definitions[i] for i in sorted(kept)]
        kept |= more
        wanted |= set().union(*(definitions[i].uses for i in more))


class Sources:
    """The files of definitions that a folder has to have. Of each file of the user: names at its top, and the text of functions that are not there."""

    def __init__(self, folder):
        self._folder, self._files = folder, {}

    def _name(self, file):
        number = list(self._files).index(file)
        return self._folder / (FILE if number == 0 else f"functions_{number}.py")

    def add(self, file, name, inner):
        """`inner`: lines of a function that is not at the top. Returns the file that will define it."""
        names, texts = self._files.setdefault(file, (set(), {}))
        if texts.get(name, inner) != inner:
            raise CannotKeep(f"{os.path.basename(file)} has two functions of the name {name}")
        if inner:
            texts[name] = inner
        else:
            names.add(name)
        return str(self._name(file))

    def write(self):
        for file, (names, texts) in self._files.items():
            text = pathlib.Path(file).read_text(encoding="utf-8")
            inner = [line for lines in texts.values() for line in lines]
            used = {n.id for n in ast.walk(ast.parse("\n".join(inner))) if isinstance(n, ast.Name)}
            definitions = [_Definition(node, text.splitlines()) for node in ast.parse(text).body if _defines(node)]
            lines = [line for d in _needed(definitions, names | used) for line in d.lines]
            futures = [line for line in lines if line.startswith("from __future__")]
            folders = [os.path.dirname(os.path.abspath(file)), *(os.path.abspath(folder) for folder in sys.path)]  # where the user's program imports from
            head = [f"# What autograd.Functions of {file} need: written by the capture, run by Stepscope's Python host.", "import sys", f"sys.path += [folder for folder in {folders!r} if folder not in sys.path]"]
            self._name(file).write_text("\n".join([*futures, *head, *[line for line in lines if line not in futures], *inner]) + "\n", encoding="utf-8")


def _plain(value):
    return isinstance(value, _PLAIN) or isinstance(value, (list, tuple)) and all(_plain(v) for v in value)


def _surroundings(function):
    """Values of the functions around that the methods of `function` use, as assignments."""
    lines = []
    for name in ("forward", "backward", "setup_context"):
        method = inspect.unwrap(getattr(function, name))
        for free, cell in zip(getattr(method, "__code__", None) and method.__code__.co_freevars or (), method.__closure__ or ()):
            value = cell.cell_contents
            if inspect.ismodule(value):
                lines.append(f"import {value.__name__}" + ("" if value.__name__ == free else f" as {free}"))
            elif _plain(value):
                lines.append(f"{free} = {value!r}")
            elif value is function or free == "__class__":
                continue
            elif inspect.isfunction(value) and not value.__closure__ or inspect.isclass(value):
                lines += textwrap.dedent(inspect.getsource(value)).splitlines()
            else:
                raise CannotKeep(f"it uses '{free}' of the function around it, a {type(value).__name__}")
    return lines


def _importable(function):
    """(module, folder from which it is imported), or None."""
    name = function.__module__
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if name == "__main__" or file is None or "<locals>" in function.__qualname__:
        return None
    folder = pathlib.Path(file).resolve().parent
    for _ in range(name.count(".") + (pathlib.Path(file).name == "__init__.py")):
        folder = folder.parent
    relative = os.path.join(*name.split("."))
    found = [folder / f"{relative}.py", folder / relative / "__init__.py"]
    return (name, str(folder)) if any(f.is_file() for f in found) and importlib.util.find_spec(name.partition(".")[0]) is not None else None


def source_of(function, sources):
    """Attributes of a node: `call`, `file`, `module`."""
    imported = _importable(function)
    if imported is not None:
        return {"call": function.__qualname__, "module": imported[0], "file": imported[1]}
    inside = "<locals>" in function.__qualname__
    try:
        file = inspect.getsourcefile(function)
        pathlib.Path(file).read_text(encoding="utf-8")
        inner = [*_surroundings(function), *textwrap.dedent(inspect.getsource(function)).splitlines()] if inside else []
    except (OSError, TypeError, SyntaxError) as error:
        raise CannotKeep(f"its source is not known ({error})") from None
    name = function.__qualname__.rpartition("<locals>.")[2]
    return {"call": name, "module": "", "file": sources.add(file, name.partition(".")[0], inner)}

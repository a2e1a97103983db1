#!/usr/bin/env python3
"""The two C headers next to their recorded ABI, by libabigail (abidw, abidiff; Debian: abigail-tools).

    abi_baseline_test.py HEADER BASELINE.abi.xml [--write]

The header alone is compiled with -g; every struct, enum and function that it declares is in what is compared, fields that
are added at the end too. A planted change of each kind must be found, or the comparison proves nothing. Who changes the ABI
counts the minor or major version of the header up, and writes the baseline anew with --write. Exit code 77: no libabigail.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PLANTED = {
    "stepscope_plugin.h": [
        ("a wider field", "uint32_t since_version;", "uint64_t since_version;"),
        ("a field in the middle", "const char* op;\n", "const char* op;\n  int32_t planted;\n"),
        ("two fields in the other order", "uint64_t seed, step;", "uint64_t step, seed;"),
        ("another number", "SSP_ACCESS_WRITE,", "SSP_ACCESS_WRITE = 7,"),
        ("another parameter", "int32_t (*input_rank)(ssp_shape_context*, uint32_t input);",
         "int32_t (*input_rank)(ssp_shape_context*, uint64_t input);"),
    ],
    "stepscope.h": [
        ("a wider field", "int32_t dtype;", "int64_t dtype;"),
        ("a field that is gone", "double loss;", ""),
        ("another parameter", "ss_step(ss_session* session, ", "ss_step(ss_session* session, int planted, "),
    ],
}


def probe(header: str) -> str:
    """C++ that holds on to everything the header declares."""
    text = re.sub(r"//[^\n]*", "", header)
    structs = sorted(set(re.findall(r"\bstruct (\w+)\s*\{", text)) | set(re.findall(r"\}\s*(\w+);", text)))
    functions = sorted(set(re.findall(r"\bSS_API(?:_VOID)?\b[^;()]*?\b(ss_\w+)\(", text)))
    enumerators = sorted(set(re.findall(r"\benum\s*\w*\s*\{\s*(\w+)", text)))
    lines = ['extern "C" {']
    lines += [f"{name}* abi_of_{name};" for name in structs]
    lines += [f"decltype(&{name}) abi_of_{name};" for name in functions]
    lines += [f"decltype({name}) abi_of_{name};" for name in enumerators]
    if not structs or not enumerators:
        sys.exit("no structs or enums found in the header; expected both")
    return "\n".join(lines + ["}"])


def described(text: str, name: str, folder: pathlib.Path, label: str) -> pathlib.Path:
    place = folder / label
    place.mkdir()
    (place / name).write_text(text, encoding="utf-8")
    (place / "probe.cpp").write_text(f'#include "{name}"\n{probe(text)}\n', encoding="utf-8")
    subprocess.run(["c++", "-std=c++17", "-g", "-fPIC", "-shared", "-w", "probe.cpp", "-o", "probe.so"], cwd=place, check=True)
    made = place / "probe.abi.xml"
    subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-write-default-sizes",
                    "--out-file", str(made), "probe.so"], cwd=place, check=True)
    return made


def difference(a: pathlib.Path, b: pathlib.Path) -> str:
    done = subprocess.run(["abidiff", "--no-show-locs", str(a), str(b)], capture_output=True, text=True)
    if done.returncode & 3:
        sys.exit(f"abidiff: {done.stderr}")
    return done.stdout if done.returncode else ""


def main() -> int:
    header, baseline = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not (shutil.which("abidw") and shutil.which("abidiff")):
        print("skipped: no abidw and abidiff here (Debian: abigail-tools)")
        return 77
    text = header.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        now = described(text, header.name, folder, "now")
        if "--write" in sys.argv:
            shutil.copyfile(now, baseline)
            return 0
        if found := difference(baseline, now):
            print(f"{header}: the ABI differs from {baseline}; expected the same, or a newer version and --write:\n{found}")
            return 1
        for number, (what, old, new) in enumerate(PLANTED[header.name]):
            if old not in text:
                sys.exit(f"planted change '{what}': '{old}' is not in {header}; expected it there")
            if not difference(now, described(text.replace(old, new, 1), header.name, folder, f"planted{number}")):
                print(f"{what}: '{old}' became '{new}', and nothing was found; expected a difference")
                return 1
            print(f"found: {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

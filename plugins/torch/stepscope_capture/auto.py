# SPDX-License-Identifier: Apache-2.0
"""exporter="auto": one way after the other, until one exports the model and agrees with PyTorch."""

import json
import os
import pathlib
import site
import sys
import traceback

from stepscope_capture.batches import Unfit
from stepscope_capture.verify import verify

WAYS = (("dynamo", 18), ("torchscript", 17), ("torchscript", 18), ("torchscript", 20))
_FOREIGN = (os.path.dirname(os.path.abspath(__file__)), sys.prefix + os.sep + "lib", *site.getsitepackages(), "<")


_REFUSED = "the program refuses it: "


def why(error):
    """One line: what failed, in words, and the last place in the user's code that led there."""
    inner = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()] or [""]
    place = ""
    for one in (error, inner):
        for frame in traceback.extract_tb(one.__traceback__):
            if not frame.filename.startswith(_FOREIGN):
                place = f" ({frame.filename}:{frame.lineno})"
    return f"{type(inner).__name__}: {lines[0][:200]}{place}"


def _verdict(folder):
    """What `stepscope verify` says of a capture; "" where there is no such program."""
    try:
        *rows, summary = verify(folder, check=False)
    except FileNotFoundError:
        return ""
    except RuntimeError as error:
        return f"{_REFUSED}{str(error).splitlines()[0][:200]}"
    wrong = next((row for row in rows if row["verdict"] == "differs"), None)
    return "" if wrong is None else f"differs from PyTorch: {wrong['kind']} '{wrong['name']}'{'; likely: ' + wrong['cause'] if wrong['cause'] else ''}"


def capture_auto(export, folder):
    """`export(exporter, opset)` writes the folder. Returns it, with `tries` in capture.json; RuntimeError where no way works, Unfit where none can."""
    tries, exported = [], None
    for way in WAYS:
        name = f"{way[0]} at opset {way[1]}"
        try:
            export(*way)
            told = _verdict(folder)
        except Unfit:
            raise
        except Exception as error:  # noqa: BLE001  an exporter may fail in any way
            tries.append(f"{name}: {why(error)}")
            continue
        if not told:
            tries.append(f"{name}: taken")
            break
        tries.append(f"{name}: {told}")
        if not told.startswith(_REFUSED):
            exported = exported or way
    else:
        if exported is None:
            written = pathlib.Path(folder) / "capture.json"
            notes = json.loads(written.read_text(encoding="utf-8"))["notes"] if written.is_file() else []
            raise RuntimeError("no exporter writes a file that can be trained:\n  " + "\n  ".join([*tries, *(f"note: {note}" for note in notes)]))
        export(*exported)
        tries.append(f"{exported[0]} at opset {exported[1]}: taken, although it differs")
    for line in tries:
        print(f"export: {line}")
    path = pathlib.Path(folder) / "capture.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["tries"] = tries
    path.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return pathlib.Path(folder)

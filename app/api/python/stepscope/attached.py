"""The loop of this script, offered to a window: `stepscope open --attach PID` on the same machine, by the same user."""

from __future__ import annotations

import ctypes
import linecache
import os
import sys
import sysconfig
from typing import Any, Optional

from . import Session
from . import library as _c

# Code of which lines are no places: of Python, of packages, and of this one.
_FOREIGN = tuple(os.path.join(p, "") for p in {*sysconfig.get_paths().values(), os.path.dirname(os.path.abspath(__file__))} if p) + ("<",)


def attach(*what: Any, path: "str | os.PathLike | None" = None) -> str:
    """Lets a window look at the passes of these modules (stepscope.Module) and sessions (forward() and backward()) and hold them; the script
    waits while they are held. Returns the path of the socket. Without a window nothing changes and nothing waits; when the window goes, all goes on.

    path    of the socket; None: PID.sock in $XDG_RUNTIME_DIR/stepscope or /tmp/stepscope-UID. There is one for a process.
    """
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
    _c.library.attach_open(None if path is None else os.fsencode(path), script.encode(errors="replace"))
    for one in what:
        if isinstance(one, Session):
            _c.library.attach(one._session())
        elif hasattr(one, "stepscope_attach"):
            one.stepscope_attach()
        else:
            raise TypeError(f"attach: {type(one).__name__}; expected a stepscope.Module or a session")
    found = ctypes.c_char_p()
    _c.library.attach_path(ctypes.byref(found))
    return os.fsdecode(found.value or b"")


def wanted() -> Optional[str]:
    """What $STEPSCOPE_ATTACH asks for: None for nothing, "" for the usual place, else a path."""
    asked = os.environ.get("STEPSCOPE_ATTACH", "")
    return None if asked in ("", "0") else "" if asked == "1" else asked


def steps() -> bool:
    """Whether a window holds the loop, so that places between two passes may hold it too."""
    found = ctypes.c_int32()
    _c.library.attach_steps(ctypes.byref(found))
    return bool(found.value)


def place(what: str) -> None:
    """What the script is about to do between two passes; it waits here while the window steps."""
    _c.library.attach_place(what.encode(errors="replace"))


def _own(name: str) -> bool:
    """Whether a file is the script's own code."""
    return not name.startswith(_FOREIGN) and "stepscope_capture" not in name


def rest() -> None:
    """Before a pass: its instructions are the places."""
    if sys.gettrace() is _line:
        sys.settrace(None)


def follow() -> None:
    """From here on each line of the script's own code is a place, until the window lets the loop go on; where a debugger traces, none is."""
    if sys.gettrace() is not None or not steps():
        return
    frame = sys._getframe(1)
    while frame is not None:
        if _own(frame.f_code.co_filename):
            frame.f_trace = _line
        frame = frame.f_back
    sys.settrace(_line)


def _line(frame: Any, event: str, _: Any) -> Any:
    """A function of sys.settrace."""
    name = frame.f_code.co_filename
    if not _own(name):
        return None
    if event == "line":
        if not steps():
            sys.settrace(None)
            return None
        place(f"{os.path.basename(name)}:{frame.f_lineno}: {linecache.getline(name, frame.f_lineno).strip()}")
    return _line


def detach() -> None:
    """Closes the place: the window is told, and what it holds goes on."""
    _c.library.attach_close()

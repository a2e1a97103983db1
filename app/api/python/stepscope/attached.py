"""The loop of this script, offered to a window: `stepscope open --attach PID` on the same machine, by the same user."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Optional

from . import Session
from . import library as _c


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


def detach() -> None:
    """Closes the place: the window is told, and what it holds goes on."""
    _c.library.attach_close()

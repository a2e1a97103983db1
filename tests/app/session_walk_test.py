#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the walk of a model through open, build and step comes back to Session: at most a dozen times, counted by gdb.

    session_walk_test.py STEPSCOPE ROOT

Session joins builder, stepper and state (DESIGN.md); work that goes through it again and again belongs to one of them. Counted are calls of
its functions by anything else, and of what it handed on to be called back. Exit code 77 where there is no gdb.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MOST = 12
SCRIPT = """set pagination off
set confirm off
rbreak ^stepscope::Session::[a-zA-Z]*
commands
silent
bt 2
cont
end
rbreak _Function_handler<.*stepscope::Session::.*_M_invoke
commands
silent
echo called back\\n
bt 1
cont
end
run train MODEL --data DATA --steps 1
quit
"""


def main():
    stepscope, root = sys.argv[1], pathlib.Path(sys.argv[2])
    if not shutil.which("gdb"):
        print("skipped: no gdb")
        sys.exit(77)
    sample = root / "app/samples/digits"
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write(SCRIPT.replace("MODEL", str(sample / "model.onnx")).replace("DATA", str(sample / "batches.npz")))
        script.flush()
        told = subprocess.run(["gdb", "-q", "-batch", "-x", script.name, stepscope], capture_output=True, text=True, timeout=280).stdout
    if "ptrace: Operation not permitted" in told:
        print("skipped: gdb may not watch a process here")
        sys.exit(77)
    pairs = re.findall(r"^#0 +(?:0x[0-9a-f]+ in )?(.*)\n#1 +(?:0x[0-9a-f]+ in )?(.*)$", told, re.M)
    name = re.compile(r"stepscope::Session::(~?\w+)")
    entered = [name.match(inner)[1] for inner, outer in pairs if name.match(inner) and not name.match(outer)]
    called_back = told.count("called back\n")
    returns = [function for function in entered if not function.startswith("~")]
    print(f"{len(returns)} calls of Session: {', '.join(returns)}; {called_back} calls back; at most {MOST} together")
    if "step" not in returns or "open" not in returns:
        sys.exit(f"the walk was not seen to its end:\n{told[-2000:]}")
    sys.exit(0 if len(returns) + called_back <= MOST else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every fault that the name of the emulated device can order, through the command line: the error says what failed, the exit code is 1, and the
steps that were finished before it are in the project, which says how the run ended.

    device_faults_test.py STEPSCOPE SAMPLES_FOLDER
"""

import json
import pathlib
import subprocess
import sys
import tempfile

# Orders of the device; what the error says; whether steps were finished.
FAULTS = [
    ("no-device", "no GPU was found", False),
    ("old-driver", "the driver knows CUDA 11.4; expected 12.0 or newer", False),
    ("fail-allocation=1", "allocation 1 of ", False),
    ("fail-allocation=5", "allocation 5 of ", False),
    ("memory=60000", "expected at most 60000 bytes, the memory that it has free", False),
    ("fail-launch=70", "launch 70 (kernel '", True),
    ("streams=eager,fail-launch=71", "launch 71 (kernel '", True),
    ("lose-device=72", "the device is lost since launch 72", True),
]


def expect(holds, what):
    if not holds:
        sys.exit(f"expected {what}")


def check(stepscope, model, folder, orders, text, steps_before):
    project = folder / "run.stepscope"
    command = [stepscope, "train", model / "model.onnx", "--data", model / "batches.npz", "--steps", 20, "--device", f"emulated:{orders}", "--project", project, "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    events = [json.loads(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    expect(done.returncode == 1, f"{orders}: exit code 1, found {done.returncode}: {done.stderr[-300:]}")
    error = events[-1]
    expect(error["event"] == "error", f"{orders}: an error at the end, found {error}")
    expect(text in error["message"] and f"emulated:{orders}" in error["message"], f"{orders}: '{text}' and the device, found {error['message']}")
    steps = [event["step"] for event in events if event["event"] == "step"]
    expect((len(steps) > 0) == steps_before, f"{orders}: {'some' if steps_before else 'no'} finished steps, found {steps}")
    if steps_before:
        expect("; called with float32 [" in error["message"] and "[32, " in error["message"], f"{orders}: the shapes of the node, found {error['message']}")
    if not project.exists():
        expect(not steps_before, f"{orders}: a project")
        return
    kept = subprocess.run([stepscope, "sql", project, "--json", "SELECT (SELECT group_concat(step) FROM steps) AS steps, (SELECT status FROM runs) AS status"],
                          capture_output=True, text=True, check=True).stdout
    row = [json.loads(line) for line in kept.splitlines() if '"row"' in line][0]
    text = json.dumps(row)
    expect('"failed"' in text, f"{orders}: a run that has failed, found {text}")
    expect(not steps or f'"{",".join(map(str, steps))}"' in text, f"{orders}: the steps {steps} in the project, found {text}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = pathlib.Path(sys.argv[2]) / "digits"
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as name:
            check(sys.argv[1], model, pathlib.Path(name), *fault)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What the tests here need, imported first: the package from the tree, and torch and onnx, else the test ends with 77 and says why."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
try:
    import onnx  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}; needs torch and onnx")
    sys.exit(77)
try:
    import onnxscript  # noqa: F401  the dynamo exporter is written on it

    EXPORTERS = ("torchscript", "dynamo")
except ImportError:
    EXPORTERS = ("torchscript",)

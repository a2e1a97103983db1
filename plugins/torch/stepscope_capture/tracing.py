# SPDX-License-Identifier: Apache-2.0
"""The forward pass that is being traced: the mode (meaning.py) that sees its functions."""

_MODES = []


def begin(mode):
    _MODES.append(mode)


def end():
    _MODES.pop()


def current():
    """The mode of the forward pass that is being traced, or None."""
    return _MODES[-1] if _MODES else None

# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch's table that are neither exported nor kept so that they agree: {name, or (name, exporter): (what is found, why)}."""

OTHERWISE = {}

# SPDX-License-Identifier: Apache-2.0
"""Diagonals as slices and selections. Exporters multiply with a mask, which makes NaN of an infinity beside the diagonal, lack diag() and trace(), and lose
what is written through the view that diagonal() returns."""

import torch


def _layout(x, offset, dim1, dim2):
    """(the axes with those of the matrices last, rows, columns, elements of the diagonal)"""
    rank = x.dim()
    dim1, dim2 = dim1 % rank, dim2 % rank
    rows, columns = int(x.shape[dim1]), int(x.shape[dim2])
    axes = [axis for axis in range(rank) if axis not in (dim1, dim2)] + [dim1, dim2]
    return axes, rows, columns, max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def diagonal(x, offset=0, dim1=0, dim2=1):
    axes, _, columns, count = _layout(x, offset, dim1, dim2)
    if not count or not isinstance(x, torch.Tensor):
        return NotImplemented
    first = offset if offset >= 0 else -offset * columns
    return x.permute(axes).flatten(-2)[..., first : first + (count - 1) * (columns + 1) + 1 : columns + 1]


def with_diagonal(x, value, offset=0, dim1=0, dim2=1):
    """x with other elements on that diagonal."""
    axes, rows, columns, count = _layout(x, offset, dim1, dim2)
    row, column = torch.arange(rows).unsqueeze(1), torch.arange(columns)
    number = (row + min(offset, 0)).clamp(0, max(count - 1, 0)).expand(rows, columns)  # which element of the diagonal is in that row
    moved = torch.where(column - row == offset, value[..., number], x.permute(axes))
    return moved.permute([axes.index(axis) for axis in range(x.dim())])


def _embed(value, offset=0, dim1=-2, dim2=-1):
    size, rank = int(value.shape[-1]) + abs(offset), value.dim() + 1
    shape = list(value.shape[:-1])
    for axis in sorted((dim1 % rank, dim2 % rank)):
        shape.insert(axis, size)
    return with_diagonal(torch.zeros(shape, dtype=value.dtype), value, offset, dim1, dim2)


def _diag(x, diagonal_=0):
    return diagonal(x, diagonal_) if x.dim() == 2 else _embed(x, diagonal_)


NATIVES = {
    "diagonal": lambda make, x, offset=0, dim1=0, dim2=1: diagonal(x, offset, dim1, dim2),
    "linalg_diagonal": lambda make, A, *, offset=0, dim1=-2, dim2=-1: diagonal(A, offset, dim1, dim2),
    "diag": lambda make, x, diagonal=0: _diag(x, diagonal),
    "diag_embed": lambda make, x, offset=0, dim1=-2, dim2=-1: _embed(x, offset, dim1, dim2),
    "trace": lambda make, x: diagonal(x).sum() if x.shape[0] and x.shape[1] else NotImplemented,
}

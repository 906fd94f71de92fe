"""Convolution and its gradients in numpy: unfold, multiply, fold. Not torch, on purpose.

In fp64 every integer result of the suite is exact, whatever the order of additions: the
certificate of `inputs.py` keeps the sum of the terms' magnitudes below 2^53. The same code
gives the reference of real-valued trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.suites.conv.geometry import DATA, FORWARD, Geometry

NDArray = npt.NDArray[Any]


def convolve(g: Geometry, direction: str, a: NDArray, b: NDArray) -> NDArray:
    """Compute one direction in the type of its operands, NCHW.

    F reads (x, w), B reads (dy, w), W reads (x, dy).
    """
    if direction == FORWARD:
        return _forward(g, a, b)
    return _data(g, a, b) if direction == DATA else _weights(g, a, b)


def _forward(g: Geometry, x: NDArray, w: NDArray) -> NDArray:
    filters = w.reshape(g.groups, g.k // g.groups, -1)
    out = np.empty((g.n, g.groups, g.k // g.groups, g.out[0] * g.out[1]), dtype=x.dtype)
    for n, columns in enumerate(unfolded(g, x)):
        np.matmul(filters, columns, out=out[n])
    return out.reshape(g.y)


def _weights(g: Geometry, x: NDArray, dy: NDArray) -> NDArray:
    total = np.zeros((g.groups, g.k // g.groups, g.c // g.groups * g.r * g.s), dtype=x.dtype)
    slopes = dy.reshape(g.n, g.groups, g.k // g.groups, -1)
    for n, columns in enumerate(unfolded(g, x)):
        total += np.matmul(slopes[n], columns.transpose(0, 2, 1))
    return total.reshape(g.weights)


def _data(g: Geometry, dy: NDArray, w: NDArray) -> NDArray:
    filters = w.reshape(g.groups, g.k // g.groups, -1).transpose(0, 2, 1)
    slopes = dy.reshape(g.n, g.groups, g.k // g.groups, -1)
    out = np.zeros((g.n, g.c, g.h + 2 * g.pad[0], g.w + 2 * g.pad[1]), dtype=dy.dtype)
    for n in range(g.n):
        columns = np.matmul(filters, slopes[n]).reshape(g.c, g.r, g.s, *g.out)
        for r, s, rows, cols in taps(g):
            out[n, :, rows, cols] += columns[:, r, s]
    return out[:, :, g.pad[0] : g.pad[0] + g.h, g.pad[1] : g.pad[1] + g.w]


def taps(g: Geometry) -> Iterator[tuple[int, int, slice, slice]]:
    """Return for each tap of the filter the rows and columns of the padded input it meets."""
    for r in range(g.r):
        for s in range(g.s):
            top, left = r * g.dilation[0], s * g.dilation[1]
            rows = slice(top, top + (g.out[0] - 1) * g.stride[0] + 1, g.stride[0])
            cols = slice(left, left + (g.out[1] - 1) * g.stride[1] + 1, g.stride[1])
            yield r, s, rows, cols


def unfolded(g: Geometry, x: NDArray) -> Iterator[NDArray]:
    """Return per image the matrix whose columns are the windows: groups, c/g*r*s, positions."""
    for image in x:
        padded = np.pad(image, ((0, 0), (g.pad[0], g.pad[0]), (g.pad[1], g.pad[1])))
        columns = np.empty((g.c, g.r, g.s, *g.out), dtype=x.dtype)
        for r, s, rows, cols in taps(g):
            columns[:, r, s] = padded[:, rows, cols]
        yield columns.reshape(g.groups, g.c // g.groups * g.r * g.s, -1)

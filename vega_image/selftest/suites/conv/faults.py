"""What a convolution kernel computes when one thing in it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vega_image.selftest.seam import Array
from vega_image.selftest.suites import rng
from vega_image.selftest.suites.arrays import decode, encode, rounded
from vega_image.selftest.suites.conv.exact import convolve
from vega_image.selftest.suites.conv.geometry import DATA, FORWARD, WEIGHTS, Geometry
from vega_image.selftest.suites.conv.oracle import ConvOracle

NDArray = npt.NDArray[Any]
GARBAGE = 0.01
RGB = 3
CHUNK = 8
"""How many products a short accumulator takes before it is rounded."""


@dataclass(frozen=True)
class Setting:
    """One computation that a fault may spoil; `name` seeds whatever the fault may choose."""

    g: Geometry
    direction: str
    a: NDArray
    b: NDArray
    dtype: str
    name: str

    def run(self, a: NDArray, b: NDArray) -> NDArray:
        """Compute rightly on other operands."""
        return convolve(self.g, self.direction, a, b)

    @property
    def right(self) -> NDArray:
        """The right result."""
        return np.ascontiguousarray(self.run(self.a, self.b))

    def chosen(self, count: int, what: str = "") -> int:
        """Return a number below `count` that belongs to this setting."""
        return rng.seed_of(f"{self.name}/{what}") % count


Fault = Callable[[Setting], NDArray]


def plant_conv(
    fault: str, oracle: ConvOracle, outputs: Mapping[str, Array], *, name: str
) -> Mapping[str, Array]:
    """Return the outputs with a fault, guard included; the same bytes where it has no power."""
    found = dict(outputs)
    for output, a, b in (("y", "a", "b"), ("guard", "a_guard", "b_guard")):
        if output not in outputs:
            continue
        left, right = decode(oracle.inputs[a]), decode(oracle.inputs[b])
        setting = Setting(oracle.geometry, oracle.direction, left, right, oracle.dtype, name)
        with np.errstate(invalid="ignore", over="ignore"):
            spoiled = rounded(CONV_FAULTS[fault](setting), oracle.dtype)
            changed = spoiled != rounded(setting.right, oracle.dtype)
        # What the fault does not touch stays as the device gave it.
        kept = np.where(changed, spoiled, decode(outputs[output]))
        found[output] = encode(kept, oracle.dtype) if changed.any() else outputs[output]
    return found


def _wrong_c3(s: Setting) -> NDArray:
    """Read the three channels of the input in the wrong order, with the last row left out."""
    if s.g.c != RGB or s.g.groups != 1:
        return s.right
    if s.direction == WEIGHTS:
        x = np.roll(s.a, 1, axis=1)
        x[:, :, -1] = 0.0
        return s.run(x, s.b)
    if s.direction == FORWARD:
        return s.run(np.roll(s.a, 1, axis=1), s.b)
    return np.roll(s.right, 1, axis=1)


def _swapped(s: Setting) -> NDArray:
    """Write two channels (filters, for gradients of weights) to each other's places."""
    y = s.right
    axis = 0 if s.direction == WEIGHTS else 1
    if y.shape[axis] < 2:  # noqa: PLR2004 - nothing to swap
        return y
    first = s.chosen(y.shape[axis])
    order = np.arange(y.shape[axis])
    second = (first + 1) % y.shape[axis]
    order[first], order[second] = second, first
    return np.take(y, order, axis=axis)


def _zeroed(s: Setting) -> NDArray:
    y = s.right
    axis = 1
    index: list[Any] = [slice(None)] * y.ndim
    index[axis] = s.chosen(y.shape[axis])
    y[tuple(index)] = 0.0
    return y


def _filters(s: Setting, change: Callable[[NDArray], NDArray]) -> NDArray:
    if s.direction == WEIGHTS:
        return change(s.right)
    return s.run(s.a, change(s.b))


def _transposed(s: Setting) -> NDArray:
    if s.g.r != s.g.s:
        return s.right
    return _filters(s, lambda w: np.ascontiguousarray(np.swapaxes(w, 2, 3)))


def _flipped(s: Setting) -> NDArray:
    return _filters(s, lambda w: np.ascontiguousarray(w[:, :, ::-1, ::-1]))


def _shifted(s: Setting) -> NDArray:
    """Begin one column too early: what was the border is read, or written, one off."""
    if s.direction == DATA:
        return _moved(s.right)
    return s.run(_moved(s.a), s.b)


def _moved(x: NDArray) -> NDArray:
    out = np.zeros_like(x)
    out[:, :, :, 1:] = x[:, :, :, :-1]
    return out


def _last_tile(s: Setting) -> NDArray:
    y = s.right
    flat = y.reshape(-1)
    flat[-min(64, max(1, flat.size // 2)) :] = 0.0
    return y


def _k_tail(s: Setting) -> NDArray:
    """Leave out the last of the terms that each result sums over."""
    a, b = s.a.copy(), s.b.copy()
    if s.direction == FORWARD:
        b[:, -1, -1, -1] = 0.0
    elif s.direction == DATA:
        b[-1] = 0.0
    else:
        b[-1, :, -1] = 0.0
    return s.run(a, b)


def _internal(dtype: str) -> Fault:
    return lambda s: s.run(rounded(s.a, dtype), rounded(s.b, dtype))


def _short_sums(s: Setting) -> NDArray:
    """Round the running sum to fp16 after every few terms."""
    total = np.zeros(s.g.result(s.direction))
    for part in _parts(s):
        total = rounded(total + rounded(part, "fp16"), "fp16")
    return total


def _parts(s: Setting) -> list[NDArray]:
    g, parts = s.g, []
    if s.direction == WEIGHTS:
        rows = max(1, CHUNK // g.out[1])
        for image in range(g.n):
            for row in range(0, g.out[0], rows):
                slopes = np.zeros_like(s.b[image : image + 1])
                slopes[:, :, row : row + rows] = s.b[image : image + 1, :, row : row + rows]
                one = replace(g, n=1)
                parts.append(convolve(one, WEIGHTS, s.a[image : image + 1], slopes))
        return parts
    axis, size = (1, g.c // g.groups) if s.direction == FORWARD else (0, g.k)
    step = max(1, CHUNK // g.s)
    for first in range(0, size, step):
        for row in range(g.r):
            kept = np.zeros_like(s.b)
            index = [slice(None), slice(None), slice(row, row + 1), slice(None)]
            index[axis] = slice(first, first + step)
            kept[tuple(index)] = s.b[tuple(index)]
            parts.append(s.run(s.a, kept))
    return parts


def _stale(s: Setting) -> NDArray:
    """End with a tile of what an earlier problem left in the workspace."""
    y = s.right
    flat = y.reshape(-1)
    tile = min(64, max(1, flat.size // 2))
    spread = float(np.abs(flat).max()) or 1.0
    flat[-tile:] += rng.integers(rng.seed_of(f"{s.name}/stale"), 3, (tile,)) * spread / 4
    return y


def _lost(s: Setting) -> NDArray:
    """Lose one product of one element, as a race of two additions does."""
    y = s.right
    for attempt in range(64):
        place = tuple(s.chosen(size, f"{attempt}/{i}") for i, size in enumerate(y.shape))
        term = _term(s, place)
        if term:
            y[place] -= term
            return y
    return y


def _term(s: Setting, place: tuple[int, ...]) -> float:
    """Return the largest product that goes into an element."""
    only = np.zeros(s.g.result(s.direction))
    only[place] = 1.0
    g = s.g
    if s.direction == FORWARD:
        x = s.a * 1.0
        reach = convolve(g, DATA, only, s.b)
        return float(_largest(x * reach))
    if s.direction == DATA:
        reach = convolve(g, FORWARD, only, s.b)
        return float(_largest(s.a * reach))
    reach = convolve(g, FORWARD, s.a, only)
    return float(_largest(s.b * reach))


def _largest(products: NDArray) -> float:
    flat = products.reshape(-1)
    return float(flat[int(np.argmax(np.abs(flat)))])


def _padding(value: float) -> Fault:
    """Read something else than zero around the input; write it from there for B."""

    def fault(s: Setting) -> NDArray:
        if not any(s.g.pad):
            return s.right
        if s.direction == DATA:
            return _border(s, value)
        g = s.g
        p, q = g.pad
        padded = np.full((g.n, g.c, g.h + 2 * p, g.w + 2 * q), value)
        padded[:, :, p : p + g.h, q : q + g.w] = s.a
        wide = replace(g, h=g.h + 2 * p, w=g.w + 2 * q, pad=(0, 0))
        return convolve(wide, s.direction, padded, s.b)

    return fault


def _border(s: Setting, value: float) -> NDArray:
    """Add what lies beyond the slopes' edge: each border element meets one stray product."""
    y = s.right
    stray = value * (float(np.abs(s.b).max()) or 1.0)
    y[:, :, 0] += stray
    y[:, :, -1] += stray
    return y


def _undilated(s: Setting) -> NDArray:
    if s.g.dilation == (1, 1):
        return s.right
    p = tuple(
        pad - (d - 1) * (f - 1) // 2
        for pad, d, f in zip(s.g.pad, s.g.dilation, (s.g.r, s.g.s), strict=False)
    )
    near = replace(s.g, dilation=(1, 1), pad=(max(0, p[0]), max(0, p[1])))
    if near.out != s.g.out:
        return _packed(s)
    return convolve(near, s.direction, s.a, s.b)


def _packed(s: Setting) -> NDArray:
    """Read the taps side by side where the padding does not allow the same output."""
    near = replace(s.g, dilation=(1, 1))
    size = [slice(0, n) for n in s.g.out]
    if s.direction == FORWARD:
        return convolve(near, FORWARD, s.a, s.b)[:, :, size[0], size[1]].copy()
    slopes = s.b if s.direction == WEIGHTS else s.a
    wide = np.zeros(near.y)
    wide[:, :, size[0], size[1]] = slopes
    pair = (s.a, wide) if s.direction == WEIGHTS else (wide, s.b)
    return convolve(near, s.direction, *pair)


def _mixed_groups(s: Setting) -> NDArray:
    """Take every group's operand from the next group."""
    g = s.g
    if g.groups == 1:
        return s.right
    if s.direction == DATA:
        return s.run(np.roll(s.a, g.k // g.groups, axis=1), s.b)
    return s.run(np.roll(s.a, g.c // g.groups, axis=1), s.b)


CONV_FAULTS: Mapping[str, Fault] = {
    "wrong-c3-wgrad": _wrong_c3,
    "swapped-channels": _swapped,
    "zeroed-channel": _zeroed,
    "filter-transposed": _transposed,
    "filter-flipped": _flipped,
    "pad-off-by-one": _shifted,
    "last-tile-dropped": _last_tile,
    "k-tail-dropped": _k_tail,
    "fp16-accumulation": _short_sums,
    "fp16-internal": _internal("fp16"),
    "bf16-internal": _internal("bf16"),
    "stale-workspace": _stale,
    "lost-update": _lost,
    "nan-in-padding": _padding(float("nan")),
    "garbage-in-padding": _padding(GARBAGE),
    "dilation-ignored": _undilated,
    "groups-mixed": _mixed_groups,
}

"""A convolution problem by the roles of its numbers, and MIOpen's key for it.

Grammar: MIOpen 3.5.1, src/problem_description.cpp. In B and W keys the output side (dy) is
written first: sizes, layouts, data types and casts alike. The key of a `Problem` is made of
its roles again, so what `parse_key` accepts comes back byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeVar

T = TypeVar("T")

DIRECTIONS = ("F", "B", "W")
DTYPES = ("FP32", "FP16", "BF16", "INT8", "INT32", "FP64", "FP8", "BF8")
LAYOUTS = {
    2: ("NCHW", "NHWC", "CHWN", "NCHWc4", "NCHWc8", "CHWNc4", "CHWNc8"),
    3: ("NCDHW", "NDHWC"),
}
BYTES = {"FP64": 8, "FP32": 4, "INT32": 4, "FP16": 2, "BF16": 2}
PLANE, SPACE = 2, 3
THREE = 3
REMEMBERED = 4096

_SIZE = "[1-9][0-9]{0,17}"
_PAD = f"(?:0|{_SIZE})"
_DTYPE = f"(?:{'|'.join(DTYPES)})"


class FormError(ValueError):
    """A text is not of the grammar; `column` (from 1) is where it stops being so."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One convolution in one direction; sizes are (height, width) or (depth, height, width).

    x is the input, w the weights (k filters), y the output, whatever the direction computes:
    F computes y, B the gradient of x, W the gradient of w. Channels are totals over groups.
    """

    direction: str
    batch: int
    x_channels: int
    x_size: tuple[int, ...]
    y_channels: int
    y_size: tuple[int, ...]
    filter: tuple[int, ...]
    pads: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    bias: int = 0
    x_dtype: str = "FP32"
    w_dtype: str = "FP32"
    y_dtype: str = "FP32"
    x_layout: str = "NCHW"
    w_layout: str = "NCHW"
    y_layout: str = "NCHW"
    x_cast: str | None = None
    w_cast: str | None = None
    y_cast: str | None = None

    @property
    def dims(self) -> int:
        """Return 2 for images, 3 for volumes."""
        return len(self.x_size)

    @property
    def x_depth(self) -> int | None:
        """Return the depth of the input; None in 2-D."""
        return self.x_size[0] if self.dims == SPACE else None

    @property
    def x_height(self) -> int:
        """Return the height of the input."""
        return self.x_size[-2]

    @property
    def x_width(self) -> int:
        """Return the width of the input."""
        return self.x_size[-1]

    @property
    def y_depth(self) -> int | None:
        """Return the depth of the output; None in 2-D."""
        return self.y_size[0] if self.dims == SPACE else None

    @property
    def y_height(self) -> int:
        """Return the height of the output."""
        return self.y_size[-2]

    @property
    def y_width(self) -> int:
        """Return the width of the output."""
        return self.y_size[-1]

    @property
    def dtype(self) -> str:
        """Return the data type as the key writes it: one name, or three joined."""
        first, last = self._sides(self.x_dtype, self.y_dtype)
        return first if first == self.w_dtype == last else f"{first}{self.w_dtype}{last}"

    @property
    def layout(self) -> str:
        """Return the layout as the key writes it: the default one, or all three."""
        default = LAYOUTS[self.dims][0]
        first, last = self._sides(self.x_layout, self.y_layout)
        same = first == self.w_layout == last == default
        return default if same else f"{first}-{self.w_layout}-{last}"

    @property
    def expected_y_size(self) -> tuple[int, ...]:
        """Return the output's size as it follows from the input and the window."""
        sizes = zip(
            self.x_size, self.filter, self.pads, self.strides, self.dilations, strict=True
        )
        return tuple(
            (x + 2 * pad - step * (f - 1) - 1) // stride + 1
            for x, f, pad, stride, step in sizes
        )

    @property
    def impossible(self) -> str:
        """Say why no convolution has these sizes; "" where one may."""
        if self.x_channels % self.groups or self.y_channels % self.groups:
            channels = f"{self.x_channels} and {self.y_channels} channels"
            return f"{channels} do not divide into {self.groups} groups"
        if self.expected_y_size == self.y_size:
            return ""
        what = f"the output is {_by(self.y_size)}, but {_by(self.expected_y_size)} follows"
        return f"{what} from the input (in B and W keys the output stands first)"

    @property
    def macs(self) -> int:
        """Return the multiply-adds of one run, the same in every direction."""
        window = self.x_channels // self.groups * prod(self.filter)
        return self.batch * self.y_channels * prod(self.y_size) * window

    @property
    def first_layer_rgb(self) -> bool:
        """Whether this is a network's first layer on colour images (x has 3 channels)."""
        return self.x_channels == 3  # noqa: PLR2004 - red, green, blue

    @property
    def key(self) -> str:
        """Return MIOpen's key."""
        first, last = self._sides(
            (self.x_channels, *self.x_size), (self.y_channels, *self.y_size)
        )
        numbers = (*first, _by(self.filter), *last, self.batch)
        window = (_by(self.pads), _by(self.strides), _by(self.dilations))
        fields = (*numbers, *window, self.bias, self.layout, self.dtype, self.direction)
        return "-".join(map(str, fields)) + self._options()

    def _options(self) -> str:
        first, last = self._sides(self.x_cast, self.y_cast)
        casts = (("ci", first), ("cw", self.w_cast), ("co", last))
        grouped = f"_g{self.groups}" if self.groups != 1 else ""
        return grouped + "".join(f"_{name}{cast}" for name, cast in casts if cast)

    def _sides(self, x: T, y: T) -> tuple[T, T]:
        return (x, y) if self.direction == "F" else (y, x)


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


@lru_cache(maxsize=REMEMBERED)
def parse_key(text: str) -> Problem:
    """Read a key.

    Raises FormError for what MIOpen would not write: no guess is made.

    >>> parse_key("64-112-112-7x7-3-224-224-32-3x3-2x2-1x1-0-NCHW-FP32-W").x_channels
    3
    """
    return _problem(_matched(text))


@dataclass(frozen=True, slots=True)
class Sort:
    """What is counted of a problem; each field is the `Problem`'s of that name."""

    direction: str
    dtype: str
    layout: str
    dims: int
    groups: int
    first_layer_rgb: bool


def parse_sort(text: str) -> Sort:
    """Read of a key what is counted, in a third of `parse_key`'s time; raises FormError."""
    match = _matched(text)
    x = "first" if match["direction"] == "F" else "last"
    return Sort(
        direction=match["direction"],
        dtype=match["dtype"],
        layout=match["layout"],
        dims=match["filter"].count("x") + 1,
        groups=int(match["groups"] or 1),
        first_layer_rgb=match[x].startswith("3-"),
    )


def check_key(text: str) -> None:
    """Raise FormError for what `parse_key` would not read."""
    _matched(text)


def _matched(text: str) -> re.Match[str]:
    match = _pattern(PLANE).fullmatch(text) or _pattern(SPACE).fullmatch(text)
    if match is None:
        raise _form_error(text)
    if "-" in match["layout"] or len(match["dtype"]) > max(map(len, DTYPES)):
        _refuse_long_forms(match)
    return match


def _refuse_long_forms(match: re.Match[str]) -> None:
    """Raise FormError where three equal names stand for one: MIOpen never writes that."""
    dtypes = re.findall(_DTYPE, match["dtype"])
    if len(dtypes) == THREE and len(set(dtypes)) == 1:
        msg = f"MIOpen writes three equal data types as {dtypes[0]}, and finds nothing else"
        raise FormError(msg, match.start("dtype") + 1)
    layouts = match["layout"].split("-")
    if len(layouts) == THREE and {*layouts} <= {"NCHW", "NCDHW"}:
        msg = f"MIOpen writes three default layouts as {layouts[0]}, and finds nothing else"
        raise FormError(msg, match.start("layout") + 1)


def _problem(match: re.Match[str]) -> Problem:
    swap = match["direction"] != "F"

    def sides(first: T, last: T) -> tuple[T, T]:
        return (last, first) if swap else (first, last)

    x, y = sides(_numbers(match["first"], "-"), _numbers(match["last"], "-"))
    layouts, dtypes = _layouts(match["layout"]), _dtypes(match["dtype"])
    (x_layout, y_layout), (x_dtype, y_dtype) = (
        sides(layouts[0], layouts[2]),
        sides(dtypes[0], dtypes[2]),
    )
    x_cast, y_cast = sides(match["ci"], match["co"])
    return Problem(
        direction=match["direction"],
        batch=int(match["batch"]),
        x_channels=x[0],
        x_size=x[1:],
        y_channels=y[0],
        y_size=y[1:],
        filter=_numbers(match["filter"], "x"),
        pads=_numbers(match["pads"], "x"),
        strides=_numbers(match["strides"], "x"),
        dilations=_numbers(match["dilations"], "x"),
        groups=int(match["groups"] or 1),
        bias=int(match["bias"]),
        x_dtype=x_dtype,
        w_dtype=dtypes[1],
        y_dtype=y_dtype,
        x_layout=x_layout,
        w_layout=layouts[1],
        y_layout=y_layout,
        x_cast=x_cast,
        w_cast=match["cw"],
        y_cast=y_cast,
    )


@lru_cache(maxsize=REMEMBERED)
def _layouts(text: str) -> tuple[str, ...]:
    names = text.split("-")
    return tuple(names if len(names) > 1 else names * THREE)


@lru_cache(maxsize=REMEMBERED)
def _dtypes(text: str) -> tuple[str, ...]:
    names = re.findall(_DTYPE, text)
    return tuple(names if len(names) > 1 else names * THREE)


def _numbers(text: str, mark: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(mark)))


def _form_error(text: str) -> FormError:
    """Say how far the text is a key, by the number of dimensions that gets farther."""
    column, wanted = max(_reach(text, dims) for dims in (PLANE, SPACE))
    return FormError(f"expected {wanted}", column)


def _reach(text: str, dims: int) -> tuple[int, str]:
    at = 0
    for wanted, pattern in _parts(dims):
        match = re.compile(pattern).match(text, at)
        if match is None:
            return at + 1, wanted
        at = match.end()
    return at + 1, "the end of the key, or _gN with N above 1, _ciT, _cwT, _coT in this order"


@lru_cache(maxsize=2)
def _pattern(dims: int) -> re.Pattern[str]:
    return re.compile("".join(pattern for _, pattern in _parts(dims)))


def _parts(dims: int) -> tuple[tuple[str, str], ...]:
    """Return (what stands here, pattern) from left to right."""
    default = LAYOUTS[dims][0]
    one = f"(?:{'|'.join(LAYOUTS[dims])})"
    layouts = f"{one}(?:-{one}){{2}}|{default}"
    sizes = f"{_SIZE}(?:-{_SIZE}){{{dims}}}"
    box = f"{_SIZE}(?:x{_SIZE}){{{dims - 1}}}"
    pads = f"{_PAD}(?:x{_PAD}){{{dims - 1}}}"
    space = "D-" if dims == SPACE else ""
    deep = "ZxYxX" if dims == SPACE else "YxX"
    return (
        (f"the numbers C-{space}H-W", f"(?P<first>{sizes})"),
        (f"the filter -{deep}", f"-(?P<filter>{box})"),
        (f"the numbers -K-{space}H-W", f"-(?P<last>{sizes})"),
        ("the batch -N", f"-(?P<batch>{_SIZE})"),
        (f"the pads ({dims} numbers)", f"-(?P<pads>{pads})"),
        (f"the strides ({dims} numbers)", f"-(?P<strides>{box})"),
        (f"the dilations ({dims} numbers)", f"-(?P<dilations>{box})"),
        ("the bias -0 or -1", "-(?P<bias>[01])"),
        (f"the layout -{default} or three", f"-(?P<layout>{layouts})"),
        ("the data type, one or three", f"-(?P<dtype>{_DTYPE}(?:{_DTYPE}{{2}})?)"),
        ("the direction -F, -B or -W", "-(?P<direction>[FBW])"),
        ("a group count", f"(?:_g(?P<groups>(?!1(?:_|$)){_SIZE}))?"),
        ("a cast", f"(?:_ci(?P<ci>{_DTYPE}))?"),
        ("a cast", f"(?:_cw(?P<cw>{_DTYPE}))?"),
        ("a cast", f"(?:_co(?P<co>{_DTYPE}))?"),
    )  # fmt: skip

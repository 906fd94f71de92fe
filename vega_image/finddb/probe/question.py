"""The probe's line protocol (probe.c): questions made of problems, answers read back. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vega_image.finddb.problem import Problem

# miopenDataType_t
TYPES = {
    "FP16": 0, "FP32": 1, "INT32": 2, "INT8": 3, "BF16": 5, "FP64": 6, "FP8": 7, "BF8": 8,
}  # fmt: skip
CHANNELS_LAST = {"NCHW": 0, "NCDHW": 0, "NHWC": 1, "NDHWC": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A solver the library offers: `time` as its database says or it guesses, ms."""

    id: int
    time: float
    workspace: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What the library offers for a problem, best first.

    `status` is MIOpen's (0: it answered).
    """

    index: int
    status: int
    solutions: tuple[Solution, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A convolution solver of the library's registry; `algorithms` by direction F, B, W."""

    id: int
    solver: str
    algorithms: dict[str, str]


class AnswerError(ValueError):
    """The library's process said something that is no answer."""


def expressible(problem: Problem) -> bool:
    """Whether the C API can ask this problem through the probe: packed tensors, no casts."""
    layouts = (problem.x_layout, problem.w_layout, problem.y_layout)
    casts = (problem.x_cast, problem.w_cast, problem.y_cast)
    return all(layout in CHANNELS_LAST for layout in layouts) and not any(casts)


def problem_words(problem: Problem) -> str:
    """Return a problem as the probe reads it; it must be expressible."""
    types = (problem.x_dtype, problem.w_dtype, problem.y_dtype)
    layouts = (problem.x_layout, problem.w_layout, problem.y_layout)
    numbers = (
        problem.dims,
        *(TYPES[name] for name in types),
        *(CHANNELS_LAST[name] for name in layouts),
        problem.groups,
        problem.batch,
        problem.x_channels,
        *problem.x_size,
        problem.y_channels,
        problem.x_channels // problem.groups,
        *problem.filter,
        problem.batch,
        problem.y_channels,
        *problem.y_size,
        *problem.pads,
        *problem.strides,
        *problem.dilations,
    )
    return f"{problem.direction} {' '.join(map(str, numbers))}"


def solve_question(index: int, problem: Problem) -> str:
    """Ask what the library offers for a problem."""
    return f"solve {index} {problem_words(problem)}"


def compile_question(index: int, solver: int, problem: Problem) -> str:
    """Ask the library to load and compile the kernels of a solver (by id) for a problem."""
    return f"compile {index} {solver} {problem_words(problem)}"


def find_question(index: int, problem: Problem) -> str:
    """Ask the library to run a Find, whose times mean nothing here."""
    return f"find {index} {problem_words(problem)}"


_SOLVED = re.compile(r"solve (\d+) (-?\d+)((?: \d+:[-+.\w]+:\d+)*)")
_STATUS = re.compile(r"(?:compile|find) (\d+) (-?\d+)(?: .*)?")
_NAME = re.compile(r"name (\d+) ([^\s,;:=]+) (\S+) (\S+) (\S+)")


def read_solved(line: str) -> Solved:
    """Read the answer to a solve question; raises AnswerError."""
    match = _SOLVED.fullmatch(line)
    if match is None:
        raise AnswerError(line)
    index, status, solutions = match.groups()
    try:
        rows = tuple(_solution(text) for text in solutions.split())
    except ValueError as error:
        raise AnswerError(line) from error
    return Solved(index=int(index), status=int(status), solutions=rows)


def _solution(text: str) -> Solution:
    identity, time, workspace = text.split(":")
    return Solution(id=int(identity), time=float(time), workspace=int(workspace))


def read_status(line: str) -> tuple[int, int]:
    """Read (index, MIOpen's status) of a compile or find answer; raises AnswerError."""
    match = _STATUS.fullmatch(line)
    if match is None:
        raise AnswerError(line)
    return int(match[1]), int(match[2])


def read_name(line: str) -> Name:
    """Read one row of the registry; raises AnswerError."""
    match = _NAME.fullmatch(line)
    if match is None:
        raise AnswerError(line)
    algorithms = dict(zip("FBW", match.groups()[2:], strict=True))
    return Name(id=int(match[1]), solver=match[2], algorithms=algorithms)

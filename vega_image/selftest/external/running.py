"""Runs external suites through selftest's spawner; goes on behind a case that kills one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.external.protocol import (
    Command,
    Ended,
    Line,
    failed_at,
    parse_lines,
    parse_problem,
    stopped_at,
)
from vega_image.selftest.spawn import spawn
from vega_image.selftest.verdict import Verdict

GRACE_SECONDS = 1.0
DEATHS_ALLOWED = 5
USAGE, NO_DEVICE = 2, 7
Run = Callable[[Command], Ended]
Told = Callable[[str], None]


def run(command: Command, told: Told = lambda _text: None) -> Ended:
    """Start a program and read it to its end, or until it is silent for too long.

    `told` hears every line of its standard output as soon as it is whole.
    """
    argv = ("env", "-C", command.folder, *command.argv) if command.folder else command.argv
    try:
        child = spawn(argv, b"", environ={**os.environ, **command.environ})
    except OSError as error:
        raise SelftestError(
            "SUITE_ABSENT", f"cannot start {command.argv[0]}: {error.strerror}", exit_code=7
        ) from error
    chunks: list[bytes] = []
    timed_out, rest = False, b""
    try:
        while (chunk := child.read(command.silence)) != b"":
            if chunk is None:
                timed_out = True
                break
            chunks.append(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                told(line.decode("utf-8", "replace"))
    finally:
        child.stop(GRACE_SECONDS)
    code = child.finished()
    text = b"".join(chunks).decode("utf-8", "replace")
    return Ended(-9 if code is None else code, text, child.noise(), timed_out)


def run_cases(
    command: Callable[[str], Command], expected: Sequence[str], *, run: Run = run
) -> tuple[Line, ...]:
    """Return one line per expected case, in order.

    `command("")` starts with the first case, `command(ID)` with the one after ID. Raises
    SelftestError NO_DEVICE (7) when the program found none.
    """
    found: dict[str, Line] = {}
    after = ""
    for _ in range(DEATHS_ALLOWED):
        ended = run(command(after))
        _refuse(ended)
        found.update(parse_lines(ended.stdout, expected))
        at = stopped_at(expected, found)
        if at is None:
            break
        found[at] = failed_at(at, ended)
        after = at
    missing = "not reached: the suite died before it"
    return tuple(
        found.get(case, Line(case, Verdict.UNPROVEN, detail=missing)) for case in expected
    )


def _refuse(ended: Ended) -> None:
    if ended.timed_out or ended.code not in {USAGE, NO_DEVICE}:
        return
    why = parse_problem(ended.stdout) or ended.stderr.strip().split("\n")[-1]
    code = "SUITE_USAGE"
    if ended.code == NO_DEVICE:
        code = "NO_DEVICE" if "no device" in why else "SUITE_REFUSED"
    raise SelftestError(code, f"the suite refused: {why}", exit_code=ended.code)

"""vega-image finddb explain: what MIOpen does with one problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import db_and_words
from vega_image.console import table
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.explain import Answer, Known, answers, item_reasons, known_of
from vega_image.finddb.opening import open_db
from vega_image.finddb.problem import FormError, Problem, parse_key
from vega_image.finddb.record import Record
from vega_image.finddb.text import FindDb


def explain(
    call: Call, words: tuple[str, ...], *, db: Path | None, user_db: Path | None
) -> int:
    """Print what each find mode does with a key, and why."""
    system, rest = db_and_words(words, db)
    if len(rest) != 1:
        msg = "one key is needed"
        raise UsageError("NO_KEY", msg, hint="vega-image finddb query --help finds keys")
    key = rest[0]
    problem = _problem(key)
    user = _record(open_db(user_db), key) if user_db else None
    known = known_of(problem.direction, system=_record(system, key), user=user)
    found = list(answers(known))
    value = _value(key, problem, known, found)
    call.console.result(list(_lines(key, problem, known, found)), value)
    return 0


def _problem(key: str) -> Problem:
    try:
        return parse_key(key)
    except FormError as error:
        msg = f"{key!r} is no key: column {error.column}: {error.message}"
        hint = "vega-image finddb query finds keys, as by resnet50"
        raise UsageError("BAD_KEY", msg, at=key, hint=hint) from error


def _record(db: FindDb, key: str) -> Record | None:
    """Return the record of a key; None where MIOpen finds none or cannot read it."""
    try:
        return db.get(key)
    except FormError as error:
        msg = f"{db.name}: the line of this key is no record: {error.message}"
        hint = f"vega-image finddb lint {db.name}"
        raise UsageError("BAD_RECORD", msg, at=key, hint=hint) from error


def _value(key: str, problem: Problem, known: Known, found: list[Answer]) -> Json:
    return {
        "key": key,
        "direction": problem.direction,
        "impossible": problem.impossible or None,
        "record": known.origin if known.record else None,
        "hidden_system_record": known.hidden is not None,
        "items": [
            {"solver": name, "reason": reason} for name, reason in _reasons(known).items()
        ],
        "modes": [
            {"mode": one.mode, "how": one.how, "solver": one.solver, "why": one.why}
            for one in found
        ],
        "candidates": [one.name for one in known.candidates],
    }


def _reasons(known: Known) -> dict[str, str]:
    return dict(item_reasons(known.record, known.direction)) if known.record else {}


def _lines(key: str, problem: Problem, known: Known, found: list[Answer]) -> Iterator[str]:
    x = "x".join(map(str, (problem.batch, problem.x_channels, *problem.x_size)))
    y = "x".join(map(str, (problem.batch, problem.y_channels, *problem.y_size)))
    window = "x".join(map(str, problem.filter))
    yield key
    groups = f" groups={problem.groups}" if problem.groups > 1 else ""
    yield f"  {problem.direction} {problem.dtype}: x={x} filter={window} y={y}{groups}"
    if problem.impossible:
        yield f"  no convolution has this key: {problem.impossible}"
    if known.record:
        rows = [
            (f"  {item.solver}", f"{item.time:g} ms", _reasons(known)[item.solver])
            for item in known.record.items
        ]
        yield from table((f"  {known.origin.upper()}'S RECORD", "TIME", "CAN IT SERVE"), rows)
    else:
        yield "  no record"
    yield ""
    for one in found:
        yield f"{one.mode}: {one.solver or one.how}"
        yield f"    {one.why}"
    names = ", ".join(one.name for one in known.candidates)
    yield f"a race may try (the audit says which apply): {names}"

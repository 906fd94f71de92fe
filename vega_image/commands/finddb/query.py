"""vega-image finddb query: records by network, key or shape."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.reading import db_and_words
from vega_image.console import table
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.finddb.networks import geometry, layers, named
from vega_image.finddb.problem import DTYPES, FormError, Problem, parse_key
from vega_image.finddb.record import Record
from vega_image.finddb.registry import registry
from vega_image.finddb.text import FindDb

Wanted = Callable[[Problem], bool]

SHAPE = re.compile("[0-9]+(?:x[0-9]+)+")
SETTING = re.compile("([a-z]+)=([0-9]+(?:x[0-9]+)*)")
DTYPE = re.compile(f"(?:{'|'.join(DTYPES)}){{1,3}}")
LIKE_KEY = re.compile("[0-9]+-[0-9]+-[0-9]+-")
KEY = re.compile("[0-9]+-.*-[FBW](_.*)?")
SETTINGS: dict[str, Callable[[Problem], tuple[int, ...]]] = {
    "n": lambda p: (p.batch,),
    "c": lambda p: (p.x_channels,),
    "h": lambda p: (p.x_height,),
    "w": lambda p: (p.x_width,),
    "k": lambda p: (p.y_channels,),
    "filter": lambda p: p.filter,
    "stride": lambda p: p.strides,
    "pad": lambda p: p.pads,
    "dilation": lambda p: p.dilations,
    "groups": lambda p: (p.groups,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """What is asked for; None and empty mean any."""

    words: tuple[str, ...]
    db: Path | None
    first_layer_rgb: bool
    direction: str | None
    dtype: str | None
    limit: int


def query(call: Call, request: QueryRequest) -> int:
    """Print the records that fit all of the request."""
    db, words = db_and_words(request.words, request.db)
    keys = [word for word in words if KEY.fullmatch(word)]
    tests = [_wanted(word) for word in words if word not in keys]
    networks = [word for word in words if _is_name(word) and word not in keys]
    if len(networks) > 1:
        msg = f"one network at a time: no record is of {' and '.join(networks)} together"
        raise UsageError("MANY_NETWORKS", msg, hint="a query for each")
    if request.first_layer_rgb:
        tests.append(lambda p: p.first_layer_rgb)
    if not words and not tests and not request.direction and not request.dtype:
        msg = "what is asked for? A network, a key, a shape, or --first-layer-rgb"
        raise UsageError("NO_QUERY", msg, hint="vega-image finddb query --help")
    if request.direction:
        tests.append(lambda p: p.direction == request.direction)
    if request.dtype:
        _check_dtype(request.dtype)
        tests.append(lambda p: p.dtype == request.dtype)
    found = list(_by_keys(db, keys) if keys else db.records())
    found = [record for record in found if all(test(record.problem) for test in tests)]
    shown = found[: request.limit] if request.limit else found
    value: Json = {"matches": len(found), "records": [record_value(one) for one in shown]}
    call.console.result(list(_lines(shown, len(found))), value)
    return 0


def record_value(record: Record) -> dict[str, Json]:
    """Encode a record for --json, by roles."""
    p = record.problem
    return {
        "key": record.key,
        "line": record.line,
        "direction": p.direction,
        "dtype": p.dtype,
        "layout": p.layout,
        "batch": p.batch,
        "groups": p.groups,
        "x": [p.x_channels, *p.x_size],
        "w": [p.y_channels, p.x_channels // p.groups, *p.filter],
        "y": [p.y_channels, *p.y_size],
        "pads": list(p.pads),
        "strides": list(p.strides),
        "dilations": list(p.dilations),
        "items": [
            {
                "solver": item.solver,
                "time_ms": item.time,
                "workspace_bytes": item.workspace,
                "algorithm": item.algorithm,
                "usable": _state(item.solver, p.direction) == "",
            }
            for item in record.items
        ],
    }


def _by_keys(db: FindDb, keys: list[str]) -> Iterator[Record]:
    for key in keys:
        try:
            yield db[key]
        except KeyError:
            if wrong := _bad_key(key):
                raise wrong from None
        except FormError as error:
            msg = f"{db.name}: the line of {key} is no record: {error.message}"
            raise UsageError(
                "BAD_RECORD", msg, hint=f"vega-image finddb lint {db.name}"
            ) from error


def _is_name(word: str) -> bool:
    return not SHAPE.fullmatch(word) and not SETTING.fullmatch(word)


def _bad_key(text: str) -> UsageError | None:
    """Say where a text stops being a key; None for a key."""
    try:
        parse_key(text)
    except FormError as error:
        msg = f"{text} is no key: column {error.column}: {error.message}"
        hint = "vega-image finddb query --help"
        return UsageError("BAD_KEY", msg, at=text, hint=hint)
    return None


def _check_dtype(text: str) -> None:
    """Refuse what no key has: one name, or three joined."""
    if not DTYPE.fullmatch(text):
        msg = f"no data type is called {text}"
        raise UsageError("UNKNOWN_DTYPE", msg, at=text, hint=", ".join(DTYPES))


def _wanted(word: str) -> Wanted:
    if SHAPE.fullmatch(word):
        return _of_shape(word)
    if setting := SETTING.fullmatch(word):
        return _setting(setting[1], setting[2])
    shapes = list(named(word))
    if not shapes and LIKE_KEY.match(word) and (wrong := _bad_key(word)):
        raise wrong
    name, mark, _ = word.partition("=")
    if not shapes and mark and name in SETTINGS:
        msg = f"{word!r}: {name}= wants sizes, as 3 or 7x7"
        raise UsageError("BAD_SETTING", msg, at=word, hint="vega-image finddb query --help")
    if not shapes:
        names = sorted({one.network for one in layers()})
        close = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.4)
        guess = f"; near: {', '.join(close)}" if close else ""
        msg = f"{word!r} is no network, key or shape{guess}"
        raise UsageError("UNKNOWN_NAME", msg, hint="vega-image finddb query --help")
    batches = {one.problem.batch for one in shapes} if shapes[0].name == word else None
    wanted = {geometry(one.problem) for one in shapes}
    return lambda p: geometry(p) in wanted and (batches is None or p.batch in batches)


def _of_shape(word: str) -> Wanted:
    """Read CxHxW, NxCxHxW, CxDxHxW or NxCxDxHxW of the input."""
    sizes = tuple(map(int, word.split("x")))
    return lambda p: sizes in ((p.x_channels, *p.x_size), (p.batch, p.x_channels, *p.x_size))


def _setting(name: str, text: str) -> Wanted:
    if name not in SETTINGS:
        known = ", ".join(f"{one}=" for one in SETTINGS)
        raise UsageError("UNKNOWN_NAME", f"no setting is called {name}=", hint=known)
    sizes, of = tuple(map(int, text.split("x"))), SETTINGS[name]
    return lambda p: of(p) == (sizes * len(of(p)) if len(sizes) == 1 else sizes)


def _state(solver: str, direction: str) -> str:
    known = registry().get(solver)
    if known is None:
        return "unknown to MIOpen 3.5.1"
    if direction not in known.directions:
        return "of another direction"
    return known.why_not


def _lines(records: list[Record], found: int) -> Iterator[str]:
    for record in records:
        p = record.problem
        x = "x".join(map(str, (p.batch, p.x_channels, *p.x_size)))
        w = "x".join(map(str, (p.y_channels, p.x_channels // p.groups, *p.filter)))
        y = "x".join(map(str, (p.batch, p.y_channels, *p.y_size)))
        yield f"{record.key}  (line {record.line})"
        yield f"  {p.direction} {p.dtype} x={x} w={w} y={y}"
        rows = [
            (f"  {item.solver}", f"{item.time:g} ms", f"{item.workspace} B",
             _state(item.solver, p.direction) or registry()[item.solver].serves)
            for item in record.items
        ]  # fmt: skip
        yield from table(("  SOLVER", "TIME", "WORKSPACE", "CAN IT SERVE"), rows)
    more = f", {found - len(records)} not shown (--limit 0)" if found > len(records) else ""
    yield f"{found} records{more}"

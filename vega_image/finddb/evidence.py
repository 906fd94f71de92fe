"""Journals of the selftest as evidence: every line read, checked, and kept or set aside.

A line is never skipped in silence. What cannot count (a recording, another library, another
number of compute units ...) is set aside with its reason and counted. A line's name in
messages and manifests is `JOURNAL:LINE`, JOURNAL being 12 digits of the file's SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from vega_image.errors import UsageError
from vega_image.finddb.problem import FormError, Problem, parse_key
from vega_image.model import Model
from vega_image.selftest.journal import SCHEMA

ARCH = "gfx906"
SHORT = 12
UNKNOWN = frozenset({"", "not available", "unknown"})
_FAMILY = SCHEMA.rpartition("/")[0]
_SHA256 = re.compile("(?:sha256:)?([0-9a-f]{64})")
WRONG = frozenset({"MISMATCH", "NOT_FINITE", "CRASHED", "TIMED_OUT"})

# Why a line does not count; the texts are shown to people.
RECORDING = "a recording or the CPU, which counts only under --test-evidence"
OTHER_LIBRARY = "made with another library: void"
NO_LIBRARY = "does not say which library made it"
OTHER_CONFIG = "made with another perf-config than the image runs"
OTHER_CU = "made on a card with another number of compute units"
NO_DEVICE = "does not say which card made it"
NO_DRIVER = "does not say which driver made it"
NO_KEY = "names a problem that is none of MIOpen's"
OTHER_KEY = "is of another direction or data type than its key"
OVER_BOUND = "says MATCH beside an error above its bound"
NO_SOLVER = "does not say which solver ran"
OTHER_TRIAL = "is of no convolution"

Bytes = Annotated[int, Field(ge=0)]
# More cannot be read back: MIOpen keeps it in 64 bits, and lint's numbers have 18 digits.
Workspace = Annotated[int, Field(ge=0, lt=10**18)]


class JournalDevice(Model):
    """The device of a line."""

    pci: str
    subsystem: str
    vbios: str
    unique_id: str
    arch: str
    cu: int | str


class Line(Model):
    """One line of a journal (selftest/data/journal.schema.json)."""

    schema_: Literal["vega-selftest-journal/1"] = Field(alias="schema")
    key: str
    trial: str
    case: str
    direction: str
    dtype: str
    verdict: Literal[
        "MATCH", "DEGRADED", "MISMATCH", "NOT_FINITE", "CRASHED", "TIMED_OUT", "SUBSTITUTED",
        "UNSUPPORTED", "UNPROVEN", "INVALID", "UPSTREAM_OK",
    ]  # fmt: skip
    source: Literal["device", "replay", "cpu"]
    suite: str
    device: JournalDevice
    driver: str
    solver: str
    solver_ran: str
    algo: str
    time_ms: Annotated[FiniteFloat, Field(ge=0)] | None
    workspace_bytes: Workspace | None
    perf_config: str
    oracle: Literal["", "integer", "real", "hygiene", "property", "statistic"]
    seed: Bytes
    rep: Bytes
    error: float | None
    bound: float | None
    detail: str
    lib_sha256: str
    db_sha256: str


_LINE = TypeAdapter(Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What evidence must be of to count: `library` is 64 hex digits, "" takes the journals'."""

    library: str = ""
    perf_config: str = "default"
    cu: int = 60
    recordings: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """A line that counts, and its name."""

    id: str
    line: Line

    @property
    def binding(self) -> tuple[str, str, str, str, str]:
        """Return what a proof is of beside key and solver."""
        line = self.line
        card = line.device
        return (
            library_digest(line.lib_sha256) or "",
            line.perf_config,
            f"{card.pci} {card.subsystem} {card.vbios} {card.unique_id}",
            line.driver,
            line.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One journal: `id` is short for its SHA-256; `cut` are the lines that a kill cut short."""

    name: str
    sha256: str
    lines: Sequence[tuple[int, Line]]
    cut: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """Return the name that evidence of this journal begins with."""
        return self.sha256[:SHORT]


@dataclass(slots=True)
class Evidence:
    """All journals together: trials that count, and why the others do not."""

    journals: tuple[Journal, ...] = ()
    library: str = ""
    trials: list[Trial] = field(default_factory=list)
    aside: Counter[str] = field(default_factory=Counter)
    unnamed_wrong: list[Trial] = field(default_factory=list)

    @property
    def recorded(self) -> bool:
        """Whether anything that counts did not come from a device."""
        return any(trial.line.source != "device" for trial in self.trials)


def library_digest(text: str) -> str | None:
    """Return the 64 hex digits of a library's digest, or None for another text.

    >>> library_digest("sha256:" + "0" * 64) == "0" * 64
    True
    """
    match = _SHA256.fullmatch(text)
    return match[1] if match else None


def read_journal(data: bytes, name: str) -> Journal:
    """Read a journal; lines that a kill cut short are left out and noted.

    A run into the same journal afterwards ends such a line and goes on below it, so it may
    stand anywhere; it is the beginning of a line of JSON, and nothing else is let pass.
    Raises UsageError EVIDENCE_EMPTY, EVIDENCE_SCHEMA, EVIDENCE_LINE.
    """
    lines: list[tuple[int, Line]] = []
    cut: list[int] = []
    for number, row in enumerate(data.split(b"\n"), 1):
        if not row.strip():
            continue
        try:
            lines.append((number, _LINE.validate_json(row)))
        except ValidationError as error:
            if not _is_cut(row, error):
                raise _refused(row, error, f"{name}:{number}") from None
            cut.append(number)
    if not lines:
        msg = f"{name}: no line of evidence"
        raise UsageError("EVIDENCE_EMPTY", msg, at=name)
    sha256 = hashlib.sha256(data).hexdigest()
    return Journal(name=name, sha256=sha256, lines=lines, cut=tuple(cut))


def _is_cut(row: bytes, error: ValidationError) -> bool:
    """Whether a row is a line of JSON as far as it goes."""
    first = error.errors(include_url=False)[0]
    reason = str(first.get("ctx", {}).get("error", ""))
    return first["type"] == "json_invalid" and row[:1] == b"{" and reason.startswith("EOF")


def _refused(row: bytes, error: ValidationError, at: str) -> UsageError:
    """Say what is wrong with a line: not JSON, another schema, or a field."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        msg = f"{at}: the line is no JSON ({first['ctx']['error'] if 'ctx' in first else ''})"
        hint = "a kill only cuts a line short, this one was damaged: remove it and sweep again"
        return UsageError("EVIDENCE_LINE", msg, at=at, hint=hint)
    value = json.loads(row)
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        family, _, version = str(schema).rpartition("/")
        later = family == _FAMILY and version.isdecimal()
        msg = f"{at}: the line is of schema {schema!r}, this vega-image reads {SCHEMA!r}"
        newer = "use the vega-image that wrote it, or a newer one"
        return UsageError("EVIDENCE_SCHEMA", msg, at=at, hint=newer if later else None)
    where = ".".join(map(str, first["loc"])) or "line"
    msg = f"{at}: {where}: {first['msg']}"
    return UsageError("EVIDENCE_LINE", msg, at=at)


def gather(journals: Iterable[Journal], terms: Terms) -> Evidence:
    """Decide line by line what counts; equal journals count once, in any order the same.

    Raises UsageError EVIDENCE_DEVICE for a device's line that is not of a gfx906, and
    EVIDENCE_LIBRARIES when no library was named and the journals are of several.
    """
    unique = {journal.sha256: journal for journal in journals}
    ordered = tuple(unique[sha256] for sha256 in sorted(unique))
    library = terms.library or _only_library(ordered, terms)
    found = Evidence(journals=ordered, library=library)
    keys: dict[str, Problem | None] = {}
    for journal in ordered:
        for number, line in journal.lines:
            _refuse_other_arch(line, f"{journal.name}:{number}")
            trial = Trial(f"{journal.id}:{number}", line)
            reason = _aside(line, terms, library, keys)
            if reason:
                found.aside[reason] += 1
                if reason == NO_SOLVER and line.verdict in WRONG:
                    found.unnamed_wrong.append(trial)
            else:
                found.trials.append(trial)
    return found


def _only_library(journals: Sequence[Journal], terms: Terms) -> str:
    """Return the one library that the lines which may count are of; "" for none."""
    digests = {
        digest
        for journal in journals
        for _, line in journal.lines
        if (line.source == "device" or terms.recordings)
        and (digest := library_digest(line.lib_sha256))
    }
    if len(digests) > 1:
        msg = f"the evidence is of {len(digests)} libraries: {', '.join(sorted(digests))}"
        hint = "--library FILE or sha256:... names the one that the image has"
        raise UsageError("EVIDENCE_LIBRARIES", msg, hint=hint)
    return next(iter(digests), "")


def _refuse_other_arch(line: Line, at: str) -> None:
    arch = line.device.arch
    if line.source == "device" and arch.partition(":")[0] != ARCH:
        what = arch if arch not in UNKNOWN else "not known"
        msg = f"{at}: the device's architecture is {what}; only {ARCH} proves for {ARCH}"
        raise UsageError("EVIDENCE_DEVICE", msg, at=at, hint="leave that journal out")


def _aside(line: Line, terms: Terms, library: str, keys: dict[str, Problem | None]) -> str:
    """Return why a line does not count; empty if it does."""
    return next(_reasons(line, terms, library, keys), "")


def _reasons(
    line: Line, terms: Terms, library: str, keys: dict[str, Problem | None]
) -> Iterator[str]:
    if line.source != "device" and not terms.recordings:
        yield RECORDING
    problem = _problem(line.key, keys)
    # What is not known speaks against a proof, never for forgetting what went wrong.
    wrong = line.verdict != "MATCH"
    if problem is None:
        yield OTHER_TRIAL if line.key == line.trial else NO_KEY
    elif problem.direction != line.direction or not (wrong or _is_of(line, problem)):
        yield OTHER_KEY
    if not wrong and not _within(line):
        yield OVER_BOUND
    if not (line.solver_ran or (line.solver and line.verdict != "MATCH")):
        yield NO_SOLVER
    digest = library_digest(line.lib_sha256)
    if digest is None and not wrong:
        yield NO_LIBRARY
    if digest is not None and digest != library:
        yield OTHER_LIBRARY
    if line.perf_config != terms.perf_config and not (wrong and line.perf_config in UNKNOWN):
        yield OTHER_CONFIG
    if line.source == "device":
        yield from _device_reasons(line, terms, wrong=wrong)


def _device_reasons(line: Line, terms: Terms, *, wrong: bool) -> Iterator[str]:
    card = line.device
    if card.pci in UNKNOWN and card.unique_id in UNKNOWN and not wrong:
        yield NO_DEVICE
    if line.driver in UNKNOWN and not wrong:
        yield NO_DRIVER
    if card.cu != terms.cu and not (wrong and not isinstance(card.cu, int)):
        yield OTHER_CU


def _problem(key: str, keys: dict[str, Problem | None]) -> Problem | None:
    """Return the problem of a key, or None where it is no key of MIOpen's."""
    if key not in keys:
        try:
            keys[key] = parse_key(key)
        except FormError:
            keys[key] = None
    return keys[key]


def _is_of(line: Line, problem: Problem) -> bool:
    return line.dtype.upper() in {problem.dtype, problem.x_dtype}


def _within(line: Line) -> bool:
    """Whether the error is within its bound; both are of one element, the worst."""
    return line.error is None or line.bound is None or line.error <= line.bound


def aside_lines(aside: Mapping[str, int]) -> list[str]:
    """Say how many lines do not count and why."""
    return [f"{n} lines set aside: {why}" for why, n in sorted(aside.items())]

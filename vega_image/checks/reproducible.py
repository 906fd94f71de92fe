"""Our own rules for Dockerfiles: what would make a stage differ or reach outside. Pure.

hadolint knows nothing of reproducibility; each rule names what it prevents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vega_image.checks.finding import Finding


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that must not occur in an instruction."""

    id: str
    pattern: re.Pattern[str]
    message: str


RULES = (
    Rule(
        "VEGA001",
        re.compile(r"^\s*(RUN|ADD)\b.*(\b(curl|wget|git\s+clone|pip\s+install)\b|https?://)"),
        "a stage has no network; lock the file as a source and COPY it",
    ),
    Rule(
        "VEGA002",
        re.compile(r"^\s*RUN\b.*(\$\(|`|\s|;|&&)\s*date\b"),
        "the clock must not decide bytes; use the epoch",
    ),
    Rule(
        "VEGA003",
        re.compile(r"^\s*FROM\s+(?!scratch\b|\$\{?BASE\}?)\S+(?<!@sha256)(\s|$)"),
        "FROM may only name scratch, ${BASE} or a digest",
    ),
    Rule(
        "VEGA004",
        re.compile(r"HSA_OVERRIDE_|^\s*ENV\b.*\bMIOPEN_DEBUG_"),
        "this variable hides what the card is (hazard TGT01)",
    ),
    Rule(
        "VEGA005",
        re.compile(r"^\s*RUN\b.*--mount|^\s*#\s*syntax=|^\s*RUN\s+<<|^\s*COPY\s+--link"),
        "BuildKit only; the classic builder of Docker 20.10 cannot read it",
    ),
    Rule(
        "VEGA006",
        re.compile(r"^\s*RUN\b.*\bapt(-get)?\s+(update|install)\b"),
        "packages come from the lock, not from apt inside a stage",
    ),
)
_DIGEST = re.compile(r"^\s*FROM\s+\S+@sha256:[0-9a-f]{64}\b")


def check_dockerfile(text: str, *, path: str) -> Iterator[Finding]:
    """Yield what breaks a rule, instruction by instruction (continuation lines joined)."""
    for line, instruction in _instructions(text):
        for rule in RULES:
            if rule.pattern.search(instruction) and not _DIGEST.match(instruction):
                yield Finding(rule=rule.id, path=path, line=line, message=rule.message)


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    held, start = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if not held:
            start = number
        if line.lstrip().startswith("#") and not line.lstrip().startswith("# syntax="):
            continue
        held += line.removesuffix("\\") + " "
        if not line.endswith("\\"):
            yield start, held
            held = ""
    if held:
        yield start, held

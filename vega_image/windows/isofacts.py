"""The table of Windows installation media: size, digest and editions of each ISO."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import resources
from typing import Annotated, TypeAlias

from pydantic import Field

from vega_image.errors import UsageError
from vega_image.model import Model

_TABLE = ("data", "isos.yaml")
Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class IsoImage(Model):
    """One edition on an ISO: its index in install.wim and its name."""

    index: Annotated[int, Field(ge=1)]
    name: Annotated[str, Field(min_length=1)]


class IsoFact(Model):
    """One ISO: `size` in bytes, `sha256` in hex, version as Windows counts it."""

    id: str
    version: str
    size: Annotated[int, Field(gt=0)]
    sha256: Sha256
    images: Annotated[tuple[IsoImage, ...], Field(min_length=1, strict=False)]


class _Table(Model):
    isos: Annotated[tuple[IsoFact, ...], Field(strict=False)]


@cache
def iso_facts() -> tuple[IsoFact, ...]:
    """Return every ISO that is known, in the table's order."""
    import yaml  # noqa: PLC0415 - keeps `--help` fast

    table = resources.files("vega_image.windows").joinpath(*_TABLE)
    return _Table.model_validate(yaml.safe_load(table.read_text(encoding="utf-8"))).isos


def iso_fact(name: str) -> IsoFact:
    """Return the ISO with this id; raises UsageError UNKNOWN_ISO that lists the known ones."""
    known = {fact.id: fact for fact in iso_facts()}
    if name in known:
        return known[name]
    msg = f"no ISO is called {name!r}; known: {', '.join(known)}"
    raise UsageError("UNKNOWN_ISO", msg, hint=_close(name, known), at=name)


def image_of(fact: IsoFact, *, index: int | None = None, name: str | None = None) -> IsoImage:
    """Return the edition chosen by index, by name, or by both where they agree.

    Names compare without regard to case. Without either, an ISO's only edition. Raises
    UsageError UNKNOWN_EDITION that lists the editions.
    """
    chosen = [
        image
        for image in fact.images
        if index in {None, image.index}
        and (name is None or image.name.casefold() == name.casefold())
    ]
    if len(chosen) == 1:
        return chosen[0]
    known = "; ".join(f"{image.index} = {image.name}" for image in fact.images)
    asked = " and ".join(
        words
        for words, given in ((f"index {index}", index), (f"name {name!r}", name))
        if given is not None
    )
    what = f"no edition with {asked}" if asked else "several editions, and none was chosen"
    msg = f"{fact.id}: {what}; it has {known}"
    names = {image.name: image for image in fact.images}
    raise UsageError("UNKNOWN_EDITION", msg, hint=_close(name or "", names), at=fact.id)


def _close(name: str, known: dict[str, IsoFact] | dict[str, IsoImage]) -> str:
    """Return the hint: the nearest known name, or the first one."""
    folded = {word.casefold(): word for word in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return f"did you mean {folded[close[0]]}?" if close else f"for example: {next(iter(known))}"

"""The patches that give the HIP runtime on Windows Vega 20 again, and what else can be tried.

A patch is a list of edits: a file of rocm-systems, a name that stands in it once, and the lines
of ours that go before or after it; it quotes nothing of that file. edits.ps1 of the stage
compiler-runtime applies them. patches.json says of each patch its digest, where it comes from
and what it does. Nothing of it was ever proven on a card; the gate is that the card enumerates.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from vega_image.digest import PREFIX, digest_bytes
from vega_image.errors import BytesError, UsageError
from vega_image.model import Model
from vega_image.spec import Commit, Sha256

INDEX = "patches.json"
PLACE = "templates/windows/patches/clr"
# A name and nothing else: a line of another project's code must not fit.
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
Word = Annotated[str, Field(pattern=rf"^{_NAME}$", max_length=40)]
Anchor = Annotated[str, Field(pattern=rf"^{_NAME}(::{_NAME})*(\[\])?$", max_length=60)]
# The compiler's source and the PowerShell that writes it are both plain ASCII.
Line = Annotated[str, Field(pattern=r"^[ -~]*$", max_length=110)]
_Read = TypeVar("_Read", bound=Model)


class Clr(StrEnum):
    """How the HIP runtime is to find a card that its table lacks.

    pal-patch: the table gets the row back; rocr: GPU_ENABLE_PAL=0, the other back end;
    old-clr: a runtime from before the row was taken out.
    """

    PAL_PATCH = "pal-patch"
    ROCR = "rocr"
    OLD_CLR = "old-clr"


class Edit(Model):
    """Lines of ours, before or after the line that holds the anchor."""

    where: Literal["before", "after"]
    anchor: Anchor = Field(description="a name that stands in the file exactly once")
    lines: Annotated[tuple[Line, ...], Field(min_length=1, strict=False)]


class Edits(Model):
    """One patch: what the file must and must not hold before, and its edits."""

    schema_version: Literal[1] = Field(alias="schema")
    file: Annotated[str, Field(pattern=r"^projects/clr/([a-z0-9_-]+/)*[a-z0-9_-]+\.(cpp|hpp)$")]
    present: Annotated[tuple[Word, ...], Field(strict=False)]
    absent: Annotated[tuple[Word, ...], Field(min_length=1, strict=False)]
    edits: Annotated[tuple[Edit, ...], Field(min_length=1, strict=False)]


class Origin(Model):
    """Where the names around a change were read: the commit of the stored copy."""

    repository: str
    commit: Commit
    pinned: bool = Field(description="whether that is the commit of the spec")


class Patch(Model):
    """One file of edits; `applies_to` is the commit of rocm-systems that the spec pins."""

    file: Annotated[str, Field(pattern=r"^[0-9]{4}-[a-z0-9-]+\.edits\.json$")]
    sha256: Sha256
    does: str
    source: str
    status: Literal["unproven"]
    applies_to: Commit
    names_from: Origin


class Alternative(Model):
    """Another way to the same end; `id` is a value of the option `clr`."""

    id: Clr
    description: str
    status: Literal["unproven"]


class PatchSet(Model):
    """The table patches.json."""

    schema_version: Literal[1] = Field(alias="schema")
    status: Literal["unproven"]
    license: str
    doubts: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    patches: Annotated[tuple[Patch, ...], Field(min_length=1, strict=False)]
    alternatives: Annotated[tuple[Alternative, ...], Field(min_length=1, strict=False)]


def patch_set(files: Mapping[str, bytes]) -> PatchSet:
    """Read patches.json and hold every patch against it; `files` is name -> bytes.

    Raises UsageError PATCHES_INVALID, BytesError PATCH_CHANGED.
    """
    if INDEX not in files:
        raise _refusal(INDEX, "there is none")
    table = _read(PatchSet, INDEX, files[INDEX])
    named, there = {patch.file for patch in table.patches}, set(files) - {INDEX}
    if named != there or len(named) != len(table.patches):
        raise _refusal(INDEX, f"it names {sorted(named)}, and there are {sorted(there)}")
    changed: dict[str, str] = {}
    for patch in table.patches:
        _unchanged(patch, files[patch.file])
        edits = edits_of(patch.file, files[patch.file])
        if edits.file in changed:
            raise _refusal(patch.file, f"{changed[edits.file]} changes {edits.file} already")
        changed[edits.file] = patch.file
    return table


def edits_of(name: str, data: bytes) -> Edits:
    """Read one patch; raises UsageError PATCHES_INVALID."""
    patch = _read(Edits, name, data)
    for what in _unsafe(patch):
        raise _refusal(name, what)
    return patch


def _unsafe(patch: Edits) -> Iterator[str]:
    """Yield what would make the outcome depend on an order, or a second run go unnoticed."""
    ours = "\n".join(line for edit in patch.edits for line in edit.lines)
    for edit in patch.edits:
        if _has(ours, edit.anchor):
            yield f"its own lines hold the anchor {edit.anchor}"
    if not any(_has(ours, word) for word in patch.absent):
        yield "no word of `absent` stands in its lines: applied twice it would not be noticed"
    for word in set(patch.present) & set(patch.absent):
        yield f"{word} cannot be both present and absent"


def _has(text: str, word: str) -> bool:
    """Whether a name stands in a text as a whole word, as edits.ps1 looks for it."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None


def _read(kind: type[_Read], name: str, data: bytes) -> _Read:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}"
    raise _refusal(name, what)


def _unchanged(patch: Patch, data: bytes) -> None:
    found = digest_bytes(data)
    if found != PREFIX + patch.sha256:
        at = f"{PLACE}/{patch.file}"
        msg = f"{at}: is {found}, but {INDEX} says {PREFIX}{patch.sha256}"
        hint = f"git checkout -- {at}"
        raise BytesError("PATCH_CHANGED", msg, hint=hint, at=at)


def _refusal(name: str, what: str) -> UsageError:
    at = f"{PLACE}/{name}"
    return UsageError("PATCHES_INVALID", f"{at}: {what}", at=at)

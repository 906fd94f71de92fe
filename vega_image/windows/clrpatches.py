"""The patches that give the HIP runtime on Windows Vega 20 again, and what else can be tried.

patches.json says of each patch its digest, where it comes from and what it does. Nothing of it
was ever proven on a card; the gate is that the card enumerates. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from vega_image.digest import PREFIX, digest_bytes
from vega_image.errors import BytesError, UsageError
from vega_image.model import Model
from vega_image.spec import Commit, Sha256

INDEX = "patches.json"
PLACE = "templates/windows/patches/clr"


class Clr(StrEnum):
    """How the HIP runtime is to find a card that its table lacks.

    pal-patch: the table gets the row back; rocr: GPU_ENABLE_PAL=0, the other back end;
    old-clr: a runtime from before the row was taken out.
    """

    PAL_PATCH = "pal-patch"
    ROCR = "rocr"
    OLD_CLR = "old-clr"


class Origin(Model):
    """Where the lines around a change were read: the commit of the stored copy."""

    repository: str
    commit: Commit
    pinned: bool = Field(description="whether that is the commit of the spec")


class Patch(Model):
    """One unified diff; `applies_to` is the commit of rocm-systems that the spec pins."""

    file: Annotated[str, Field(pattern=r"^[0-9]{4}-[a-z0-9-]+\.patch$")]
    sha256: Sha256
    changes: str = Field(description="path of the changed file in rocm-systems")
    does: str
    source: str
    status: Literal["unproven"]
    applies_to: Commit
    context_from: Origin


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
        what = "there is none"
        raise _refusal(what)
    try:
        table = PatchSet.model_validate_json(files[INDEX])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise _refusal(what) from None
    named, there = {patch.file for patch in table.patches}, set(files) - {INDEX}
    if named != there:
        what = f"it names {sorted(named)}, and there are {sorted(there)}"
        raise _refusal(what)
    for patch in table.patches:
        _unchanged(patch, files[patch.file])
    return table


def _unchanged(patch: Patch, data: bytes) -> None:
    found = digest_bytes(data)
    if found != PREFIX + patch.sha256:
        at = f"{PLACE}/{patch.file}"
        msg = f"{at}: is {found}, but {INDEX} says {PREFIX}{patch.sha256}"
        hint = f"git checkout -- {at}"
        raise BytesError("PATCH_CHANGED", msg, hint=hint, at=at)


def _refusal(what: str) -> UsageError:
    at = f"{PLACE}/{INDEX}"
    return UsageError("PATCHES_INVALID", f"{at}: {what}", at=at)

"""The model file: is it one, which bytes are they, and were they the same last time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vega_image.digest import PREFIX, canonical
from vega_image.errors import BytesError, UsageError
from vega_image.serving.sandbox import Account
from vega_image.store import disk_errors, write_atomic

MAGIC = b"GGUF"
CHUNK = 8 << 20
STATE_FILE = "models.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model on disk; `digest` is `sha256:` + hex, `identity` tells a swapped file."""

    path: Path
    digest: str
    size: int
    identity: tuple[int, int, int, int]


def read_model(
    path: Path, *, expected: str | None, progress: Callable[[int, int], None]
) -> ModelFile:
    """Hash a model file once and check it.

    `expected` is 64 hex digits, with or without `sha256:`. Raises UsageError
    MODEL_UNREADABLE, MODEL_NOT_GGUF or BAD_DIGEST, BytesError MODEL_WRONG_DIGEST.
    """
    wanted = None if expected is None else _parsed(expected)
    try:
        path.stat()  # resolve() has an error of its own for a loop of links
        real = path.resolve(strict=True)
        digest, status = _hashed(real, progress)
    except OSError as error:
        msg = f"cannot read the model {path}: {error.strerror}"
        raise UsageError("MODEL_UNREADABLE", msg, hint="ls -lL", at=str(path)) from error
    if wanted is not None and digest != wanted:
        msg = f"{path} is not the promised model: {digest}, expected {wanted}"
        hint = "fetch the file again, or correct --model-sha256"
        raise BytesError("MODEL_WRONG_DIGEST", msg, hint=hint, at=str(path))
    return ModelFile(path=real, digest=digest, size=status.st_size, identity=_identity(status))


def check_readable(model: ModelFile, account: Account) -> None:
    """Make sure the server's account may read the file; raises UsageError MODEL_UNREADABLE."""
    status = model.path.stat()
    if account.uid == os.geteuid() or status.st_mode & 0o004:
        return
    if account.uid == status.st_uid and status.st_mode & 0o400:
        return
    if account.gid == status.st_gid and status.st_mode & 0o040:
        return
    msg = f"the server runs as uid {account.uid} and may not read {model.path}"
    hint = f"chmod o+r {model.path}, or run vega-image as the file's owner"
    raise UsageError("MODEL_UNREADABLE", msg, hint=hint, at=str(model.path))


def check_unchanged(model: ModelFile) -> None:
    """Make sure the hashed file is still the one mounted; raises BytesError MODEL_CHANGED."""
    try:
        same = _identity(model.path.stat()) == model.identity
    except OSError:
        same = False
    if not same:
        msg = f"{model.path} changed while it was being loaded"
        raise BytesError("MODEL_CHANGED", msg, hint="run it again", at=str(model.path))


def record(folder: Path, model: ModelFile, *, day: str) -> str | None:
    """Write down which bytes were served under this name; return what they were before.

    The file holds names without folders, digests and dates. None: the same, or a new name.
    """
    file = folder / STATE_FILE
    known = _known(file)
    before = known.get(model.path.name)
    if before is not None and before["digest"] == model.digest:
        return None
    known[model.path.name] = {"digest": model.digest, "day": day}
    with disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(file, canonical(known) + b"\n", mode=0o600)
    return None if before is None else f"{before['digest']} on {before['day']}"


def _known(file: Path) -> dict[str, dict[str, str]]:
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    entries = value.items() if isinstance(value, dict) else ()
    return {
        name: {"digest": str(entry["digest"]), "day": str(entry["day"])}
        for name, entry in entries
        if isinstance(entry, dict) and {"digest", "day"} <= set(entry)
    }


def _parsed(text: str) -> str:
    digits = text.strip().lower().removeprefix(PREFIX)
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):  # noqa: PLR2004 - SHA-256
        msg = f"not a SHA-256 digest: {text!r}"
        raise UsageError("BAD_DIGEST", msg, hint="sha256sum FILE", at="--model-sha256")
    return PREFIX + digits


def _hashed(path: Path, progress: Callable[[int, int], None]) -> tuple[str, os.stat_result]:
    if not path.is_file():
        msg = f"the model {path} is not a file"
        raise UsageError("MODEL_UNREADABLE", msg, hint="--model FILE.gguf", at=str(path))
    total = hashlib.sha256()
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        first = file.read(CHUNK)
        if not first.startswith(MAGIC):
            msg = f"{path} is not a GGUF model: it begins with {first[:4]!r}"
            raise UsageError("MODEL_NOT_GGUF", msg, hint="--model FILE.gguf", at=str(path))
        done = 0
        while first:
            total.update(first)
            done += len(first)
            progress(done, status.st_size)
            first = file.read(CHUNK)
    return PREFIX + total.hexdigest(), status


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

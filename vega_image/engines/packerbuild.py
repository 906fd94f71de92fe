"""Build a VM image with packer: the guest's lines in the stream, all or nothing on the disk."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from vega_image.engines.attend import LOG, Ended, Watch
from vega_image.engines.packer import GRACE_SECONDS, SERIAL, Option, Packer, PackerCall
from vega_image.engines.packerlines import COMMA, Tally, parse_line, repeats_ui
from vega_image.errors import EngineError, StageError, UsageError
from vega_image.scratch import claim, sweep
from vega_image.store import disk_errors

GUEST = "guest: "
OURS = ("iso_path", "iso_checksum", "output_directory", "serial_log")
_AREA = ".vega-image-packer"
_TAIL = 30
_HIDDEN = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What to boot: `template` below `folder` (packer's working folder) from a local ISO.

    `iso_sha256` is hex and was verified (sources/iso.py). The template declares the variables
    `OURS`; the others come from `variables` and `secrets`. `output` is the folder to make.
    `proof` is a text that some line of the guest must hold for the build to count.
    """

    stage: str
    folder: Path
    template: str
    iso: Path
    iso_sha256: str
    output: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    proof: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackerArtifact:
    """What one build of the template made: files in the output folder."""

    build: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackerResult:
    """A build that succeeded."""

    artifacts: tuple[PackerArtifact, ...]
    log_path: Path


def boot(
    packer: Packer,
    job: Boot,
    *,
    timeout: float,
    on_line: Callable[[str], None],
    log_path: Path,
) -> PackerResult:
    """Build; `timeout` is wall clock in seconds, and lines of the guest begin with `GUEST`.

    The output folder appears complete or not at all. Secrets reach packer by environment alone,
    and their text is hidden in every line. Call from the main thread. Raises UsageError
    TEMPLATE_ABSENT, OUTPUT_EXISTS, VARIABLE_RESERVED or SECRET_UNUSABLE; StageError
    STAGE_FAILED or PACKER_TIMED_OUT with the last lines; EngineError DISK_FULL.
    """
    _check(job)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(log_path.parent), log_path.open("w", encoding="utf-8") as log:
        told = _Told(on_line, log, job)
        with _area(job.output) as private:
            made = private / "image"
            watch = Watch(timeout=timeout, grace=GRACE_SECONDS, on_line=told.take)
            call = _call(job, private, made)
            folder = job.folder.resolve()
            ended = packer.attend(call, cwd=folder, private=private, watch=watch, serial=True)
            _judge(ended, told, _Case(job, timeout, log_path))
            # An image may have no files here, where a hypervisor keeps it.
            made.mkdir(exist_ok=True)
            made.rename(job.output)
    artifacts = tuple(
        PackerArtifact(
            build=build, files=tuple(_moved(Path(name), made, job.output) for name in files)
        )
        for (build, _index), files in told.tally.artifacts.items()
    )
    return PackerResult(artifacts=artifacts, log_path=log_path)


def _check(job: Boot) -> None:
    if not (job.folder / job.template).exists():
        msg = f"{job.folder / job.template} is not there"
        raise UsageError("TEMPLATE_ABSENT", msg, at=job.template)
    if os.path.lexists(job.output):
        msg = f"{job.output} exists already"
        hint = "give another output, or move it away"
        raise UsageError("OUTPUT_EXISTS", msg, hint=hint, at=str(job.output))
    for name in sorted({*job.variables, *job.secrets}):
        if name in OURS or (name in job.variables and name in job.secrets):
            msg = f"the packer variable {name} is set twice"
            hint = f"vega-image itself sets {', '.join(OURS)}"
            raise UsageError("VARIABLE_RESERVED", msg, hint=hint, at=name)
    for name, value in job.secrets.items():
        if "\0" in value:
            msg = f"the secret {name} holds a NUL byte"
            raise UsageError("SECRET_UNUSABLE", msg, at=name)


def _call(job: Boot, private: Path, made: Path) -> PackerCall:
    ours = {
        "iso_path": str(job.iso.resolve()),
        "iso_checksum": f"sha256:{job.iso_sha256}",
        "output_directory": str(made),
        "serial_log": str(private / SERIAL),
    }
    options: dict[str, Option] = {
        "only": job.only or None,
        "on_error": "cleanup",
        "var": {**job.variables, **ours},
    }
    return PackerCall(
        command="build",
        template=job.template,
        options=options,
        secrets=job.secrets,
        machine=True,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    job: Boot
    timeout: float
    log_path: Path


def _judge(ended: Ended, told: _Told, case: _Case) -> None:
    if ended.timed_out:
        why = f"no end after {case.timeout:g} s; packer and its VM were stopped"
        raise _failed("PACKER_TIMED_OUT", why, told, case)
    tally = told.tally
    if ended.returncode != 0 or tally.errors:
        said = told.hider.hide("; ".join(tally.why)) or "packer gave no reason"
        if "no space left on device" in said.lower():
            hint = f"free some space for {case.job.output.parent}"
            raise EngineError("DISK_FULL", said, hint=hint, at=case.job.stage)
        raise _failed("STAGE_FAILED", f"code {ended.returncode}: {said}", told, case)
    if not tally.artifacts:
        raise _failed("STAGE_FAILED", "packer ended well but made nothing", told, case)
    if not told.proved:
        why = f"the guest never said {case.job.proof!r}, so nothing shows that it booted"
        raise _failed("STAGE_FAILED", why, told, case)


def _failed(code: str, why: str, told: _Told, case: _Case) -> StageError:
    log = case.log_path
    lines = [f"stage {case.job.stage} failed: {why}", *told.tail, f"log: {log}"]
    hint = f"less {shlex.quote(str(log))}"
    return StageError(code, "\n".join(lines), at=case.job.stage, hint=hint)


class _Hider:
    """Replaces the secrets, whole and line by line, also as packer writes a comma."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        words = {word.strip() for value in secrets.values() for word in value.splitlines()}
        words |= {word.replace(",", COMMA) for word in words}
        self._words = sorted(words - {""}, key=len, reverse=True)

    def hide(self, line: str) -> str:
        for word in self._words:
            line = line.replace(word, _HIDDEN)
        return line


class _Told:
    """Where the lines go: the log file, the listener, the tail of an error, the tally."""

    def __init__(self, on_line: Callable[[str], None], log: IO[str], job: Boot) -> None:
        self._on_line = on_line
        self._log = log
        self._proof = job.proof
        self.proved = job.proof is None
        self.hider = _Hider(job.secrets)
        self.tail: deque[str] = deque(maxlen=_TAIL)
        self.tally = Tally()

    def take(self, pipe: str, line: str) -> None:
        """Take one line of packer's output, of its log, or of the guest."""
        if pipe == SERIAL:
            self.proved = self.proved or (self._proof is not None and self._proof in line)
            self._tell(GUEST + line)
            return
        if pipe == LOG:
            if not repeats_ui(line):
                self._write(line)
            return
        message = parse_line(line)
        if message is None:
            self._tell(line)
            return
        self.tally.feed(message)
        for text in message.texts():
            self._tell(text)

    def _tell(self, line: str) -> None:
        shown = self._write(line)
        self.tail.append(shown)
        self._on_line(shown)

    def _write(self, line: str) -> str:
        shown = self.hider.hide(line)
        self._log.write(shown + "\n")
        self._log.flush()
        return shown


@contextmanager
def _area(output: Path) -> Iterator[Path]:
    """Yield a folder on the output's own disk; what the dead left there goes first."""
    area = output.parent.resolve() / _AREA
    with _locked(area):
        sweep(area)
        held = claim(area)
    try:
        yield held.path
    finally:
        with _locked(area):
            held.release()
            with suppress(OSError):
                area.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; it may be removed by the one who held it before."""
    handle = None
    while handle is None:
        folder.mkdir(exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not _same(folder, handle):
            os.close(handle)
            handle = None
    try:
        yield
    finally:
        os.close(handle)


def _same(folder: Path, handle: int) -> bool:
    try:
        return folder.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _moved(path: Path, made: Path, output: Path) -> Path:
    return output / path.relative_to(made) if path.is_relative_to(made) else path

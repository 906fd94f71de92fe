"""Which file of a tree holds device code for which GPU, and whether that is as it must be."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vega_image.codeobjects.bundle import COMPRESSED_MAGIC, MAGIC, Bundle, Entry, read_bundles
from vega_image.codeobjects.elf import (
    ELF64_LE,
    EM_AMDGPU,
    Elf,
    read_elf,
    read_header,
)
from vega_image.codeobjects.fatbin import FATBIN
from vega_image.codeobjects.target import ABI_V4, Target, parse_target, target_of_flags
from vega_image.codeobjects.window import Region, Window, opened
from vega_image.errors import StageError
from vega_image.spec import Census

HEAD = 24
UNKNOWN = "unknown"


class CodeKind(StrEnum):
    """How device code lies in a file."""

    FATBIN = "fatbin"
    BUNDLE = "bundle"
    ELF = "elf"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """All code objects of one target id in one file; `arch` is e.g. `gfx906:xnack-`."""

    path: str
    arch: str
    bytes: int
    objects: int
    kind: CodeKind
    compressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something the census refuses; `code` is UPPER_SNAKE and never changes its meaning."""

    code: str
    path: str
    message: str


def census_file(
    path: Path, name: str, *, offset: int = 0, size: int | None = None
) -> tuple[DeviceCode, ...]:
    """List the device code of a file, or of a member of a plain tar.

    Told apart by content, never by name; () for a file without any. Raises StageError
    MALFORMED_ELF, MALFORMED_BUNDLE, TRUNCATED, TARGET_MISMATCH for a file that cannot be
    counted, so that nothing is passed over.
    """
    if not _may_hold_code(path, offset, size):
        return ()
    with opened(Region(path, offset, size), name) as window:
        return census_window(window)


def census_window(window: Window) -> tuple[DeviceCode, ...]:
    """List the device code of bytes already at hand."""
    head = window.take(0, min(HEAD, window.size))
    if head.startswith((MAGIC, COMPRESSED_MAGIC)):
        return _of_bundles(window, CodeKind.BUNDLE, 0, window.size)
    if not head.startswith(ELF64_LE):
        return ()
    elf = read_elf(window)
    if elf.header.machine == EM_AMDGPU:
        arch = str(elf.target() or UNKNOWN)
        row = DeviceCode(
            path=window.name, arch=arch, bytes=window.size, objects=1, kind=CodeKind.ELF
        )
        return (row,)
    return _of_host_file(elf)


def _may_hold_code(path: Path, offset: int, size: int | None) -> bool:
    """Most files of a tree are told apart by their first bytes, without mapping them."""
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        head = file.read(HEAD if size is None else min(HEAD, size))
    return head.startswith((MAGIC, COMPRESSED_MAGIC, ELF64_LE))


def _of_host_file(elf: Elf) -> tuple[DeviceCode, ...]:
    if not elf.sections and elf.window.find(MAGIC, 0, elf.window.size) >= 0:
        msg = f"{elf.window.name}: it has device code but no section headers to find it by"
        raise StageError("MALFORMED_ELF", msg, at=elf.window.name)
    rows: list[DeviceCode] = []
    for section in elf.sections:
        if section.name.startswith(FATBIN):
            rows += _of_bundles(elf.window, CodeKind.FATBIN, section.offset, section.end)
    return tuple(rows)


def _of_bundles(window: Window, kind: CodeKind, start: int, end: int) -> tuple[DeviceCode, ...]:
    sums: dict[tuple[str, bool], list[int]] = {}
    for bundle in read_bundles(window, start, end):
        for target, size in _targets(window, bundle):
            sums.setdefault((target, bundle.compressed is not None), []).append(size)
    return tuple(
        DeviceCode(
            path=window.name,
            arch=arch,
            bytes=sum(sizes),
            objects=len(sizes),
            kind=kind,
            compressed=compressed,
        )
        for (arch, compressed), sizes in sorted(sums.items())
    )


def _targets(window: Window, bundle: Bundle) -> Iterator[tuple[str, int]]:
    """Take the target from the bundle's entry, once the code object was seen to agree."""
    for entry in bundle.entries:
        if entry.size and not entry.id.startswith("host-"):
            target = entry.target
            if target is not None and target.processor.startswith("gfx"):
                _check_agreement(window, bundle, entry, target)
            yield str(target or UNKNOWN), entry.size


def _check_agreement(window: Window, bundle: Bundle, entry: Entry, declared: Target) -> None:
    """Refuse an entry that is named for a GPU its code object is not made for."""
    head = bundle.data.take(entry.offset, min(entry.size, len(ELF64_LE)))
    header = read_header(bundle.data, entry.offset) if head == ELF64_LE else None
    where = f"{window.name}: bundle at {bundle.start:#x}: the entry {entry.id}"
    if header is None or header.machine != EM_AMDGPU:
        msg = f"{where} holds no code object"
        raise StageError("TARGET_MISMATCH", msg, at=window.name)
    found = target_of_flags(header.flags, header.abi_version)
    # Before version 4 the flags could not say "either".
    exact = header.abi_version >= ABI_V4
    if found and (found != declared if exact else found.processor != declared.processor):
        msg = f"{where} holds a code object for {found}"
        raise StageError("TARGET_MISMATCH", msg, at=window.name)


def judge_census(
    found: Sequence[DeviceCode],
    spec: Census,
    *,
    paths: Sequence[str],
    env: Mapping[str, str],
    texts: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Compare what was found with what the spec demands; () when nothing is wrong.

    `paths` are all files of the tree; `env` the image's variables; `texts` the content of
    its environment files (see `is_environment_file`), by path.
    """
    return (
        *_judge_files(found, spec.arch),
        *_judge_libraries(found, spec),
        *_judge_kernel_files(paths, spec),
        *_judge_overrides(env, texts or {}),
    )


def runs_on(arch: str, processor: str) -> bool:
    """Whether a card of this processor loads the code object: ours never have XNACK on.

    >>> [runs_on(a, "gfx906") for a in ("gfx906", "gfx906:sramecc+:xnack-", "gfx906:xnack+")]
    [True, True, False]
    """
    target = parse_target(arch)
    return target is not None and target.processor == processor and target.xnack != "+"


def _judge_files(found: Sequence[DeviceCode], processor: str) -> Iterator[Finding]:
    rows: dict[str, list[DeviceCode]] = {}
    for code in found:
        rows.setdefault(code.path, []).append(code)
    for path in sorted(rows):
        foreign = [code for code in rows[path] if not runs_on(code.arch, processor)]
        there = ", ".join(f"{code.arch} ({code.bytes / 1e6:.1f} MB)" for code in foreign)
        if len(foreign) == len(rows[path]):
            message = f"{path}: its device code has nothing for {processor}, only {there}"
            yield Finding(code="ARCH_ABSENT", path=path, message=message)
        elif foreign:
            message = f"{path}: device code no {processor} can run: {there}"
            yield Finding(code="FOREIGN_TARGET", path=path, message=message)


def _judge_libraries(found: Sequence[DeviceCode], spec: Census) -> Iterator[Finding]:
    able = {code.path for code in found if runs_on(code.arch, spec.arch)}
    for glob in spec.libraries:
        if not any(fnmatch.fnmatchcase(path, glob) for path in able):
            message = f"no library matching {glob} has device code for {spec.arch}"
            yield Finding(code="LIBRARY_ABSENT", path=glob, message=message)


def _judge_kernel_files(paths: Sequence[str], spec: Census) -> Iterator[Finding]:
    for glob, least in spec.kernel_files.items():
        count = sum(fnmatch.fnmatchcase(path, glob) for path in paths)
        if count < least:
            message = f"{count} files match {glob}, at least {least} must"
            yield Finding(code="KERNEL_FILES_ABSENT", path=glob, message=message)


_ENVIRONMENT_FILES = re.compile(
    r"^(usr/)?(etc/(environment|profile|bash\.bashrc)$|etc/(environment|profile)\.d/"
    r"|etc/default/|lib/environment\.d/|(etc|lib)/systemd/.*\.(service|conf)$)"
)
_OVERRIDE = re.compile(r"^[^#;\n]*?\b(HSA_OVERRIDE_\w+)\s*=", re.MULTILINE)


def is_environment_file(path: str) -> bool:
    """Whether a file of the tree sets variables for programs.

    >>> [is_environment_file(p) for p in ("etc/environment", "etc/profile.d/x.sh", "etc/hosts")]
    [True, True, False]
    """
    return _ENVIRONMENT_FILES.match(path) is not None


def _judge_overrides(env: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[Finding]:
    places = [("the image's environment", name) for name in sorted(env)]
    places += [
        (path, name) for path in sorted(texts) for name in _OVERRIDE.findall(texts[path])
    ]
    for where, name in places:
        if name.startswith("HSA_OVERRIDE_"):
            message = (
                f"{name} is set in {where}: it makes the runtime load code for another GPU"
            )
            yield Finding(code="HSA_OVERRIDE", path=where, message=message)

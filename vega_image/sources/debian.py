"""Debian packages: resolved by apt itself, locked file by file with what signed for them."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from vega_image.digest import digest_bytes, hex_of
from vega_image.errors import BytesError, LockError, UsageError
from vega_image.lock import LockedDebian, PackageFile, ReleaseFile
from vega_image.sources.apt import Apt, complaints, make_root
from vega_image.sources.aptindex import (
    Planned,
    package_names,
    parse_print_uris,
    parse_release,
    stanzas,
)
from vega_image.sources.origin import Origin
from vega_image.spec import DebianSource


@dataclass(frozen=True, slots=True)
class Index:
    """One Packages file that apt has verified, and the Release file above it."""

    suite: str
    component: str
    packages: Path
    release: Path


def resolve(
    source: DebianSource,
    *,
    origin: Origin,
    scratch: Path,
    now: int,
    log: Callable[[str], None],
) -> LockedDebian:
    """Let apt choose, in an empty root of its own, which files `source` means today.

    `now` is seconds since 1970, held against each Release's Valid-Until. The host's packages,
    pins and keys play no part; the answer names no mirror.

    Raises UsageError BAD_PIN, BAD_MIRROR, NO_MIRROR, NO_KEYRING; LockError RELEASE_EXPIRED,
    SUITE_ABSENT, COMPONENT_ABSENT, PACKAGE_UNKNOWN, UNRESOLVABLE; BytesError
    RELEASE_BAD_SIGNATURE, MIRROR_UNREACHABLE, INDEX_WRONG_DIGEST, INDEX_MALFORMED.
    """
    root = scratch / "apt"
    shutil.rmtree(root, ignore_errors=True)
    try:
        mirror, keyring = origin.base(), origin.trusted()
        apt = make_root(root, source, mirror=mirror, keyring=keyring, log=log)
        apt.update()
        indexes = _indexes(apt, source)
        files = {index.suite: index.release.read_bytes() for index in indexes}
        releases = tuple(_release(s, data, source, now) for s, data in files.items())
        _check_names(source, indexes)
        planned = _choose(apt, source)
        packages = _files(planned, indexes)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    _check_complete(source, packages)
    return LockedDebian(kind="debian", releases=releases, packages=packages)


def _indexes(apt: Apt, source: DebianSource) -> list[Index]:
    form = "$(RELEASE)|$(COMPONENT)|$(METAKEY)|$(FILENAME)"
    done = apt.command("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    found = []
    for line in done.output.splitlines():
        suite, component, key, name = line.split("|", 3)
        release = Path(name.removesuffix(key.replace("/", "_")) + "InRelease")
        if not release.is_file():
            release = release.with_name(release.name.removesuffix("InRelease") + "Release")
        if Path(name).is_file():
            found.append(Index(suite, component, Path(name), release))
    have = {(index.suite, index.component) for index in found}
    missing = [
        f"{s} {c}" for s in source.suites for c in source.components if (s, c) not in have
    ]
    if missing:
        msg = f"the archive has no {source.architecture} packages in: {', '.join(missing)}"
        hint = "correct `suites:`, `components:` or `architecture:` in the spec"
        raise LockError("COMPONENT_ABSENT", msg, hint=hint, at=missing[0])
    return sorted(found, key=lambda index: source.suites.index(index.suite))


def _releases(
    indexes: Iterable[Index], source: DebianSource, now: int
) -> tuple[ReleaseFile, ...]:
    files = {index.suite: index.release for index in indexes}
    return tuple(
        _release(suite, path.read_bytes(), source, now) for suite, path in files.items()
    )


def _release(suite: str, data: bytes, source: DebianSource, now: int) -> ReleaseFile:
    try:
        release = parse_release(data)
    except ValueError as error:
        msg = f"the Release file of {suite}: {error}"
        raise BytesError("RELEASE_MALFORMED", msg, at=suite) from None
    expired = release.valid_until is not None and release.valid_until < now
    if expired and release.valid_until is not None and not source.accept_expired_release:
        msg = (
            f"the Release file of {suite} is of {_day(release.date)} and was valid until"
            f" {_day(release.valid_until)}: the mirror stands still, or somebody replays it"
        )
        hint = "use a living mirror, or write `accept_expired_release: true` in the spec"
        raise LockError("RELEASE_EXPIRED", msg, hint=hint, at=suite)
    return ReleaseFile(
        suite=suite,
        date=release.date,
        valid_until=release.valid_until,
        sha256=hex_of(digest_bytes(data)),
        expired_accepted=expired,
    )


def _check_names(source: DebianSource, indexes: Sequence[Index]) -> None:
    """Refuse unknown names before apt sees them: it would take `a.b` for a pattern."""
    texts = {index.packages: index.packages.read_bytes() for index in indexes}
    known = frozenset[str]().union(*map(package_names, texts.values()))
    unknown = sorted(source.packages - known)
    if not unknown:
        return
    lines = [f"  {name}{_advice(name, known, texts)}" for name in unknown]
    where = ", ".join(source.suites)
    msg = "\n".join([f"no such package in {where} ({' '.join(source.components)}):", *lines])
    hint = "correct `packages:` in the spec"
    raise LockError("PACKAGE_UNKNOWN", msg, hint=hint, at=unknown[0])


def _advice(name: str, known: frozenset[str], texts: Mapping[Path, bytes]) -> str:
    pattern = re.compile(
        rb"^Provides:.*[ ,]" + re.escape(name.encode()) + rb"(?=[ ,:(]|$)", re.MULTILINE
    )
    providers: set[str] = set()
    for text in texts.values():
        for match in pattern.finditer(text):
            start = text.rfind(b"Package:", 0, match.start())
            providers |= package_names(text[start : text.find(b"\n", start)])
    if providers:
        return f": only a virtual name; name one of {', '.join(sorted(providers)[:5])}"
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _choose(apt: Apt, source: DebianSource) -> tuple[Planned, ...]:
    asked = [*(["?essential"] if source.essential else []), *sorted(source.packages)]
    done = apt.command("apt-get", "install", "--print-uris", "-y", "-q", "--", *asked)
    if done.returncode != 0:
        msg = f"apt finds no way to install what the spec asks for:\n{complaints(done.output)}"
        hint = "correct `packages:`, `suites:` or `pins:` in the spec"
        raise LockError("UNRESOLVABLE", msg, hint=hint)
    if "Did not understand pin" in done.output:
        # apt only warns, and would go on with packages that nobody asked for.
        msg = f"apt does not understand a pin of the spec:\n{complaints(done.output)}"
        raise UsageError("BAD_PIN", msg, hint="man apt_preferences", at="pins")
    return parse_print_uris(done.output)


def _files(planned: Sequence[Planned], indexes: Iterable[Index]) -> tuple[PackageFile, ...]:
    """Take names from the signed index: apt's own file names are escaped (`%3a`, `%2b`)."""
    sizes = {item.sha256: item.size for item in planned}
    found: dict[str, PackageFile] = {}
    for index in indexes:
        for stanza in stanzas(index.packages.read_bytes(), sizes.keys()):
            file = _file(stanza, index.suite)
            if sizes[file.sha256] == file.size:
                found.setdefault(file.sha256, file)
    lost = [item.name for item in planned if item.sha256 not in found]
    if lost:
        msg = f"apt chose files that no index of the archive lists: {', '.join(lost)}"
        raise LockError("UNRESOLVABLE", msg, at=lost[0])
    return tuple(sorted(found.values(), key=lambda file: (file.package, file.architecture)))


def _file(stanza: Mapping[str, str], suite: str) -> PackageFile:
    try:
        return PackageFile(
            package=stanza["package"],
            version=stanza["version"],
            architecture=stanza["architecture"],
            suite=suite,
            pool_path=stanza["filename"],
            size=int(stanza["size"]),
            sha256=stanza["sha256"],
        )
    except (KeyError, ValidationError, ValueError) as error:
        name = stanza.get("package", "a package without a name")
        msg = f"the index of {suite} says of {name} what no lock can hold: {error}"
        raise BytesError("INDEX_MALFORMED", msg, at=f"{suite}: {name}") from None


def _check_complete(source: DebianSource, packages: Iterable[PackageFile]) -> None:
    lost = sorted(source.packages - {file.package for file in packages})
    if lost:
        msg = f"apt left out what the spec asks for: {', '.join(lost)}"
        raise LockError("UNRESOLVABLE", msg, hint="look at `pins:` in the spec", at=lost[0])


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d")

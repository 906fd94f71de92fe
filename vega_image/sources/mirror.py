"""Which Debian archive this host already trusts: read from its apt configuration.

vega-image knows no mirror of its own (docs/architecture.md): `--debian-mirror`, else what
apt on this host uses, else an error that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from vega_image.errors import UsageError

SCHEMES = frozenset({"http", "https", "file", "copy"})
HINT = "name one: --debian-mirror URL (or VEGA_IMAGE_DEBIAN_MIRROR)"
_SUITE = re.compile(
    r"(sid|unstable|testing|(old){0,2}stable|experimental|buster|bullseye|bookworm|trixie"
    r"|forky|duke)(-updates|-backports|-proposed-updates)?"
)
_KEYRINGS = ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp")


@dataclass(frozen=True, slots=True, kw_only=True)
class AptEntry:
    """One address of an apt configuration with its suites and components."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""
    main_file: bool = field(default=False)


def host_mirror(sysroot: Path = Path("/")) -> str:
    """Return the base address of the host's Debian archive, without a slash at its end.

    Raises UsageError NO_MIRROR when its apt configuration names none.
    """
    ranked = sorted(_candidates(sysroot), key=_rank)
    for entry in ranked:
        for address in _plain(entry.uri, sysroot):
            if urlsplit(address).scheme in SCHEMES:
                return address.rstrip("/")
    msg = f"no Debian archive in the apt configuration under {sysroot / 'etc/apt'}"
    raise UsageError("NO_MIRROR", msg, hint=HINT, at=str(sysroot / "etc/apt"))


def check_address(bare: str) -> None:
    """Raise UsageError BAD_MIRROR for what is no archive's address (without credentials)."""
    if urlsplit(bare).scheme not in SCHEMES or re.search(r"[\s\[\]]", bare):
        msg = f"{bare!r} is not the address of an archive (http, https, file, copy)"
        raise UsageError("BAD_MIRROR", msg, hint="--debian-mirror URL", at=bare)


def host_keyring(sysroot: Path = Path("/")) -> Path:
    """Return the keyring that signs for Debian on this host; raises UsageError NO_KEYRING."""
    folder = sysroot / "usr/share/keyrings"
    for name in _KEYRINGS:
        if (folder / name).is_file():
            return folder / name
    msg = f"no Debian archive keyring in {folder}"
    hint = "apt-get install debian-archive-keyring, or name one: --debian-keyring FILE"
    raise UsageError("NO_KEYRING", msg, hint=hint, at=str(folder))


def parse_list(text: str, *, main_file: bool = False) -> tuple[AptEntry, ...]:
    """Read one-line style (sources.list(5)); lines that are no `deb` entry are passed over."""
    entries = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?([^\s#]+)\s+([^#]*)", line)
        if match is None:
            continue
        options, uri, rest = match.groups()
        signed = re.search(r"(?:^|\s)signed-by=(\S+)", options or "", re.IGNORECASE)
        suite, *components = rest.split() or [""]
        entries.append(
            AptEntry(
                uri=uri,
                suites=(suite,),
                components=tuple(components),
                signed_by=signed[1] if signed else "",
                main_file=main_file,
            )
        )
    return tuple(entries)


def parse_deb822(text: str) -> tuple[AptEntry, ...]:
    """Read deb822 style (*.sources); disabled and source-only stanzas are passed over."""
    return tuple(
        AptEntry(
            uri=uri,
            suites=tuple(stanza.get("suites", "").split()),
            components=tuple(stanza.get("components", "").split()),
            signed_by=stanza.get("signed-by", "").strip(),
        )
        for stanza in deb822(text)
        if "deb" in stanza.get("types", "").split()
        and stanza.get("enabled", "yes").strip().lower() not in {"no", "false", "0", "off"}
        for uri in stanza.get("uris", "").split()
    )


def deb822(text: str) -> Iterator[dict[str, str]]:
    """Split control data into stanzas: lower-case field name -> text, lines joined by \\n."""  # noqa: D301 - the two characters
    stanza: dict[str, str] = {}
    name = ""
    for line in [*text.split("\n"), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if stanza:
                yield stanza
            stanza, name = {}, ""
        elif line[0] in " \t":
            if name:
                stanza[name] += "\n" + line.strip()
        else:
            key, colon, value = line.partition(":")
            name = key.strip().lower() if colon else ""
            if name:
                stanza[name] = value.strip()


def _candidates(sysroot: Path) -> Iterator[AptEntry]:
    etc = sysroot / "etc/apt"
    entries = list(parse_list(_text(etc / "sources.list"), main_file=True))
    for path in sorted((etc / "sources.list.d").glob("*")):
        if path.suffix == ".list":
            entries += parse_list(_text(path))
        elif path.suffix == ".sources":
            entries += parse_deb822(_text(path))
    return (entry for entry in entries if _rank(entry) < len(_RANKS))


def _rank(entry: AptEntry) -> int:
    """Vendors' archives also have suites called bookworm: who signs says more than a name."""
    if "main" not in entry.components or "security" in entry.uri.rpartition("/")[2]:
        return len(_RANKS)
    if not any(_SUITE.fullmatch(suite) for suite in entry.suites):
        return len(_RANKS)
    facts: Mapping[str, bool] = {
        "signed": Path(entry.signed_by).name in _KEYRINGS,
        "named": urlsplit(entry.uri).path.rstrip("/").endswith("/debian"),
        "main": entry.main_file and not entry.signed_by,
    }
    return next((i for i, name in enumerate(_RANKS) if facts[name]), len(_RANKS))


_RANKS = ("signed", "named", "main")


def _plain(uri: str, sysroot: Path) -> list[str]:
    """Cloud images name their mirror in a file: mirror+file:/etc/apt/mirrors/debian.list."""
    scheme, _, rest = uri.partition(":")
    if scheme != "mirror+file":
        return [uri]
    lines = _text(sysroot / rest.lstrip("/")).splitlines()
    return [line.split()[0] for line in lines if line.split() and not line.startswith("#")]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

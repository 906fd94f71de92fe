"""wsl.conf and wsl-distribution.conf: read line by line, and what no line may say. Pure.

Sections and keys: MicrosoftDocs/WSL, wsl-config and build-custom-distro. WSL takes an unknown
key for nothing at all, so a slip of the pen would go unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from vega_image.checks.finding import Finding
from vega_image.wsl import places
from vega_image.wsl.spec import DEVICES, LAST_UID

SYNTAX: Final = "wsl-conf-syntax"
KEY: Final = "wsl-conf-key"
VALUE: Final = "wsl-conf-value"
TWICE: Final = "wsl-conf-twice"
COMMAND: Final = "wsl-oobe-command"
UID: Final = "wsl-oobe-uid"
NAME: Final = "wsl-oobe-name"
BOOLEANS: Final = frozenset({"true", "false"})
Known = Mapping[str, frozenset[str]]
KNOWN: Final[Mapping[str, Known]] = MappingProxyType(
    {
        places.CONF: {
            "automount": frozenset({"enabled", "mountFsTab", "root", "options"}),
            "network": frozenset({"generateHosts", "generateResolvConf", "hostname"}),
            "interop": frozenset({"enabled", "appendWindowsPath"}),
            "user": frozenset({"default"}),
            "boot": frozenset({"systemd", "command", "protectBinfmt"}),
            "gpu": frozenset({"enabled", "appendLibPath"}),
            "time": frozenset({"useWindowsTimezone"}),
        },
        places.DISTRIBUTION: {
            "oobe": frozenset({"command", "defaultUid", "defaultName"}),
            "shortcut": frozenset({"enabled", "icon"}),
            "windowsterminal": frozenset({"enabled", "profileTemplate"}),
        },
    }
)
TEXTS: Final = frozenset(
    {"root", "options", "hostname", "default", "command", "defaultUid", "defaultName", "icon"}
    | {"profileTemplate"}
)
_KEY: Final = re.compile(r"\s*([A-Za-z]+)\s*=\s*(.*?)\s*")
_SECTION: Final = re.compile(r"\s*\[([A-Za-z]+)\]\s*")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Setting:
    """One line `key = value` of a section; `line` counts from 1."""

    line: int
    section: str
    key: str
    value: str


def settings(path: str, data: bytes) -> tuple[tuple[Setting, ...], tuple[Finding, ...]]:
    """Read one of the two files: its settings, and what is wrong with single lines."""
    known = KNOWN[path]
    found: list[Setting] = []
    wrong: list[Finding] = []
    section = ""
    for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if head := _SECTION.fullmatch(line):
            section = head[1]
            if section not in known:
                wrong.append(_finding(KEY, path, number, f"WSL knows no section [{section}]"))
            continue
        pair = _KEY.fullmatch(line)
        if not (pair and section and line.isascii() and line.isprintable()):
            wrong.append(_finding(SYNTAX, path, number, "no [section], no `key = value`"))
            continue
        setting = Setting(number, section, pair[1], pair[2])
        wrong += _judged(path, setting, found)
        found.append(setting)
    return tuple(found), tuple(wrong)


def value_of(found: tuple[Setting, ...], section: str, key: str) -> Setting | None:
    """Find a setting; None when the file does not have it."""
    rows = [s for s in found if (s.section, s.key) == (section, key)]
    return rows[0] if rows else None


def judge_distribution(found: tuple[Setting, ...]) -> Iterator[Finding]:
    """Judge what [oobe] says, as far as the file alone tells."""
    path = places.DISTRIBUTION
    command = value_of(found, "oobe", "command")
    if command is None or not command.value.startswith("/"):
        message = "[oobe] wants `command`, an absolute path: it is the gate of the first shell"
        yield _finding(COMMAND, path, _line(command), message)
    uid = value_of(found, "oobe", "defaultUid")
    if uid is None or not re.fullmatch(r"[1-9][0-9]{3,4}", uid.value) or _late(uid.value):
        message = f"[oobe] wants `defaultUid` of 1000 to {LAST_UID}: shells are not root's"
        yield _finding(UID, path, _line(uid), message)
    name = value_of(found, "oobe", "defaultName")
    if name is None or not _NAME.fullmatch(name.value) or _device(name.value):
        message = "[oobe] wants `defaultName`: ASCII letters, digits, . _ -; no device's name"
        yield _finding(NAME, path, _line(name), message)


def _judged(path: str, setting: Setting, before: list[Setting]) -> Iterator[Finding]:
    known = KNOWN[path].get(setting.section)
    if known is not None and setting.key not in known:
        message = f"WSL knows no key {setting.key} in [{setting.section}]"
        yield _finding(KEY, path, setting.line, message)
    elif setting.key not in TEXTS and setting.value not in BOOLEANS:
        message = f"{setting.key} is true or false, not {setting.value!r}"
        yield _finding(VALUE, path, setting.line, message)
    if any((s.section, s.key) == (setting.section, setting.key) for s in before):
        message = f"{setting.key} is there twice in [{setting.section}]"
        yield _finding(TWICE, path, setting.line, message)


def _late(uid: str) -> bool:
    return int(uid) > LAST_UID


def _device(name: str) -> bool:
    return name.partition(".")[0].lower() in DEVICES


def _line(setting: Setting | None) -> int:
    return setting.line if setting else 0


def _finding(rule: str, path: str, line: int, message: str) -> Finding:
    return Finding(rule=rule, path=path, line=line, message=message)

"""Where things are and what the user chose: flag, then VEGA_IMAGE_*, then config files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from vega_image.errors import UsageError

APP = "vega-image"
CONFIG_KEYS = frozenset({"debian_mirror", "debian_snapshot", "engine", "store"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """XDG folders of this user; for root those of the machine (/var, /etc)."""

    config: tuple[Path, ...]
    cache: Path
    state: Path

    @classmethod
    def of(cls, environ: Mapping[str, str], *, uid: int) -> Folders:
        """Decide from XDG_* and HOME; an XDG variable always wins."""
        home = Path(environ.get("HOME") or "/")
        root = uid == 0
        system = Path("/etc") / APP
        config = _xdg(environ, "XDG_CONFIG_HOME", system if root else home / ".config" / APP)
        cache = _xdg(
            environ,
            "XDG_CACHE_HOME",
            Path("/var/cache") / APP if root else home / ".cache" / APP,
        )
        state = _xdg(
            environ,
            "XDG_STATE_HOME",
            Path("/var/lib") / APP if root else home / ".local/state" / APP,
        )
        return cls(config=(system, config), cache=cache, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every command works with; made once, in cli.py."""

    factory: Path | None
    cwd: Path
    store: Path
    state: Path
    mirror: str | None
    snapshots: tuple[str, ...]
    keyring: Path | None
    offline: bool
    engine: str
    environ: Mapping[str, str]

    @property
    def logs(self) -> Path:
        """Where stage logs are kept."""
        return self.state / "logs"


def read_config(folders: Folders) -> dict[str, str]:
    """Merge the config files, later ones winning; raises UsageError CONFIG_INVALID."""
    merged: dict[str, str] = {}
    for folder in dict.fromkeys(folders.config):
        path = folder / "config.yaml"
        if path.is_file():
            merged |= _config(path)
    return merged


def _config(path: Path) -> dict[str, str]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise UsageError("CONFIG_INVALID", msg, at=str(path)) from None
    known = isinstance(value, dict) and value.keys() <= CONFIG_KEYS
    if not known or not all(isinstance(item, str) for item in value.values()):
        msg = f"{path}: may hold only the texts {', '.join(sorted(CONFIG_KEYS))}"
        raise UsageError("CONFIG_INVALID", msg, at=str(path))
    return cast("dict[str, str]", value)


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    given = environ.get(name)
    return Path(given) / APP if given and Path(given).is_absolute() else default

"""Options that every word shares, and the values made of them. Imports nothing heavy."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from vega_image.console import Console
    from vega_image.factory import Factory
    from vega_image.settings import Settings
    from vega_image.store import Store

P = ParamSpec("P")
R = TypeVar("R")

FOLDER = click.Path(file_okay=False, path_type=Path)
BUILD_SECONDS = 6 * 3600.0
FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a word: its settings and the console it speaks through."""

    settings: Settings
    console: Console

    @property
    def factory(self) -> Factory:
        """The factory this call works on."""
        from vega_image.factory import Factory

        return Factory.find(self.settings.factory, cwd=self.settings.cwd)

    @property
    def store(self) -> Store:
        """The store this call works on."""
        from vega_image.store import Store

        return Store(self.settings.store)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The options of `build` for a Windows target; `timeout` in seconds."""

    platform: str | None = None
    iso: Path | None = None
    payload: Path | None = None
    ssh_key: Path | None = None
    driver: Path | None = None
    timeout: float = BUILD_SECONDS
    variables: tuple[str, ...] = ()

    def given(self) -> list[str]:
        """Return the options that were given, as they are typed."""
        known = {
            "--platform": self.platform,
            "--iso": self.iso,
            "--payload": self.payload,
            "--ssh-key": self.ssh_key,
            "--driver": self.driver,
            "--timeout": None if self.timeout == BUILD_SECONDS else self.timeout,
            "--var": self.variables or None,
        }
        return [option for option, value in known.items() if value is not None]


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse NaN, which is in no range and out of none."""
    if math.isnan(value):
        msg = "nan is no number of seconds"
        raise click.BadParameter(msg, context, parameter)
    return value


def machine(function: Callable[P, R]) -> Callable[..., R]:
    """Add the options of Windows targets; the word receives `machine`."""

    @platform
    @click.option("--iso", type=FILE, help="kind windows: the installation medium.")
    @click.option("--payload", type=FOLDER, help="kind windows: the files the office brings.")
    @click.option("--ssh-key", type=FILE, help="kind windows: key to log on, beside its .pub.")
    @click.option("--driver", type=FOLDER, help="kind windows: the unpacked display driver.")
    @click.option(
        "--timeout",
        type=click.FloatRange(1, 7 * 86400),
        default=BUILD_SECONDS,
        callback=_finite,
        help="kind windows: seconds that packer may take (default 6 hours).",
    )
    @click.option(
        "--var",
        "variables",
        multiple=True,
        metavar="NAME=VALUE",
        help="kind windows: a variable of packer.",
    )
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        names = ("platform", "iso", "payload", "ssh_key", "driver", "timeout", "variables")
        taken: dict[str, Any] = {name: kwargs.pop(name) for name in names}
        kwargs["machine"] = Machine(**taken)
        return function(*args, **kwargs)

    return wrapped


def word(function: Callable[Concatenate[Call, P], R]) -> Callable[P, R]:
    """Give a word the common options and turn them into a Call."""

    @click.option("-C", "--directory", type=FOLDER, help="Factory folder (holds images/).")
    @click.option("--store", type=FOLDER, envvar="VEGA_IMAGE_STORE", help="Store folder.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
    @click.option(
        "--progress",
        type=click.Choice(["auto", "tty", "plain", "json"]),
        default="auto",
        envvar="VEGA_IMAGE_PROGRESS",
        help="How progress is shown (stderr).",
    )
    @click.option("-v", "--verbose", is_flag=True, help="Show the output of stages.")
    @click.option("-q", "--quiet", is_flag=True, help="Only the result and warnings.")
    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        call = _call(kwargs)
        try:
            return function(call, *args, **kwargs)
        except (EOFError, BrokenPipeError) as error:
            # click would take the one for Ctrl-C and end silently for the other.
            msg = f"a stream ended unexpectedly: {error}"
            raise RuntimeError(msg) from error
        finally:
            call.console.close()

    return wrapped


def fetching(function: Callable[P, R]) -> Callable[P, R]:
    """Add the options of words that may use the network."""
    decorated = click.option("--offline", is_flag=True, help="Never use the network.")(function)
    decorated = click.option(
        "--debian-keyring",
        type=FILE,
        envvar="VEGA_IMAGE_DEBIAN_KEYRING",
        help="Keyring of the mirror; default: the host's.",
    )(decorated)
    decorated = click.option(
        "--debian-snapshot",
        metavar="URL",
        envvar="VEGA_IMAGE_DEBIAN_SNAPSHOT",
        help="Archive base asked for files that left the mirror.",
    )(decorated)
    return click.option(
        "--debian-mirror",
        metavar="URL",
        envvar="VEGA_IMAGE_DEBIAN_MIRROR",
        help="Debian mirror; default: the host's apt configuration.",
    )(decorated)


def engine(function: Callable[P, R]) -> Callable[P, R]:
    """Add --engine."""
    return click.option(
        "--engine",
        type=click.Choice(["auto", "docker", "podman"]),
        envvar="VEGA_IMAGE_ENGINE",
        help="Container engine (default auto).",
    )(function)


def platform(function: Callable[P, R]) -> Callable[P, R]:
    """Add --platform of Windows targets."""
    return click.option(
        "--platform",
        type=click.Choice(["qemu", "hyperv", "proxmox", "metal"]),
        help="kind windows: where it is to live (default: the spec's).",
    )(function)


def target_argument(function: Callable[P, R]) -> Callable[P, R]:
    """Add TARGET and its alias --target; the word receives `target`."""
    decorated = click.argument(
        "target", required=False, callback=_target, shell_complete=_complete_target
    )(function)
    return click.option(
        "--target", "target_alias", metavar="TARGET", help="Same as TARGET.", is_eager=True
    )(decorated)


def ref_argument(function: Callable[P, R]) -> Callable[P, R]:
    """Add REF; a target's name is the usual one."""
    return click.argument("ref", shell_complete=_complete_target)(function)


def _complete_target(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    from vega_image.factory import Factory

    names = Factory.find(None, cwd=Path.cwd()).names()
    return [name for name in names if name.startswith(incomplete)]


def _target(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    alias = context.params.pop("target_alias", None)
    if value and alias and value != alias:
        msg = f"TARGET is {value!r} but --target is {alias!r}"
        raise click.UsageError(msg, context)
    chosen = value or alias
    if not chosen:
        raise click.MissingParameter(ctx=context, param=parameter)
    return chosen


def quiet_call(*, store: Path | None, engine: str | None) -> Call:
    """Make the Call of a word that has its own options and its own output."""
    flags = dict.fromkeys(("verbose", "debug", "as_json", "directory"))
    return _call(
        {**flags, "quiet": True, "progress": "plain", "store": store, "engine": engine}
    )


def _call(options: dict[str, Any]) -> Call:
    from vega_image.console import Console, Level
    from vega_image.settings import Folders, Settings, read_config

    level = Level.NORMAL
    if options.pop("verbose"):
        level = Level.VERBOSE
    if options.pop("quiet"):
        level = Level.QUIET
    options.pop("debug")
    console = Console.choose(
        progress=options.pop("progress"),
        as_json=options.pop("as_json"),
        environ=os.environ,
        level=level,
    )
    folders = Folders.of(os.environ, uid=os.geteuid())
    config = read_config(folders)
    store = options.pop("store") or config.get("store") or folders.cache / "store"
    snapshot = options.pop("debian_snapshot", None) or config.get("debian_snapshot")
    settings = Settings(
        factory=options.pop("directory"),
        cwd=Path.cwd(),
        store=Path(store).absolute(),
        state=folders.state,
        mirror=options.pop("debian_mirror", None) or config.get("debian_mirror"),
        snapshots=(snapshot,) if snapshot else (),
        keyring=options.pop("debian_keyring", None),
        offline=options.pop("offline", False),
        engine=options.pop("engine", None) or config.get("engine") or "auto",
        environ=dict(os.environ),
    )
    return Call(settings=settings, console=console)

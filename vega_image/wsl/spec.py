"""What a `wsl` target asks for beside its root: the section `wsl:`. Reads no file.

Meaning of the settings: MicrosoftDocs/WSL, build-custom-distro and wsl-config.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from vega_image.model import Model

FIRST_UID: Final = 1000
LAST_UID: Final = 60000
# Names Windows keeps for devices: no file, folder or distribution may have one.
DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
)
# Accounts and groups of Debian's base-passwd, and those that systemd and dbus bring.
_TAKEN: Final = """
root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc
nobody nogroup adm tty disk kmem dialout fax voice cdrom floppy tape sudo audio dip
operator src shadow utmp video sasl plugdev staff users messagebus input sgx clock
kvm render crontab sshd polkitd systemd-network systemd-journal systemd-resolve
systemd-timesync
"""
TAKEN: Final = frozenset(_TAKEN.split())


def _not_a_device(text: str) -> str:
    if text.partition(".")[0].lower() in DEVICES:
        msg = f"{text!r} is a device name on Windows"
        raise ValueError(msg)
    return text


def _free(name: str) -> str:
    if not name.isascii():
        msg = f"{name!r}: only ASCII letters, as useradd and \\\\wsl.localhost want it"
        raise ValueError(msg)
    if name in TAKEN:
        msg = f"{name!r} is an account or group of Debian itself"
        raise ValueError(msg)
    return _not_a_device(name)


def _ordinary(uid: int) -> int:
    if uid == 0:
        msg = "0 is root; the account of a shell is an ordinary one"
        raise ValueError(msg)
    if not FIRST_UID <= uid <= LAST_UID:
        msg = f"{uid} is not of the numbers for people, {FIRST_UID} to {LAST_UID}"
        raise ValueError(msg)
    return uid


def _ascii(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        msg = f"{text!r}: printable ASCII only"
        raise ValueError(msg)
    return text


DistributionName = Annotated[
    str,
    AfterValidator(_ascii),
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]$", max_length=64),
    AfterValidator(_not_a_device),
]
AccountName = Annotated[
    str,
    AfterValidator(_free),
    StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$"),
]
Uid = Annotated[int, AfterValidator(_ordinary)]
Line = Annotated[str, AfterValidator(_ascii), StringConstraints(min_length=1, max_length=128)]
MountPoint = Annotated[str, StringConstraints(pattern=r"^/([a-z0-9_-]+/)*$")]
Home = Annotated[str, StringConstraints(pattern=r"^/home(/[a-z0-9_][a-z0-9_-]*)+$")]
MountOptions = Annotated[
    str, StringConstraints(pattern=r"^[a-z]+(=[0-9a-z]+)?(,[a-z]+(=[0-9a-z]+)?)*$")
]


class DefaultUser(Model):
    """The account of a shell; the first-boot command makes it, with a locked password."""

    name: AccountName
    uid: Uid = FIRST_UID
    home: Home | None = Field(default=None, description="default: /home/NAME")

    @property
    def folder(self) -> str:
        """Its home."""
        return self.home or f"/home/{self.name}"


class FirstBoot(Model):
    """What has to be computed rightly before anybody gets a shell."""

    level: Literal["r1", "r2"] = "r1"


class Automount(Model):
    """Windows' drives, mounted below `root`."""

    enabled: bool = True
    root: MountPoint = "/mnt/"
    options: MountOptions = "metadata,umask=022"


class Interop(Model):
    """Windows' programs, started from inside."""

    enabled: bool = True
    append_windows_path: bool = False


class Network(Model):
    """Which files WSL writes at each start."""

    generate_hosts: bool = True
    generate_resolv_conf: bool = True


class Terminal(Model):
    """The profile that Windows Terminal gets."""

    color_scheme: Line


class Wsl(Model):
    """The section `wsl:` of a spec."""

    name: DistributionName = Field(description="what `wsl --install` registers it as")
    flavor: DistributionName = Field(description="its group in the distribution manifest")
    friendly_name: Line
    default_user: DefaultUser
    systemd: bool = True
    first_boot: FirstBoot = FirstBoot()
    automount: Automount = Automount()
    interop: Interop = Interop()
    network: Network = Network()
    terminal: Terminal | None = None


# What only an image that an engine starts has.
_OCI_ONLY: Final = {
    "layers": "a .wsl archive is one tar",
    "image": "`wsl:` says what WSL reads; there is no image configuration",
    "serve": "WSL cannot open the card, so nothing is served",
    "slim": "an installed root keeps what its packages brought",
    "census": "its device code is Debian's, for every GPU",
    "finddb": "WSL cannot open the card, so MIOpen chooses nothing",
}


def misfits(kind: str, said: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (key, what is wrong) of the sections that a kind wants or cannot have.

    `kind` is `oci` or `wsl`; `said` are the keys of the spec.

    >>> list(misfits("oci", frozenset({"layers", "image"})))
    []
    """
    if kind == "wsl":
        if "wsl" not in said:
            yield "wsl", "missing: a target of kind wsl wants this section"
        for key, why in _OCI_ONLY.items():
            if key in said:
                yield key, f"not in a target of kind wsl: {why}"
        return
    for key in ("layers", "image"):
        if key not in said:
            yield key, "missing"
    if "wsl" in said:
        yield "wsl", "only a target of kind wsl has this section"

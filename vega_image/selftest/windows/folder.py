"""Read a folder that gather-facts.ps1 wrote. Strict: what is not as documented is unread.

Each JSON file is one object with `schema`, `set` (one word per gathering, so that files of
two gatherings show) and the fields that docs/windows-gate.md lists.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from vega_image.selftest.reading import NotAvailable, Reading
from vega_image.selftest.windows import hipinfo
from vega_image.selftest.windows.shape import Shape
from vega_image.selftest.windows.text import (
    UnreadableError,
    decode_json,
    decode_text,
    read_bytes,
)
from vega_image.selftest.windows.values import (
    Display,
    DisplayDriver,
    Drivers,
    Gathered,
    HipInfo,
    ImageFacts,
    Libraries,
    Library,
    RuntimeFile,
    Sdk,
    System,
    Tdr,
)

SCHEMA = "vega-facts/1"
HIPINFO_TEXT = "hipinfo.txt"
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pnp.json": ("devices",),
    "driver.json": ("drivers", "hip_sdks"),
    "hipinfo.json": ("exit_code", "timed_out", "why", "sha256"),
    "dlls.json": ("folder", "copies", "loaded"),
    "vcruntime.json": ("files",),
    "os.json": ("build", "boot", "booted", "gathered"),
    "vbios.json": ("adapters",),
    "tdr.json": ("level", "delay", "ddi_delay"),
    "events.json": ("display_resets",),
    "image.json": ("image", "profile", "cards", "hip_dlls"),
}
ITEMS: Mapping[str, tuple[str, ...]] = {
    "devices": ("instance_id", "name", "present", "problem", "bus"),
    "drivers": ("instance_id", "version", "provider"),
    "hip_sdks": ("version", "path"),
    "copies": ("name", "path", "place", "sha256", "version"),
    "files": ("name", "version"),
    "adapters": ("instance_id", "version"),
}
PLACES = ("program", "system32", "path")
SET = re.compile(r"[0-9A-Za-z-]{8,64}")
SHA256 = re.compile(r"[0-9a-f]{64}")
CARD = re.compile(r"1002:[0-9a-f]{4}")
PCI = re.compile(r"PCI\\VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})(?:&SUBSYS_([0-9A-F]{8}))?[&\\].*")
T = TypeVar("T")


def read_folder(folder: Path) -> Gathered:
    """Read one gathering. Raises nothing for what it finds."""
    files = {name: _file(folder, name) for name in FIELDS}
    mixed = _mixed(files)
    if mixed is not None:
        files = dict.fromkeys(files, mixed)

    def take(name: str, make: Callable[[Shape], T]) -> Reading[T]:
        shape = files[name]
        return shape if isinstance(shape, NotAvailable) else _made(shape, make)

    return Gathered(
        displays=take("pnp.json", lambda shape: shape.items("devices", _display)),
        drivers=take("driver.json", _drivers),
        hip=take("hipinfo.json", lambda shape: _hip(shape, folder)),
        libraries=take("dlls.json", _libraries),
        runtime=take("vcruntime.json", lambda shape: shape.items("files", _runtime)),
        system=take("os.json", _system),
        vbios=take("vbios.json", _vbios),
        tdr=take("tdr.json", _tdr),
        resets=take("events.json", lambda shape: shape.numbers("display_resets")),
        image=take("image.json", _image),
    )


def _file(folder: Path, name: str) -> Reading[Shape]:
    try:
        shape = Shape(name, decode_json(name, read_bytes(folder, name)))
        return _headed(shape)
    except UnreadableError as error:
        return NotAvailable(str(error))


def _headed(shape: Shape) -> Shape:
    shape.only(("schema", "set", *FIELDS[shape.file]))
    if shape.text("schema") != SCHEMA:
        raise UnreadableError(shape.file, f"its schema is not {SCHEMA}")
    if not SET.fullmatch(shape.text("set")):
        raise UnreadableError(shape.file, "set: no word of 8 to 64 letters, digits and dashes")
    return shape


def _mixed(files: Mapping[str, Reading[Shape]]) -> NotAvailable | None:
    """Say that files come from two gatherings: then none can be told to be of today."""
    seen: dict[str, str] = {}
    for name, shape in files.items():
        if isinstance(shape, Shape):
            seen.setdefault(shape.text("set"), name)
    if len(seen) <= 1:
        return None
    first, second, *_ = seen.values()
    return NotAvailable(f"{second}: of another gathering than {first}")


def _made(shape: Shape, make: Callable[[Shape], T]) -> Reading[T]:
    try:
        return make(shape)
    except UnreadableError as error:
        return NotAvailable(str(error))


def _display(shape: Shape) -> Display:
    shape.only(ITEMS["devices"])
    instance = shape.text("instance_id").upper()
    found = PCI.fullmatch(instance)
    pci = f"{found[1]}:{found[2]}".lower() if found else None
    # SUBSYS_ is the device, then the vendor; everywhere else it is the other way round.
    words = found[3] if found else None
    return Display(
        instance_id=instance,
        pci=pci,
        subsystem=f"{words[4:]}:{words[:4]}".lower() if words else None,
        name=shape.text("name"),
        present=shape.flag("present"),
        problem=shape.number("problem"),
        bus=shape.number_or_none("bus"),
    )


def _drivers(shape: Shape) -> Drivers:
    return Drivers(shape.items("drivers", _driver), shape.items("hip_sdks", _sdk))


def _driver(shape: Shape) -> DisplayDriver:
    shape.only(ITEMS["drivers"])
    return DisplayDriver(
        shape.text("instance_id").upper(),
        shape.text_or_none("version"),
        shape.text_or_none("provider"),
    )


def _sdk(shape: Shape) -> Sdk:
    shape.only(ITEMS["hip_sdks"])
    return Sdk(shape.text("version"), shape.text("path"))


def _hip(shape: Shape, folder: Path) -> HipInfo:
    data = read_bytes(folder, HIPINFO_TEXT)
    if hashlib.sha256(data).hexdigest() != shape.text("sha256").lower():
        raise UnreadableError(HIPINFO_TEXT, f"not the text that {shape.file} tells of")
    try:
        text = decode_text(data)
        devices = hipinfo.parse_devices(text)
    except ValueError as error:
        raise UnreadableError(HIPINFO_TEXT, str(error)) from error
    return HipInfo(
        exit_code=None if shape.values["exit_code"] is None else shape.signed("exit_code"),
        timed_out=shape.flag("timed_out"),
        why=shape.text("why"),
        devices=devices,
        error=hipinfo.parse_error(text),
    )


def _libraries(shape: Shape) -> Libraries:
    return Libraries(
        shape.text("folder"), shape.items("copies", _library), shape.texts("loaded")
    )


def _library(shape: Shape) -> Library:
    shape.only(ITEMS["copies"])
    place, sha256 = shape.text("place"), shape.text("sha256").lower()
    if place not in PLACES:
        raise UnreadableError(shape.file, f"{shape.at}.place: none of {', '.join(PLACES)}")
    if not SHA256.fullmatch(sha256):
        raise UnreadableError(shape.file, f"{shape.at}.sha256: no SHA-256")
    version = shape.text_or_none("version")
    return Library(shape.text("name").lower(), shape.text("path"), place, sha256, version)


def _runtime(shape: Shape) -> RuntimeFile:
    shape.only(ITEMS["files"])
    return RuntimeFile(shape.text("name").lower(), shape.text_or_none("version"))


def _system(shape: Shape) -> System:
    build, boot = shape.text("build"), shape.text("boot")
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6}){2,3}", build):
        raise UnreadableError(shape.file, "build: no version number")
    if not boot:
        raise UnreadableError(shape.file, "boot: empty")
    return System(build, boot, shape.number("booted"), shape.number("gathered"))


def _vbios(shape: Shape) -> Mapping[str, str]:
    pairs = shape.items("adapters", _adapter)
    return {instance: version for instance, version in pairs if version}


def _adapter(shape: Shape) -> tuple[str, str]:
    shape.only(ITEMS["adapters"])
    return shape.text("instance_id").upper(), shape.text_or_none("version") or ""


def _tdr(shape: Shape) -> Tdr:
    return Tdr(*(shape.number_or_none(name) for name in FIELDS["tdr.json"]))


def _image(shape: Shape) -> ImageFacts:
    cards, libraries = shape.texts("cards"), shape.table("hip_dlls")
    if not cards or not all(CARD.fullmatch(card) for card in cards):
        raise UnreadableError(shape.file, "cards: no list of ids such as 1002:66af")
    if not all(SHA256.fullmatch(sha256) for sha256 in libraries.values()):
        raise UnreadableError(shape.file, "hip_dlls: not every value is a SHA-256")
    return ImageFacts(
        image=shape.text_or_none("image"),
        profile=shape.text_or_none("profile"),
        cards=cards,
        libraries={name.lower(): sha256 for name, sha256 in libraries.items()},
    )

"""A bootable ISO of 45 KB: El Torito, no emulation, a boot sector assembled by hand.

The guest writes a text to its first serial port, and then switches itself off, hangs, or
writes again for ever.
"""

from __future__ import annotations

import struct

SECTOR = 2048
_TALK = bytes.fromhex(
    "fa 31c0 8ed8 fc"  # cli; ax = 0; ds = ax; cld
    "be 2a7c"  # si = 0x7c00 + 0x2a: the text
    "ac 84c0 7412"  # next: al = *si++; if it is 0: done
    "88c3 bafd03"  # keep al; dx = the line status register of COM1
    "ec a820 74fb"  # wait until it takes a byte
    "88d8 baf803 ee"  # write al
    "ebe9"  # next
)
OFF = bytes.fromhex("ba0406 b80020 ef f4 ebfd")  # done: ACPI power off at port 0x604; hlt
HANG = bytes.fromhex("f4 ebfd").ljust(len(OFF), b"\x90")  # done: hlt for ever
AGAIN = bytes.fromhex("ebde").ljust(len(OFF), b"\x90")  # done: from the start


def bootable(text: str, end: bytes = OFF) -> bytes:
    """Return the ISO whose guest says `text`."""
    return iso(_TALK + end + text.encode() + b"\r\n\0")


def iso(boot: bytes) -> bytes:
    """Return a minimal ISO 9660 file system with `boot` in its one boot sector."""
    entry = bytes([0x88]) + bytes(5) + struct.pack("<HI", SECTOR // 512, 21)
    catalog = _validation() + entry
    parts = (_volume(), _boot_record(), b"\xffCD001\x01", catalog, _root(0) + _root(1), boot)
    assert all(len(part) <= SECTOR for part in parts)
    return bytes(16 * SECTOR) + b"".join(part.ljust(SECTOR, b"\0") for part in parts)


def _validation() -> bytes:
    entry = bytearray(32)
    entry[0], entry[30], entry[31] = 1, 0x55, 0xAA
    total = -sum(struct.unpack("<16H", entry)) & 0xFFFF
    entry[28:30] = struct.pack("<H", total)
    return bytes(entry)


def _boot_record() -> bytes:
    name = b"EL TORITO SPECIFICATION".ljust(64, b"\0")
    return b"\x00CD001\x01" + name + struct.pack("<I", 19)


def _volume() -> bytes:
    sector = bytearray(SECTOR)
    sector[:7] = b"\x01CD001\x01"
    sector[8:72] = b" " * 32 + b"TINY".ljust(32)
    sector[80:88] = _both("I", 22)
    sector[120:132] = _both("H", 1) + _both("H", 1) + _both("H", SECTOR)
    sector[156:190] = _root(0)
    return bytes(sector)


def _root(name: int) -> bytes:
    place = _both("I", 20) + _both("I", SECTOR)
    return bytes([34, 0]) + place + bytes(7) + b"\x02\0\0" + _both("H", 1) + bytes([1, name])


def _both(kind: str, number: int) -> bytes:
    return struct.pack(f"<{kind}", number) + struct.pack(f">{kind}", number)

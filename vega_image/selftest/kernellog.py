"""What the kernel said about the card since boot: known bad signs, counted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vega_image.selftest.reading import NotAvailable, Reading, Sysroot, printable

DEVICE = "dev/kmsg"
RECORDED = "var/log/dmesg"
RECORD_BYTES = 1 << 13
RECORDS = 200_000
LINE_LIMIT = 300

SIGNS = (
    ("HARDWARE_ERROR", re.compile(r"ERREVENT_ATHUB_INTERRUPT")),
    ("INIT_FAILED", re.compile(r"amdgpu.*Fatal error during GPU init")),
    (
        "PROBE_FAILED",
        re.compile(r"probe .*amdgpu failed with error -12|amdgpu.*BAR \d+: no space"),
    ),
    ("ATOMICS_REJECTED", re.compile(r"PCI rejects atomics")),
    ("FIRMWARE_MISSING", re.compile(r"(?i)amdgpu.*(failed to load firmware|firmware.*failed)")),
    ("ILLEGAL_OPCODE", re.compile(r"(?i)amdgpu.*illegal opcode")),
    ("GPU_RESET", re.compile(r"(?i)amdgpu.*GPU reset")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One kind of bad sign: how often it was seen, and the last line."""

    code: str
    count: int
    last: str


def read_signs(root: Sysroot) -> Reading[tuple[Sign, ...]]:
    """Read the kernel's log, of this boot where the machine is the live one."""
    if not root.live:
        text = root.text(RECORDED)
        return text if isinstance(text, NotAvailable) else scan(text.splitlines())
    try:
        handle = os.open(root.path / DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return NotAvailable(f"{DEVICE}: {error.strerror}")
    try:
        return scan(_records(handle))
    finally:
        os.close(handle)


def _records(handle: int) -> Iterator[str]:
    for _ in range(RECORDS):
        try:
            record = os.read(handle, RECORD_BYTES)
        except BrokenPipeError:
            # The kernel overwrote the record we were about to read; the next one is fine.
            continue
        except OSError:
            return
        if not record:
            return
        yield record.decode("utf-8", "replace").partition(";")[2]


def scan(lines: Iterable[str]) -> tuple[Sign, ...]:
    """Count the known signs.

    >>> scan(["amdgpu 0000:03:00.0: amdgpu: GPU reset begin!"])[0].code
    'GPU_RESET'
    """
    found: dict[str, Sign] = {}
    for line in lines:
        for code, pattern in SIGNS:
            if pattern.search(line):
                count = found[code].count + 1 if code in found else 1
                last = printable(line.strip())[:LINE_LIMIT]
                found[code] = Sign(code=code, count=count, last=last)
    return tuple(found[code] for code, _ in SIGNS if code in found)

"""Read what hipInfo prints.

Format: projects/hip-tests/samples/1_Utils/hipInfo/hipInfo.cpp of rocm-systems: per device a
line of dashes, `device#` and a number, then `name: value` lines; on an error one line
`checkHipErrors() HIP API error = 0100 "..." from file <...>, line N.`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vega_image.selftest.reading import integer
from vega_image.selftest.windows.values import HipDevice

DEVICE = re.compile(r"device#\s*([0-9]{1,3})\s*")
FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_.]*):\s*(.*?)\s*")
ERROR = re.compile(r"HIP API error = 0*([0-9]{1,6})\b|\b(hipErrorNoDevice)\b")
SAID = "no ROCm-capable device is detected"
NO_DEVICE = 100
ARCH = re.compile(r"(gfx[0-9a-f]{3,5})((?::[a-z]{1,20}[+-])*)")


def parse_devices(text: str) -> tuple[HipDevice, ...]:
    """Return the devices printed, in order. Raises ValueError for a number given twice."""
    found = tuple(_device(number, block) for number, block in _blocks(text))
    if len({device.index for device in found}) != len(found):
        msg = "a device# twice"
        raise ValueError(msg)
    return found


def parse_error(text: str) -> int | None:
    """Return HIP's error number, None if no error was printed.

    >>> parse_error('checkHipErrors() HIP API error = 0100 "no ROCm-capable device"')
    100
    """
    if found := ERROR.search(text):
        return NO_DEVICE if found[2] else int(found[1])
    return NO_DEVICE if SAID in text else None


def arch_parts(arch: str) -> tuple[str, Mapping[str, bool]] | None:
    """Split gcnArchName into the name and its features; None if it is none.

    >>> arch_parts("gfx906:sramecc-:xnack-")
    ('gfx906', {'sramecc': False, 'xnack': False})
    """
    found = ARCH.fullmatch(arch)
    if found is None:
        return None
    words = [word for word in found[2].split(":") if word]
    return found[1], {word[:-1]: word[-1] == "+" for word in words}


def _blocks(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    number, block = -1, dict[str, str]()
    for line in text.split("\n"):
        if head := DEVICE.fullmatch(line):
            if number >= 0:
                yield number, block
            number, block = int(head[1]), {}
        elif (field := FIELD.fullmatch(line)) and number >= 0:
            block.setdefault(field[1], field[2])
    if number >= 0:
        yield number, block


def _device(number: int, block: Mapping[str, str]) -> HipDevice:
    return HipDevice(
        index=number,
        name=block.get("Name", ""),
        arch=block.get("gcnArchName") or None,
        bus=integer(block.get("pciBusID", "")),
        compute_units=integer(block.get("multiProcessorCount", "")),
    )

"""Target ids: which processor, and which of its two features, a code object was made for.

Written as LLVM writes them, e.g. `gfx906:sramecc+:xnack-`. Sources: "Target ID" and the
`e_flags` tables of LLVM's AMDGPUUsage, "Bundle Entry ID" of clang's ClangOffloadBundler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FROM_0X20 = (
    "gfx600 gfx601 gfx700 gfx701 gfx702 gfx703 gfx704 - gfx801 gfx802 gfx803 gfx810 gfx900 "
    "gfx902 gfx904 gfx906 gfx908 gfx909 gfx90c gfx1010 gfx1011 gfx1012 gfx1030 gfx1031 "
    "gfx1032 gfx1033 gfx602 gfx705 gfx805 gfx1035 gfx1034 gfx90a gfx940 gfx1100 gfx1013 "
    "gfx1150 gfx1103 gfx1036 gfx1101 gfx1102 gfx1200 gfx1250 gfx1151 gfx941 gfx942 - gfx1201 "
    "gfx950 gfx1310 gfx9-generic gfx10-1-generic gfx10-3-generic gfx11-generic gfx1152 - "
    "gfx1154 gfx1153 gfx12-generic gfx1251 gfx12-5-generic gfx1172 gfx1170 gfx1171 "
    "gfx9-4-generic"
)
# EF_AMDGPU_MACH, the low eight bits of e_flags; "-" is a reserved number.
PROCESSORS = {
    **dict(enumerate(_FROM_0X20.split(), start=0x20)),
    0x62: "gfx11-7-generic",
    0x63: "gfx13-generic",
}
MACH_MASK = 0xFF
# e_ident[EI_ABIVERSION] of code object versions 3 and 4; 5 and 6 follow.
ABI_V3, ABI_V4 = 1, 2
V3_XNACK, V3_SRAMECC = 0x100, 0x200
V4_FEATURE = ("", "", "-", "+")
V4_XNACK_SHIFT, V4_SRAMECC_SHIFT = 8, 10

TRIPLE_PARTS = 4
_TARGET = re.compile(r"^([a-z0-9]+(?:-[a-z0-9]+)*)((?::(?:sramecc|xnack)[+-])*)$")


@dataclass(frozen=True, slots=True)
class Target:
    """A processor and its features: "+" needs it on, "-" needs it off, "" takes either."""

    processor: str
    sramecc: str = ""
    xnack: str = ""

    def __str__(self) -> str:
        features = (("sramecc", self.sramecc), ("xnack", self.xnack))
        return self.processor + "".join(f":{name}{value}" for name, value in features if value)


def parse_target(text: str) -> Target | None:
    """Read a target id, or None when it is not one.

    >>> str(parse_target("gfx906:xnack-:sramecc+"))
    'gfx906:sramecc+:xnack-'
    """
    match = _TARGET.match(text)
    if match is None:
        return None
    pairs = [(item[:-1], item[-1]) for item in match[2].split(":")[1:]]
    features = dict(pairs)
    if len(features) != len(pairs):
        return None
    return Target(match[1], features.get("sramecc", ""), features.get("xnack", ""))


def target_of_entry(entry_id: str) -> Target | None:
    """Read `kind-arch-vendor-os-environment-target`, the id of a bundle entry.

    None for the host and for ids without a target.

    >>> str(target_of_entry("hipv4-amdgcn-amd-amdhsa--gfx906:xnack-"))
    'gfx906:xnack-'
    >>> target_of_entry("host-x86_64-unknown-linux-gnu-") is None
    True
    """
    kind, _, rest = entry_id.partition("-")
    parts = rest.split("-", TRIPLE_PARTS)
    if kind == "host" or len(parts) < TRIPLE_PARTS:
        return None
    # Older bundles leave the environment out: amdgcn-amd-amdhsa-gfx906.
    if len(parts) == TRIPLE_PARTS and not parts[-1].startswith("gfx"):
        return None
    return parse_target(parts[-1])


def target_of_flags(e_flags: int, abi_version: int) -> Target | None:
    """Read e_flags of an AMDGPU ELF, or None for a processor nobody here knows.

    >>> [str(target_of_flags(flags, 2)) for flags in (0x52F, 0xE2F, 0xA2F)]
    ['gfx906', 'gfx906:sramecc+:xnack-', 'gfx906:sramecc-:xnack-']
    """
    processor = PROCESSORS.get(e_flags & MACH_MASK, "-")
    if processor == "-":
        return None
    if abi_version >= ABI_V4:
        sramecc = V4_FEATURE[e_flags >> V4_SRAMECC_SHIFT & 3]
        return Target(processor, sramecc, V4_FEATURE[e_flags >> V4_XNACK_SHIFT & 3])
    if abi_version == ABI_V3:
        on = (e_flags & V3_SRAMECC, e_flags & V3_XNACK)
        return Target(processor, *("+" if bit else "" for bit in on))
    return Target(processor)

"""The compute driver's view of the machine: /sys/class/kfd/kfd/topology/nodes.

Bit positions are those of libhsakmt's hsakmttypes.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.selftest.reading import NotAvailable, Reading, Sysroot, properties

NODES = "sys/class/kfd/kfd/topology/nodes"
GFX906 = 90006

SRAMECC = 1 << 26
HBM_ECC = 1 << 20

LINK_PCIE = 2
NO_ATOMICS_32 = 1 << 2
NO_ATOMICS_64 = 1 << 3

HEAP_LOCAL = frozenset({1, 2})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One topology node; `values` are its properties, or why there are none."""

    index: int
    values: Reading[Mapping[str, int]]
    banks: tuple[Mapping[str, int], ...]
    links: tuple[Mapping[str, int], ...]

    def value(self, key: str) -> Reading[int]:
        """Return one property."""
        if isinstance(self.values, NotAvailable):
            return self.values
        found = self.values.get(key)
        return (
            NotAvailable(f"{NODES}/{self.index}/properties: {key} missing")
            if (found is None)
            else found
        )

    def positive(self, key: str) -> bool:
        """Whether a property is there and above zero."""
        found = self.value(key)
        return isinstance(found, int) and found > 0

    @property
    def is_gpu(self) -> bool:
        """Whether the node computes with SIMDs."""
        return self.positive("simd_count") or self.positive("gfx_target_version")

    @property
    def is_cpu(self) -> bool:
        """Whether the node is a processor without a GPU in it."""
        return not self.is_gpu and self.positive("cpu_cores_count")


def read_nodes(root: Sysroot) -> tuple[Node, ...]:
    """Read every node, in the kernel's order."""
    return tuple(_node(root, index) for index in root.numbered(NODES))


def _node(root: Sysroot, index: int) -> Node:
    base = f"{NODES}/{index}"
    text = root.text(f"{base}/properties")
    return Node(
        index=index,
        values=text if isinstance(text, NotAvailable) else properties(text),
        banks=_children(root, f"{base}/mem_banks"),
        links=_children(root, f"{base}/io_links"),
    )


def _children(root: Sysroot, folder: str) -> tuple[Mapping[str, int], ...]:
    texts = (root.text(f"{folder}/{number}/properties") for number in root.numbered(folder))
    return tuple(properties(text) for text in texts if isinstance(text, str))


def gfx_name(version: int) -> str:
    """Name an architecture as compilers do.

    >>> gfx_name(90006), gfx_name(90010), gfx_name(100300)
    ('gfx906', 'gfx90a', 'gfx1030')
    """
    return f"gfx{version // 10000}{version // 100 % 100}{version % 100:x}"


def pci_slot(node: Node) -> Reading[str]:
    """Return the node's PCI address, e.g. `0000:03:00.0`."""
    location = node.value("location_id")
    if isinstance(location, NotAvailable):
        return location
    domain = node.value("domain")
    # Kernels that do not say `domain` know only domain 0.
    number = domain if isinstance(domain, int) else 0
    bus, device, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    return f"{number:04x}:{bus:02x}:{device:02x}.{function}"


def compute_units(node: Node) -> Reading[int]:
    """Return the number of active compute units."""
    simds, each = node.value("simd_count"), node.value("simd_per_cu")
    if isinstance(simds, NotAvailable):
        return simds
    if isinstance(each, NotAvailable):
        return each
    return simds // each if each > 0 else NotAvailable("simd_per_cu is not above zero")


def local_memory(node: Node) -> Reading[int]:
    """Return the bytes of the card's own memory (`local_mem_size` is 0 in current kernels)."""
    sizes = [
        bank["size_in_bytes"]
        for bank in node.banks
        if bank.get("heap_type") in HEAP_LOCAL and bank.get("size_in_bytes", 0) > 0
    ]
    return sum(sizes) or NotAvailable(f"{NODES}/{node.index}/mem_banks: no local memory")


def capability(node: Node, bit: int) -> Reading[bool]:
    """Return one bit of the capability word."""
    word = node.value("capability")
    return word if isinstance(word, NotAvailable) else bool(word & bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomics:
    """Whether atomic operations cross the bus to host memory."""

    bits32: bool
    bits64: bool


def atomics(node: Node, cpus: frozenset[int]) -> Reading[Atomics]:
    """Return what the PCIe links from a GPU node to processor nodes can do."""
    flags = [
        link["flags"]
        for link in node.links
        if link.get("type") == LINK_PCIE and link.get("node_to") in cpus and "flags" in link
    ]
    if not flags:
        why = f"{NODES}/{node.index}/io_links: no PCIe link to a processor"
        return NotAvailable(why)
    return Atomics(
        bits32=not any(flag & NO_ATOMICS_32 for flag in flags),
        bits64=not any(flag & NO_ATOMICS_64 for flag in flags),
    )

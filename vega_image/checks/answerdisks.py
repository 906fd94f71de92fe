"""Disks, partitions and what is installed where in an answer file. Pure.

On a wiped disk Windows numbers partitions from 1 in their order of creation. The layout of a
UEFI disk is Microsoft's ("Configure UEFI/GPT-based hard drive partitions"): EFI, MSR, Windows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vega_image.checks.answerrules import Found, components_of
from vega_image.checks.answerxml import Element

_SETUP = "Microsoft-Windows-Setup"
_FIRST = {"EFI": 0, "MSR": 1, "Primary": 2}


@dataclass(frozen=True, slots=True)
class _Disk:
    element: Element
    id: str
    wiped: bool
    created: tuple[Element, ...]
    modified: tuple[Element, ...]

    def kind(self, partition: str) -> str | None:
        """Return the type of a created partition by its id."""
        known = {str(at): item.value("Type") for at, item in enumerate(self.created, 1)}
        return known.get(partition)


def _number(element: Element) -> int:
    text = element.value("Order")
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0


def _disks(root: Element) -> Iterator[_Disk]:
    for setup in components_of(root, _SETUP):
        for disk in setup.all("DiskConfiguration", "Disk"):
            created = sorted(disk.all("CreatePartitions", "CreatePartition"), key=_number)
            modified = disk.all("ModifyPartitions", "ModifyPartition")
            wiped = disk.value("WillWipeDisk") == "true"
            yield _Disk(disk, disk.value("DiskID"), wiped, tuple(created), tuple(modified))


def wrong_id(root: Element) -> Found:
    """Yield disks and partitions that are given twice, or named but not made."""
    disks = list(_disks(root))
    counted = Counter(disk.id for disk in disks)
    for disk in disks:
        if not disk.id:
            yield disk.element.line, "a disk without DiskID"
        elif counted[disk.id] > 1:
            yield disk.element.line, f"the disk {disk.id} is configured twice"
        seen: set[str] = set()
        for item in disk.modified:
            name = item.value("PartitionID")
            if disk.wiped and disk.kind(name) is None:
                yield item.line, f"partition {name or '?'} of disk {disk.id} is not created"
            elif name in seen:
                yield item.line, f"partition {name} of disk {disk.id} is modified twice"
            seen.add(name)
        letters = Counter(item.value("Letter").upper() for item in disk.modified)
        for item in disk.modified:
            letter = item.value("Letter").upper()
            if letter and (letters[letter] > 1 or not re.fullmatch("[C-Z]", letter)):
                yield item.line, f"the letter {letter} is taken or none of C to Z"
    yield from _targets(root, {disk.id: disk for disk in disks})


def _targets(root: Element, disks: dict[str, _Disk]) -> Found:
    for setup in components_of(root, _SETUP):
        for target in setup.all("ImageInstall", "OSImage", "InstallTo"):
            disk = disks.get(target.value("DiskID"))
            name = target.value("PartitionID")
            if disk is None:
                if disks or not target.value("DiskID"):
                    said = f"InstallTo names disk {target.value('DiskID') or '?'}"
                    yield target.line, f"{said}, which is not configured"
            elif disk.wiped and disk.kind(name) != "Primary":
                said = "is not created" if disk.kind(name) is None else "is not Primary"
                yield target.line, f"InstallTo names partition {name or '?'}, which {said}"


def wrong_layout(root: Element) -> Found:
    """Yield partitions without a size, out of order for UEFI, or with a wrong format."""
    for disk in _disks(root):
        yield from _sizes(disk)
        kinds = [item.value("Type") for item in disk.created]
        if "EFI" not in kinds:
            continue
        if "MSR" not in kinds:
            yield disk.element.line, "a disk with an EFI partition has no MSR partition"
        for before, after in zip(disk.created, disk.created[1:], strict=False):
            first, second = before.value("Type"), after.value("Type")
            if _FIRST.get(first, 2) > _FIRST.get(second, 2) or first == second == "EFI":
                yield after.line, f"{second} after {first}: the order is EFI, MSR, Primary"
        for item in disk.modified:
            kind, form = disk.kind(item.value("PartitionID")), item.value("Format")
            if kind == "EFI" and form != "FAT32":
                yield item.line, "an EFI partition is formatted with FAT32"
            if kind == "MSR" and form:
                yield item.line, "an MSR partition is never formatted"


def _sizes(disk: _Disk) -> Found:
    growing = [item for item in disk.created if item.value("Extend") == "true"]
    for item in growing:
        if item is not disk.created[-1]:
            yield item.line, "only the last partition can Extend: nothing is left behind it"
    for item in disk.created:
        if item.value("Size") and item in growing:
            yield item.line, "Size and Extend exclude each other"
        if not item.value("Size") and item not in growing:
            yield item.line, "a partition without Size and Extend"
        if item.value("Size") == "0":
            yield item.line, "a partition of no size"


def wrong_image(root: Element) -> Found:
    """Yield images that nothing selects, or that have no place or two."""
    for setup in components_of(root, _SETUP):
        for image in setup.all("ImageInstall", "OSImage"):
            chosen = list(image.all("InstallFrom", "MetaData"))
            keys = [item.value("Key") for item in chosen]
            if not any(key in {"/IMAGE/INDEX", "/IMAGE/NAME"} for key in keys):
                yield image.line, "no /IMAGE/INDEX and no /IMAGE/NAME: Setup would ask"
            for item in chosen:
                if item.value("Key").startswith("/IMAGE/") and not item.value("Value"):
                    yield item.line, f"{item.value('Key')} has no Value"
            places = [any(image.all("InstallTo")),
                      image.value("InstallToAvailablePartition") == "true"]  # fmt: skip
            if sum(places) != 1:
                yield image.line, "InstallTo or InstallToAvailablePartition, one of them"

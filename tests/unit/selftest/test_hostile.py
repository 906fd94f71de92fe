"""Whatever /sys holds, reading it ends in facts and a verdict, never in an exception."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workstation import assemble, facts_of
from vega_image.selftest import kernellog, kfd
from vega_image.selftest.findings import judge_facts
from vega_image.selftest.reading import TEXT_LIMIT, Sysroot, integer, properties

NUMBERS = st.sampled_from([b"-1", b"0", b"99999999999999999999999", b"9" * 5000, b"0x", b"1_0"])
TEXTS = st.one_of(st.binary(max_size=80), NUMBERS)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = assemble(tmp_path_factory.mktemp("hostile"), "mi50-66a1-sramecc")
    yield root
    shutil.rmtree(root)


def survives(root: Path) -> None:
    facts = facts_of(root)
    found = judge_facts(facts)
    json.dumps(facts.to_json(), allow_nan=False).encode()
    for finding in found:
        finding.title.encode()


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@settings(max_examples=80, deadline=None)
@given(which=st.integers(0, 10_000), cut=st.integers(0, 2000), junk=TEXTS, keep=st.booleans())
def test_a_mutated_file_never_raises(
    machine: Path,
    which: int,
    cut: int,
    junk: bytes,
    keep: bool,  # noqa: FBT001
) -> None:
    paths = files(machine)
    path = paths[which % len(paths)]
    before = path.read_bytes()
    path.write_bytes(before[: cut % (len(before) + 1)] + junk + (before[cut:] if keep else b""))
    try:
        survives(machine)
    finally:
        path.write_bytes(before)


@settings(max_examples=60, deadline=None)
@given(which=st.integers(0, 10_000), line=st.integers(0, 60), value=TEXTS)
def test_a_mutated_property_never_raises(
    machine: Path, which: int, line: int, value: bytes
) -> None:
    names = sorted((machine / kfd.NODES).rglob("properties"))
    path = names[which % len(names)]
    before = path.read_bytes()
    lines = before.splitlines()
    chosen = line % len(lines)
    lines[chosen] = lines[chosen].split()[0] + b" " + value
    path.write_bytes(b"\n".join(lines))
    try:
        survives(machine)
    finally:
        path.write_bytes(before)


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [gone, folder, loop, pipe])
def test_no_kind_of_file_in_place_of_another_raises_or_hangs(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    root = assemble(tmp_path, "mi50-66a1-sramecc")
    for path in files(root):
        if path.parts[-2] != "dev":
            damage(path)
    survives(root)


def test_a_huge_file_is_read_only_to_its_limit(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"x" * TEXT_LIMIT)
        file.truncate(8 * TEXT_LIMIT)
    assert Sysroot(tmp_path).text("huge") == "x" * TEXT_LIMIT


def test_folders_that_are_links_to_themselves(tmp_path: Path) -> None:
    root = assemble(tmp_path)
    shutil.rmtree(root / "sys/class/drm/card0/device")
    (root / "sys/class/drm/card0/device").symlink_to("../card0/device")
    survives(root)


@given(st.text())
def test_integers_are_whole_and_fit_64_bits(text: str) -> None:
    value = integer(text)
    assert value is None or abs(value) < 2**64


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,20}", fullmatch=True), st.integers(0, 2**63)))
def test_properties_round_trip(values: dict[str, int]) -> None:
    text = "".join(f"{key} {value}\n" for key, value in values.items())
    assert properties(text) == values


@given(st.text())
def test_properties_and_log_take_any_text(text: str) -> None:
    assert all(isinstance(value, int) for value in properties(text).values())
    assert len(kernellog.scan(text.splitlines())) <= len(kernellog.SIGNS)


@given(st.integers(0, 255), st.integers(0, 31), st.integers(0, 7), st.integers(0, 0xFFFF))
def test_pci_addresses_are_those_of_the_bus(
    bus: int, device: int, part: int, domain: int
) -> None:
    values = {"location_id": bus << 8 | device << 3 | part, "domain": domain}
    slot = kfd.pci_slot(kfd.Node(index=1, values=values, banks=(), links=()))
    assert slot == f"{domain:04x}:{bus:02x}:{device:02x}.{part}"

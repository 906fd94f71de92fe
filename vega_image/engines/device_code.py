"""Slim and count the device code of a tree, file by file, without unpacking it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Final

from vega_image.codeobjects.census import (
    DeviceCode,
    Finding,
    census_file,
    is_environment_file,
    judge_census,
)
from vega_image.codeobjects.slim import SlimReport, slim, with_digests
from vega_image.codeobjects.window import Region
from vega_image.digest import PREFIX, Json
from vega_image.engines.base import Work
from vega_image.errors import StageError
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.spec import Census, Slim, Target
from vega_image.store import Store

SLIMMED: Final = "usr/share/vega-image/slimmed.json"
ELF: Final = b"\x7fELF"


def slim_tree(tree: Tree, options: Slim, work: Work) -> Tree:
    """Replace every fat file by its slim form; raises StageError SLIM_* naming the file.

    What was changed is recorded in the tree itself, with both digests.
    """
    files = [entry for entry in tree.entries if entry.kind is Kind.FILE and entry.content]
    reports: list[SlimReport] = []
    changed: dict[str, Entry] = {}
    total, done = sum(_size(entry) for entry in files), 0
    for entry in files:
        done += _size(entry)
        work.progress(done, total)
        made = _slim_entry(entry, options, work)
        if made is not None:
            changed[entry.path], report = made
            reports.append(report)
    entries = [changed.get(entry.path, entry) for entry in tree.entries]
    if reports:
        entries.append(_record(reports, work.store))
    return Tree.of(entries)


def census_tree(tree: Tree, store: Store) -> tuple[DeviceCode, ...]:
    """List all device code of a tree."""
    return tuple(code for entry in tree.entries for code in _census(entry, store))


def judge_tree(tree: Tree, store: Store, *, target: Target, census: Census) -> list[DeviceCode]:
    """Hold a tree's device code against the spec.

    Raises StageError CENSUS_REFUSED with every finding, one per line.
    """
    found = census_tree(tree, store)
    texts = {e.path: _text(e, store) for e in tree.entries if is_environment_file(e.path)}
    paths = [entry.path for entry in tree.entries if entry.kind is Kind.FILE]
    findings = judge_census(found, census, paths=paths, env=target.config.env, texts=texts)
    if findings:
        raise _refusal(findings, target)
    return list(found)


def _refusal(findings: tuple[Finding, ...], target: Target) -> StageError:
    lines = "\n".join(f"  {finding.code}: {finding.message}" for finding in findings)
    msg = f"{target.name}: the device code is not what the spec demands:\n{lines}"
    hint = "vega-image inspect REF --device-code lists what an image holds"
    return StageError("CENSUS_REFUSED", msg, hint=hint, at=findings[0].path)


def _slim_entry(entry: Entry, options: Slim, work: Work) -> tuple[Entry, SlimReport] | None:
    content = entry.content
    assert content is not None
    region = Region(work.store.path(content.object), content.offset, content.size)
    if not _starts_with(region, ELF):
        return None
    out = work.scratch / "slim"
    report = slim(region, out, keep=options.keep, name=entry.path)
    if report is None:
        return None
    report = with_digests(report, region, out)
    assert report.digest_after is not None
    after = report.digest_after
    digest = after if after.startswith(PREFIX) else PREFIX + after
    work.store.adopt(out, digest)
    work.log(f"{entry.path}: {report.bytes_before} -> {report.bytes_after} bytes")
    return replace(entry, content=Content(digest, 0, report.bytes_after)), report


def _size(entry: Entry) -> int:
    return entry.content.size if entry.content else 0


def _record(reports: list[SlimReport], store: Store) -> Entry:
    rows = [asdict(report) for report in sorted(reports, key=lambda report: report.name)]
    data = (
        json.dumps({"schema": 1, "slimmed": rows}, indent=1, sort_keys=True) + "\n"
    ).encode()
    content = Content(store.put(data), 0, len(data))
    return Entry(path=SLIMMED, kind=Kind.FILE, mode=0o644, content=content, owner="vega-image")


def _census(entry: Entry, store: Store) -> Iterator[DeviceCode]:
    if entry.kind is Kind.FILE and entry.content and entry.content.size:
        content = entry.content
        path = store.path(content.object)
        yield from census_file(path, entry.path, offset=content.offset, size=content.size)


def _text(entry: Entry, store: Store) -> str:
    if entry.content is None:
        return ""
    with store.path(entry.content.object).open("rb") as file:
        file.seek(entry.content.offset)
        return file.read(entry.content.size).decode(errors="replace")


def _starts_with(region: Region, magic: bytes) -> bool:
    with region.path.open("rb", buffering=0) as file:
        file.seek(region.offset)
        return file.read(len(magic)) == magic


def report_json(found: list[DeviceCode]) -> Json:
    """Encode a census for the store."""
    return {"schema": 1, "device_code": [asdict(code) for code in found]}

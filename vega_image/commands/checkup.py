"""vega-image doctor as a word: gather, judge, print as a table that fits a terminal."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.doctor import Report, doctor
from vega_image.hostcheck import gather
from vega_image.selftest.facts import read_facts
from vega_image.sources.origin import Origin

MIN_WIDTH = 60


def checkup(call: Call, *, sysroot: Path | None, build_host_only: bool) -> int:
    """Judge this host, or a recorded one under `sysroot`; returns 0, 5 or 7."""
    settings = call.settings
    origin = Origin(
        mirror=settings.mirror, keyring=settings.keyring, snapshots=settings.snapshots
    )
    probe = gather(settings.store, origin, settings.environ) if sysroot is None else None
    facts = None
    if not build_host_only:
        environ = settings.environ if sysroot is None else {}
        gids = {*os.getgroups(), os.getegid()}
        root = sysroot or Path("/")
        facts = read_facts(root, environ, uid=os.geteuid(), gids=gids)
    report = doctor(probe=probe, facts=facts)
    call.console.result(list(_lines(report)), report.to_json())
    return report.exit_code


def _lines(report: Report) -> Iterator[str]:
    """One block per finding: severity and id first, then what, then what to do."""
    width = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, 96)) - 4
    for severity, name, what, action in report.rows():
        yield f"{severity.upper():6}  {name}"
        yield from (f"    {line}" for line in textwrap.wrap(what, width))
        if severity != "info":
            todo = textwrap.wrap(f"do: {action}", width, subsequent_indent="    ")
            yield from (f"    {line}" for line in todo)
    yield ""
    yield from report.summary()

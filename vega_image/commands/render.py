"""vega-image render: the exact bytes an engine would read, as a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from vega_image.clioptions import Call
from vega_image.digest import PREFIX, digest_bytes
from vega_image.errors import UsageError
from vega_image.executor import execute
from vega_image.fetching import supply_of
from vega_image.line import real_job
from vega_image.lock import LockedDebian
from vega_image.plan import StepKind
from vega_image.prepare import (
    Prepared,
    prepare,
    read_lock,
    refuse_unresolved,
    rendered_files,
)
from vega_image.sources.locked import fetch_sources
from vega_image.spec import TargetKind
from vega_image.store import Store, disk_errors, write_atomic
from vega_image.windows.spec import Platform, WindowsTarget, refuse_platform
from vega_image.wsl.handover import HandOver
from vega_image.wsl.manifest import MANIFEST as MANIFEST_WSL
from vega_image.wsl.places import archive_name

MANIFEST = "context.json"


def render(
    call: Call, name: str, *, output: Path, context: bool, platform: str | None = None
) -> int:
    """Write the rendered files; with `context` also locked files and layers.

    Raises UsageError FOLDER_NOT_OURS rather than write into a folder that holds other things.
    """
    factory = call.factory
    asked = factory.spec(name)
    if isinstance(asked, WindowsTarget):
        from vega_image.commands.windows.render import render_windows_target  # noqa: PLC0415

        chosen = Platform(platform) if platform else None
        return render_windows_target(
            call, asked, output=output, context=context, platform=chosen
        )
    refuse_platform(name, platform)
    target = factory.target(name)
    prepared = prepare(factory, target, read_lock(factory, target))
    files = rendered_files(factory, prepared)
    _check_folder(output)
    for path, data in files.items():
        _write(output / path, data)
    placed = _complete(call, prepared, output) if context else []
    lines = [f"{output}: {len(files)} rendered files"]
    if context:
        lines.append(f"{output}: {len(placed)} placed files")
    if context and target.kind is TargetKind.OCI:
        lines.append(f"next: docker build --network none -t {name}:{target.version} {output}")
    value = {path: digest_bytes(data) for path, data in files.items()}
    call.console.result(lines, {"target": name, "files": value, "placed": placed})
    return 0


def _complete(call: Call, prepared: Prepared, output: Path) -> list[str]:
    refuse_unresolved(prepared.lock)
    store = call.store
    with supply_of(call, store, label="fetch") as supply:
        fetch_sources(prepared.lock, supply)
    if prepared.target.kind is TargetKind.WSL:
        with real_job(call, prepared, store) as job:
            done = execute(job, call.console)
            HandOver(output=output).over(store, prepared.target, done[-1].artifact.digest)
        wanted = [(f"pool/{digest}.deb", PREFIX + digest) for digest in _pool(prepared)]
        return [*_placed(store, wanted, output), archive_name(prepared.target), MANIFEST_WSL]
    layers = next(step.name for step in prepared.plan if step.kind is StepKind.LAYERS)
    with real_job(call, prepared, store) as job:
        done = execute(job, call.console, until=layers)
    value = cast("dict[str, Any]", store.read_json(done[-1].artifact.digest, what=layers))
    rows = cast("list[dict[str, Any]]", value["layers"])
    wanted = [(f"layers/{row['name']}.tar", cast("str", row["diff_id"])) for row in rows]
    wanted += [(f"pool/{digest}.deb", PREFIX + digest) for digest in _pool(prepared)]
    return _placed(store, wanted, output)


def _placed(store: Store, wanted: list[tuple[str, str]], output: Path) -> list[str]:
    for path, digest in wanted:
        _place(store, digest, output / path)
    return [path for path, _digest in wanted]


def _pool(prepared: Prepared) -> Iterable[str]:
    for source in prepared.lock.sources.values():
        if isinstance(source, LockedDebian):
            yield from (file.sha256 for file in source.packages)


def _place(store: Store, digest: str, target: Path) -> None:
    source = store.verify(digest, what=target.name)
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        # A copy, never a link: what a person does to the folder must not reach the store.
        shutil.copyfile(source, target)


def _write(path: Path, data: bytes) -> None:
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o755 if path.suffix == ".sh" else 0o644
        write_atomic(path, data, mode=mode)


def _check_folder(output: Path) -> None:
    """Let an earlier rendering be renewed, but never mix with files of somebody else."""
    if not output.exists():
        return
    found = {path.name for path in output.iterdir()}
    if not found:
        return
    try:
        ours = "rendered" in json.loads((output / MANIFEST).read_bytes())
    except (OSError, ValueError):
        ours = False
    if not ours:
        msg = f"{output}: the folder holds other things"
        raise UsageError(
            "FOLDER_NOT_OURS", msg, at=str(output), hint="name a new folder: -o DIR"
        )

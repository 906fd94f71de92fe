"""vega-image render of a Windows target: the tree that Setup, Packer and people read."""

from __future__ import annotations

from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.windows.tree import write_tree
from vega_image.digest import digest_bytes
from vega_image.errors import UsageError
from vega_image.windows.prepared import SELFTEST, prepare_windows, windows_lock
from vega_image.windows.spec import Platform, WindowsTarget


def render_windows_target(
    call: Call,
    target: WindowsTarget,
    *,
    output: Path,
    context: bool,
    platform: Platform | None,
) -> int:
    """Write the tree; raises UsageError BAD_CONTEXT or FOLDER_NOT_OURS."""
    if context:
        msg = f"--context is for images; what {target.name} needs besides is on its README.md"
        raise UsageError("BAD_CONTEXT", msg, at="--context", hint="leave it out")
    factory = call.factory
    prepared = prepare_windows(
        factory, target, windows_lock(factory, target), platform=platform
    )
    write_tree(prepared.files, output)
    job = prepared.job
    lines = [
        f"{output}: {len(prepared.files)} files of {target.name} for {job.platform}",
        *unresolved_lines(job.unresolved, len(job.lock.sources)),
        f"next: read {output / 'README.md'}",
    ]
    digests = {
        path: digest_bytes(data) for path, data in prepared.files.items() if path != SELFTEST
    }
    value = {
        "target": target.name,
        "platform": job.platform.value,
        "files": digests,
        "placed": [SELFTEST],
        "unresolved": list(job.unresolved),
    }
    call.console.result(lines, value)
    return 0


def unresolved_lines(names: tuple[str, ...], count: int) -> list[str]:
    """Say how many sources have no digest, in at most one line."""
    if not names:
        return []
    return [f"unresolved: {len(names)} of {count} sources have no digest yet"]

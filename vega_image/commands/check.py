"""vega-image check: every static check of one target, findings with file and line."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath

from vega_image.checks.finding import Finding
from vega_image.checks.hadolint import hadolint
from vega_image.checks.reproducible import check_dockerfile
from vega_image.clioptions import Call
from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.prepare import prepare, read_lock, rendered_files
from vega_image.spec import TargetKind
from vega_image.windows.spec import Platform, WindowsTarget, refuse_platform
from vega_image.wsl.checks import check_texts

CHECKS = ("spec", "lock", "render", "dockerfile-rules", "hadolint")
WSL_CHECKS = ("spec", "lock", "render", "dockerfile-rules", "wsl-configuration")


def check(call: Call, name: str, *, platform: str | None = None) -> int:
    """Run all checks; spec, lock and render refuse by themselves.

    Raises UsageError CHECK_FAILED with the findings, one per line.
    """
    factory = call.factory
    asked = factory.spec(name)
    if isinstance(asked, WindowsTarget):
        from vega_image.commands.windows.check import check_windows_target  # noqa: PLC0415

        return check_windows_target(
            call, asked, platform=Platform(platform) if platform else None
        )
    refuse_platform(name, platform)
    target = factory.target(name)
    prepared = prepare(factory, target, read_lock(factory, target))
    files = rendered_files(factory, prepared)
    dockerfiles = {p: d for p, d in files.items() if PurePosixPath(p).name == "Dockerfile"}
    findings = [
        finding
        for path, data in dockerfiles.items()
        for finding in check_dockerfile(data.decode(), path=path)
    ]
    findings += _linted(dockerfiles) if dockerfiles else []
    checks = CHECKS
    if target.kind is TargetKind.WSL:
        findings += check_texts(prepared.added)
        checks = WSL_CHECKS
    if findings:
        raise _refusal(name, findings)
    value: Json = {"target": name, "checks": list(checks), "findings": []}
    call.console.result([f"{name}: {', '.join(checks)}: no findings"], value)
    return 0


def _linted(dockerfiles: dict[str, bytes]) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="vega-image-check-") as folder:
        root = Path(folder)
        for path, data in dockerfiles.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return hadolint(root, list(dockerfiles))


def _refusal(name: str, findings: list[Finding]) -> UsageError:
    lines = "\n".join(finding.text() for finding in findings)
    msg = f"{name}: {len(findings)} findings\n{lines}"
    hint = f"vega-image render {name} -o DIR shows the files"
    return UsageError("CHECK_FAILED", msg, at=findings[0].path, hint=hint)

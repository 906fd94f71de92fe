"""Packer's own checks, and ours, over a rendered tree; an absent packer is said, never passed.

The core files are formatted, and validated in full. Of the overlays, which want a newer packer
than distributions have, packer 1.6.6 can tell the format and, but for `required_plugins`, the
structure; our own rules (hclrules.py) read both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from vega_image.checks.finding import Finding
from vega_image.checks.hcl import Block
from vega_image.checks.hclrules import OVERLAYS, RULES, check_hcl
from vega_image.engines.packer import Packer
from vega_image.engines.packerlines import Diagnostic

CORE = "packer"
PACKER_RULES = ("PKR001", "PKR002", *RULES)
_TEMPLATE, _VALUES = ".pkr.hcl", ".pkrvars.hcl"
_STAND_IN = "vega-image-check"


def check_packer(
    files: Mapping[str, bytes], *, environ: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return the findings in a rendered tree (path -> bytes), by file and line.

    PKR001: not formatted; PKR002: no HCL, or refused by packer; the others: `hclrules.py`.
    Raises EngineError TOOL_ABSENT or TOOL_TOO_OLD: a check that did not run must not look like
    one that passed.
    """
    packer = Packer.find(os.environ if environ is None else environ)
    paths = sorted(path for path in files if path.endswith((_TEMPLATE, _VALUES)))
    core = [path for path in paths if PurePosixPath(path).parent.as_posix() == CORE]
    if not any(path.endswith(_TEMPLATE) for path in core):
        message = f"no {_TEMPLATE} file"
        return [Finding(rule="PKR002", path=CORE, line=0, message=message)]
    texts, findings = _decoded(files, paths)
    findings += check_hcl(texts)[0]
    # Packer refuses a value for a variable that only an overlay declares.
    variables = check_hcl({path: texts[path] for path in core if path in texts})[1]
    # Packer says no line of what it cannot read; where we do, its word adds nothing.
    broken = {item.path for item in findings if item.rule == "PKR002"}
    with tempfile.TemporaryDirectory(prefix="vega-image-check-") as name:
        folder = Path(name)
        _write(folder, files)
        readable = [path for path in paths if path not in broken]
        findings += _formatted(packer, folder, readable)
        if not broken & set(core):
            findings += _validated(packer, folder, variables)
        findings += _overlays(packer, folder, [p for p in readable if p.startswith(OVERLAYS)])
    # Packer says some things twice.
    return sorted(
        set(findings), key=lambda item: (item.path, item.line, item.rule, item.message)
    )


def _decoded(
    files: Mapping[str, bytes], paths: Sequence[str]
) -> tuple[dict[str, str], list[Finding]]:
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    for path in paths:
        try:
            texts[path] = files[path].decode("utf-8")
        except UnicodeDecodeError as error:
            line = files[path].count(b"\n", 0, error.start) + 1
            message = "not UTF-8"
            findings.append(Finding(rule="PKR002", path=path, line=line, message=message))
    return texts, findings


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _formatted(packer: Packer, folder: Path, paths: Sequence[str]) -> Iterator[Finding]:
    for item in packer.fmt_check(folder, paths):
        rule = "PKR001" if item.severity == "fmt" else "PKR002"
        yield Finding(rule=rule, path=item.path, line=item.line, message=item.message)


def _validated(
    packer: Packer, folder: Path, variables: Mapping[str, Block]
) -> Iterator[Finding]:
    values = {
        name: _stand_in(block)
        for name, block in variables.items()
        if block.attribute("default") is None
    }
    for item in packer.validate(folder, CORE, values):
        yield _finding(item, CORE)


def _stand_in(variable: Block) -> str:
    """Return a value of the variable's type that packer accepts."""
    kind = getattr(variable.attribute("type"), "text", "string")
    if kind == "string":
        digest = "checksum" in variable.labels[0]
        return "sha256:" + "0" * 64 if digest else _STAND_IN
    known = {"number": "1", "bool": "false"}
    return known.get(kind, "{}" if kind.startswith(("map", "object")) else "[]")


def _overlays(packer: Packer, folder: Path, paths: Sequence[str]) -> Iterator[Finding]:
    for path in paths:
        # 1.6.6 refuses this block even when it only parses.
        if b"required_plugins" in (folder / path).read_bytes():
            continue
        for item in packer.validate(folder, path, {}, syntax_only=True):
            yield _finding(item, path)


def _finding(item: Diagnostic, default: str) -> Finding:
    return Finding(
        rule="PKR002", path=item.path or default, line=item.line, message=item.message
    )

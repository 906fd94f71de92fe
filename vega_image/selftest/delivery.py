"""What a run leaves behind: three reports, a verdict said, versions named."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

from vega_image.selftest import report_html, report_junit, reset
from vega_image.selftest.arguments import Wish
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.files import write_all
from vega_image.selftest.out import complain, encode_json, show_json, show_toned
from vega_image.selftest.report import Report, summary_json, to_json
from vega_image.selftest.report_text import block
from vega_image.selftest.texts import Texts


def versions() -> Mapping[str, str]:
    """Return what computes and judges here, without importing it."""
    found = {"python": platform.python_version(), "kernel": platform.release()}
    for name in ("numpy", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def deliver(report: Report, wish: Wish, texts: Texts) -> None:
    """Write the three reports. Raises SelftestError (5) where none could be."""
    files = {
        "report.json": encode_json(to_json(report, texts)),
        "report.xml": report_junit.junit(report),
        "report.html": report_html.page(report, texts),
    }
    write_all(wish.report, files)


def tell(report: Report, wish: Wish, texts: Texts) -> None:
    """Say the verdict."""
    if wish.json:
        show_json(summary_json(report, str(wish.report)))
        return
    for line in block(report, texts, str(wish.report / "report.html")):
        show_toned(line.text, line.tone, indent=line.indent)


def complain_of(report: Report) -> None:
    """Say on standard error that the device was lost, and the next command."""
    for finding in report.run.findings:
        if finding.code == reset.CODE:
            text = f"{finding.title}: {finding.detail}"
            error = SelftestError(finding.code, text, exit_code=7, hint=finding.action)
            complain(error, as_json=False)

"""The distribution manifest of an office: what `wsl --install NAME` offers. Pure.

Form: MicrosoftDocs/WSL, build-custom-distro (ModernDistributions) and its enterprise setting
DistributionListUrlAppend. WSL takes file:///C:/FOLDER for a local folder; it has no form for
a share.
"""

from __future__ import annotations

import json
import re
from typing import Final

from vega_image.digest import hex_of
from vega_image.errors import UsageError
from vega_image.spec import Target
from vega_image.wsl.places import archive_name

MANIFEST: Final = "DistributionInfo.json"
FOLDER: Final = r"C:\ProgramData\VegaImage\wsl"
"""Where the printed commands expect both files on a Windows machine."""
REGISTRY_KEY: Final = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Lxss"
_LOCAL: Final = "file:///" + FOLDER.replace("\\", "/")
_BASE: Final = re.compile(
    r"(https://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?|file:///[A-Za-z]:)"
    r"(/[A-Za-z0-9._~%+-]+)*/?"
)


def distribution_info(target: Target, *, digest: str, url_base: str | None) -> bytes:
    """Write the manifest of one archive; `digest` is the archive's.

    Raises UsageError BAD_URL_BASE.
    """
    section = target.wsl
    assert section is not None
    entry = {
        "Name": section.name,
        "FriendlyName": section.friendly_name,
        "Default": True,
        "Amd64Url": {
            "Url": f"{_base(url_base)}/{archive_name(target)}",
            "Sha256": hex_of(digest),
        },
    }
    value = {"ModernDistributions": {section.flavor: [entry]}}
    return (json.dumps(value, indent=2) + "\n").encode()


def manifest_url(url_base: str | None) -> str:
    """Say where WSL finds the manifest; raises UsageError BAD_URL_BASE.

    >>> manifest_url("https://files.example/wsl/")
    'https://files.example/wsl/DistributionInfo.json'
    """
    return f"{_base(url_base)}/{MANIFEST}"


def next_commands(target: Target, *, url_base: str | None) -> list[str]:
    """Return the commands for Windows that install the archive, in the order they are typed."""
    section = target.wsl
    assert section is not None
    url = manifest_url(url_base)
    return [
        f"wsl --install --from-file {FOLDER}\\{archive_name(target)}",
        f"reg add {REGISTRY_KEY} /v DistributionListUrlAppend /t REG_SZ /d {url} /f",
        f"wsl --install {section.name}",
    ]


def _base(given: str | None) -> str:
    if given is None:
        return _LOCAL
    if not _BASE.fullmatch(given):
        msg = f"--url-base {given}: not https://HOST/PATH or file:///C:/PATH"
        hint = f"--url-base {_LOCAL}"
        raise UsageError("BAD_URL_BASE", msg, hint=hint, at="--url-base")
    return given.rstrip("/")

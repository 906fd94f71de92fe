"""The distribution manifest: Microsoft's form, the archive's digest, addresses WSL can read."""

from __future__ import annotations

import json

import pytest

from tests.wslfactory import wsl_target
from vega_image.errors import UsageError
from vega_image.wsl.manifest import distribution_info, manifest_url, next_commands

DIGEST = "sha256:" + "ab" * 32


def test_the_manifest_is_the_documented_one() -> None:
    data = distribution_info(wsl_target(), digest=DIGEST, url_base="https://files.example/wsl/")
    assert json.loads(data) == {
        "ModernDistributions": {
            "Tiny": [
                {
                    "Name": "TinyDebian",
                    "FriendlyName": "Tiny Debian",
                    "Default": True,
                    "Amd64Url": {
                        "Url": "https://files.example/wsl/tiny-1.0.0.wsl",
                        "Sha256": "ab" * 32,
                    },
                }
            ]
        }
    }


def test_without_a_server_it_names_the_folder_of_the_printed_commands() -> None:
    value = json.loads(distribution_info(wsl_target(), digest=DIGEST, url_base=None))
    [entry] = value["ModernDistributions"]["Tiny"]
    assert entry["Amd64Url"]["Url"] == "file:///C:/ProgramData/VegaImage/wsl/tiny-1.0.0.wsl"
    install, registry, again = next_commands(wsl_target(), url_base=None)
    assert install == r"wsl --install --from-file C:\ProgramData\VegaImage\wsl\tiny-1.0.0.wsl"
    assert r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Lxss " in registry
    assert "DistributionListUrlAppend" in registry
    assert "file:///C:/ProgramData/VegaImage/wsl/DistributionInfo.json" in registry
    assert again == "wsl --install TinyDebian"


@pytest.mark.parametrize(
    "base",
    [
        *(
            "http://files.example/wsl",
            "ftp://x/y",
            "files.example",
            "",
            "https://",
            "file://x/y",
        ),
        *("https://a b/", "https://user:pw@files.example/", 'https://x/"y', "file:///tmp/x"),
    ],
)
def test_an_address_that_wsl_cannot_use_is_refused(base: str) -> None:
    with pytest.raises(UsageError) as caught:
        manifest_url(base)
    assert (caught.value.exit_code, caught.value.code) == (2, "BAD_URL_BASE")

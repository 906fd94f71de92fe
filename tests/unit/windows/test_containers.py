"""Windows containers: as a name, as a base image, from whatever mirror; nothing else."""

from __future__ import annotations

import pytest

from vega_image.errors import UsageError
from vega_image.windows.containers import refuse_windows_base, refuse_windows_container


@pytest.mark.parametrize(
    "image",
    [
        *("registry.example/windows:ltsc2022", "registry.example/windows/servercore:ltsc2025"),
        *("mirror.example:5000/windows/nanoserver@sha256:ab", "windows", "WINDOWS/Server:1"),
        *("windows/servercore", "windowsservercore", "x/windows-nanoserver:1"),
    ],
)
def test_a_stage_from_a_windows_base_is_refused_with_file_and_line(image: str) -> None:
    text = f"# base\nFROM --platform=windows/amd64 {image} AS build\nRUN x\n"
    with pytest.raises(UsageError) as caught:
        refuse_windows_base({"sub/Dockerfile": text.encode()}, stage="hip")
    assert caught.value.code == "WINDOWS_CONTAINERS_UNSUPPORTED"
    assert caught.value.at == "stages/hip/sub/Dockerfile:2"
    assert image in caught.value.message


@pytest.mark.parametrize(
    "image", ["${BASE}", "scratch", "x/windowsill:1", "debian@sha256:ab", "x/windows-tools:1"]
)
def test_other_bases_are_none_of_its_business(image: str) -> None:
    refuse_windows_base({"Dockerfile": f"FROM {image}\n".encode()}, stage="hip")
    refuse_windows_base({"build.sh": b"FROM windows\n"}, stage="hip")


def test_a_target_of_another_name_is_not_refused() -> None:
    refuse_windows_container("windows-ltsc", at="windows-ltsc")
    with pytest.raises(UsageError):
        refuse_windows_container("windows-container", at="windows-container")

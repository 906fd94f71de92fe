"""`reproduce`: the same bytes again, or the first file that differs."""

from __future__ import annotations

import copy
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.minidebian import MiniDebian
from tests.tampering import Change, documents, forge_documents, forge_files
from tests.tiny import Tiny, new_user, rehash

pytestmark = pytest.mark.needs("docker", "busybox")


@pytest.fixture(scope="module")
def built(
    mini: MiniDebian, locked_factory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tiny]:
    """A user who has built the tiny target and exported it to `layout`."""
    folder = tmp_path_factory.mktemp("built") / "user"
    user = new_user(folder, archive=mini, factory=locked_factory)
    user.build("-o", str(folder / "layout"))
    yield user
    assert list((user.store / "tmp").iterdir()) == []
    rehash(user.store)


@pytest.fixture
def forged(built: Tiny, tmp_path: Path) -> Path:
    """A copy of the exported layout, to be changed."""
    return Path(shutil.copytree(built.folder / "layout", tmp_path / "forged"))


def test_an_image_of_the_store_and_a_layout_are_rebuilt_equal(built: Tiny) -> None:
    digest = built.build()["digest"]
    for ref in (f"tiny@{digest}", f"oci:{built.folder / 'layout'}"):
        assert built.done("reproduce", ref) == {
            "ref": ref,
            "digest": digest,
            "reproduced": True,
        }


def test_the_lock_inside_the_image_counts_not_the_one_beside_it(built: Tiny) -> None:
    text = built.lock.read_text()
    try:
        built.lock.unlink()
        assert built.done("reproduce", "tiny")["reproduced"]
    finally:
        built.lock.write_text(text)


def content(path: str, old: bytes, new: bytes) -> Change:
    def change(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name.removeprefix("./") == path:
            assert old in data
            data = data.replace(old, new)
        return info, data

    return change


def mode(path: str, bits: int) -> Change:
    def change(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name.removeprefix("./") == path:
            info = copy.copy(info)
            info.mode = bits
        return info, data

    return change


def gone(path: str) -> Change:
    def change(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes] | None:
        return None if info.name.removeprefix("./") == path else (info, data)

    return change


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("opt/greet/word", content("opt/greet/word", b"hello", b"jello")),
        ("usr/share/tiny/app", mode("usr/share/tiny/app", 0o6755)),
    ],
    ids=["content", "mode"],
)
def test_a_forged_file_is_named(built: Tiny, forged: Path, path: str, change: Change) -> None:
    forge_files(forged, change)
    answer = built.json("reproduce", f"oci:{forged}")
    assert answer.error == (4, "NOT_REPRODUCED")
    assert answer.value["error"]["at"] == path
    assert path in answer.value["error"]["message"]


@pytest.mark.needs("diffoscope")
def test_diffoscope_explains_the_file(built: Tiny, forged: Path) -> None:
    forge_files(forged, content("etc/tiny.conf", b"red", b"blue"))
    message = built.json("reproduce", f"oci:{forged}").value["error"]["message"]
    for line in ("etc/tiny.conf: content", "-colour = blue", "+colour = red"):
        assert line in message


def test_a_forged_configuration_is_named(built: Tiny, forged: Path) -> None:
    manifest, config = documents(forged)
    config["config"]["User"] = "0:0"
    forge_documents(forged, manifest, config)
    answer = built.json("reproduce", f"oci:{forged}")
    assert answer.error == (4, "NOT_REPRODUCED")
    assert answer.value["error"]["at"] == "config.config.User"


def test_a_forged_lock_inside_is_refused(built: Tiny, forged: Path) -> None:
    inside = "usr/share/vega-image/lock.json"
    forge_files(forged, content(inside, b'"size":', b'"size":1'))
    assert built.refused("reproduce", f"oci:{forged}") == (3, "LOCK_EDITED")


def test_an_image_that_is_not_ours_says_so(built: Tiny, forged: Path) -> None:
    forge_files(forged, gone("usr/share/vega-image/lock.json"))
    assert built.refused("reproduce", f"oci:{forged}") == (3, "NO_LOCK_INSIDE")


@pytest.mark.parametrize("spoil", ["cut", "flip", "lost", "link"])
def test_a_damaged_layout_is_refused(
    built: Tiny, forged: Path, tmp_path: Path, spoil: str
) -> None:
    blob = max((forged / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(blob.read_bytes())
    blob.unlink()
    match spoil:
        case "cut":
            blob.write_bytes(data[:-1])
        case "flip":
            data[1000] ^= 1
            blob.write_bytes(data)
        case "link":
            (tmp_path / "elsewhere").write_bytes(data)
            blob.symlink_to(tmp_path / "elsewhere")
        case _:
            pass
    code, name = built.refused("reproduce", f"oci:{forged}")
    assert code == 4
    assert name == ("BLOB_DIFFERS" if spoil in {"cut", "flip"} else "BLOB_GONE")

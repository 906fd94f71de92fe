from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.errors import BytesError, HostError, UsageError
from vega_image.serving.modeldigest import (
    ModelFile,
    check_readable,
    check_unchanged,
    read_model,
    record,
)
from vega_image.serving.sandbox import Account
from vega_image.serving.socketfolder import file_system_of, socket_folder

BYTES = b"GGUF" + b"\3\0\0\0" + b"tensor" * 1000
SUM = sha256(BYTES).hexdigest()
UID = os.geteuid() or 10001
ACCOUNT = Account(uid=UID, gid=UID if UID == 10001 else os.getegid())
MEMORY = Path("/dev/shm")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(BYTES)
    return path


def read(path: Path, expected: str | None = None) -> ModelFile:
    return read_model(path, expected=expected, progress=lambda _done, _total: None)


@pytest.mark.parametrize("expected", [None, SUM, SUM.upper(), f"sha256:{SUM}"])
def test_a_model_is_hashed_and_compared(file: Path, expected: str | None) -> None:
    steps: list[tuple[int, int]] = []
    model = read_model(
        file, expected=expected, progress=lambda done, total: steps.append((done, total))
    )
    assert model.digest == f"sha256:{SUM}"
    assert steps[-1] == (len(BYTES), len(BYTES))


def test_another_model_is_exit_4_and_names_both_digests(file: Path) -> None:
    with pytest.raises(BytesError) as caught:
        read(file, "0" * 64)
    assert (caught.value.code, caught.value.exit_code) == ("MODEL_WRONG_DIGEST", 4)
    assert SUM in caught.value.message
    assert "0" * 64 in caught.value.message


@pytest.mark.parametrize("expected", ["", "abc", "g" * 64])
def test_a_digest_that_is_none_is_a_usage_error(file: Path, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(file, expected)
    assert caught.value.code == "BAD_DIGEST"


def test_what_is_no_readable_model_is_exit_2(tmp_path: Path) -> None:
    (tmp_path / "zip").write_bytes(b"PK\3\4")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    codes = {"zip": "MODEL_NOT_GGUF", "empty": "MODEL_NOT_GGUF"}
    for name in ("zip", "empty", "gone", ".", "loop", "zip/x"):
        with pytest.raises(UsageError) as caught:
            read(tmp_path / name)
        assert caught.value.code == codes.get(name, "MODEL_UNREADABLE"), name


def test_a_link_is_followed_before_the_file_is_mounted(file: Path) -> None:
    link = file.with_name("link.gguf")
    link.symlink_to(file)
    assert read(link).path == file


def test_a_file_the_server_cannot_read_is_said_so(file: Path) -> None:
    model = read(file)
    file.chmod(0o600)
    with pytest.raises(UsageError) as caught:
        check_readable(model, Account(uid=10001, gid=10001))
    assert caught.value.code == "MODEL_UNREADABLE"
    file.chmod(0o604)
    check_readable(model, Account(uid=10001, gid=10001))


def test_a_file_swapped_after_hashing_is_noticed(file: Path) -> None:
    model = read(file)
    check_unchanged(model)
    other = file.with_name("other")
    other.write_bytes(BYTES)
    other.replace(file)
    with pytest.raises(BytesError):
        check_unchanged(model)


def test_served_models_are_recorded_by_name_and_changes_told(
    file: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state" / "vega-image"
    assert record(state, read(file), day="2026-01-01") is None
    assert record(state, read(file), day="2026-01-02") is None
    file.write_bytes(BYTES + b"x")
    assert record(state, read(file), day="2026-01-03") == f"sha256:{SUM} on 2026-01-01"
    text = (state / "models.json").read_text()
    assert json.loads(text)["m.gguf"]["day"] == "2026-01-03"
    assert str(tmp_path) not in text


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"m.gguf": 3}', '{"m.gguf": {}}'])
def test_a_damaged_record_is_begun_anew(file: Path, tmp_path: Path, damaged: str) -> None:
    (tmp_path / "models.json").write_text(damaged)
    assert record(tmp_path, read(file), day="2026-01-01") is None
    assert "m.gguf" in json.loads((tmp_path / "models.json").read_text())


@given(st.text(), st.text())
def test_any_mountinfo_can_be_read(mountinfo: str, path: str) -> None:
    file_system_of(mountinfo, path)


def test_the_deepest_and_latest_mount_counts() -> None:
    text = (
        "1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /run rw shared:1 - tmpfs b rw\n"
        "3 2 0:3 / /run/user rw - tmpfs c rw\n4 2 0:4 / /run/user rw - xfs d rw\n"
        "5 1 0:5 / /with\\040space rw - tmpfs e rw\n"
    )
    kinds = {"/run": "tmpfs", "/runner": "ext4", "/run/user/1": "xfs", "/with space/x": "tmpfs"}
    assert {path: file_system_of(text, path) for path in kinds} == kinds


def test_the_socket_folder_is_private_in_memory_and_gone_after(tmp_path: Path) -> None:
    with socket_folder((tmp_path, MEMORY), ACCOUNT) as folder:
        status = folder.stat()
        assert folder.parent == MEMORY
        assert (status.st_mode & 0o777, status.st_uid) == (0o700, UID)
        assert len(str(folder / "llama.sock")) < 108
    assert not folder.exists()


def test_the_folder_of_a_dead_run_is_swept() -> None:
    with socket_folder((MEMORY,), ACCOUNT) as living:
        start, _, rest = living.name.partition("_")
        dead = MEMORY / f"{start}_1_1.{rest.rpartition('.')[2]}"
        dead.mkdir()
        with socket_folder((MEMORY,), ACCOUNT):
            assert not dead.exists()
            assert living.exists()


def test_a_disk_is_no_place_for_the_socket(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught, socket_folder((tmp_path,), ACCOUNT):
        pass
    assert caught.value.code == "NO_MEMORY_FOLDER"

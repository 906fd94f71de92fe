"""`finddb audit REF`: an image's own library, database and variables."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.fakemiopen import fake_root

pytestmark = pytest.mark.needs("gcc")
VEGA_IMAGE = Path(sys.executable).with_name("vega-image")
DB = "usr/share/miopen/db/gfx906_60.HIP.fdb.txt"
NAIVE = "ConvDirectNaiveConvFwd:1,0,miopenConvolutionFwdAlgoDirect"


def key(channels: int) -> str:
    return f"{channels}-8-8-3x3-4-8-8-1-1x1-1x1-1x1-0-NCHW-FP32-F"


def records(*channels: int) -> str:
    return "".join(f"{key(c)}={NAIVE}\n" for c in channels)


def blob(layout: Path, data: bytes) -> dict[str, Any]:
    name = hashlib.sha256(data).hexdigest()
    folder = layout / "blobs/sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return {"digest": f"sha256:{name}", "size": len(data)}


def image(
    folder: Path,
    root: Path,
    env: list[str],
    *,
    links: dict[str, str] | None = None,
    behind: str | None = None,
) -> str:
    """Write a one-layer OCI layout of a root."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
        if behind is not None:
            tar.addfile(tarfile.TarInfo(behind))
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False)
    packed = blob(folder, gzip.compress(raw.getvalue()))
    diff = f"sha256:{hashlib.sha256(raw.getvalue()).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": env, "Labels": {}},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
    }
    prefix = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{prefix}.manifest.v1+json",
        "config": {
            "mediaType": f"{prefix}.config.v1+json",
            **blob(folder, json.dumps(config).encode()),
        },
        "layers": [{"mediaType": f"{prefix}.layer.v1.tar+gzip", **packed}],
    }
    entry = {
        "mediaType": manifest["mediaType"],
        **blob(folder, json.dumps(manifest).encode()),
        "annotations": {"org.opencontainers.image.ref.name": "1"},
    }
    index = {"schemaVersion": 2, "manifests": [entry]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return f"oci:{folder}"


def audited(ref: str, tmp_path: Path, *words: str) -> tuple[int, Any]:
    store = tmp_path.parent / "audit-store"
    argv = [str(VEGA_IMAGE), "finddb", "audit", ref, "--json", "-q", "--store", str(store)]
    done = subprocess.run([*argv, *words], stdout=subprocess.PIPE, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = fake_root(tmp_path / "root", "-DCTOR=0")
    (root / DB).parent.mkdir(parents=True)
    return root


def test_an_image_is_audited_with_its_own_database(root: Path, tmp_path: Path) -> None:
    (root / DB).write_text(records(3, 5))
    ref = image(tmp_path / "oci", root, ["PATH=/bin", "MIOPEN_X=1", "LD_PRELOAD=/evil.so"])
    code, value = audited(ref, tmp_path)
    assert (code, value["problems"], value["usable"]) == (0, 2, 2)
    assert value["environment"] == {"MIOPEN_X": "1"}
    assert value["c3_usable"] == 1
    assert value["applicable_solvers"] == ["ConvDirectNaiveConvFwd"]


def test_failures_of_the_library_are_listed_and_not_usable(root: Path, tmp_path: Path) -> None:
    (root / DB).write_text(records(3, 13, 15, 16, 17, 5))
    ref = image(tmp_path / "oci", root, [])
    code, value = audited(ref, tmp_path)
    assert (code, value["problems"], value["usable"]) == (9, 6, 2)
    failures = {row["key"]: row["outcome"] for row in value["failures"]}
    assert failures == {key(13): "CRASHED", key(15): "FORBIDDEN", key(16): "CRASHED"}
    assert (value["refused_records"], value["dead_records"]) == (1, 1)
    assert not value["passes"]


def test_an_image_without_a_database_says_so(root: Path, tmp_path: Path) -> None:
    ref = image(tmp_path / "oci", root, [])
    code, value = audited(ref, tmp_path)
    assert (code, value["error"]["code"]) == (2, "FINDDB_ABSENT")
    # Not where it was laid out for a moment.
    assert value["error"]["message"].startswith(f"{ref} holds no gfx906_60.HIP.fdb.txt")
    (root / DB).write_text("")
    other = image(tmp_path / "other", root, [])
    code, value = audited(other, tmp_path)
    assert (code, value["error"]["code"]) == (9, "NOTHING_TO_AUDIT")


def test_a_threshold_that_is_no_number_is_refused(root: Path, tmp_path: Path) -> None:
    (root / DB).write_text(records(3))
    ref = image(tmp_path / "oci", root, [])
    code, value = audited(ref, tmp_path, "--threshold", "nan")
    assert (code, value["error"]["code"]) == (2, "THRESHOLD_INVALID")


def test_a_layer_cannot_write_through_a_link(root: Path, tmp_path: Path) -> None:
    (root / DB).write_text(records(3))
    victim = tmp_path / "victim"
    victim.mkdir()
    ref = image(tmp_path / "oci", root, [], links={"zz": str(victim)}, behind="zz/file")
    code, value = audited(ref, tmp_path)
    assert (code, value["error"]["code"]) == (6, "HOSTILE_TAR")
    assert list(victim.iterdir()) == []

"""Real engines and skopeo take our images, with the image id we computed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.smallimage import SmallImage
from vega_image.oci.archive import docker_archive
from vega_image.oci.layout import Layout
from vega_image.process import run
from vega_image.spec import Codec
from vega_image.store import Store

TAG = "localhost/vega-image-test-load:1"
ENGINES = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
]


@pytest.fixture
def maker(tmp_path: Path) -> SmallImage:
    return SmallImage(Store(tmp_path / "store"))


@pytest.fixture
def layout(maker: SmallImage, tmp_path: Path) -> Layout:
    return maker.layout(tmp_path / "layout", maker.tree())


@pytest.fixture
def archive(maker: SmallImage, layout: Layout, tmp_path: Path) -> Path:
    path = tmp_path / "image.tar"
    _write(path, docker_archive(layout, maker.store, tag=TAG))
    return path


@pytest.fixture(params=ENGINES)
def loaded(request: pytest.FixtureRequest, archive: Path) -> Iterator[str]:
    engine = str(request.param)
    done = run([engine, "load", "--input", str(archive)])
    assert done.returncode == 0, done.output
    yield engine
    run([engine, "rmi", "--force", TAG])


def test_the_image_id_is_the_configs_digest(loaded: str, layout: Layout) -> None:
    done = run([loaded, "image", "inspect", TAG])
    assert done.returncode == 0, done.output
    (image,) = json.loads(done.output)
    assert image["Id"].removeprefix("sha256:") == layout.config_digest.removeprefix("sha256:")
    layers = [layer.diff_id for layer in layout.layers]
    assert image["RootFS"]["Layers"] == layers
    assert image["Config"]["Labels"] == {"io.vega-image.note": "x"}


def test_modes_and_owners_survive_the_layers(loaded: str, tmp_path: Path) -> None:
    done = run([loaded, "create", TAG])
    assert done.returncode == 0, done.output
    name = done.output.split()[-1]
    exported = tmp_path / "root.tar"
    try:
        assert run([loaded, "export", "--output", str(exported), name]).returncode == 0
    finally:
        run([loaded, "rm", "--force", name])
    with tarfile.open(exported) as tar:
        found = {info.name.removeprefix("./"): info for info in tar}
    assert (found["srv"].mode & 0o7777, found["srv"].uid, found["srv"].gid) == (0o750, 7, 8)
    assert found["tmp"].mode & 0o7777 == 0o1777
    assert found["srv/app"].size == 5
    assert found["srv/link"].linkname == "app"
    assert {int(found[path].mtime) for path in ("srv", "srv/app")} == {1764460800}


@pytest.mark.needs("podman")
def test_podman_pulls_the_zstd_layout_with_the_same_id(layout: Layout) -> None:
    done = run(["podman", "pull", "--quiet", f"oci:{layout.folder}:{layout.tag}"])
    assert done.returncode == 0, done.output
    name = done.output.split()[-1]
    try:
        assert name == layout.config_digest.removeprefix("sha256:")
    finally:
        run(["podman", "rmi", "--force", name])


@pytest.mark.needs("skopeo")
@pytest.mark.parametrize("codec", list(Codec))
def test_skopeo_reads_and_copies_a_layout_keeping_its_digest(
    maker: SmallImage, tmp_path: Path, codec: Codec
) -> None:
    layout = maker.layout(tmp_path / codec.value, maker.tree(), codec=codec)
    ref = f"oci:{layout.folder}:{layout.tag}"
    seen = run(["skopeo", "inspect", ref])
    assert seen.returncode == 0, seen.output
    said = json.loads(seen.output)
    assert said["Digest"] == layout.digest
    assert said["Labels"] == layout.labels
    copy = tmp_path / "copy"
    policy = tmp_path / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    argv = ["skopeo", "copy", "--policy", str(policy), "--preserve-digests"]
    done = run([*argv, ref, f"oci:{copy}:1"])
    assert done.returncode == 0, done.output
    index = json.loads((copy / "index.json").read_bytes())
    assert index["manifests"][0]["digest"] == layout.digest


@pytest.mark.needs("skopeo", "docker")
def test_skopeo_hands_a_gzip_layout_to_an_old_docker(maker: SmallImage, tmp_path: Path) -> None:
    layout = maker.layout(tmp_path / "gzip", maker.tree(), codec=Codec.GZIP)
    ref = f"oci:{layout.folder}:{layout.tag}"
    done = run(["skopeo", "copy", "--insecure-policy", ref, f"docker-daemon:{TAG}"])
    assert done.returncode == 0, done.output
    try:
        found = run(["docker", "image", "inspect", "--format", "{{.Id}}", TAG])
        assert found.output.strip() == layout.config_digest
    finally:
        run(["docker", "rmi", "--force", TAG])


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)

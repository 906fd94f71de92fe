"""A target with `method: install`: a real Debian by mmdebstrap, as a user builds it."""

from __future__ import annotations

import json
import signal
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes import marked, until
from tests.tiny import FIXTURE, Tiny, new_user, rehash
from vega_image.sources.mirror import host_keyring, host_mirror

pytestmark = [
    pytest.mark.needs("mmdebstrap", "network", "docker", "busybox"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A user whose tiny target is Debian 12's essential packages, locked and fetched."""
    from tests.minidebian import MiniDebian

    keys = MiniDebian.__new__(MiniDebian)
    keys.keyring = host_keyring()
    folder = tmp_path_factory.mktemp("install") / "user"
    user = new_user(folder, archive=keys, factory=FIXTURE, mirror=host_mirror())
    text = user.spec.read_text()
    text = text.replace("suites: [mini]", "suites: [bookworm]")
    text = text.replace("[tiny-app, tiny-base]", "[base-files]\n    essential: true")
    text = text.replace("  omit:\n    tiny-tool: only maintainer scripts ask it\n", "")
    text = text.replace("  links: {bin: usr/bin}\n", "  method: install\n")
    text = text.replace('  - {name: runtime, packages: ["libtiny*"]}\n', "")
    text = text.replace("[tiny-app, ", "[")
    user.spec.write_text(text)
    recipe = user.factory / "templates/stages/greet/greet.sh"
    recipe.write_text(
        recipe.read_text().replace("cat /usr/share/tiny/app", "dpkg -l base-files")
    )
    user = replace(user, patience=600)
    user.done("lock", "tiny")
    user.done("pool", "export", "tiny", "-o", str(folder / "pool"))
    return user


def elsewhere(debian: Tiny, store: Path) -> Tiny:
    """The same user with another store that has the downloads."""
    user = debian.having(VEGA_IMAGE_STORE=str(store))
    user.done("pool", "import", str(debian.folder / "pool"))
    return user


def test_installed_twice_the_same(debian: Tiny, tmp_path: Path) -> None:
    first = elsewhere(debian, tmp_path / "one").build("--offline")
    other = elsewhere(debian, tmp_path / "an other").having(
        TZ="Asia/Tokyo", LC_ALL="tr_TR.UTF-8"
    )
    again = replace(other, umask=0o077, before=("taskset", "--cpu-list", "1")).build(
        "--offline"
    )
    assert again["digest"] == first["digest"]
    assert again["image_id"] == first["image_id"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_killed_while_it_installs(debian: Tiny, tmp_path: Path, number: signal.Signals) -> None:
    mark = str(uuid.uuid4())
    user = elsewhere(debian, tmp_path / "store").having(VEGA_TEST_MARK=mark)
    log = Path(user.env()["XDG_STATE_HOME"]) / "vega-image/logs/tiny-root.log"
    log.unlink(missing_ok=True)
    scratch = str(user.store / "tmp")

    def installs() -> bool:
        return bool(working(scratch, "--fsys-tarfile"))

    with user.start("build", "tiny", "--offline", "--json") as child:
        until(installs, lambda: f"it never installed: {log.read_text()[-500:]}")
        child.send_signal(number)
        child.communicate(timeout=user.patience)
    until(
        lambda: not working(scratch) and not marked(mark),
        lambda: f"still running: {working(scratch)}",
    )
    assert scratch not in Path("/proc/self/mounts").read_text(), "something is still mounted"
    rehash(user.store)
    value = json.loads(user("build", "tiny", "--offline", "--json").out)
    assert value["steps"][0]["state"] == "built"
    assert list((user.store / "tmp").iterdir()) == []


def working(folder: str, program: str = "") -> list[str]:
    """Command lines of what runs in, or with a word of, a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            inside = str((path / "root").readlink()).startswith(folder)
        except (OSError, UnicodeDecodeError):
            continue
        if (inside or folder in line) and program in line and "vega-image -C" not in line:
            found.append(line)
    return found

"""A packer build through the adapter: lines, clock, Ctrl-C, secrets, half images."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bootiso import AGAIN, HANG, bootable
from tests.processes import marked, until
from vega_image.engines.packer import Packer
from vega_image.engines.packerbuild import Boot, PackerResult, boot
from vega_image.errors import EngineError, StageError, UsageError, VegaError

HERE = Path(__file__).resolve().parents[1]
TEMPLATE = HERE / "data/packer/boot"
SAID = "vega-image: the guest is up"


@dataclass
class Bench:
    """A folder with a template, an ISO, and the packer to use."""

    folder: Path
    environ: dict[str, str]

    def job(self, iso: bytes = b"", **more: Any) -> Boot:
        path = self.folder / "a disk é.iso"
        path.write_bytes(iso)
        words: dict[str, Any] = {
            "stage": "vm",
            "folder": self.folder,
            "template": "packer",
            "iso": path,
            "iso_sha256": hashlib.sha256(iso).hexdigest(),
            "output": self.folder / "out" / "vm",
        }
        return Boot(**(words | more))

    def boot(
        self, job: Boot, *, timeout: float = 60, on_line: Callable[[str], None] = lambda _: None
    ) -> PackerResult:
        packer = Packer.find(self.environ)
        log = self.folder / "log"
        return boot(packer, job, timeout=timeout, on_line=on_line, log_path=log)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def seen(self) -> dict[str, Any]:
        text = (self.folder / "seen").read_text()
        return dict(json.loads(text))

    def nothing_left(self) -> None:
        until(lambda: not marked(self.environ["MARK"]), lambda: marked(self.environ["MARK"]))
        assert not list((self.folder / "out").rglob("*"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder = tmp_path / "a folder"
    shutil.copytree(TEMPLATE, folder / "packer")
    return Bench(folder, {**os.environ, "MARK": f"vega-{os.getpid()}-{tmp_path.name}"})


@pytest.fixture
def fake(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Bench]:
    def behave(case: str) -> Bench:
        bench.environ["FAKE_PACKER"] = case
        return bench

    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "packer"
    program.write_text(f"#!{sys.executable}\n" + (HERE / "data/packer/fakepacker").read_text())
    program.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    bench.environ |= {"PATH": path, "FAKE_SEEN": str(bench.folder / "seen")}
    return behave


def test_a_build_that_ends_well_is_moved_into_place(fake: Callable[[str], Bench]) -> None:
    bench, lines = fake("noise"), list[str]()
    result = bench.boot(bench.job(), on_line=lines.append)
    assert [art.files for art in result.artifacts] == [(bench.folder / "out/vm/half",)]
    assert result.artifacts[0].files[0].read_text() == "half an image"
    assert [path.name for path in (bench.folder / "out").iterdir()] == ["vm"]
    # Two streams: their order is chance.
    assert sorted(lines) == [
        "a warning of the guest on its stderr",
        "guest: guest talks",
        "started",
    ]
    assert "a line of PACKER_LOG" in bench.log()


@pytest.mark.parametrize(("case", "why"), [
    ("fail", "code 1: it broke, badly"),
    ("counted", "packer gave no reason"),
    ("nothing", "made nothing"),
])  # fmt: skip
def test_a_build_that_fails_is_exit_6_and_leaves_no_half_image(
    fake: Callable[[str], Bench], case: str, why: str
) -> None:
    bench = fake(case)
    with pytest.raises(StageError) as caught:
        bench.boot(bench.job())
    assert (caught.value.exit_code, caught.value.code) == (6, "STAGE_FAILED")
    assert why in caught.value.message
    assert f"log: {bench.folder / 'log'}" in caught.value.message
    bench.nothing_left()


def test_the_error_holds_the_last_thirty_lines(fake: Callable[[str], Bench]) -> None:
    bench = fake("chatty")
    with pytest.raises(StageError) as caught:
        bench.boot(bench.job())
    lines = caught.value.message.splitlines()
    assert len(lines) == 32
    assert "line 49" in lines
    assert "line 10" not in lines
    assert "line 10" in bench.log()


@pytest.mark.parametrize(("case", "seconds", "grace"), [("hang", 3, 20), ("deaf", 1, 1)])
def test_the_clock_ends_a_build_and_its_vm(
    fake: Callable[[str], Bench],
    case: str,
    seconds: float,
    grace: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vega_image.engines.packerbuild.GRACE_SECONDS", grace)
    bench, lines = fake(case), list[str]()
    with pytest.raises(StageError) as caught:
        bench.boot(bench.job(), timeout=seconds, on_line=lines.append)
    assert (caught.value.exit_code, caught.value.code) == (6, "PACKER_TIMED_OUT")
    assert f"no end after {seconds} s" in caught.value.message
    # Packer's own cleanup is heard, if it does any.
    assert ("Cancelling build, as asked" in lines) == (case == "hang")
    bench.nothing_left()


def test_a_listener_that_fails_ends_the_build(fake: Callable[[str], Bench]) -> None:
    def deaf(_line: str) -> None:
        raise EngineError("OUTPUT_FAILED", "nobody listens")

    bench = fake("hang")
    with pytest.raises(EngineError, match="nobody listens"):
        bench.boot(bench.job(), on_line=deaf)
    bench.nothing_left()


def test_a_secret_goes_by_environment_and_is_hidden(fake: Callable[[str], Bench]) -> None:
    bench, lines = fake("secret"), list[str]()
    job = bench.job(secrets={"password": "hunter2"}, variables={"name": "a b=c"})
    with pytest.raises(StageError) as caught:
        bench.boot(job, on_line=lines.append)
    seen = bench.seen()
    assert seen["env"]["PKR_VAR_password"] == "hunter2"
    assert "hunter2" not in " ".join(seen["argv"])
    assert "name=a b=c" in seen["argv"]
    for text in (bench.log(), caught.value.message, "\n".join(lines)):
        assert "hunter2" not in text
        assert "***" in text


def test_packer_is_kept_from_the_users_settings(fake: Callable[[str], Bench]) -> None:
    bench = fake("")
    bench.environ |= {"PKR_VAR_ssh_password": "stray", "PACKER_PLUGIN_PATH": "/evil"}
    bench.boot(bench.job(only=("qemu.tiny", "qemu.other")))
    seen = bench.seen()
    env = seen["env"]
    assert seen["cwd"] == str(bench.folder.resolve())
    assert not {"PKR_VAR_ssh_password", "PACKER_PLUGIN_PATH", "PYTHONPATH"} & set(env)
    assert env["CHECKPOINT_DISABLE"] == "1"
    assert env["PACKER_LOG"] == "1"
    assert env["HOME"] != os.environ.get("HOME")
    assert env["PACKER_CACHE_DIR"].startswith(env["HOME"])
    assert "-only=qemu.tiny,qemu.other" in seen["argv"]


@pytest.mark.parametrize(("more", "code"), [
    ({"variables": {"iso_path": "x"}}, "VARIABLE_RESERVED"),
    ({"variables": {"a": "x"}, "secrets": {"a": "y"}}, "VARIABLE_RESERVED"),
    ({"secrets": {"a": "y\0"}}, "SECRET_UNUSABLE"),
    ({"template": "nope"}, "TEMPLATE_ABSENT"),
])  # fmt: skip
def test_a_wrong_call_is_refused_before_packer_starts(
    fake: Callable[[str], Bench], more: Mapping[str, Any], code: str
) -> None:
    bench = fake("noise")
    with pytest.raises(UsageError) as caught:
        bench.boot(bench.job(**more))
    assert caught.value.code == code
    assert not (bench.folder / "seen").exists()


def test_what_is_there_already_is_not_overwritten(fake: Callable[[str], Bench]) -> None:
    bench = fake("noise")
    (bench.folder / "out/vm").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        bench.boot(bench.job())
    assert caught.value.code == "OUTPUT_EXISTS"


def test_an_old_packer_and_none_are_said(
    fake: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = fake("noise")
    bench.environ["FAKE_VERSION"] = "Packer v1.6.5"
    with pytest.raises(EngineError, match=r"1\.6\.5; 1\.6\.6 or newer") as old:
        Packer.find(bench.environ)
    bench.environ["FAKE_VERSION"] = "who knows"
    with pytest.raises(EngineError) as mute:
        Packer.find(bench.environ)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError) as absent:
        Packer.find({})
    codes = [caught.value.code for caught in (old, mute, absent)]
    assert codes == ["TOOL_TOO_OLD", "TOOL_FAILED", "TOOL_ABSENT"]
    assert absent.value.hint


PROGRAM = """
import os, sys
from pathlib import Path
from vega_image import cli
from vega_image.engines.packer import Packer
from vega_image.engines.packerbuild import Boot, boot

def command(*_args, **_more):
    folder = Path(sys.argv[1])
    job = Boot(stage="vm", folder=folder, template="packer", iso=Path(sys.argv[2]),
               iso_sha256=sys.argv[3], output=folder / "out" / "vm")
    boot(Packer.find(os.environ), job, timeout=100, log_path=folder / "log",
         on_line=lambda line: print(line, flush=True))

cli.cli.main = command
cli.main([])
"""


def interrupted(bench: Bench, job: Boot, number: int, ready: Callable[[str], bool]) -> int:
    argv = [sys.executable, "-c", PROGRAM, str(bench.folder), str(job.iso), job.iso_sha256]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=bench.environ
    ) as child:
        assert child.stdout is not None
        guard = threading.Timer(40, child.kill)
        guard.start()
        heard = []
        for line in child.stdout:
            heard.append(line)
            if ready(line):
                break
        else:
            pytest.fail("".join(heard))
        child.send_signal(number)
        child.communicate()
        guard.cancel()
        return child.returncode


def hung(bench: Bench, number: int) -> int:
    def heard(line: str) -> bool:
        if line == "started\n":
            until((bench.folder / "seen.ready").exists, lambda: "the fake is not ready")
        return line == "started\n"

    return interrupted(bench, bench.job(), number, heard)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_is_130_and_leaves_nothing(fake: Callable[[str], Bench], number: int) -> None:
    bench = fake("hang")
    assert hung(bench, number) == 130
    bench.nothing_left()
    assert (bench.folder / "seen.cleaned").exists()


def test_what_a_killed_build_left_goes_with_the_next(fake: Callable[[str], Bench]) -> None:
    bench = fake("hang")
    assert hung(bench, signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not marked(bench.environ["MARK"]), lambda: marked(bench.environ["MARK"]))
    assert (bench.folder / "seen.cleaned").exists()
    assert list((bench.folder / "out").iterdir())
    fake("noise").boot(bench.job())
    assert [path.name for path in (bench.folder / "out").iterdir()] == ["vm"]


# -- the real packer, the real qemu, a guest of our own


@pytest.mark.needs("packer", "qemu")
def test_a_guests_line_is_in_the_stream(bench: Bench) -> None:
    lines: list[str] = []
    result = bench.boot(bench.job(bootable(SAID), proof=SAID), on_line=lines.append)
    assert f"guest: {SAID}" in lines
    assert f"guest: {SAID}" in bench.log()
    assert [file.name for art in result.artifacts for file in art.files] == ["tiny.qcow2"]
    assert result.artifacts[0].files[0].read_bytes()[:4] == b"QFI\xfb"


@pytest.mark.needs("packer", "qemu")
def test_a_guest_that_never_said_its_word_did_not_boot(bench: Bench) -> None:
    with pytest.raises(StageError, match="nothing shows that it booted") as caught:
        bench.boot(bench.job(bootable("something else"), proof=SAID))
    assert "guest: something else" in caught.value.message
    bench.nothing_left()


@pytest.mark.needs("packer", "qemu")
def test_a_wrong_digest_is_refused_by_packer_too(bench: Bench) -> None:
    with pytest.raises(VegaError, match="did not match") as caught:
        bench.boot(bench.job(bootable(SAID), iso_sha256="0" * 64))
    assert caught.value.exit_code == 6


@pytest.mark.slow
@pytest.mark.needs("packer", "qemu")
@pytest.mark.parametrize("end", [HANG, AGAIN], ids=["silent", "flood"])
def test_a_vm_that_never_ends_is_stopped_by_the_clock(bench: Bench, end: bytes) -> None:
    lines: list[str] = []
    with pytest.raises(StageError) as caught:
        bench.boot(bench.job(bootable(SAID, end)), timeout=6, on_line=lines.append)
    assert caught.value.code == "PACKER_TIMED_OUT"
    assert f"guest: {SAID}" in lines
    bench.nothing_left()


@pytest.mark.slow
@pytest.mark.needs("packer", "qemu")
def test_a_boot_that_fails_is_exit_6_with_the_log(bench: Bench) -> None:
    job = bench.job(bytes(65536), variables={"communicator": "ssh"})
    with pytest.raises(StageError, match="Timeout waiting for SSH") as caught:
        bench.boot(job, timeout=60)
    assert caught.value.exit_code == 6
    assert f"log: {bench.folder / 'log'}" in caught.value.message
    assert "Qemu path" in bench.log()
    bench.nothing_left()


@pytest.mark.slow
@pytest.mark.needs("packer", "qemu")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_stopping_us_stops_the_real_vm(bench: Bench, number: int, code: int) -> None:
    job = bench.job(bootable(SAID, HANG))
    seen = interrupted(bench, job, number, lambda line: line == f"guest: {SAID}\n")
    assert seen == code
    until(lambda: not marked(bench.environ["MARK"]), lambda: marked(bench.environ["MARK"]))
    assert not list((bench.folder / "out").glob("vm"))
    assert not list((bench.folder / "out").rglob("*.qcow2"))

"""What a person or a script sees: pipes that close, terminals, colours, 80 columns."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.tiny import Result, Tiny

pytestmark = pytest.mark.needs("busybox")
WORDS = (
    *("build", "check", "clean", "completion", "doctor", "inspect", "lock", "plan", "pool"),
    *("render", "reproduce", "run", "targets", "version"),
)
ESCAPE = "\x1b"


def shell(user: Tiny, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `vi` is vega-image."""
    words = " ".join(f"'{word}'" for word in user.argv())
    script = f'set -o pipefail; vi() {{ {words} "$@"; }}\n{line}\n'
    done = subprocess.run(
        ["bash", "-c", script],
        env=user.env(),
        cwd=user.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done


def on_terminal(user: Tiny, *words: str, columns: int = 80) -> tuple[int, str]:
    """Run on a terminal of this width; return the exit code and all that was written."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        user.argv(*words),
        env=user.env(),
        cwd=user.folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as child:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):
            while data := os.read(master, 1 << 16):
                said += data
    os.close(master)
    return child.returncode, said.decode()


@pytest.mark.needs("docker")
def test_a_reader_that_goes_away_does_not_stop_the_work(tiny: Tiny, reference: Result) -> None:
    done = shell(tiny, "vi build tiny 2>&1 | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}")
    assert done.stdout.strip() == "0"
    assert tiny.build()["digest"] == reference[0]
    for line in (
        "vi targets | true",
        "vi plan tiny --json | true",
        "vi inspect tiny | head -1",
    ):
        done = shell(tiny, f"{line}; echo ${{PIPESTATUS[0]}} >&2")
        assert done.stderr.strip().splitlines()[-1] == "0", line
    done = shell(tiny, "vi plan nothing 2>&1 | true; echo ${PIPESTATUS[0]}")
    assert done.stdout.strip() == "2", "the verdict stays"


@pytest.mark.parametrize("how", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams(tiny: Tiny, how: str) -> None:
    assert shell(tiny, f"vi plan tiny {how}").returncode == 0
    assert shell(tiny, f"vi plan nothing --json {how}").returncode == 2
    assert shell(tiny, f"vi build tiny --dry-run {how}").returncode == 0


@pytest.mark.parametrize("words", ["targets", "plan tiny --json", "plan nothing --json"])
def test_an_answer_that_cannot_be_written_is_no_success(tiny: Tiny, words: str) -> None:
    done = shell(tiny, f"vi {words} >/dev/full")
    assert done.returncode == 5
    assert "No space left" in done.stderr


def test_only_the_object_is_on_stdout(tiny: Tiny) -> None:
    done = shell(tiny, "vi build tiny --dry-run --json --progress json")
    assert len(json.loads(done.stdout)["steps"]) == 4
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [e["state"] for e in events if e["event"] == "step"] == ["building", "built"] * 4
    assert shell(tiny, "vi build tiny --dry-run --quiet").stderr == ""


@pytest.mark.parametrize(
    ("environ", "colour", "live"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "NO_COLOR": "1"}, False, False),
    ],
    ids=["colour", "no-color", "dumb", "dumb-no-color"],
)
def test_terminals_get_what_they_can_show(
    tiny: Tiny, environ: dict[str, str], *, colour: bool, live: bool
) -> None:
    user = tiny.having(**environ)
    code, said = on_terminal(user, "plan", "nothing")
    assert code == 2
    assert (f"{ESCAPE}[31m" in said) == colour
    code, said = on_terminal(user, "build", "tiny", "--until", "root")
    assert code == 0
    if not live:
        assert ESCAPE not in said
    if not colour:
        assert not re.search(rf"{ESCAPE}\[[0-9;]*[1-9][0-9;]*m", said), said


def test_a_pipe_gets_no_escapes(tiny: Tiny) -> None:
    for line in ("vi plan nothing", "vi build tiny --until root", "vi targets", "vi doctor"):
        done = shell(tiny.having(TERM="xterm-256color"), line)
        assert ESCAPE not in done.stdout + done.stderr, line


def test_eighty_columns(tiny: Tiny) -> None:
    for words in (("--help",), *((word, "--help") for word in WORDS)):
        code, said = on_terminal(tiny, *words)
        assert code == 0, words
        assert max(len(line) for line in said.splitlines()) <= 80, words
    for words in (("plan", "tiny"), ("doctor",), ("build", "tiny", "--until", "root")):
        _code, said = on_terminal(tiny.having(TERM="xterm"), *words)
        shown = re.sub(rf"{ESCAPE}\[[0-9;?]*[a-zA-Z]", "", said).replace("\r", "\n")
        long = [line for line in shown.splitlines() if len(line) > 80 and "sha256:" not in line]
        assert not [line for line in long if "/" not in line], words


def test_every_word_is_described_and_complete(tiny: Tiny) -> None:
    said = tiny("--help").out
    assert [word for word in WORDS if f"\n  {word} " not in said] == []
    assert tiny("--version").out.startswith("vega-image, version ")
    for name in ("bash", "zsh", "fish"):
        assert "_VEGA_IMAGE_COMPLETE" in tiny("completion", name).out


def test_xdg_folders_and_the_order_of_settings(tiny: Tiny, tmp_path: Path) -> None:
    config = Path(tiny.env()["XDG_CONFIG_HOME"]) / "vega-image/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"store: {tmp_path}/configured\n")
    tiny.done("plan", "tiny")
    assert not (tmp_path / "configured").exists(), "the variable wins over the file"
    unset = tiny.having(VEGA_IMAGE_STORE="")
    unset.done("plan", "tiny")
    assert (tmp_path / "configured").is_dir()
    tiny.done("plan", "tiny", "--store", str(tmp_path / "given"))
    assert (tmp_path / "given").is_dir(), "the flag wins over the variable"
    config.unlink()
    unset.done("plan", "tiny")
    assert (Path(tiny.env()["XDG_CACHE_HOME"]) / "vega-image/store").is_dir()

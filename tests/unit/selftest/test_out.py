"""What a person sees: one changing line on a terminal, plain lines in a pipe, any locale."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from vega_image.selftest.errors import SelftestError
from vega_image.selftest.out import Progress, complain, show, show_toned
from vega_image.selftest.texts import load_texts


class Screen(io.TextIOWrapper):
    """A stream that is a terminal or not, in an encoding."""

    def __init__(self, *, terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def forty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "40"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)


def progress(screen: Screen) -> Progress:
    clock = iter(range(0, 10_000, 11))
    return Progress(screen, load_texts(), 40, clock=lambda: float(next(clock)))


@pytest.mark.usefixtures("forty")
def test_the_line_on_a_terminal_never_wraps_and_is_wiped() -> None:
    screen = Screen()
    shown = progress(screen)
    shown.result("a-case-with-a-name-longer-than-the-line" * 2, wrong=True)
    shown.end()
    first, second, rest = screen.text().split("\r")[1:]
    assert "\n" not in screen.text()
    assert {len(first), len(second)} == {39}
    assert first.startswith("1/40 trials, 1 wrong")
    assert first.endswith("...")
    assert (second.strip(), rest) == ("", "")


@pytest.mark.parametrize(("kind", "term"), [("pipe", "xterm"), ("terminal", "dumb")])
@pytest.mark.usefixtures("forty")
def test_a_pipe_and_a_dumb_terminal_get_whole_lines(
    kind: str, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    screen = Screen(terminal=kind == "terminal")
    shown = progress(screen)
    name = "a-case-with-a-name-longer-than-the-line"
    shown.result(name, wrong=False)
    shown.end()
    assert "\r" not in screen.text()
    assert screen.text().endswith(f"{name}\n")
    assert " min left" in screen.text() or " s left" in screen.text()


@pytest.mark.usefixtures("forty")
def test_the_verdict_is_wrapped_coloured_and_plain_where_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "Failed: " + "word " * 20 + "\x1b[2J\u202eend"
    for plain in ("", "1"):
        monkeypatch.setenv("NO_COLOR", plain)
        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        show_toned(text, "bad", indent=2)
        lines = screen.text().splitlines()
        assert len(lines) > 2
        assert ("\x1b[1;31m" in lines[0]) == (not plain)
        assert (
            max(len(line.replace("\x1b[1;31m", "").replace("\x1b[0m", "")) for line in lines)
            <= 39
        )
        assert "\u202e" not in screen.text()
        assert "\x1b[2J" not in screen.text()
    pipe = Screen(terminal=False)
    monkeypatch.setattr(sys, "stdout", pipe)
    show_toned(text, "bad", indent=2)
    assert pipe.text().count("\n") == 1
    assert "\x1b" not in pipe.text()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_a_letter_costs_the_letter_only(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal=False, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    show("\u4e2d verdict")
    assert screen.text() == "? verdict\n"


def test_an_error_is_one_object_and_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(terminal=False, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    complain(SelftestError("X", "caf\u00e9", hint="h", at="a"), as_json=True)
    error = json.loads(screen.text())["error"]
    assert error == {"exit": 2, "code": "X", "message": "caf\u00e9", "hint": "h", "at": "a"}


def test_who_stops_reading_does_not_change_what_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        show("nobody hears this")

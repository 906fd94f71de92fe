"""Packer's lines and diagnostics: nothing is lost, nothing crashes."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.packer import Option, _first_change, rendered
from vega_image.engines.packerlines import (
    COMMA,
    Message,
    Tally,
    diagnostics,
    parse_line,
    repeats_ui,
)

# Packer does not escape its own escapes, so texts that hold them do not come back.
TEXT = st.text(st.characters(exclude_characters="\\", codec="utf-8")).filter(
    lambda text: COMMA not in text
)


def written(message: Message) -> str:
    fields = (message.target, message.type, *message.data)
    words = [
        text.replace(",", COMMA).replace("\r", "\\r").replace("\n", "\\n") for text in fields
    ]
    return ",".join(["1796107494", *words])


@given(TEXT, TEXT, st.lists(TEXT))
def test_what_packer_writes_is_read_back(target: str, kind: str, data: list[str]) -> None:
    message = Message(target, kind, tuple(data))
    assert parse_line(written(message) + "\n") == message


@given(st.text(string.printable))
def test_any_line_is_a_message_or_none(line: str) -> None:
    message = parse_line(line)
    if message is not None:
        Tally().feed(message)
        assert all("\n" not in text for text in message.texts())


def test_a_line_that_is_not_packers_is_none() -> None:
    for line in ("", "panic: boom, here, now", "12,alone", "²,,ui,say,x"):
        assert parse_line(line) is None


def test_the_tally_counts_artifacts_and_errors_but_no_ui_errors() -> None:
    tally = Tally()
    for line in (
        "1,,ui,error,sudo: unable to resolve host",
        "1,qemu.a,artifact-count,1",
        "1,qemu.a,artifact,0,builder-id,transcend.qemu",
        "1,qemu.a,artifact,0,file,0,o/a%!(PACKER_COMMA)b.qcow2",
        "1,qemu.a,artifact,0,file,1,o/c",
        "1,qemu.a,artifact,1,end",
        "1,qemu.b,artifact,0,end",
    ):
        message = parse_line(line)
        assert message is not None
        tally.feed(message)
    assert tally.artifacts == {
        ("qemu.a", "0"): ["o/a,b.qcow2", "o/c"],
        ("qemu.a", "1"): [],
        ("qemu.b", "0"): [],
    }
    assert (tally.errors, tally.why) == (0, [])
    tally.feed(Message("", "error-count", ("2",)))
    tally.feed(Message("qemu.a", "error", ("it broke",)))
    assert (tally.errors, tally.why) == (2, ["it broke"])


SAID = """\
Error: Unknown provisioner type "windows-update"

  on packer/build.pkr.hcl line 7:
  (source code not available)

known provisioners: [a
b]

Warning: A checksum of 'none' was specified. Since ISO files are so big,
a checksum is highly recommended.

  on packer/source.pkr.hcl line 1, in source "qemu" "x":
   1:   nonsense

Error: Unset variable "a"
"""


def test_diagnostics_have_file_and_line() -> None:
    first, second, third = diagnostics(SAID)
    assert (first.severity, first.path, first.line) == ("error", "packer/build.pkr.hcl", 7)
    assert first.message == (
        'Unknown provisioner type "windows-update": known provisioners: [a b]'
    )
    assert (second.severity, second.path, second.line) == (
        "warning",
        "packer/source.pkr.hcl",
        1,
    )
    assert second.message.endswith("a checksum is highly recommended.")
    assert (third.message, third.path, third.line) == ('Unset variable "a"', "", 0)


@given(st.text())
def test_any_text_has_diagnostics(text: str) -> None:
    for item in diagnostics(text):
        assert item.severity in {"error", "warning"}


def test_the_first_changed_line_of_a_diff() -> None:
    diff = "a.hcl\n--- old/a.hcl\n+++ new/a.hcl\n@@ -4,7 +4,7 @@\n x\n y\n-z = 1\n+z  = 1\n"
    assert _first_change(diff) == 6
    assert _first_change("a.hcl\n") == 0


def test_a_log_line_that_repeats_the_stream_is_known() -> None:
    stamp = "2026/12/01 06:44:34 "
    assert repeats_ui(stamp + "1796107474,,ui,say,hello")
    assert not repeats_ui(stamp + "packer-builder-qemu plugin: Started Qemu. Pid: 27448")


def test_options_that_packer_py_would_write_wrongly_are_changed() -> None:
    options: dict[str, Option] = {
        "force": False,
        "debug": True,
        "only": ("a", "b"),
        "var": {"k": "v"},
        "x": None,
    }
    assert rendered(options) == {"debug": True, "only": "a,b", "var": {"k": "v"}}

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.dockerfile import check_closed, instructions
from vega_image.errors import UsageError

BASE = "ARG BASE\nFROM ${BASE}\n"
CLOSED = [
    BASE,
    "ARG BASE=x\nFROM $BASE AS one\nFROM scratch AS two\nFROM one\nCOPY --from=two /a /b\n",
    f"{BASE}ADD a.tar /\nCOPY --chown=1:1 a b /c/\nRUN echo http://example.invalid/x\n",
    "# escape=`\nARG BASE\nFROM `\n  ${BASE}\nRUN true\n",
    "ARG BASE\n# FROM debian\nfrom ${BASE}\n",
    "ARG BASE\nFROM --platform=linux/amd64 ${BASE}\n",
    "ARG BASE\nFROM scratch AS x\nFROM ${BASE}\nCOPY --from=0 /a /b\n",
]
REACHING = [
    ("FROM debian", 1),
    (f"{BASE}FROM debian AS ${{BASE}}\nFROM ${{BASE}}", 3),
    ("ARG BASE\nARG OTHER=debian\nFROM ${OTHER}", 3),
    (f"{BASE}\n\nADD --chown=1 http://a/b \\\n  /x", 5),
    (f"{BASE}ADD a git@host:repo /x", 3),
    (f'{BASE}ADD ["https://a/b", "/x"]', 3),
    (f"{BASE}ARG U=http://a/b\nADD $U /x", 4),
    (f"{BASE}COPY --from=alpine:3 /a /b", 3),
    (f"{BASE}COPY --from=7 /a /b", 3),
    ("ARG BASE\nFROM one\nFROM ${BASE} AS one", 2),
]


@pytest.mark.parametrize("text", CLOSED)
def test_a_closed_dockerfile_passes(text: str) -> None:
    check_closed(text, at="Dockerfile")


@pytest.mark.parametrize(("text", "line"), REACHING)
def test_reaching_out_is_refused_naming_the_line(text: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        check_closed(text, at="Dockerfile")
    assert caught.value.code == "STAGE_REACHES_OUT"
    assert caught.value.at == f"Dockerfile:{line}"


@pytest.mark.parametrize("text", ["", "RUN true\n", f"{BASE}FROM scratch\n"])
def test_a_stage_that_ends_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_closed(text, at="Dockerfile")
    assert caught.value.code == "STAGE_WITHOUT_BASE"


@given(st.text(alphabet='FROM ADCOPY\\\n$`{}BASE#=-"[]0:/', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    lines = [item.line for item in instructions(text)]
    assert lines == sorted(set(lines))
    with contextlib.suppress(UsageError):
        check_closed(text, at="x")


@given(st.from_regex(r"[a-z0-9./:@-]{1,20}", fullmatch=True))
def test_no_image_but_the_base_is_ever_accepted(image: str) -> None:
    if image == "scratch":
        return
    with pytest.raises(UsageError):
        check_closed(f"FROM {image}\nARG BASE\nFROM ${{BASE}}\n", at="x")

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.engines.events import TAIL, BuildEvents, clean, failure_of
from vega_image.errors import EngineError, StageError

# As dockerd 20.10.24 and podman 4.3.1 sent them.
DOCKER = [
    {"stream": "Step 3/4 : RUN echo one"},
    {"stream": "\n"},
    {"stream": " ---> Running in eb77c95ccda0\n"},
    {"stream": "\x1b[91merr\n\x1b[0m"},
    {"stream": "abo"},
    {"stream": "ut\n"},
    {"stream": "Removing intermediate container 7efe4017f9f2\n"},
    {
        "errorDetail": {
            "code": 7,
            "message": "The command '/bin/sh -c exit 7' returned a non-zero code: 7",
        },
        "error": "The command '/bin/sh -c exit 7' returned a non-zero code: 7",
    },
]
PODMAN = [
    {"stream": "STEP 3/3: RUN echo one\n"},
    {"stream": "err\n"},
    {"stream": "about\n"},
    {
        "errorDetail": {
            "message": 'building at STEP "RUN x": while running runtime: exit status 7\n'
        },
        "error": 'building at STEP "RUN x": while running runtime: exit status 7\n',
    },
]


def fed(events: list[dict[str, object]]) -> tuple[BuildEvents, list[str]]:
    lines: list[str] = []
    build = BuildEvents(lines.append)
    for event in events:
        build.feed(event)
    build.close()
    return build, lines


@pytest.mark.parametrize("stream", [DOCKER, PODMAN], ids=["docker", "podman"])
def test_a_failure_is_found_with_code_instruction_and_tail(
    stream: list[dict[str, object]],
) -> None:
    build, lines = fed(stream)
    assert build.code == 7
    assert build.instruction == "RUN echo one"
    assert list(build.tail) == ["err", "about"]
    assert {"err", "about"} <= set(lines)
    error = failure_of(build, "s", Path("/logs/s.log"))
    assert isinstance(error, StageError)
    assert error.exit_code == 6
    assert "stage s failed: code 7" in error.message
    assert error.hint == "less /logs/s.log"


def test_success_leaves_the_image_and_no_failure() -> None:
    build, _lines = fed([{"aux": {"ID": "sha256:1"}}, {"stream": "Successfully built 1\n"}])
    assert build.image == "sha256:1"
    assert build.failure is None


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("write /x: no space left on device", "DISK_FULL"),
        ("crun: cgroups in hybrid mode not supported", "ENGINE_RUNTIME"),
    ],
)
def test_the_engines_own_failures_are_not_the_stages(message: str, code: str) -> None:
    build, _lines = fed([{"errorDetail": {"message": message}}])
    error = failure_of(build, "s", None)
    assert isinstance(error, EngineError)
    assert error.code == code


def test_a_stream_that_just_ends_is_the_engines_failure() -> None:
    build, _lines = fed([{"stream": "half"}])
    assert failure_of(build, "s", None).code == "ENGINE_LOST"


@given(st.lists(st.text(max_size=20), max_size=60), st.data())
def test_lines_do_not_depend_on_how_the_stream_is_cut(
    parts: list[str], data: st.DataObject
) -> None:
    text = "\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole, lines = fed([{"stream": text}])
    split, same = fed([{"stream": piece} for piece in pieces])
    assert lines == same
    assert whole.tail == split.tail
    assert len(whole.tail) <= TAIL


@given(
    st.dictionaries(
        st.sampled_from(["stream", "aux", "error", "errorDetail", "x"]),
        st.none() | st.integers() | st.text() | st.dictionaries(st.text(), st.text()),
    )
)
def test_no_event_breaks_the_reader(event: dict[str, object]) -> None:
    fed([event])


@given(st.text())
def test_a_clean_line_moves_no_cursor(text: str) -> None:
    kept = clean(text).replace("\t", "").replace("\n", "")
    assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in kept)

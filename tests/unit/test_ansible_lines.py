"""What the Ansible callback writes is read with suspicion, and decides the exit code."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.ansible import error_of
from vega_image.ansiblelines import HostCounts, Stats, TaskResult, TaskState, parse_line

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
results = st.builds(
    TaskResult,
    host=st.text(),
    task=st.text(),
    role=st.text(),
    at=st.text(),
    state=st.sampled_from(TaskState),
    message=st.text(),
)
counts = st.builds(
    HostCounts, ok=st.integers(0), changed=st.integers(0), failures=st.integers(0)
)
events = results | st.builds(Stats, hosts=st.dictionaries(st.text(), counts, max_size=3))


@given(event=events, token=st.text())
def test_a_written_event_is_read_back(event: TaskResult | Stats, token: str) -> None:
    line = json.dumps({"vega": token, **event.model_dump(mode="json")})
    assert parse_line(line, token=token) == event


@given(line=st.text() | json_values.map(json.dumps))
def test_any_other_line_is_text(line: str) -> None:
    assert parse_line(line, token="a word of this run") is None


@given(value=st.dictionaries(st.sampled_from(["event", "host", "state", "hosts"]), json_values))
def test_a_damaged_event_is_text(value: dict[str, object]) -> None:
    event = parse_line(json.dumps({"vega": "t", **value}), token="t")
    assert event is None or isinstance(event, Stats)


@given(event=results, token=st.text(min_size=1))
def test_an_event_of_another_run_is_text(event: TaskResult, token: str) -> None:
    line = json.dumps({"vega": token + "x", **event.model_dump(mode="json")})
    assert parse_line(line, token=token) is None


def test_a_line_nested_without_end_is_text() -> None:
    assert parse_line('{"vega": "t", "event": ' + "[" * 100_000, token="t") is None


def result(state: TaskState, message: str = "") -> TaskResult:
    return TaskResult(host="a.example", task="Copy", state=state, message=message)


@pytest.mark.parametrize(
    ("state", "message", "code", "number"),
    [
        (TaskState.FAILED, "no space left", "TASK_FAILED", 6),
        (TaskState.UNREACHABLE, "No route to host", "UNREACHABLE", 7),
        (TaskState.UNREACHABLE, "Host key verification failed.", "HOST_KEY_WRONG", 10),
        (
            TaskState.UNREACHABLE,
            "No ED25519 host key is known for 198.18.0.2 and you have requested strict",
            "HOST_KEY_UNKNOWN",
            10,
        ),
        (
            TaskState.UNREACHABLE,
            "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
            "CERTIFICATE_WRONG",
            10,
        ),
    ],
)
def test_what_ends_a_run_has_its_exit_code(
    state: TaskState, message: str, code: str, number: int
) -> None:
    error = error_of(result(state, message))
    assert error is not None
    assert (error.code, error.exit_code) == (code, number)
    assert "a.example" in error.message


@pytest.mark.parametrize(
    "state",
    [TaskState.OK, TaskState.CHANGED, TaskState.SKIPPED, TaskState.IGNORED, TaskState.RETRY],
)
def test_nothing_else_ends_a_run(state: TaskState) -> None:
    assert error_of(result(state, "Host key verification failed")) is None

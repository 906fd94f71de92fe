"""What the Ansible callback writes is read with suspicion, and decides the exit code."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vega_image.ansible
import vega_image.ansibletool
from vega_image.ansible import Play, error_of, run_playbook
from vega_image.ansiblelines import HostCounts, Stats, TaskResult, TaskState, parse_line
from vega_image.errors import UsageError, VegaError

PLAY = Play(
    folder=Path("/a folder/playbooks"),
    playbook="windows.yaml",
    inventory=Path("/a folder/office.yaml"),
    values={"vega_word": "hunter2"},
)

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
    error = error_of(result(state, message), play=PLAY)
    assert error is not None
    assert error.hint
    assert (error.code, error.exit_code) == (code, number)
    assert "a.example" in error.message


@pytest.mark.parametrize(
    "state",
    [TaskState.OK, TaskState.CHANGED, TaskState.SKIPPED, TaskState.IGNORED, TaskState.RETRY],
)
def test_nothing_else_ends_a_run(state: TaskState) -> None:
    assert error_of(result(state, "Host key verification failed"), play=PLAY) is None


def test_a_failure_says_how_to_go_on_where_it_stopped() -> None:
    failed = result(TaskState.FAILED, "no space").model_copy(update={"role": "gate"})
    error = error_of(failed, play=PLAY)
    assert error is not None
    assert error.hint == (
        "when that is corrected: cd '/a folder/playbooks' && ansible-playbook --inventory "
        "'/a folder/office.yaml' --limit a.example --tags gate windows.yaml "
        "(with the same --extra-vars)"
    )
    # What is handed over as a value may be a secret.
    assert "hunter2" not in error.hint + error.message


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Host key verification failed.", ("ssh-keygen -lf", "in the place of the old one")),
        ("No ED25519 host key is known for x", ("ssh-keygen -lf", "add a line")),
        ("CERTIFICATE_VERIFY_FAILED", ("openssl s_client -connect a.example:5986",)),
        ("No route to host", ("nc -zvw 5 a.example 22", "--limit a.example windows.yaml")),
    ],
)
def test_who_cannot_be_trusted_or_reached_is_asked_otherwise(
    message: str, words: tuple[str, ...]
) -> None:
    error = error_of(result(TaskState.UNREACHABLE, message), play=PLAY)
    assert error is not None
    assert error.hint is not None
    assert all(word in error.hint for word in words)


def test_what_is_not_there_is_said_with_where_it_comes_from(tmp_path: Path) -> None:
    play = Play(
        folder=tmp_path / "playbooks",
        playbook="windows.yaml",
        inventory=tmp_path / "office/office.yaml",
    )
    with pytest.raises(UsageError) as caught:
        run_playbook(play, scratch=tmp_path)
    assert caught.value.code == "PLAYBOOK_ABSENT"
    assert f"ls {tmp_path}/playbooks" in (caught.value.hint or "")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/windows.yaml").touch()
    with pytest.raises(UsageError) as caught:
        run_playbook(play, scratch=tmp_path)
    assert caught.value.code == "INVENTORY_ABSENT"
    assert f"cp -r {tmp_path}/inventory {tmp_path}/office" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("ends", "code", "words"),
    [
        ("exit 4", "PLAYBOOK_INVALID", "--syntax-check windows.yaml"),
        ("kill -9 $$", "ANSIBLE_DIED", "-vvv windows.yaml"),
        ("exit 0", "ANSIBLE_DIED", "-vvv windows.yaml"),
    ],
)
def test_an_ansible_that_gives_no_counts_is_called_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, code: str, words: str
) -> None:
    program = tmp_path / "ansible-playbook"
    program.write_text(f"#!/bin/sh\necho no such option\n{ends}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for name in ("windows.yaml", "office.yaml"):
        (tmp_path / name).touch()
    play = Play(folder=tmp_path, playbook="windows.yaml", inventory=tmp_path / "office.yaml")
    with pytest.raises(VegaError) as caught:
        run_playbook(play, scratch=tmp_path)
    assert caught.value.code == code
    assert "no such option" in caught.value.message
    assert caught.value.hint is not None
    assert f"cd {tmp_path} && ansible-playbook --inventory " in caught.value.hint
    assert caught.value.hint.endswith(words)


def without_hint(text: str) -> list[int]:
    """Return the lines where an error is made that has no hint."""
    made = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.endswith("Error")
    ]
    assert made
    return [node.lineno for node in made if "hint" not in {word.arg for word in node.keywords}]


@pytest.mark.parametrize("module", [vega_image.ansible, vega_image.ansibletool])
def test_every_error_has_a_hint(module: ModuleType) -> None:
    text = Path(str(module.__file__)).read_text()
    assert without_hint(text) == []
    assert without_hint(text.replace("hint=hint", "at=None").replace('hint="', 'at="')) != []

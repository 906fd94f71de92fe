"""The option checker on documents made here: types, choices, aliases, what is deep inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vega_image.checks.ansible_requirements import within
from vega_image.checks.ansible_tasks import Task, tasks_of
from vega_image.checks.finding import Finding
from vega_image.checks.module_docs import ModuleDoc, Option
from vega_image.checks.module_options import check_options, check_task, modules_of

NAME = "ansible.windows.win_thing"


def option(name: str, kind: str = "str", **more: object) -> Option:
    values: dict[str, object] = {
        "elements": "raw",
        "required": False,
        "aliases": (),
        "choices": (),
        "options": (),
        **more,
    }
    return Option(name=name, type=kind, **values)  # type: ignore[arg-type] # any of its fields


DOC = ModuleDoc(
    name=NAME,
    deprecated="",
    options=(
        option("path", "path", required=True, aliases=("key",)),
        option("count", "int"),
        option("ratio", "float"),
        option("on", "bool"),
        option("text"),
        option("state", choices=("absent", "present")),
        option("names", "list", elements="str", choices=("a", "b")),
        option("levels", "list", elements="int"),
        option("extra", "dict", options=(option("depth", "int", required=True),)),
        option("rows", "list", elements="dict", options=(option("name", required=True),)),
        option("any", "raw"),
    ),
)


def findings(tmp_path: Path, body: str) -> list[Finding]:
    folder = tmp_path / "playbooks/roles/one/tasks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.yaml").write_text(f"- name: One\n  {NAME}:\n{body}")
    return list(check_options(tmp_path, {NAME: DOC}))


GOOD = [
    "key: B:\\",
    "path: x\n    count: 3",
    "path: x\n    count: '3'",
    "path: x\n    count: '{{ many }}'",
    "path: x\n    ratio: 1",
    "path: x\n    on: yes",
    "path: x\n    on: 'no'",
    "path: x\n    text: 3",
    "path: x\n    text:",
    "path: x\n    text: !vault abc",
    "path: x\n    names: a",
    "path: x\n    names: [a, b, '{{ c }}']",
    "path: x\n    levels: [1, '2']",
    "path: x\n    extra: {depth: 2}",
    "path: x\n    rows: [{name: a}]",
    "path: x\n    any: {b: [1]}",
    "<<: {path: x}\n    count: 1",
]
BAD = [
    ("count: 3", "ansible-missing-option", 2),
    ("path: x\n    pth: y", "ansible-unknown-option", 4),
    ("path: x\n    key: y", "ansible-option-twice", 4),
    ("path: [x]", "ansible-wrong-type", 3),
    ("path: x\n    count: many", "ansible-wrong-type", 4),
    ("path: x\n    count: 1.5", "ansible-wrong-type", 4),
    ("path: x\n    count: true", "ansible-wrong-type", 4),
    ("path: x\n    ratio: half", "ansible-wrong-type", 4),
    ("path: x\n    on: maybe", "ansible-wrong-type", 4),
    ("path: x\n    on: {a: b}", "ansible-wrong-type", 4),
    ("path: x\n    text: yes", "ansible-wrong-type", 4),
    ("path: x\n    text: {a: b}", "ansible-wrong-type", 4),
    ("path: x\n    state: Present", "ansible-wrong-choice", 4),
    ("path: x\n    names: {a: b}", "ansible-wrong-type", 4),
    ("path: x\n    names: [a, c]", "ansible-wrong-choice", 4),
    ("path: x\n    names: c", "ansible-wrong-choice", 4),
    ("path: x\n    levels:\n      - 1\n      - x", "ansible-wrong-type", 6),
    ("path: x\n    extra: 3", "ansible-wrong-type", 4),
    ("path: x\n    extra: {}", "ansible-missing-option", 4),
    ("path: x\n    extra:\n      depth: 1\n      width: 2", "ansible-unknown-option", 6),
    ("path: x\n    rows:\n      - name: a\n      - nme: b", "ansible-unknown-option", 6),
]


@pytest.mark.parametrize("body", GOOD)
def test_what_a_module_takes_passes(tmp_path: Path, body: str) -> None:
    assert findings(tmp_path, f"    {body}\n") == []


@pytest.mark.parametrize(("body", "rule", "line"), BAD)
def test_what_it_does_not_take_is_refused_with_its_line(
    tmp_path: Path, body: str, rule: str, line: int
) -> None:
    found = findings(tmp_path, f"    {body}\n")
    assert (rule, "playbooks/roles/one/tasks/main.yaml", line) in {
        (row.rule, row.path, row.line) for row in found
    }


@pytest.mark.parametrize(
    "place",
    [
        "- hosts: all\n  {0}:\n    - {1}: {{}}\n",
        "- hosts: all\n  tasks:\n    - block: []\n      {0}:\n        - {1}: {{}}\n",
        "- hosts: all\n  tasks:\n    - block:\n      - block:\n        - {1}: {{}}\n",
        "- hosts: all\n  tasks:\n    - block:\n      - {1}:\n",
        "- hosts: all\n  tasks:\n    - {1}:\n      args: {{count: 1}}\n",
    ],
)
@pytest.mark.parametrize(
    "part", ["tasks", "pre_tasks", "post_tasks", "handlers", "rescue", "always"]
)
def test_tasks_are_found_wherever_they_are(tmp_path: Path, place: str, part: str) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/x.yaml").write_text(place.format(part, NAME))
    nested = part in {"rescue", "always"}
    if nested == ("block: []" in place) or "{0}" not in place:
        assert modules_of(tmp_path) == {NAME}
        assert [row.rule for row in check_options(tmp_path, {NAME: DOC})] == [
            "ansible-missing-option"
        ]


def test_defaults_of_modules_are_held_against_the_options_too(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    text = f"- hosts: all\n  module_defaults:\n    {NAME}:\n      pth: x\n"
    (tmp_path / "playbooks/x.yaml").write_text(text)
    found = list(check_options(tmp_path, {NAME: DOC}))
    assert [(row.rule, row.line) for row in found] == [("ansible-unknown-option", 4)]


@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "playbooks").mkdir()
    (root / "playbooks/x.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    for entry in tasks_of(root):
        assert isinstance(entry, Finding | Task)


def test_a_list_as_text_cannot_be_checked() -> None:
    import yaml

    node = yaml.compose("path=x", yaml.SafeLoader)
    assert node is not None
    task = Task(module=NAME, arguments=node, path="x.yaml", line=7)
    assert [(row.rule, row.line) for row in check_task(task, {NAME: DOC})] == [
        ("ansible-text-arguments", 7)
    ]


@pytest.mark.parametrize(
    ("have", "wanted", "inside"),
    [
        ("3.3.0", ">=3.3.0,<4.0.0", True),
        ("3.10.0", ">=3.3.0", True),
        ("4.0.0", ">=3.3.0,<4.0.0", False),
        ("3.3.0", "3.3.0", True),
        ("3.3.0", "!=3.3.0", False),
        ("3.3.0", "", False),
        ("3.3.0", "newest", False),
    ],
)
def test_versions_are_compared_as_numbers(have: str, wanted: str, *, inside: bool) -> None:
    assert within(have, wanted) is inside

"""Our rules for HCL: each refuses its bad fixture, at the marked lines and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vega_image.checks.hcl import HclError, parse
from vega_image.checks.hclrules import RULES, check_hcl
from vega_image.checks.packer import PACKER_RULES

CASES = Path(__file__).resolve().parents[2] / "cases/windows/packer"
BAD = sorted((CASES / "bad").glob("*.hcl"))
GOOD = CASES / "good"
_MARK = re.compile(r"# refuse(-next)?: (PKR\d+)")


def wanted(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for mark in _MARK.finditer(line):
            yield number + bool(mark[1]), mark[2]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_bad_fixture_is_refused_where_it_says(path: Path) -> None:
    text = path.read_text()
    findings, _ = check_hcl({f"packer/{path.name}": text})
    assert {(item.line, item.rule) for item in findings} == set(wanted(text))
    assert path.name[:6] in {item.rule for item in findings}
    assert all(item.path == f"packer/{path.name}" and item.message for item in findings)


def test_every_rule_has_a_bad_fixture() -> None:
    # Format is packer's own word: its fixture is in test_packer_check.py.
    assert {path.name[:6] for path in BAD} == {*PACKER_RULES} - {"PKR001"}
    assert set(RULES) < set(PACKER_RULES)


def test_the_good_tree_has_no_finding() -> None:
    texts = {
        path.relative_to(GOOD).as_posix(): path.read_text() for path in GOOD.rglob("*.hcl")
    }
    findings, variables = check_hcl(texts)
    assert findings == []
    assert variables["product_key"].attribute("sensitive")


def test_an_overlay_may_use_what_is_newer() -> None:
    text = (CASES / "bad/PKR009-newer.pkr.hcl").read_text()
    assert check_hcl({"packer/overlays/x.pkr.hcl": text})[0] == []


def test_a_variable_of_another_file_is_known() -> None:
    source = 'source "null" "x" {\n  communicator = var.how\n}\n'
    variable = 'variable "how" {\n  default = "winrm"\n}\n'
    for first, second in (("a", "b"), ("b", "a")):
        texts = {f"packer/{first}.pkr.hcl": source, f"packer/{second}.pkr.hcl": variable}
        found = [item.rule for item in check_hcl(texts)[0]]
        assert found == ["PKR007", "PKR007"]


FULL = r"""
# a comment with a { brace and "a quote
/* one
   more } */
source "qemu" win-dows { // labels may be words
  text  = "a \"quoted\" brace } and ${lower("${var.x}")} and $${no} and C:\\new"
  list  = [
    "a", # in a list
    { b = 1, c : [2, "}"] },
  ]
  one { deep { x = 1 } }
  here = <<-EOT
    not = a } block
  EOT
  last = (1 +
    2)
}
"""


def test_the_structure_of_a_file() -> None:
    [source] = parse(FULL).blocks
    assert (source.type, source.labels, source.line) == ("source", ("qemu", "win-dows"), 5)
    assert [item.name for item in source.attributes] == ["text", "list", "here", "last"]
    assert [item.line for item in source.attributes] == [6, 7, 12, 15]
    text = source.attribute("text")
    assert text is not None
    said = 'a "quoted" brace } and ${lower("${var.x}")} and $${no} and C:\\new'
    assert text.literal == said
    here = source.attribute("here")
    assert here is not None
    assert here.literal == "    not = a } block"
    [one] = source.blocks
    [deep] = one.blocks
    assert deep.attribute("x") is not None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb", 2),
        ("a {\n\n", 2),
        ("a = 1\n}", 2),
        ("a = [\n1)", 2),
        ("a = ]", 1),
        ('\na = "x\n"', 2),
        ("a = <<X\n y\n", 1),
        ("\n/* x", 2),
        ("= 1", 1),
        ("a b = 1", 1),
        ('a = "${"x}"', 1),
        ("a {" * 99, 1),
        ('a = "' + '${"' * 999, 1),
    ],
)
def test_what_is_no_hcl_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(HclError) as caught:
        parse(text)
    assert caught.value.line == line


PIECES = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        '"',
        "{",
        "}",
        "[",
        "]",
        "=",
        "${",
        "\\",
        "#",
        "/*",
        "*/",
        "<<-X\n",
        "X",
        "1",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
@example("a = 1 # \r")
@example("é = 1")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        lines = [block.line for block in parse(text).walk()]
    except HclError as error:
        lines = [error.line]
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
STRINGS = st.text(st.characters(exclude_characters="$%\r", codec="utf-8"), max_size=20)


@given(st.dictionaries(NAMES, STRINGS, max_size=5), NAMES, STRINGS)
def test_strings_come_back_as_they_were_meant(
    values: dict[str, str], kind: str, label: str
) -> None:
    def quoted(text: str) -> str:
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{plain}"'.replace("\n", "\\n").replace("\t", "\\t")

    body = "".join(f"  {name} = {quoted(value)}\n" for name, value in values.items())
    [block] = parse(f"{kind} {quoted(label)} {{\n{body}}}\n").blocks
    assert {item.name: item.literal for item in block.attributes} == values
    assert block.type == kind

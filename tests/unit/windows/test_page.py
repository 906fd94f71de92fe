"""docs/windows.md: every command parses, every code is one, every number is today's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from vega_image.cli import cli
from vega_image.factory import Factory
from vega_image.selftest.arguments import parser, with_word
from vega_image.spec import FileSource
from vega_image.windows.clrpatches import Clr
from vega_image.windows.forecasts import forecast
from vega_image.windows.prepared import prepare_windows, windows_lock
from vega_image.windows.references import STAGES, unsupported
from vega_image.windows.spec import Platform, WindowsTarget

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/windows.md").read_text()
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
ERRORS = {"UsageError": 2, "LockError": 3, "BytesError": 4, "EngineError": 5, "StageError": 6}
MODULES = [path.read_text() for path in sorted((ROOT / "vega_image").rglob("*.py"))]


def commands(page: str) -> list[list[str]]:
    """Return every command of an `sh` block that calls vega-image, as the shell splits it."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in split if words[:1] == ["vega-image"]]


def parse(words: list[str]) -> None:
    """Parse as the program does, and do nothing; raises click's or argparse's errors."""
    context: click.Context = click.Context(cli)
    command: click.Command = cli
    rest = words
    while isinstance(command, click.Group):
        name, *rest = rest
        found = command.get_command(context, name)
        if found is None:
            msg = f"no word {name}"
            raise click.UsageError(msg)
        command = found
    if command.name == "selftest":
        parser().parse_args(with_word(rest))
        return
    command.make_context(command.name, rest, parent=context)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_of_a_page_parses(path: Path) -> None:
    for words in commands(path.read_text()):
        parse(words)


def test_the_page_has_commands_and_a_wrong_one_is_seen() -> None:
    found = commands(PAGE)
    assert {words[0] for words in found} == {"plan", "check", "build", "render", "lock"}
    for words in found:
        with pytest.raises(click.UsageError):
            parse([*words, "--no-such-option"])
    for wrong in (["built", "windows-ltsc"], ["build"], ["render", "windows-ltsc"],
                  ["build", "windows-ltsc", "--platform", "vmware"]):  # fmt: skip
        with pytest.raises(click.UsageError):
            parse(wrong)


def rows(title: str) -> Iterator[list[str]]:
    """Yield the cells of the tables below a heading."""
    for line in PAGE.partition(f"# {title}\n")[2].splitlines():
        if line.startswith("#"):
            break
        if line.lstrip().startswith("| "):
            yield [cell.strip() for cell in line.strip(" |").split("|")]


def raised(code: str) -> set[int]:
    """Return the exits of the errors that are made with a code; empty where none is."""
    pattern = re.compile(rf"(\w+Error)\(\s*\"{code}\"")
    return {
        ERRORS[name] for text in MODULES for name in pattern.findall(text) if name in ERRORS
    }


def test_every_exit_code_of_the_page_is_raised_with_it() -> None:
    assert raised("NOBODY_RAISES_THIS") == set()
    table = [row for row in rows("Exit codes met on the way") if row[0].isdigit()]
    assert {int(row[0]) for row in table} == set(ERRORS.values())
    for exit_code, codes, _ in table:
        for code in re.findall(r"`([A-Z_]+)`", codes):
            text = f'"{code}"'
            assert int(exit_code) in raised(code) or (
                # Made by a function that knows its class.
                code in {"STAGE_FAILED", "PACKER_TIMED_OUT"} and any(text in m for m in MODULES)
            ), code


def test_what_a_platform_cannot_have_is_what_the_code_refuses() -> None:
    factory = Factory.find(ROOT, cwd=ROOT)
    target = factory.spec("windows-ltsc")
    assert isinstance(target, WindowsTarget)
    wanted = target.model_copy(
        update={
            "machine": target.machine.model_copy(update={"secure_boot": True}),
            "updates": target.updates.model_copy(update={"install_while_building": True}),
        }
    )
    table = {row[0].strip("`"): row[2] for row in rows("Platforms")}
    for platform in Platform:
        refused = {path for path, _ in unsupported(wanted, platform)}
        said = set(re.findall(r"`([a-z]+\.[a-z_]+)`", table[platform]))
        assert said == refused or (platform is Platform.QEMU and not refused), platform


def test_every_way_to_the_card_is_on_the_page_with_its_status() -> None:
    title = "Three ways to a HIP runtime that sees the card"
    names = [row[0].split()[0].strip("`") for row in rows(title)]
    assert names == ["clr", *(way.value for way in Clr)]
    assert "All three are unproven" in PAGE


def test_the_numbers_of_the_page_are_those_of_today() -> None:
    factory = Factory.find(ROOT, cwd=ROOT)
    target = factory.spec("windows-ltsc")
    assert isinstance(target, WindowsTarget)
    prepared = prepare_windows(factory, target, windows_lock(factory, target))
    assert f"[1/3] render: {len(prepared.files)} files" in PAGE
    unresolved, sources = prepared.job.unresolved, prepared.job.lock.sources
    assert f"digests of {len(unresolved)} of {len(sources)} sources" in PAGE
    bounds = [forecast(stage.name, stage.strategy) for stage in target.stages]
    hours = sum(bound.minutes.value for bound in bounds) // 60
    disk = max(bound.disk_gib.value for bound in bounds)
    memory = max(bound.memory_gib.value for bound in bounds)
    assert f"{hours} hours at most in all, {disk} GiB, {memory} GiB of memory" in PAGE
    assert " → ".join(f"`{stage}`" for stage in STAGES) in PAGE.replace("**", "")


def test_every_file_that_the_office_brings_is_on_the_page() -> None:
    factory = Factory.find(ROOT, cwd=ROOT)
    sources = factory.spec("windows-ltsc").sources.values()
    wanted = {source.file for source in sources if isinstance(source, FileSource)}
    told = {name for row in rows("What you bring") for name in re.findall(r"`([^`]+)`", row[0])}
    assert told - {"--platform"} >= wanted
    script = (ROOT / "templates/stages/win-prerequisites/stage.ps1.j2").read_text()
    components = re.findall(r"'(Microsoft\.VisualStudio\.[\w.]+)'", script)
    assert components
    assert components == re.findall(r"`(Microsoft\.VisualStudio\.[\w.]+)`", PAGE)


def test_every_page_that_is_linked_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[a-z-]+)?\)", PAGE):
        assert (ROOT / "docs" / link).is_file(), link
    for anchor in re.findall(r"\]\(#([a-z-]+)\)", PAGE):
        titles = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
        made = [re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert anchor in made

"""curate and bake as a user calls them: files, --json, exits, nothing half written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.finddbevidence import C3W, DB, JOURNALS, line, passed
from tests.schemas import hold
from vega_image.cli import cli
from vega_image.errors import VegaError
from vega_image.finddb.opening import open_db

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "vega_image" / "schemas"
SUSPECT = "ConvOclBwdWrW2<1>"
NAME = "gfx906_60.HIP.fdb.txt"


class Said:
    """Runs words under --json and holds what they print against the schema."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, word: str, *words: object) -> Any:
        argv = ["finddb", word, *map(str, words), "--json"]
        code = cli.main(args=argv, prog_name="vega-image", standalone_mode=False)
        assert code == 0
        value = json.loads(self.capsys.readouterr().out)
        hold(f"finddb-{word}", value)
        return value

    def refused(self, word: str, *words: object) -> tuple[int, str]:
        argv = ["finddb", word, *map(str, words)]
        with pytest.raises(VegaError) as caught:
            cli.main(args=argv, prog_name="vega-image", standalone_mode=False)
        self.capsys.readouterr()
        return caught.value.exit_code, caught.value.code


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "db.fdb.txt"
    path.write_bytes(DB)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(passed(SUSPECT))
    return path


def test_curate_writes_what_it_says(say: Said, db: Path, journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    value = say("curate", db, "--evidence", journal, "-o", out)
    assert (value["kept"], value["removed"], value["unproven"]) == (1, 2, 1)
    assert value["output"] == str(out / NAME)
    assert {p.name for p in out.iterdir()} == {NAME, "manifest.json", "evidence.tsv"}
    again = say("curate", db, journal, "-o", tmp_path / "again")
    assert again["digest"] == value["digest"]
    for path in out.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert say("curate", db, journal, "-o", out)["digest"] == value["digest"]
    assert say("curate", db)["output"] is None


def test_strict_with_nothing_proven_writes_nothing(say: Said, db: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = (db, "--profile", "strict", "-o", out)
    assert say.refused("curate", *words) == (9, "NOTHING_PROVEN")
    recorded = tmp_path / "replay.jsonl"
    recorded.write_bytes(passed(SUSPECT, source="replay"))
    assert say.refused("curate", *words, "--evidence", recorded) == (9, "NOTHING_PROVEN")
    assert not out.exists()
    value = say("curate", *words, "--evidence", recorded, "--test-evidence")
    assert (value["status"], value["test_evidence"]) == ("unproven", True)
    assert json.loads((out / "manifest.json").read_text())["test_evidence"] is True


def test_another_library_voids_evidence(
    say: Said, db: Path, journal: Path, tmp_path: Path
) -> None:
    library = tmp_path / "libMIOpen.so.1"
    library.write_bytes(b"another build")
    value = say("curate", db, journal, "--library", library)
    assert (value["kept"], value["unproven"]) == (0, 2)
    assert value["aside"] == {"made with another library: void": 3}
    assert say("curate", db, journal, "--library", "sha256:" + "ab" * 32)["kept"] == 1
    code = say.refused("curate", db, journal, "--library", tmp_path / "absent")
    assert code == (2, "LIBRARY_ABSENT")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", (2, "EVIDENCE_EMPTY")),
        (b"{}\n", (2, "EVIDENCE_SCHEMA")),
        (passed(SUSPECT, card={"arch": "gfx90a"}), (2, "EVIDENCE_DEVICE")),
        (line(SUSPECT)[90:] + passed(SUSPECT), (2, "EVIDENCE_LINE")),
    ],
)
def test_bad_evidence_stops_everything(
    say: Said, db: Path, tmp_path: Path, data: bytes, code: tuple[int, str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data)
    assert say.refused("curate", db, path, "-o", tmp_path / "out") == code
    assert not (tmp_path / "out").exists()
    assert say.refused("curate", db, tmp_path / "none")[0] == 2


def test_a_folder_that_is_somebody_elses_is_left_alone(
    say: Said, db: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "letter.txt").write_text("mine")
    assert say.refused("curate", db, "-o", out) == (2, "FOLDER_IN_USE")
    assert [path.name for path in out.iterdir()] == ["letter.txt"]


def test_rules_of_ones_own(say: Said, db: Path, journal: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    text = f"id: mine\ndeny: ['{SUSPECT}']\nwhy: seen wrong in the office next door\n"
    (rules / "mine.yaml").write_text(text)
    assert say.refused("curate", db, journal, "--rules", rules) == (2, "RULE_INVALID")
    (rules / "mine.yaml").write_text(f"{text}evidence: ['0123456789ab:1,2']\n")
    value = say("curate", db, journal, "--rules", rules)
    assert value["kept"] == 0
    assert value["changes"][0]["reason"] == "rule mine"


def test_the_sweeps_wrong_c3_gradient(say: Said, tmp_path: Path) -> None:
    path = tmp_path / "db"
    key = "16-32-32-3x3-3-32-32-1-1x1-1x1-1x1-0-NCHW-FP32-W"
    path.write_bytes(DB.replace(C3W.encode(), key.encode()))
    wrong = JOURNALS / "wrong-c3-wgrad.jsonl"
    value = say("curate", path, wrong, "--test-evidence", "-o", tmp_path / "out")
    served = [item.solver for item in open_db(tmp_path / "out" / NAME)[key].items]
    assert served == ["GemmWrwUniversal", "ConvDirectNaiveConvWrw"]
    assert SUSPECT in {change["solver"] for change in value["changes"]}


@pytest.fixture
def factory(tmp_path: Path) -> Path:
    folder = tmp_path / "factory"
    (folder / "images").mkdir(parents=True)
    for name in ("linux-miopen.yaml", "linux-inference.yaml"):
        shutil.copy(ROOT / "images" / name, folder / "images" / name)
    shutil.copytree(ROOT / "templates", folder / "templates")
    return folder


def test_bake_puts_a_curated_db_beside_the_spec(
    say: Said, db: Path, journal: Path, factory: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    say("curate", db, journal, "-o", out)
    value = say("bake", "linux-miopen", "--from", out, "-C", factory)
    assert (value["profile"], value["status"]) == ("safe", "partly-proven")
    assert (value["records"], value["proven"], value["unproven"]) == (2, 1, 1)
    folder = factory / "images" / "linux-miopen.finddb"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in out.iterdir()
    }
    digest = "sha256:" + "ab" * 32
    say("bake", "linux-miopen", "--from", out, "-C", factory, "--library", digest)


def test_bake_refuses_what_it_must(
    say: Said, db: Path, journal: Path, factory: Path, tmp_path: Path
) -> None:
    out, strict = tmp_path / "out", tmp_path / "strict"
    say("curate", db, journal, "-o", out)
    say("curate", db, journal, "--profile", "strict", "-o", strict)
    refusals: tuple[tuple[tuple[object, ...], tuple[int, str]], ...] = (
        (("linux-miopen", "--from", strict), (2, "PROFILE_DIFFERS")),
        (("linux-miopen",), (2, "CURATED_ABSENT")),
        (("linux-miopen", "--from", tmp_path / "none"), (2, "CURATED_ABSENT")),
        (("linux-inference", "--from", out), (2, "FINDDB_NOT_ASKED")),
        (("linux-miopen", "--from", out, "--library", "cd" * 32), (9, "EVIDENCE_VOID")),
    )
    for words, code in refusals:
        assert say.refused("bake", *words, "-C", factory) == code
    (out / NAME).write_bytes((out / NAME).read_bytes()[:-40])
    words = ("linux-miopen", "--from", out, "-C", factory)
    assert say.refused("bake", *words) == (2, "CURATED_CHANGED")
    assert not (factory / "images" / "linux-miopen.finddb").exists()

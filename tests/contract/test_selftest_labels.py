"""What a run says of itself: facts first, where numbers come from, when a card is lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from tests import selftestfakes as fakes
from tests.workstation import assemble, facts_of
from vega_image.selftest import gate, reset
from vega_image.selftest.delivery import complain_of
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.identity import Known, card_of, know
from vega_image.selftest.isolate import Isolation, Limits
from vega_image.selftest.machine import machine_results
from vega_image.selftest.main import main
from vega_image.selftest.reading import Sysroot
from vega_image.selftest.report import Report, Run
from vega_image.selftest.result import exit_code
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.running import lost_card
from vega_image.selftest.spawn import Child, fork
from vega_image.selftest.suite import Work
from vega_image.selftest.verdict import Verdict
from vega_image.selftest.worker import work_forked

pytest.importorskip("torch")
PYTHON = "python:tests.selftestfakes"
KEYED = ("--image", "sha256:1", "--find-db", "none")


def lines(folder: Path) -> Iterator[dict[str, object]]:
    schema = resources.files("vega_image.selftest") / "data" / "journal.schema.json"
    for line in (folder / "journal.jsonl").read_text().splitlines():
        value = json.loads(line)
        jsonschema.validate(value, json.loads(schema.read_text()))
        yield value


def report(folder: Path) -> dict[str, object]:
    schema = resources.files("vega_image.selftest") / "data" / "report.schema.json"
    value = json.loads((folder / "report.json").read_text())
    jsonschema.validate(value, json.loads(schema.read_text()))
    assert isinstance(value, dict)
    return value


def run(folder: Path, *words: str, level: str = "r1") -> int:
    return main(["--level", level, "--report", str(folder), "--isolation", "fork", *words])


def test_facts_are_the_first_group_and_every_line_is_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "recording"
    assert run(tmp_path / "cpu", "--record", str(recording)) == 0
    said = capsys.readouterr().out
    assert "CPU reference run" in said
    assert run(tmp_path / "replay", "--device", f"replay:{recording}") == 0
    assert "Replay: recorded answers" in capsys.readouterr().out
    for source in ("cpu", "replay"):
        found = list(lines(tmp_path / source))
        assert {line["source"] for line in found} == {source}
        assert found[0]["case"] == "fact/card"
        assert found[0]["verdict"] == "UNSUPPORTED"
        assert "not applicable" in str(found[0]["detail"])
        made = report(tmp_path / source)
        assert made["source"] == source
        results = made["results"]
        assert isinstance(results, list)
        first = results[0]
        assert (first["case"], first["group"]) == ("fact/card", "fact/machine")
        assert (first["required"], made["counts"]) == (False, {"MATCH": 8})
        labels = made["labels"]
        assert isinstance(labels, list)
        page = (tmp_path / source / "report.html").read_text()
        assert labels[0] in page


def test_a_cards_facts_are_results_and_warnings_do_not_fail(tmp_path: Path) -> None:
    known = card_of(facts_of(assemble(tmp_path, "link-x4-gen1")), "hip")
    found = machine_results(known)
    assert [item.case.id for item in found] == [
        "fact/card", "fact/LINK_NARROW", "fact/CARD", "fact/ECC_NOT_AVAILABLE",
    ]  # fmt: skip
    assert {item.verdict for item in found} == {Verdict.MATCH}
    assert not any(item.required for item in found)
    assert "1002:66af" in found[0].record.detail
    assert found[1].record.detail.startswith("warn: ")
    # Facts alone prove nothing.
    assert exit_code(found) == 9


@pytest.mark.parametrize(
    "overlay", ["no-gpu", "wrong-gpu-gfx1030", "vram-8g", "no-pcie-atomics"]
)
def test_what_refuses_is_exit_7_with_the_next_thing_to_do(tmp_path: Path, overlay: str) -> None:
    with pytest.raises(SelftestError) as caught:
        card_of(facts_of(assemble(tmp_path, overlay)), "hip")
    assert caught.value.exit_code == 7
    assert caught.value.hint


def test_code_from_outside_is_never_a_cards_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device = f"{PYTHON}:make_boastful"
    file = tmp_path / "verdict"
    words = ("--device", device, "--verdict-file", str(file), *KEYED)
    assert run(tmp_path / "r", *words) == 0
    said = capsys.readouterr().out
    assert "code from outside the suite" in said
    assert "Computed on the device itself" not in said
    assert report(tmp_path / "r")["flags"] == {"device": device}
    assert {line["source"] for line in lines(tmp_path / "r")} == {"cpu"}
    known = know(device)
    record = gate.decode(file.read_text())
    assert isinstance(record, gate.Record)
    every = gate.Asked("r1", frozenset({"device", "cpu", "replay"}))
    assert known.claims == "device"
    stands = gate.stand(file.read_text(), record.key, now=record.written, asked=every)
    assert (stands.state, stands.reason) == (gate.State.PENDING, gate.Reason.SOURCE)


def test_code_from_outside_that_dies_is_wrong_and_needs_no_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "verdict"
    device = ("--device", f"{PYTHON}:make_dying")
    assert run(tmp_path / "r", *device, "--verdict-file", str(file), *KEYED) == 8
    assert "reset" not in capsys.readouterr().err
    made = report(tmp_path / "r")
    assert (made["exit_code"], made["verdict"]) == (8, "fail")
    assert made["counts"] == {"CRASHED": 5, "UNPROVEN": 3}
    assert gate.decode(file.read_text()).state == gate.State.FAIL


def test_an_odd_name_is_written_as_it_is_and_no_name_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "odd", "--device", f"{PYTHON}:make_odd") == 0
    assert all("device" in line for line in lines(tmp_path / "odd"))
    for maker in ("make_nameless", "make_ending"):
        assert run(tmp_path / "none", "--device", f"{PYTHON}:{maker}") == 7
        assert "DEVICE_IDENTITY" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("maker", ["make_leaving", "make_none", "make_sourceless"])
def test_what_opens_no_device_is_an_error_and_no_pass(
    maker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "r", "--device", f"{PYTHON}:{maker}") == 2
    assert "UNKNOWN_DEVICE" in capsys.readouterr().err


def test_a_lost_card_is_exit_7_with_the_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    known = Known("device", {"slot": "0000:03:00.0"}, fakes.make_dying)
    (finding,) = lost_card(known, "hip", "5 trials in a row got no answer")
    made = Run(
        level="r1", device="hip", source="device", identity={}, suite="1", started="now",
        seconds=1.0, flags={"reset": finding.action}, findings=(finding,),
    )  # fmt: skip
    lost = Report(made, ())
    complain_of(lost)
    said = capsys.readouterr().err
    assert "NEEDS_HOST_RESET" in said
    assert "hint: " in said
    for rung in ("gpureset", "amdgpu_gpu_recover", "rescan", "reboot"):
        assert rung in said
    assert (lost.exit_code, lost.verdict) == (7, "fail")
    assert lost_card(Known("cpu", {}, fakes.make_dying, claims="device"), "x", "why") == ()


def test_the_ladder_is_only_said_and_inside_a_container_points_outside() -> None:
    outside = reset.ladder("why", device="hip:1", slot="0000:03:00.0", container=False)
    assert outside.action == "sudo amd-smi reset --gpureset --gpu 1"
    assert "/sys/bus/pci/devices/0000:03:00.0/remove" in outside.detail
    inside = reset.ladder("why", device="hip", slot="; rm", container=True)
    assert inside.action.startswith("on the host, outside this container: ")
    assert "; rm" not in inside.detail


def holding(root: Path, pid: int) -> Path:
    path = root / reset.HOLDERS / str(pid)
    path.mkdir(parents=True)
    return path


def test_a_dead_process_is_waited_for_until_the_driver_lets_it_go(tmp_path: Path) -> None:
    assert reset.released(Sysroot(tmp_path), 7, 0.0)
    held = holding(tmp_path, 7)
    assert reset.released(Sysroot(tmp_path), 8, 0.0)
    assert not reset.released(Sysroot(tmp_path), 7, 0.2)
    threading.Timer(0.3, held.rmdir).start()
    assert reset.released(Sysroot(tmp_path), 7, 20.0)


def driven(root: Path, *names: str, launched: list[list[str]]) -> tuple[list[Verdict], str]:
    def start(work: Work) -> Child:
        launched.append([trial.case for trial in work.trials])
        child = fork(lambda pipe: work_forked(work, fakes.make_card, pipe))
        if work.trials[0].case in {"segv", "raises"}:
            holding(root, child.pid)
        return child

    limits = Limits(5.0, 5.0, 30.0, 0.3)
    clock = time.monotonic
    isolation = Isolation(
        start, limits, clock, lambda pid: reset.released(Sysroot(root), pid, 0.2)
    )
    runner = Runner(isolation, Settings("fake"), clock, lambda _: None, lambda _: None)
    found = runner.run([Part(fakes.NAME, tuple(fakes.item(name, name) for name in names))])
    return [item.verdict for item in found], runner.dead


@pytest.mark.parametrize("act", ["segv", "raises"])
def test_no_canary_runs_while_the_driver_holds_the_dead(tmp_path: Path, act: str) -> None:
    launched: list[list[str]] = []
    verdicts, dead = driven(tmp_path, "a", act, "b", launched=launched)
    assert verdicts == [Verdict.MATCH, Verdict.CRASHED, Verdict.UNPROVEN]
    assert launched == [["a"], [act]]
    assert "does not let it go" in dead


def test_facts_of_a_card_need_a_folder() -> None:
    foreign = Known("cpu", {"arch": "gfx906"}, fakes.make, claims="device", foreign=True)
    [only] = machine_results(foreign)
    assert only.verdict == Verdict.UNSUPPORTED
    assert "outside the suite" in only.record.detail

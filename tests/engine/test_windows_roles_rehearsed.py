"""The logic of the Windows roles, run against stand-ins for the Windows modules."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fakewindows import FakeWindows
from vega_image.digest import Json
from vega_image.errors import StageError

pytestmark = pytest.mark.needs("ansible")
CARD = "PCI\\VEN_1002&DEV_66AF&SUBSYS_081E1002&REV_C1\\6&1"
SIBLING = "PCI\\VEN_1002&DEV_66A1&SUBSYS_08341002&REV_02\\6&1"
RUNNING, READY = "TASK_STATE_RUNNING", "TASK_STATE_READY"


@pytest.fixture
def windows(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWindows:
    monkeypatch.setenv("VEGA_FAKE_WINDOWS", str(tmp_path))
    return FakeWindows(project, tmp_path)


def content(value: Json) -> dict[str, Json]:
    return {"content": base64.b64encode(json.dumps(value).encode()).decode()}


def workstation(windows: FakeWindows, instance: str, driver: str) -> None:
    gib = 1024**3
    volume: dict[str, Json] = {"size_remaining": 400 * gib}
    disks: list[Json] = [{"partitions": [{"volumes": [volume]}]}]
    windows.say("setup", {"ansible_facts": {"ansible_memtotal_mb": 32600}})
    windows.say("win_disk_facts", {"ansible_facts": {"ansible_disks": disks}})
    windows.say("win_powershell", {"result": [{"instance": instance, "driver": driver}]})
    windows.say("win_reg_stat", {"exists": True, "value": "v14.44.35211.00"}, words=["VC"])
    tdr: dict[str, Json] = {"TdrDelay": {"value": 2}, "DxgKrnlVersion": {"value": 1}}
    windows.say("win_reg_stat", {"exists": True, "properties": tdr}, words=["GraphicsDrivers"])


@pytest.mark.slow
def test_preflight_reports_the_card_and_changes_nothing(windows: FakeWindows) -> None:
    workstation(windows, CARD, "31.0.21925.1001")
    played = windows.play("preflight")
    assert played.changed == 0
    report = next(row.message for row in played.results if row.task.startswith("Report"))
    facts = json.loads(report)
    assert facts["driver_branch_ok"] is True
    assert facts["tdr"] == {"TdrDelay": {"value": 2}}
    assert facts["cards"][0]["instance"] == CARD


def test_preflight_names_another_vega_20_by_its_id(windows: FakeWindows) -> None:
    workstation(windows, SIBLING, "32.0.1")
    with pytest.raises(StageError) as caught:
        windows.play("preflight")
    assert "CARD_ABSENT: PCI shows no device 1002:66AF" in caught.value.message
    assert SIBLING in caught.value.message


@pytest.mark.slow
def test_preflight_refuses_a_driver_branch_only_when_strict(windows: FakeWindows) -> None:
    workstation(windows, CARD, "32.0.12019.1028")
    played = windows.play("preflight")
    report = next(row.message for row in played.results if row.task.startswith("Report"))
    assert json.loads(report)["driver_branch_ok"] is False
    with pytest.raises(StageError, match="DRIVER_BRANCH"):
        windows.play("preflight", {"preflight_driver_strict": True})


STAGES = [
    "prerequisites",
    "compiler-runtime",
    "enumeration",
    "math-libs",
    "wheels",
    "pytorch",
    "seal",
]


# A stage has 10 seconds, so that a role which waits for nothing ends.
SHORT: dict[str, Json] = {"native_build_poll_seconds": 1, "native_build_stage_hours": 0.003}


def rendered(windows: FakeWindows) -> dict[str, Json]:
    tree = windows.folder / "a tree"
    for number, name in enumerate(STAGES):
        folder = tree / f"media/vega/stages/{number:02d}-{name}"
        folder.mkdir(parents=True)
        (folder / "stage.json").write_text(json.dumps({"stage": name, "inputs": f"in-{name}"}))
    windows.say("win_stat", {"stat": {"exists": True}})
    for name in STAGES:
        windows.say("slurp", content({"inputs": f"in-{name}"}), words=[f"\\\\{name}.json"])
    return {"vega_tree": str(tree), "vega_logs": str(tree), **SHORT}


def task(status: str, run: str, result: int = 0) -> dict[str, Json]:
    state: dict[str, Json] = {
        "status": status,
        "last_run_time": run,
        "last_task_result": result,
    }
    return {"state": state}


def started(windows: FakeWindows) -> list[Json]:
    return [given["argv"] for given in windows.called("win_command")]


def test_the_stages_find_the_files_of_the_lock(windows: FakeWindows) -> None:
    values = rendered(windows)
    brought = windows.folder / "a tree/media/vega/installers"
    windows.play("native_build", values)
    assert "C:\\ProgramData\\VegaImage\\installers\\" not in copied(windows)
    brought.mkdir(parents=True)
    windows.play("native_build", values)
    place = copied(windows)["C:\\ProgramData\\VegaImage\\installers\\"]
    assert place == f"{brought}/"


def copied(windows: FakeWindows) -> dict[str, Json]:
    return {str(row["dest"]): row["src"] for row in windows.called("win_copy")}


@pytest.mark.slow
def test_stages_with_their_stamps_are_not_built_again(windows: FakeWindows) -> None:
    played = windows.play("native_build", rendered(windows))
    assert windows.called("win_scheduled_task") == []
    assert started(windows) == []
    assert played.changed == 0


def test_a_stage_with_other_inputs_is_started_polled_and_demanded(windows: FakeWindows) -> None:
    values = rendered(windows)
    stamps = [content({"inputs": "old"}), content({"inputs": "in-math-libs"})]
    windows.say("slurp", *stamps, words=["\\\\math-libs.json"])
    windows.say(
        "win_scheduled_task_stat",
        task(READY, "2026-12-01T09:00:00"),
        task(READY, "2026-12-01T09:00:00"),
        task(RUNNING, "2026-12-01T10:00:00"),
        task(READY, "2026-12-01T10:00:00"),
    )
    windows.play("native_build", values)
    assert started(windows) == [
        ["schtasks.exe", "/Run", "/TN", "\\VegaImage\\Stage-math-libs"],
    ]
    assert len(windows.called("win_scheduled_task_stat")) == 4
    action = json.dumps(windows.called("win_scheduled_task")[0]["actions"])
    assert "-Stage math-libs" in action
    assert "run-stage.ps1" in action


@pytest.mark.slow
def test_a_stage_that_already_runs_is_waited_for(windows: FakeWindows) -> None:
    values = rendered(windows)
    stamps = [content({"inputs": "old"}), content({"inputs": "in-wheels"})]
    windows.say("slurp", *stamps, words=["\\\\wheels.json"])
    windows.say(
        "win_scheduled_task_stat", task(RUNNING, "1"), task(RUNNING, "1"), task(READY, "1")
    )
    windows.play("native_build", values)
    assert started(windows) == []


def test_a_stage_that_fails_stops_what_follows(windows: FakeWindows) -> None:
    values = rendered(windows)
    windows.say("slurp", content({"inputs": "old"}), words=["\\\\enumeration.json"])
    windows.say("slurp", content({"inputs": "old"}), words=["\\\\math-libs.json"])
    windows.say("win_scheduled_task_stat", task(READY, "1"), task(READY, "2", result=9))
    with pytest.raises(StageError) as caught:
        windows.play("native_build", values)
    assert "stage enumeration ended with 9" in caught.value.message
    assert len(started(windows)) == 1


@pytest.mark.slow
def test_check_mode_starts_no_stage(windows: FakeWindows) -> None:
    values = rendered(windows)
    windows.say("slurp", content({"inputs": "old"}), words=["\\\\wheels.json"])
    windows.say("win_scheduled_task_stat", task(READY, "1"))
    windows.play("native_build", values, check=True)
    assert started(windows) == []


@pytest.mark.parametrize(
    ("record", "held"),
    [
        (None, True),
        pytest.param("damaged", True, marks=pytest.mark.slow),
        pytest.param({"state": "fail"}, True, marks=pytest.mark.slow),
        pytest.param({"state": "pending", "before": "pass"}, True, marks=pytest.mark.slow),
        ({"state": "pass"}, False),
    ],
)
def test_the_service_is_held_back_unless_the_record_says_pass(
    windows: FakeWindows,
    record: Json,
    *,
    held: bool,
) -> None:
    windows.say("win_stat", {"stat": {"exists": record is not None}})
    damaged: dict[str, Json] = {"content": base64.b64encode(b'{"state": "pass"').decode()}
    windows.say("slurp", damaged if record == "damaged" else content(record))
    windows.say("win_service_info", {"exists": True})
    windows.play("inference_service")
    services = windows.called("win_service")
    rules = windows.called("win_firewall_rule")
    assert [row["start_mode"] for row in services] == (["disabled"] if held else [])
    assert [row["enabled"] for row in rules] == ([False] if held else [])


def test_no_source_of_programs_is_a_clear_failure(windows: FakeWindows) -> None:
    with pytest.raises(StageError, match=r"packages_from is not set.*no public feed is used"):
        windows.play("packages")
    assert windows.calls == []


def test_an_installer_with_other_bytes_is_not_copied(windows: FakeWindows) -> None:
    (windows.folder / "git.exe").write_bytes(b"not the locked bytes")
    installer: dict[str, Json] = {"file": "git.exe", "sha256": "0" * 64}
    values: dict[str, Json] = {
        "packages_from": "layout",
        "packages_layout": str(windows.folder),
        "packages_installers": [installer],
    }
    with pytest.raises(StageError, match="locked is 0000"):
        windows.play("packages", values)
    assert windows.calls == []


@pytest.mark.slow
def test_chocolatey_takes_the_offices_source_only(windows: FakeWindows) -> None:
    windows.say("win_stat", {"stat": {"exists": True}})
    git: dict[str, Json] = {"name": "git", "version": "2.50.1"}
    values: dict[str, Json] = {
        "packages_from": "chocolatey",
        "packages_source": "\\\\files.example\\packages",
        "packages_chocolatey": [git],
    }
    windows.play("packages", values)
    sources = {row["name"]: row["state"] for row in windows.called("win_chocolatey_source")}
    assert sources == {"office": "present", "chocolatey": "absent"}
    assert [(row["source"], row["version"]) for row in windows.called("win_chocolatey")] == [
        ("office", "2.50.1")
    ]


@pytest.mark.slow
def test_tdr_changes_only_when_asked_for(windows: FakeWindows) -> None:
    windows.play("power_update")
    assert not [row for row in windows.called("win_regedit") if row["name"] == "TdrDelay"]
    windows.play("power_update", {"power_update_tdr_delay": 10})
    changed = [row for row in windows.called("win_regedit") if row["name"] == "TdrDelay"]
    assert [row["data"] for row in changed] == [10]


def gate(windows: FakeWindows, *, there: bool, said: Mapping[str, Json]) -> dict[str, Json]:
    """A tree with the script, a workstation with the same or another one, and its answer."""
    tree = windows.folder / "a tree"
    script = tree / "media/vega/firstboot/register-task.ps1"
    script.parent.mkdir(parents=True)
    script.write_text("exit 0\n")
    own = hashlib.sha256(script.read_bytes()).hexdigest()
    windows.say("win_stat", {"stat": {"exists": True, "checksum": own if there else "0" * 64}})
    windows.say("win_command", {"rc": 0, "stdout_lines": [json.dumps(said)], **said})
    return {"vega_tree": str(tree)}


REGISTER: list[Json] = [
    "powershell.exe",
    "-NoProfile",
    "-NonInteractive",
    "-ExecutionPolicy",
    "Bypass",
    "-File",
    "C:\\Program Files\\VegaImage\\firstboot\\register-task.ps1",
    "-Programs",
    "C:\\Program Files\\VegaImage",
    "-Settled",
]


@pytest.mark.parametrize("changed", [True, False])
def test_the_gate_is_registered_by_the_script_of_the_tree(
    windows: FakeWindows, *, changed: bool
) -> None:
    said: dict[str, Json] = {"changed": changed}
    played = windows.play("gate", gate(windows, there=True, said=said))
    assert [name for name, _ in windows.calls if name not in {"win_copy", "win_stat"}] == [
        "win_command"
    ]
    assert [row["argv"] for row in windows.called("win_command")] == [REGISTER]
    assert played.changed == changed
    # It runs when everything that its task needs is there.
    assert windows.calls[-1][0] == "win_command"
    brought = {
        str(row["dest"]).rstrip("\\").split("\\")[-1] for row in windows.called("win_copy")
    }
    assert brought == {"firstboot", "vega-selftest.pyz", "image.json"}


def test_the_gate_is_registered_though_another_script_is_there(windows: FakeWindows) -> None:
    windows.play("gate", gate(windows, there=False, said={"changed": True}))
    assert [row["argv"] for row in windows.called("win_command")] == [REGISTER]


@pytest.mark.parametrize("there", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_check_mode_asks_the_script_and_never_another_one(
    windows: FakeWindows, *, there: bool
) -> None:
    values = gate(windows, there=there, said={"changed": True})
    played = windows.play("gate", values, check=True)
    argv = [row["argv"] for row in windows.called("win_command")]
    assert argv == ([[*REGISTER, "-Check"]] if there else [])
    assert played.changed == 1


@pytest.mark.slow
def test_a_gate_that_cannot_be_registered_ends_the_run(windows: FakeWindows) -> None:
    values = gate(windows, there=True, said={})
    said = json.dumps({"changed": True, "fault": "Access is denied"})
    failed: dict[str, Json] = {"rc": 1, "failed": True, "stdout": said, "stdout_lines": [said]}
    windows.say("win_command", failed)
    with pytest.raises(StageError, match="Access is denied"):
        windows.play("gate", values)

"""The Linux and WSL roles run for real: a host in a network namespace, over ssh."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.sshhost import SshHost, ssh_host
from vega_image.ansible import Play, Played, run_playbook
from vega_image.ansiblelines import TaskResult, TaskState
from vega_image.digest import Json
from vega_image.errors import HostError, PolicyError, StageError, UsageError
from vega_image.selftest.pack import pack

pytestmark = [
    pytest.mark.needs("ansible"),
    pytest.mark.needs("sshd"),
    pytest.mark.needs("netns"),
    pytest.mark.needs("root"),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    with ssh_host(tmp_path_factory.mktemp("host")) as running:
        yield running


@dataclasses.dataclass(frozen=True)
class Office:
    """Plays against the host, each in a scratch folder of its own."""

    project: Path
    folder: Path
    host: SshHost
    seen: list[TaskResult] = dataclasses.field(default_factory=list)

    def play(
        self,
        playbook: str,
        values: Mapping[str, Json] | None = None,
        *,
        check: bool = False,
        tags: Sequence[str] = (),
    ) -> Played:
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        # One short try: a host that is down shall not hold the tests up.
        arguments = "-F none -o ControlMaster=auto -o ControlPersist=5s -o ConnectTimeout=2"
        inventory = self.host.inventory(
            self.folder / "office with space.yaml",
            ansible_ssh_args=f"{arguments} -o StrictHostKeyChecking=yes -o BatchMode=yes",
        )
        play = Play(
            folder=self.project / "playbooks",
            playbook=playbook,
            inventory=inventory,
            values={"vega_selftest": str(self.folder / "self test.pyz"), **(values or {})},
            check=check,
            tags=tags,
        )
        self.seen.clear()
        return run_playbook(play, scratch=scratch, on_result=self.seen.append)


@pytest.fixture
def office(project: Path, host: SshHost, tmp_path: Path) -> Office:
    pack(tmp_path / "self test.pyz")
    return Office(project, tmp_path, host)


def test_roles_write_once_and_then_change_nothing(office: Office) -> None:

    before = office.host.files()
    values: dict[str, Json] = {
        "reference_now": True,
        "reference_python": sys.executable,
        "reference_reports": str(office.folder / "reports"),
        "controller_known_hosts": ["build-1.office.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"],
    }
    looked = office.play("wsl.yaml", values, check=True)
    assert office.host.files() == before
    first = office.play("wsl.yaml", values)
    after = office.host.files()
    second = office.play("wsl.yaml", values)

    assert looked.changed > 0
    assert first.changed > 0
    assert second.changed == 0
    assert office.host.files() == after
    assert "systemd=true" in after["etc/wsl.conf"]
    assert "vega-reference" in after["etc/cron.d/vega-reference"]
    assert "StrictHostKeyChecking=yes" in after["etc/vega-image/ansible/ansible.cfg"]
    assert after["etc/vega-image/ansible/known_hosts"].startswith("build-1.office.example ")
    report = json.loads((office.folder / "reports/wsl-1.office.example.json").read_text())
    assert (report["verdict"], report["source"]) == ("pass", "cpu")
    assert {result.role for result in first.results} >= {
        "wsl_settings",
        "controller",
        "reference",
    }


@pytest.mark.slow
def test_units_are_written_where_systemd_is_asked_for(office: Office) -> None:
    with pytest.raises(StageError) as caught:
        office.play("linux.yaml", {"reference_timer": "systemd"}, tags=["reference"])
    files = office.host.files()
    assert "OnCalendar=*-*-* 03:15:00" in files["etc/systemd/system/vega-reference.timer"]
    # The host has no systemd, and starting the timer says so instead of passing.
    assert caught.value.code == "TASK_FAILED"
    assert "Start the timer" in caught.value.message


def test_another_host_key_is_refused_by_policy(office: Office, tmp_path: Path) -> None:
    key = (office.host.key.with_suffix(".pub")).read_text().split()[1]
    wrong = tmp_path / "known_hosts"
    wrong.write_text(f"{office.host.address} ssh-ed25519 {key}\n")
    stranger = Office(
        office.project, tmp_path, dataclasses.replace(office.host, known_hosts=wrong)
    )
    before = office.host.files()
    with pytest.raises(PolicyError) as caught:
        stranger.play("linux.yaml")
    assert (caught.value.exit_code, caught.value.code) == (10, "HOST_KEY_WRONG")
    assert caught.value.at == "wsl-1.office.example"

    wrong.write_text("")
    with pytest.raises(PolicyError) as caught:
        stranger.play("linux.yaml")
    assert caught.value.code == "HOST_KEY_UNKNOWN"
    assert office.host.files() == before


def test_a_host_that_is_down_is_exit_7(office: Office) -> None:
    office.host.unplug()
    try:
        with pytest.raises(HostError) as caught:
            office.play("linux.yaml")
    finally:
        office.host.plug()
    assert (caught.value.exit_code, caught.value.code) == (7, "UNREACHABLE")
    assert "wsl-1.office.example" in caught.value.message


def test_a_task_that_fails_is_exit_6_and_says_where(office: Office) -> None:
    with pytest.raises(StageError) as caught:
        office.play("linux.yaml", {"vega_selftest": ""}, tags=["reference"])
    assert caught.value.exit_code == 6
    assert "vega_selftest names the file" in caught.value.message
    assert "roles/reference/tasks/main.yaml" in (caught.value.at or "")
    assert (office.seen[-1].state, office.seen[-1].role) == (TaskState.FAILED, "reference")


def test_a_reference_on_the_card_is_refused(office: Office) -> None:
    words: dict[str, Json] = {"reference_words": ["run", "--device=hip:0"]}
    with pytest.raises(StageError, match="the reference runs on the CPU only"):
        office.play("linux.yaml", words, tags=["reference"])


def test_a_name_that_no_host_has_is_no_success(office: Office, tmp_path: Path) -> None:
    inventory = tmp_path / "office.yaml"
    inventory.write_text("windows:\n  hosts:\n")
    play = Play(folder=office.project / "playbooks", playbook="linux.yaml", inventory=inventory)
    with pytest.raises(UsageError) as caught:
        run_playbook(play, scratch=tmp_path)
    assert caught.value.code == "NO_HOSTS"
    assert caught.value.hint == f"ansible-inventory --inventory {inventory} --graph"

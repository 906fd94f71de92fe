"""What is laid over the root, byte for byte; and it agrees with the role that sets WSL up."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import lock
from tests.wslfactory import ROOT, SPEC, added, wsl_target
from vega_image.wsl import conf, places
from vega_image.wsl.rendering import render_wsl

GOLDEN = ROOT / "tests/golden/wsl"


def rendered(text: str = SPEC) -> dict[str, bytes]:
    target = wsl_target(text)
    return render_wsl(target, lock(target), added(text), {})


def golden() -> dict[str, bytes]:
    files = (path for path in GOLDEN.rglob("*") if path.is_file())
    return {path.relative_to(GOLDEN).as_posix(): path.read_bytes() for path in files}


def test_the_rendered_tree_is_the_golden_one(*, update_golden: bool) -> None:
    files = rendered()
    if update_golden:
        shutil.rmtree(GOLDEN, ignore_errors=True)
        for name, data in files.items():
            path = GOLDEN / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    assert files == golden()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("uid: 1000", "uid: 1001"),
        ("name: vega", "name: other"),
        ("name: TinyDebian", "name: OtherDebian"),
        ("color_scheme: Campbell", "color_scheme: Vintage"),
        ("  terminal: {color_scheme: Campbell}\n", ""),
        ("  flavor: Tiny\n", "  flavor: Tiny\n  systemd: false\n"),
        ("  flavor: Tiny\n", "  flavor: Tiny\n  first_boot: {level: r2}\n"),
        ("  flavor: Tiny\n", "  flavor: Tiny\n  interop: {enabled: false}\n"),
        ("  flavor: Tiny\n", "  flavor: Tiny\n  network: {generate_hosts: false}\n"),
        ("  flavor: Tiny\n", "  flavor: Tiny\n  automount: {root: /drives/}\n"),
    ],
)
def test_a_mutant_does_not_pass_for_the_golden(old: str, new: str) -> None:
    assert old in SPEC
    changed = rendered(SPEC.replace(old, new))
    assert {path for path in changed if path != "context.json"} == (
        {path for path in golden() if path != "context.json"}
        - ({f"root/{places.TERMINAL}"} if not new else set())
    )
    assert {p: d for p, d in changed.items() if p != "context.json"} != {
        p: d for p, d in golden().items() if p != "context.json"
    }


def test_wsl_conf_is_what_the_role_would_write() -> None:
    """So a playbook run on a new distribution changes nothing but the comment."""
    role = ROOT / "playbooks/roles/wsl_settings"
    values = yaml.safe_load((role / "defaults/main.yaml").read_text())
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    environment.filters["bool"] = bool
    text = environment.from_string((role / "templates/wsl.conf.j2").read_text()).render(values)
    mine = added()[places.CONF].decode()
    assert mine.splitlines()[1:] == text.splitlines()[1:]


def test_context_json_names_every_file_and_what_only_a_build_places() -> None:
    files = rendered()
    value = json.loads(files["context.json"])
    assert set(value["rendered"]) == set(files) - {"context.json"}
    placed = value["placed_by_context"]
    assert placed["archive"] == ["tiny-1.0.0.wsl", "DistributionInfo.json"]


@pytest.mark.parametrize("path", [places.OOBE, places.REFERENCE, places.PROFILE])
def test_the_scripts_are_scripts_of_a_plain_shell(path: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(added()[path])
    assert script.read_bytes().isascii()
    for shell in filter(None, (shutil.which("dash"), shutil.which("bash"))):
        done = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_settings_or_findings(data: bytes) -> None:
    for path in conf.KNOWN:
        found, wrong = conf.settings(path, data)
        for finding in wrong:
            assert finding.line >= 1
        list(conf.judge_distribution(found))


@given(
    st.dictionaries(
        st.sampled_from(["enabled", "mountFsTab"]), st.sampled_from(["true", "false"])
    )
)
def test_good_settings_are_read_back(values: dict[str, str]) -> None:
    text = "[automount]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
    found, wrong = conf.settings(places.CONF, text.encode())
    assert (wrong, {s.key: s.value for s in found}) == ((), values)

"""Profiles: what is written for which system, and that nothing unproven stays choosable."""

from __future__ import annotations

import pytest

from vega_image.checks.powershell import check_powershell
from vega_image.errors import UsageError
from vega_image.finddb.fallback import SOLVERS
from vega_image.finddb.profile import (
    ONLY,
    PLACES,
    SENTINELS,
    SYSTEM_DB,
    USER_DB,
    Profile,
    System,
    apply,
)
from vega_image.finddb.registry import registry

NAMES = frozenset(registry())


def off(environ: dict[str, str], solver: str) -> bool:
    switch = registry()[solver].switch
    return environ.get(switch.removesuffix("=1")) == "0"


@pytest.mark.parametrize("system", System)
def test_safe_turns_off_every_solver_but_the_fallback(system: System) -> None:
    applied = apply(Profile.SAFE, NAMES, system)
    environ = dict(applied.environ)
    for name, solver in registry().items():
        if name in SOLVERS:
            assert not off(environ, name)
        elif solver.applicable == "yes":
            assert off(environ, name), name
    assert environ[ONLY].split(";") == list(SOLVERS)
    assert environ[SYSTEM_DB] == PLACES[system].db
    assert environ[USER_DB] == PLACES[system].user_db
    assert environ["MIOPEN_DEBUG_CONV_IMMED_FALLBACK"] == "0"
    assert environ["MIOPEN_DEBUG_ENABLE_AI_IMMED_MODE_FALLBACK"] == "0"
    assert "MIOPEN_DEBUG_GCN_ASM_KERNELS" not in environ
    assert applied.open == ()


def test_a_served_solver_stays_on_and_what_shares_its_switch_is_said() -> None:
    applied = apply(Profile.SAFE, NAMES, System.IMAGE, serves={"ConvOclBwdWrW2<1>"})
    assert not off(dict(applied.environ), "ConvOclBwdWrW2<1>")
    assert "ConvOclBwdWrW2NonTunable" in applied.open
    assert "ConvOclBwdWrW2<1>" not in applied.open


def test_strict_finds_nothing() -> None:
    environ = dict(apply(Profile.STRICT, NAMES, System.IMAGE).environ)
    assert environ[ONLY] == SENTINELS[0]
    assert all(off(environ, name) for name in SOLVERS)
    served = apply(Profile.STRICT, NAMES, System.IMAGE, serves={"GemmFwdRest"}).environ
    assert not off(dict(served), "GemmFwdRest")


def test_upstream_touches_nothing_and_is_unproven() -> None:
    applied = apply(Profile.UPSTREAM, NAMES, System.IMAGE, status="proven")
    assert (dict(applied.environ), dict(applied.files)) == ({}, {})
    assert applied.labels["io.vega-image.finddb.status"] == "unproven"


@pytest.mark.parametrize("profile", [Profile.SAFE, Profile.STRICT])
def test_a_library_without_what_it_needs_is_refused(profile: Profile) -> None:
    for names in (NAMES - {*SOLVERS, *SENTINELS}, NAMES | {"ConvHipDirectFwd11x11"}):
        with pytest.raises(UsageError) as caught:
            apply(profile, names, System.IMAGE)
        assert caught.value.code == "PROFILE_SOLVERS"


def test_find_only_names_are_the_librarys_own() -> None:
    assert not set(apply(Profile.SAFE, NAMES, System.LINUX).environ[ONLY].split(";")) - NAMES


def test_hosts_get_files_that_set_the_same_variables() -> None:
    for system in (System.LINUX, System.WSL):
        applied = apply(Profile.SAFE, NAMES, system)
        for path, mark in (
            ("etc/environment.d/90-vega-image-miopen.conf", "{name}='{value}'"),
            ("etc/profile.d/90-vega-image-miopen.sh", "export {name}='{value}'"),
            ("etc/systemd/system.conf.d/90-vega-image-miopen.conf", '"{name}={value}"'),
        ):
            text = applied.files[path].decode()
            for name, value in applied.environ.items():
                assert mark.format(name=name, value=value) in text
        assert (
            b"D! /run/vega-image/miopen"
            in applied.files["etc/tmpfiles.d/90-vega-image-miopen.conf"]
        )
    windows = apply(Profile.SAFE, NAMES, System.WINDOWS)
    script = windows.files["ProgramData/vega-image/finddb/set-environment.ps1"].decode()
    for name, value in windows.environ.items():
        assert f"SetEnvironmentVariable('{name}', '{value}', 'Machine')\r\n" in script
    assert all(not path.startswith("/") for path in windows.files)


@pytest.mark.parametrize("profile", Profile)
def test_the_script_for_windows_keeps_the_rules_of_our_scripts(profile: Profile) -> None:
    files = apply(profile, NAMES, System.WINDOWS, serves={"ConvOclBwdWrW2<1>"}).files
    scripts = {path: data for path, data in files.items() if path.endswith(".ps1")}
    assert len(scripts) == (0 if profile is Profile.UPSTREAM else 1)
    assert check_powershell(scripts) == []
    for path, data in scripts.items():
        lax = data.replace(b"$ErrorActionPreference = 'Stop'\r\n", b"")
        assert {item.rule for item in check_powershell({path: lax})} == {"PS003"}


def test_an_image_has_its_variables_in_its_configuration_and_a_copy() -> None:
    applied = apply(Profile.SAFE, NAMES, System.IMAGE)
    assert list(applied.files) == ["usr/share/vega-image/finddb/environment"]

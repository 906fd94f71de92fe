"""What MIOpen sees in a root: whatever defeats the profile is found, and exit 9."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.finddbevidence import C3W, DB, FWD, evidence, passed
from vega_image.cli import cli
from vega_image.commands.finddb.effective import look
from vega_image.errors import UsageError
from vega_image.finddb.assignments import assignments, of_process
from vega_image.finddb.bake import check_bake, image_payload
from vega_image.finddb.curate import curate
from vega_image.finddb.effective import judge, system_of
from vega_image.finddb.evidence import Terms
from vega_image.finddb.manifest import bare_folder, decode, folder_of
from vega_image.finddb.profile import ONLY, PLACES, Profile, System
from vega_image.finddb.proof import proofs
from vega_image.finddb.roots import FolderRoot
from vega_image.finddb.rule import shipped_rules
from vega_image.finddb.text import FindDb

PROVEN = "ConvOclBwdWrW2<1>"
FOLDER = "usr/share/vega-image/finddb"
W = "miopenConvolutionBwdWeightsAlgo"
GEMM_RECORD = f"{C3W}=GemmWrwUniversal:3,7375872,{W}GEMM\n"
WINO_RECORD = f"{C3W}=ConvBinWinogradRxSf2x3:1,0,{W}Winograd\n"
PROVEN_RECORD = f"{C3W}={PROVEN}:1,0,{W}Direct\n"
ELSEWHERE = f"16-32-32-3x3-3-32-32-1-1x1-1x1-1x1-0-NCHW-FP32-W={PROVEN}:1,0,{W}Direct\n"
USER_DB = "tmp/vega-miopen-user-db/gfx906_60.HIP.3_5_1_.ufdb.txt"


def baked(profile: str = "safe", journal: bytes = b"") -> dict[str, bytes]:
    found = evidence(*([journal] if journal else []))
    result = curate(FindDb(DB, "db"), proofs(found), rules=shipped_rules(), profile=profile)
    return folder_of(result, found, rules=shipped_rules(), terms=Terms(), source=DB)


def install(root: Path, files: dict[str, bytes], system: System = System.IMAGE) -> Path:
    """Put a baked folder into a root as a build would."""
    profile = decode(files["manifest.json"], "m").profile
    for path, data in image_payload(profile, files, system=system).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def effective(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    argv = ["finddb", "effective", "--root", str(root), "--json", *words]
    code = cli.main(args=argv, prog_name="vega-image", standalone_mode=False)
    return int(code), json.loads(capsys.readouterr().out)


def codes(value: Any) -> set[str]:
    return {one["code"] for one in value["findings"] if one["defeats"]}


@pytest.mark.parametrize("system", [System.IMAGE, System.LINUX, System.WSL])
@pytest.mark.parametrize("profile", ["safe", "strict"])
def test_an_installed_profile_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], profile: str, system: System
) -> None:
    root = install(tmp_path, baked(profile, passed(PROVEN)), system)
    code, value = effective(root, capsys)
    assert (code, codes(value), value["holds"]) == (0, set(), True)
    assert value["profile"] == profile
    assert value["system_db"] == f"/{FOLDER}/gfx906_60.HIP.fdb.txt"


def append(path: str, text: str) -> Callable[[Path], None]:
    return lambda root: put(root, path, text)


def claim(root: Path, **changed: Any) -> None:
    path = root / FOLDER / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


BREAKING: tuple[tuple[str, Callable[[Path], None], str], ...] = (
    ("user-db", append(USER_DB, WINO_RECORD), "USER_DB"),
    ("user-db-elsewhere", append(USER_DB, ELSEWHERE), "USER_DB"),
    ("home", append("home/x/.config/miopen/gfx906_60.ufdb.txt", WINO_RECORD), "USER_DB"),
    ("root-home", append("root/.config/miopen/a.ufdb.txt", WINO_RECORD), "USER_DB"),
    ("workspace-0", append(USER_DB, f"{C3W}=GemmWrwUniversal:3,0,{W}GEMM\n"), "USER_DB"),
    ("no-algorithm", append(USER_DB, f"{C3W}=GemmWrwUniversal:3,7375872,fast\n"), "USER_DB"),
    ("short-item", append(USER_DB, f"{C3W}=GemmWrwUniversal:3\n"), "USER_DB"),
    ("claims", lambda root: claim(root, status="proven"), "STATUS_OVERSTATED"),
    ("unknown-solver", append(USER_DB, f"{C3W}=Nobody:1,0,{W}GEMM\n"), "USER_DB"),
    ("user-perf-db", append("tmp/vega-miopen-user-db/gfx906_60.udb.txt", "x"), "PERF_DB"),
    ("perf-db", append(f"{FOLDER}/gfx906_60.db.txt", "x"), "PERF_DB"),
    ("db-changed", append(f"{FOLDER}/gfx906_60.HIP.fdb.txt", WINO_RECORD), "SYSTEM_DB_CHANGED"),
    ("db-gone", lambda root: (root / FOLDER / "gfx906_60.HIP.fdb.txt").unlink(),
     "SYSTEM_DB_ABSENT"),
    ("library", append("usr/lib/x86_64-linux-gnu/libMIOpen.so.1", "other"), "EVIDENCE_VOID"),
    ("names", append("usr/lib/x86_64-linux-gnu/libMIOpen.so.1", "x"), "FIND_ONLY_UNKNOWN"),
    ("no-manifest", lambda root: (root / FOLDER / "manifest.json").unlink(), "PROFILE_ABSENT"),
    ("no-variables", lambda root: (root / FOLDER / "environment").unlink(), "VARIABLE_MISSING"),
)  # fmt: skip


@pytest.mark.parametrize(("_name", "change", "code"), BREAKING, ids=[x[0] for x in BREAKING])
def test_whatever_defeats_the_profile_is_found(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    _name: str,
    change: Callable[[Path], None],
    code: str,
) -> None:
    root = install(tmp_path, baked("safe", passed(PROVEN)))
    change(root)
    exit_code, value = effective(root, capsys)
    assert exit_code == 9
    assert code in codes(value)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/environment", "MIOPEN_USER_DB_PATH=/home/x/db\n"),
        ("etc/environment", 'MIOPEN_FIND_MODE="1"\n'),
        ("etc/environment.d/99-x.conf", "MIOPEN_DEBUG_FIND_ONLY_SOLVER=\n"),
        ("etc/profile.d/x.sh", "[ -n x ] && export MIOPEN_DEBUG_DISABLE_FIND_DB=1\n"),
        ("etc/profile.d/x.sh", "export MIOPEN_FIND_ENFORCE=SEARCH\n"),
        ("etc/systemd/system/a.service", "[Service]\nEnvironment=A=1 MIOPEN_FIND_MODE=1\n"),
        ("etc/systemd/system/a.service.d/b.conf", 'Environment="MIOPEN_FIND_MODE=1"\n'),
        ("etc/systemd/system.conf", "DefaultEnvironment=MIOPEN_FIND_MODE=1\n"),
        ("etc/default/x", "MIOPEN_DEBUG_AMD_WINOGRAD_MPASS_F3X4=1\n"),
        ("etc/environment", "MIOPEN_DEBUG_GCN_ASM_KERNELS=0\n"),
        ("etc/environment", "HSA_OVERRIDE_GFX_VERSION=9.0.8\n"),
        ("etc/profile", "export MIOPEN_SYSTEM_DB_PATH=/opt/db\n"),
    ],
)
def test_a_variable_that_defeats_the_profile_is_found_wherever_it_is_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, text: str
) -> None:
    root = install(tmp_path, baked(), System.LINUX)
    assert effective(root, capsys)[0] == 0
    put(root, path, text)
    code, value = effective(root, capsys)
    assert code == 9
    assert codes(value) & {"VARIABLE_DIFFERS", "VARIABLE_ADDED"}
    assert path in str(value["findings"])


def test_how_a_container_is_started_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = install(tmp_path, baked())
    assert effective(root, capsys, "--env", "MIOPEN_LOG_LEVEL=5")[0] == 0
    assert effective(root, capsys, "--env", "MIOPEN_FIND_MODE=1")[0] == 9
    file = tmp_path / "environ"
    whole = (root / FOLDER / "environment").read_bytes()
    for data in (whole, whole.replace(b"\n", b"\0"), whole.replace(b"\n", b"\r\n")):
        file.write_bytes(data)
        assert effective(root, capsys, "--environ", str(file))[0] == 0
    file.write_bytes(b"PATH=/bin\n")
    assert "VARIABLE_MISSING" in codes(effective(root, capsys, "--environ", str(file))[1])


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH"])
def test_a_variable_that_loads_another_library_voids_what_is_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = ("--env", f"{name}=/opt/other")
    proven = install(tmp_path / "proven", baked("safe", passed(PROVEN)))
    code, value = effective(proven, capsys, *words)
    assert (code, codes(value)) == (9, {"OTHER_LIBRARY"})
    assert effective(proven, capsys, "--env", f"{name}=")[0] == 0
    code, value = effective(install(tmp_path / "none", baked()), capsys, *words)
    assert (code, value["findings"][0]["code"]) == (0, "OTHER_LIBRARY")


@pytest.mark.parametrize("text", ["=1", "MIOPEN_FIND_MODE"])
def test_an_assignment_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE is expected"):
        effective(install(tmp_path, baked()), capsys, "--env", text)


@pytest.mark.parametrize("text", [GEMM_RECORD, PROVEN_RECORD, "", "garbage\n"])
def test_a_user_db_that_defeats_nothing_is_only_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    root = install(tmp_path, baked("safe", passed(PROVEN)))
    put(root, USER_DB, text)
    assert effective(root, capsys)[0] == 0


def test_links_of_a_root_stay_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "outside"
    put(outside, "environment", "MIOPEN_FIND_MODE=1\n")
    root = install(tmp_path / "root", baked(), System.LINUX)
    (root / "etc/environment").symlink_to(outside / "environment")
    assert effective(root, capsys)[0] == 0


def test_upstream_and_nothing_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, value = effective(tmp_path, capsys)
    assert (code, codes(value), value["profile"]) == (9, {"PROFILE_ABSENT"}, None)
    install(tmp_path, bare_folder(Profile.UPSTREAM))
    code, value = effective(tmp_path, capsys)
    assert (code, value["status"]) == (0, "unproven")


def test_a_profile_without_records_holds_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, value = effective(install(tmp_path, bare_folder(Profile.SAFE)), capsys)
    assert code == 0
    assert [one["code"] for one in value["findings"]] == ["NO_RECORDS"]


def test_windows_places_are_known(tmp_path: Path) -> None:
    root = install(tmp_path, baked(), System.WINDOWS)
    place = PLACES[System.WINDOWS]
    environ = tuple(of_process((root / place.folder / "environment").read_bytes(), "e"))
    manifest = decode((root / place.folder / "manifest.json").read_bytes(), "m")
    seen = look(FolderRoot(root), manifest, environ)
    system = system_of(seen.variables, place.folder)
    assert system is System.WINDOWS
    assert not [one for one in judge(seen, system) if one.defeats]
    put(root, "Users/x/.miopen/db/gfx906_60.ufdb.txt", WINO_RECORD)
    assert judge(look(FolderRoot(root), manifest, environ), system)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\n# B=2\n;C=3\nexport D='4 5' E=6\n", {"A": "1", "D": "4 5", "E": "6"}),
        ('Environment="A=1 2" B=3\n', {"A": "1 2", "B": "3"}),
        ("A='unclosed\n", {"A": "'unclosed"}),
        ("if x; then export A=1; fi\n", {"A": "1;"}),
        ("=1\n1=2\nA\n", {}),
        ("A=1 \\\nB=2\n", {"A": "1", "B": "2"}),
    ],
)
def test_assignments_are_read_as_they_are_written(text: str, found: dict[str, str]) -> None:
    assert {one.name: one.value for one in assignments(text, "p")} == found


def test_bake_checks_once_more() -> None:
    files = baked("safe", passed(PROVEN))
    assert check_bake(files, Profile.SAFE, "x").counts.proven_records == 1
    name = "gfx906_60.HIP.fdb.txt"
    for changed, code in (
        ({**files, name: files[name] + b"x"}, "CURATED_CHANGED"),
        ({**files, "evidence.tsv": b""}, "CURATED_CHANGED"),
        ({**files, "other": b""}, "CURATED_CHANGED"),
        ({k: v for k, v in files.items() if k != name}, "CURATED_CHANGED"),
        ({k: v for k, v in files.items() if k != "manifest.json"}, "MANIFEST_ABSENT"),
        ({**files, "manifest.json": b"{}"}, "MANIFEST_INVALID"),
    ):
        with pytest.raises(UsageError) as caught:
            check_bake(changed, Profile.SAFE, "x")
        assert caught.value.code == code
    with pytest.raises(UsageError, match="curated for profile safe"):
        check_bake(files, Profile.STRICT, "x")


def edited(files: dict[str, bytes], **changed: Any) -> dict[str, bytes]:
    """Return a curated folder whose manifest somebody edited."""
    value = json.loads(files["manifest.json"])
    for name, part in changed.items():
        value[name] = value[name] | part if isinstance(part, dict) else part
    return {**files, "manifest.json": json.dumps(value).encode()}


MORE_FALLBACK = {"fallback_records": 0, "proven_records": 2}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"status": "proven"}, "partly-proven at most"),
        ({"status": "proven", "counts": MORE_FALLBACK, "bindings": []}, "unproven at most"),
        ({"counts": {"proven_entries": 2}}, "2 proven entries, evidence.tsv has 1"),
        ({"counts": {"fallback_records": 0}}, "neither proven nor served by the fallback"),
        ({"serves": [PROVEN, "ConvOclBwdWrW53"]}, "not those of evidence.tsv"),
    ],
)
def test_bake_believes_no_manifest_that_claims_more_than_its_files(
    changed: dict[str, Any], says: str
) -> None:
    files = edited(baked("safe", passed(PROVEN)), **changed)
    with pytest.raises(UsageError, match=says) as caught:
        check_bake(files, Profile.SAFE, "x")
    assert caught.value.code == "MANIFEST_CONTRADICTS"


def test_bake_wants_evidence_for_each_entry_not_for_each_solver() -> None:
    """A solver proven for one problem is not thereby proven for another."""
    name = "gfx906_60.HIP.fdb.txt"
    files = baked("safe", passed(PROVEN))
    elsewhere = ELSEWHERE.encode()
    data = b"".join(sorted([elsewhere, *files[name].splitlines(keepends=True)[:1]]))
    digest = hashlib.sha256(data).hexdigest()
    files = edited({**files, name: data}, db={"sha256": digest})
    with pytest.raises(UsageError, match=f"{re.escape(PROVEN)} is neither proven") as caught:
        check_bake(files, Profile.SAFE, "x")
    assert caught.value.code == "CURATED_SOLVER"


def test_bake_refuses_the_db_of_another_card() -> None:
    found = evidence(passed(PROVEN, card={"cu": 64}), cu=64)
    result = curate(FindDb(DB, "db"), proofs(found), rules=shipped_rules(), profile="safe")
    terms = Terms(cu=64)
    files = folder_of(result, found, rules=shipped_rules(), terms=terms, source=DB)
    assert "gfx906_64.HIP.fdb.txt" in files
    with pytest.raises(UsageError, match="looks for gfx906_60") as caught:
        check_bake(files, Profile.SAFE, "x")
    assert caught.value.code == "CARD_DIFFERS"


def test_the_payload_of_an_image_is_whole() -> None:
    files = baked("safe", passed(PROVEN))
    applied = image_payload(Profile.SAFE, files)
    assert {f"{FOLDER}/{name}" for name in files} < set(applied.files)
    assert applied.labels["io.vega-image.finddb.status"] == "partly-proven"
    assert "MIOPEN_DEBUG_CONV_DIRECT_OCL_WRW2" not in applied.environ
    assert PROVEN not in applied.environ[ONLY]
    assert FWD.encode() in applied.files[f"{FOLDER}/gfx906_60.HIP.fdb.txt"]

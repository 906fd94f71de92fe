"""Bad input of a wsl target: each complaint with its line, all at once."""

from __future__ import annotations

import pytest

from tests.factory import SPEC as OCI
from tests.wslfactory import SPEC, wsl_target
from vega_image.errors import UsageError
from vega_image.lock import Lock
from vega_image.plan import StepKind, make_plan
from vega_image.spec import Target, TargetKind
from vega_image.specfile import check_references, decode_target

AT = "images/tiny.yaml"
LAYERS = "layers: [{name: base, rest: true}]\n"
SECTION = SPEC[SPEC.index("wsl:\n") :]


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_references(
            decode_target(text, at=AT), at=AT, recipes={"greet": ["word"]}, text=text
        )
    assert (caught.value.exit_code, caught.value.code) == (2, "SPEC_INVALID")
    return caught.value.message


def test_the_fixture_decodes() -> None:
    target = wsl_target()
    assert target.kind is TargetKind.WSL
    assert target.wsl
    assert target.wsl.default_user.folder == "/home/vega"
    check_references(target, at=AT, recipes={}, text=SPEC)


@pytest.mark.parametrize(
    ("old", "new", "key", "complaint"),
    [
        ("uid: 1000", "uid: 0", "default_user", "0 is root"),
        ("uid: 1000", "uid: 999", "default_user", "not of the numbers for people"),
        ("uid: 1000", "uid: 65534", "default_user", "not of the numbers for people"),
        ("name: vega,", "name: root,", "default_user", "an account or group of Debian itself"),
        ("name: vega,", "name: con,", "default_user", "a device name on Windows"),
        ("name: vega,", "name: Jörg,", "default_user", "only ASCII letters"),
        ("name: vega,", "name: Vega,", "default_user", "should match pattern"),
        ("name: vega,", 'name: "a b",', "default_user", "should match pattern"),
        ("name: vega,", f"name: {'a' * 33},", "default_user", "should match pattern"),
        ("uid: 1000}", "uid: 1000, home: /root}", "default_user", "should match pattern"),
        ("uid: 1000}", "uid: 1000, home: /home/../x}", "default_user", "should match pattern"),
        ("name: TinyDebian", "name: nul", "TinyDebian", "a device name on Windows"),
        ("name: TinyDebian", "name: aux.wsl", "TinyDebian", "a device name on Windows"),
        ("name: TinyDebian", "name: Tiny Debian", "TinyDebian", "should match pattern"),
        ("name: TinyDebian", "name: Tïny", "TinyDebian", "printable ASCII only"),
        ("name: TinyDebian", "name: Tiny.", "TinyDebian", "should match pattern"),
        ("flavor: Tiny", "flavor: a/b", "flavor", "should match pattern"),
        ("friendly_name: Tiny Debian", "friendly_name: Débian", "friendly_name", "ASCII only"),
        ("friendly_name: Tiny Debian", 'friendly_name: ""', "friendly_name", "at least 1"),
        ("color_scheme: Campbell", 'color_scheme: "a\\nb"', "terminal", "printable ASCII only"),
        ("flavor: Tiny", "flavour: Tiny", "flavor", "did you mean 'flavor'?"),
        ("codec: gzip", "codec: zstd", "compression", "a .wsl archive wants `codec: gzip`"),
    ],
)
def test_what_windows_or_wsl_would_refuse(old: str, new: str, key: str, complaint: str) -> None:
    assert old in SPEC
    line = next(n for n, text in enumerate(SPEC.splitlines(), start=1) if key in text)
    message = refusal(SPEC.replace(old, new))
    assert complaint in message
    assert f"{AT}:{line}: " in message


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (SPEC.replace(SECTION, ""), "wsl: missing: a target of kind wsl wants this section"),
        (SPEC.replace(SECTION, "wsl:\n"), "wsl: missing: a target of kind wsl wants"),
        (SPEC + LAYERS, "layers: not in a target of kind wsl: a .wsl archive is one tar"),
        (SPEC + 'image: {user: "0:0"}\n', "image: not in a target of kind wsl"),
        (SPEC + "slim: {keep: [gfx906]}\n", "slim: not in a target of kind wsl"),
        (SPEC + "census: {}\n", "census: not in a target of kind wsl"),
        (SPEC + "finddb: {}\n", "finddb: not in a target of kind wsl"),
        (OCI + SECTION, "wsl: only a target of kind wsl has this section"),
        (OCI.replace("kind: oci", "kind: wsl"), "layers: not in a target of kind wsl"),
        (OCI[: OCI.index("image:")], "image: missing"),
        (OCI[: OCI.index("layers:")] + OCI[OCI.index("image:") :], "layers: missing"),
        (
            OCI[: OCI.index("layers:")] + "layers: []\n" + OCI[OCI.index("image:") :],
            "layers: missing",
        ),
    ],
)
def test_sections_of_the_other_kind_are_refused(text: str, complaint: str) -> None:
    assert complaint in refusal(text)


def test_a_section_too_many_is_named_with_its_line_beside_other_errors() -> None:
    message = refusal(SPEC.replace("uid: 1000", "uid: 0") + LAYERS)
    assert "0 is root" in message
    last = len(SPEC.splitlines()) + 1
    assert f"{AT}:{last}: layers: not in a target of kind wsl" in message


def test_accounts_of_the_root_are_for_the_first_start() -> None:
    users = SPEC.replace("  method: install\n", "  users: [{name: a, uid: 1000}]\n")
    assert "root.users: not in a target of kind wsl" in refusal(users)


def test_a_spec_inside_an_archive_is_held_to_the_same() -> None:
    value = wsl_target().model_dump_json(by_alias=True)
    assert Target.model_validate_json(value) == wsl_target()
    with pytest.raises(ValueError, match="only a target of kind wsl"):
        Target.model_validate_json(value.replace('"kind":"wsl"', '"kind":"oci"'))


@pytest.mark.parametrize("kind", ["windows-container", "windows-containers"])
def test_a_windows_container_is_refused_with_the_reason(kind: str) -> None:
    text = SPEC.replace("kind: wsl", f"kind: {kind}")
    with pytest.raises(UsageError) as caught:
        decode_target(text, at=AT)
    assert (caught.value.exit_code, caught.value.code) == (2, "WINDOWS_CONTAINERS_UNSUPPORTED")
    assert caught.value.at == f"{AT}:3"
    assert "only DirectX" in caught.value.message
    assert "linux-inference" in str(caught.value.hint)
    assert "windows-ltsc" in str(caught.value.hint)


def test_the_steps_and_what_rebuilds_them(locked: Lock) -> None:
    def ids(text: str = SPEC, **added: str) -> dict[str, str]:
        makers = dict.fromkeys(StepKind, "sha256:" + "0" * 64)
        made_of = {StepKind.ARCHIVE: added}
        plan = make_plan(wsl_target(text), locked, makers=makers, recipes={}, made_of=made_of)
        return {step.name: step.id for step in plan}

    first = ids()
    assert list(first) == ["root", "archive"]
    for other in (ids(SPEC.replace("Campbell", "Vintage")), ids(oobe="sha256:1")):
        assert (other["root"], other["archive"] == first["archive"]) == (first["root"], False)


@pytest.fixture
def locked() -> Lock:
    from tests.factory import lock

    return lock(wsl_target())

"""Which archive the host's apt configuration means, and what is not one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vega_image.errors import UsageError
from vega_image.sources.address import join, redact, split_credentials
from vega_image.sources.mirror import (
    deb822,
    host_keyring,
    host_mirror,
    parse_deb822,
    parse_list,
)
from vega_image.sources.origin import Origin

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
WANTED = "http://mirror.example.org/debian"
OTHER = "http://other.example.org/debian"
DEB822 = f"""\
# {OTHER}
Types: deb deb-src
URIs: {WANTED}/
Suites: bookworm
# a comment between
 bookworm-updates
Components: main
Signed-By: {KEY}
"""


def sysroot(base: Path, **files: str) -> Path:
    for name, text in files.items():
        path = base / "etc/apt" / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return base


@pytest.mark.parametrize(
    "text",
    [
        f"deb {WANTED} bookworm main\n",
        f"  deb [ arch=amd64 signed-by={KEY} ]  {WANTED}  sid  main contrib\n",
        f"deb-src {OTHER} sid main\ndeb {WANTED} sid main",
        f"# deb {OTHER} sid main\ndeb {WANTED} sid main # more",
    ],
)
def test_the_hosts_archive(tmp_path: Path, text: str) -> None:
    assert host_mirror(sysroot(tmp_path, sources_list=text)) == WANTED


def test_the_hosts_archive_in_deb822(tmp_path: Path) -> None:
    root = sysroot(tmp_path, sources_list_d__debian_sources=DEB822)
    assert host_mirror(root) == WANTED


@pytest.mark.parametrize(
    "line",
    [
        "deb http://security.example.org/debian-security bookworm-security main",
        "deb http://sec.example.org/security bookworm main",
        "deb https://vendor.example.org/linux/debian bookworm stable",
        "deb https://vendor.example.org/php/ bookworm main",
        "deb [signed-by=/etc/apt/keyrings/v.gpg] https://vendor.example.org/apt trixie main",
        "deb http://archive.example.org/ubuntu noble main",
        "deb cdrom:[Debian]/ bookworm main",
        "deb-src http://mirror.example.org/debian sid main",
    ],
)
def test_what_is_no_debian_archive(tmp_path: Path, line: str) -> None:
    root = sysroot(tmp_path, sources_list_d__x_list=line + "\n")
    with pytest.raises(UsageError) as caught:
        host_mirror(root)
    assert caught.value.code == "NO_MIRROR"
    assert "--debian-mirror" in (caught.value.hint or "")
    wanted = f"deb {WANTED} bookworm main\n"
    assert host_mirror(sysroot(tmp_path, sources_list=f"{line}\n{wanted}")) == WANTED


def test_who_signs_outranks_a_name(tmp_path: Path) -> None:
    first = "deb [signed-by=/v.gpg] https://vendor.example.org/debian bookworm main\n"
    ours = f"deb [signed-by={KEY}] http://apt.example.org/mirrors/deb12 bookworm main\n"
    root = sysroot(tmp_path, sources_list_d__a_list=first, sources_list_d__b_list=ours)
    assert host_mirror(root) == "http://apt.example.org/mirrors/deb12"


def test_disabled_stanzas_do_not_count(tmp_path: Path) -> None:
    root = sysroot(tmp_path, sources_list_d__x_sources=DEB822 + "Enabled: no\n")
    with pytest.raises(UsageError):
        host_mirror(root)


def test_cloud_images_name_their_mirror_in_a_file(tmp_path: Path) -> None:
    text = DEB822.replace(f"{WANTED}/", "mirror+file:///etc/apt/mirrors/debian.list")
    listed = f"# a list\n{WANTED}/\tpriority:1\n"
    root = sysroot(tmp_path, sources_list_d__debian_sources=text, mirrors__debian_list=listed)
    assert host_mirror(root) == WANTED


def test_a_password_stays_in_the_value_and_out_of_its_print(tmp_path: Path) -> None:
    url = "http://ann:s3cret@mirror.example.org/debian"
    root = sysroot(tmp_path, sources_list=f"deb {url} sid main\n")
    assert host_mirror(root) == url
    assert "s3cret" not in repr(Origin(mirror=url, snapshots=(url,)))


def test_origin_overrides_the_host(tmp_path: Path) -> None:
    key = tmp_path / "key.gpg"
    key.write_bytes(b"k")
    origin = Origin(mirror=f"{WANTED}/", keyring=key, snapshots=("file:///old",))
    assert origin.bases() == (WANTED, "file:///old")
    assert origin.trusted() == key
    with pytest.raises(UsageError):
        Origin(keyring=tmp_path / "absent").trusted()


def test_keyring(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        host_keyring(tmp_path)
    assert caught.value.code == "NO_KEYRING"
    key = tmp_path / "usr/share/keyrings/debian-archive-keyring.pgp"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"k")
    assert host_keyring(tmp_path) == key


@given(st.text())
def test_parsers_take_any_text(text: str) -> None:
    for entry in (*parse_list(text), *parse_deb822(text)):
        assert entry.uri
    assert all(stanza for stanza in deb822(text))


values = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
keys = st.sampled_from(["package", "uris", "signed-by", "x"])
stanza_values = st.dictionaries(keys, st.lists(values, min_size=1, max_size=3), min_size=1)


@settings(max_examples=40)
@given(st.lists(stanza_values, max_size=3))
def test_deb822_round_trip(found: list[dict[str, list[str]]]) -> None:
    text = "\n\n".join(
        "\n".join(f"{key.title()}: " + "\n ".join(lines) for key, lines in stanza.items())
        for stanza in found
    )
    assert list(deb822(text)) == [
        {key: "\n".join(lines) for key, lines in stanza.items()} for stanza in found
    ]


secrets = st.from_regex(r"\A[A-Za-z0-9._~%-]{6,20}\Z")


@given(secrets, secrets, st.sampled_from(["http", "https", "ssh"]))
def test_no_address_keeps_a_secret(login: str, password: str, scheme: str) -> None:
    url = f"{scheme}://{login}:{password}@h.invalid:80/a?b#c"
    bare, secret = split_credentials(url)
    assert bare == f"{scheme}://h.invalid:80/a?b#c"
    assert secret is not None
    assert redact(f"E: '{url}' failed") == f"E: '{bare}' failed"
    assert split_credentials(bare) == (bare, None)


@given(st.from_regex(r"\Apool/[!-~]{1,30}\Z"))
def test_a_pool_path_survives_its_address(path: str) -> None:
    from urllib.parse import unquote, urlsplit

    assert unquote(urlsplit(join("http://h/d/", path)).path) == f"/d/{path}"

"""apt's output and files as values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vega_image.sources.aptindex import (
    Planned,
    Release,
    package_names,
    parse_print_uris,
    parse_release,
    stanzas,
)

RELEASE = b"""\
Origin: Mini
Date: Thu, 22 Oct 2026 08:48:01 UTC
Valid-Until: Thu, 29 Oct 2026 08:48:01 UTC
SHA256:
 00 1 main/Packages
"""
DATE = 1792658881
words = st.text("abz019.+-_~%", min_size=1, max_size=12)
shas = st.text("0189af", min_size=64, max_size=64)
planned = st.builds(
    Planned,
    name=words,
    size=st.integers(0, 10**12),
    sha256=shas,
)
noise = st.text(st.characters(blacklist_characters="'\r\n", blacklist_categories=["Cs"]))


@settings(max_examples=40)
@given(st.lists(planned, max_size=5), noise)
def test_print_uris(files: list[Planned], chatter: str) -> None:
    lines = [chatter]
    for file in files:
        lines += [
            f"'http://h/{file.name}' {file.name} {file.size} SHA256:{file.sha256}",
            chatter,
        ]
    assert parse_print_uris("\n".join(lines)) == tuple(files)


@given(st.text())
def test_print_uris_never_breaks_on_text(text: str) -> None:
    assert isinstance(parse_print_uris(text.replace("'", "")), tuple)


@pytest.mark.parametrize("hashed", ["", "MD5Sum:" + "0" * 32, "SHA256:" + "0" * 63])
def test_a_file_without_sha256_is_refused(hashed: str) -> None:
    with pytest.raises(ValueError, match="no SHA-256 for a_1"):
        parse_print_uris(f"'http://h/pool/a_1.deb' a_1.deb 12 {hashed}")


def test_release_dates() -> None:
    assert parse_release(RELEASE) == Release(DATE, DATE + 7 * 86400)
    without = RELEASE.replace(b"Valid-Until", b"X-Until")
    assert parse_release(without) == Release(DATE, None)


def test_only_the_signed_text_speaks() -> None:
    lie = b"Date: Fri, 01 Jan 2100 00:00:00 UTC\n"
    signed = (
        b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n" + lie + b"\n" + RELEASE
        + b"-----BEGIN PGP SIGNATURE-----\n" + lie + b"\n-----END PGP SIGNATURE-----\n"
    )  # fmt: skip
    assert parse_release(signed) == Release(DATE, DATE + 7 * 86400)


@given(st.binary(max_size=200))
def test_release_rubbish(data: bytes) -> None:
    try:
        assert isinstance(parse_release(data), Release)
    except ValueError:
        return


names = st.text("abz09+.-", min_size=1, max_size=8).map(lambda text: f"p{text}")


@settings(max_examples=40)
@given(st.lists(st.tuples(names, shas), unique_by=lambda pair: pair[1], max_size=5), st.data())
def test_packages_file(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    text = "\n".join(
        f"Package: {name}\nVersion: 1\nSize: 3\nSHA256: {sha}\nDescription: x\n y\n .\n z\n"
        for name, sha in pairs
    ).encode()
    assert package_names(text) == {name for name, _sha in pairs}
    wanted = set(data.draw(st.lists(st.sampled_from(pairs)))) if pairs else set()
    found = list(stanzas(text, {sha for _name, sha in wanted}))
    assert {(s["package"], s["sha256"]) for s in found} == wanted
    assert all(s["description"] == "x\ny\n.\nz" for s in found)

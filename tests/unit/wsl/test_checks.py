"""Every rule for a .wsl archive has an archive that it refuses, by file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.wslfactory import (
    EPOCH,
    GZIP,
    PASSWD,
    ROOT,
    SHADOW,
    added,
    changed,
    edited,
    good,
    listing,
    node,
    with_member,
    without,
)
from vega_image.wsl import checks, conf, places
from vega_image.wsl.checks import Listing, check_archive, check_texts

CONF, DISTRIBUTION = places.CONF, places.DISTRIBUTION
MASK = f"{places.MASKS}/tmp.mount"
UNIT = f"{places.MASKS}/multi-user.target.wants/vega-reference.service"
RESOLV, SHADOWED, ACCOUNTS = "etc/resolv.conf", "etc/shadow", "etc/passwd"
KERNEL = "boot/vmlinuz-6.12.0-amd64"


def accounts(more: bytes = b"", shell: bytes = b"/bin/bash") -> Listing:
    return changed(ACCOUNTS, data=PASSWD.replace(b"/bin/bash", shell) + more)


def shadow(more: bytes) -> Listing:
    return changed(SHADOWED, data=SHADOW + more)


BAD: list[tuple[str, Listing, str, int]] = [
    ("wsl-gzip-header", Listing(b"\x1f\x8b\x08\0abcd\0\x03", good().nodes), "archive", 0),
    ("wsl-order", Listing(GZIP, good().nodes[::-1]), "bin", 0),
    ("wsl-order", Listing(GZIP, [good().nodes[0], *good().nodes]), good().nodes[0].path, 0),
    ("wsl-time", changed("usr", mtime=EPOCH + 1), "usr", 0),
    ("wsl-owner-name", changed("usr", names="root root"), "usr", 0),
    ("wsl-device", with_member("dev/kfd", type="3"), "dev/kfd", 0),
    ("wsl-device", with_member("run/pipe", type="6"), "run/pipe", 0),
    ("wsl-set-uid", changed("usr/bin/bash", mode=0o4755), "usr/bin/bash", 0),
    (
        "wsl-root",
        listing([replace(n, path=f"rootfs/{n.path}") for n in good().nodes]),
        "rootfs/bin",
        0,
    ),
    ("wsl-root", without("usr/bin/sh"), "bin/sh", 0),
    ("wsl-root", changed("usr/bin/bash", mode=0o644), "bin/sh", 0),
    ("wsl-resolv-conf", with_member(RESOLV, data=b"nameserver ::1\n"), RESOLV, 0),
    ("wsl-resolv-conf", with_member(RESOLV, link="/run/x"), RESOLV, 0),
    ("wsl-host-file", with_member("etc/hostname", data=b"builder\n"), "etc/hostname", 0),
    ("wsl-kernel", with_member(KERNEL, data=b"x"), KERNEL, 0),
    ("wsl-kernel", with_member("boot/initrd.img-6", data=b"x"), "boot/initrd.img-6", 0),
    ("wsl-kernel", with_member("usr/lib/modules/6.12.0"), "usr/lib/modules/6.12.0", 0),
    (
        "wsl-machine-secret",
        with_member("etc/ssh/ssh_host_ed25519_key", data=b"x"),
        "etc/ssh/ssh_host_ed25519_key",
        0,
    ),
    ("wsl-machine-secret", with_member("etc/machine-id", data=b"0123\n"), "etc/machine-id", 0),
    ("wsl-conf-absent", without(CONF), CONF, 0),
    ("wsl-conf-absent", without(DISTRIBUTION), DISTRIBUTION, 0),
    ("wsl-conf-mode", changed(DISTRIBUTION, mode=0o664), DISTRIBUTION, 0),
    ("wsl-conf-mode", changed(DISTRIBUTION, uid=1000), DISTRIBUTION, 0),
    (conf.SYNTAX, edited(CONF, "systemd=true", "systemd"), CONF, 3),
    (conf.SYNTAX, edited(CONF, "[boot]\n", "\n"), CONF, 3),
    (conf.KEY, edited(CONF, "systemd=true", "sytemd=true"), CONF, 3),
    (conf.KEY, edited(CONF, "[interop]", "[interops]"), CONF, 10),
    (conf.VALUE, edited(CONF, "systemd=true", "systemd=yes"), CONF, 3),
    (conf.TWICE, edited(CONF, "systemd=true", "systemd=true\nsystemd=false"), CONF, 4),
    (conf.COMMAND, edited(DISTRIBUTION, "command = /usr", "command = usr"), DISTRIBUTION, 3),
    (conf.COMMAND, edited(DISTRIBUTION, "command =", "#"), DISTRIBUTION, 0),
    (conf.COMMAND, without(places.OOBE), DISTRIBUTION, 3),
    (conf.COMMAND, changed(places.OOBE, mode=0o644), DISTRIBUTION, 3),
    (conf.COMMAND, changed(places.OOBE, mode=0o775), DISTRIBUTION, 3),
    (conf.COMMAND, changed(places.OOBE, uid=1000), DISTRIBUTION, 3),
    (conf.UID, edited(DISTRIBUTION, "defaultUid = 1000", "defaultUid = 0"), DISTRIBUTION, 4),
    (conf.UID, edited(DISTRIBUTION, "defaultUid = 1000\n", ""), DISTRIBUTION, 0),
    (conf.UID, edited(DISTRIBUTION, "= 1000", "= 65534"), DISTRIBUTION, 4),
    (conf.NAME, edited(DISTRIBUTION, "TinyDebian", "Tiny Debian"), DISTRIBUTION, 5),
    (conf.NAME, edited(DISTRIBUTION, "TinyDebian", "con"), DISTRIBUTION, 5),
    ("wsl-icon", edited(DISTRIBUTION, "enabled = false", "icon = /usr/x.ico"), DISTRIBUTION, 8),
    ("wsl-terminal-profile", without(places.TERMINAL), DISTRIBUTION, 12),
    ("wsl-terminal-profile", changed(places.TERMINAL, data=b"[]"), DISTRIBUTION, 12),
    ("wsl-unit-unmasked", without(MASK), MASK, 0),
    ("wsl-unit-unmasked", changed(MASK, link="/usr/lib/x"), MASK, 0),
    ("wsl-systemd-absent", without("usr/sbin/init"), CONF, 3),
    ("wsl-password", shadow(b"a:$y$j9T$x:1::::::\n"), SHADOWED, 3),
    ("wsl-password", shadow(b"a::1::::::\n"), SHADOWED, 3),
    ("wsl-password", changed(SHADOWED, data=b"root\n"), SHADOWED, 1),
    ("wsl-password", with_member("etc/gshadow", data=b"root:*::\nx:abc::\n"), "etc/gshadow", 2),
    ("wsl-password", accounts(b"a::10:10::/:/bin/sh\n"), ACCOUNTS, 3),
    ("wsl-account", accounts(b"a:x:1000:1::/:/bin/sh\n"), ACCOUNTS, 3),
    ("wsl-account", accounts(b"a:x:0:0::/:/bin/sh\n"), ACCOUNTS, 3),
    ("wsl-account", accounts(b"a:x\n"), ACCOUNTS, 3),
    ("wsl-account", without("etc/passwd"), "etc/passwd", 0),
    ("wsl-root-shell", accounts(shell=b"/usr/sbin/nologin"), ACCOUNTS, 1),
    ("wsl-root-shell", accounts(shell=b"/bin/zsh"), ACCOUNTS, 1),
    ("wsl-own-file", without(places.LOCK), places.LOCK, 0),
    ("wsl-own-file", without(places.PYZ), places.PYZ, 0),
    ("wsl-service-off", without(UNIT), UNIT, 0),
    ("wsl-service-off", without(f"{places.UNITS}/vega-reference.service"), UNIT, 0),
    ("wsl-tool-absent", without("usr/sbin/useradd"), "usr/sbin/useradd", 0),
    ("wsl-tool-absent", changed("usr/bin/python3", mode=0o644), "usr/bin/python3", 0),
    (
        "wsl-tool-absent",
        without("usr/lib/python3/dist-packages/torch/__init__.py"),
        "usr/lib/python3*/torch/__init__.py",
        0,
    ),
]  # fmt: skip


def test_a_good_archive_is_good() -> None:
    assert check_archive(good(), epoch=EPOCH) == []
    assert check_texts(added()) == []


@pytest.mark.parametrize(
    ("rule", "archive", "path", "line"), BAD, ids=[f"{n}-{row[0]}" for n, row in enumerate(BAD)]
)
def test_a_bad_one_is_refused(rule: str, archive: Listing, path: str, line: int) -> None:
    found = check_archive(archive, epoch=EPOCH)
    assert (rule, path, line) in [(f.rule, f.path, f.line) for f in found], found


def test_every_rule_has_its_bad_archive() -> None:
    """The rules are read from the code: a new one without an archive here fails."""
    import ast

    said: set[str] = set()
    for name in ("checks", "conf", "accounts"):
        tree = ast.parse(Path(ROOT, f"vega_image/wsl/{name}.py").read_text())
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
        said |= {
            t for t in texts if isinstance(t, str) and t.startswith("wsl-") and " " not in t
        }
    assert said == {row[0] for row in BAD}


def test_an_icon_of_the_archive_is_fine_and_a_huge_one_is_not() -> None:
    icon = edited(DISTRIBUTION, "enabled = false", "icon = /usr/share/vega.ico")
    for size, rules in ((1000, []), (checks.ICON_BYTES + 1, ["wsl-icon"])):
        member = replace(node("usr/share/vega.ico", data=b""), size=size)
        found = check_archive(listing([*icon.nodes, member]), epoch=EPOCH)
        assert [f.rule for f in found] == rules


def test_the_texts_are_judged_before_anything_is_built() -> None:
    texts = added() | {CONF: b"[boot]\nsystemd=on\n"}
    found = [(f.rule, f.path, f.line) for f in check_texts(texts)]
    assert found == [(conf.VALUE, CONF, 2)]
    assert [f.rule for f in check_texts({})] == ["wsl-conf-absent"] * 2


def test_links_that_run_in_a_circle_end() -> None:
    archive = changed("usr/bin/sh", link="sh")
    assert ("wsl-root", "bin/sh") in [
        (f.rule, f.path) for f in check_archive(archive, epoch=EPOCH)
    ]

"""apt in a root of its own: nothing of the host's packages, pins, keys or hooks is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vega_image.errors import BytesError, EngineError, LockError, UsageError, VegaError
from vega_image.process import Completed, run, which
from vega_image.sources.address import Credentials, redact, split_credentials
from vega_image.sources.mirror import check_address
from vega_image.spec import DebianSource, Pin

# `\ ` cannot be escaped in apt.conf, and a quote would end the value.
_CONFIG = """\
Dir "{root}";
Dir::State::status "{root}/var/lib/dpkg/status";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Check-Valid-Until "false";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::Retries "2";
"""
_FOLDERS = (
    "etc/apt/apt.conf.d",
    "etc/apt/auth.conf.d",
    "etc/apt/preferences.d",
    "etc/apt/sources.list.d",
    "etc/apt/trusted.gpg.d",
    "var/cache/apt/archives/partial",
    "var/lib/apt/lists/partial",
    "var/lib/dpkg",
    "var/log/apt",
)
_FAILURES: tuple[tuple[str, type[VegaError], str, str], ...] = (
    (
        r"No space left on device|don't have enough free space",
        EngineError,
        "DISK_FULL",
        "free some space, or use another disk: --store DIR",
    ),
    (
        r"GPG error|is not signed|NO_PUBKEY|BADSIG|EXPKEYSIG|Clearsigned file|OpenPGP sig",
        BytesError,
        "RELEASE_BAD_SIGNATURE",
        "check the mirror, or name the keyring that signs for it: --debian-keyring FILE",
    ),
    (
        r"not valid yet",
        BytesError,
        "RELEASE_NOT_YET_VALID",
        "set this host's clock: timedatectl",
    ),
    (
        r"Hash Sum mismatch|unexpected size|Mirror sync in progress",
        BytesError,
        "INDEX_WRONG_DIGEST",
        "the mirror is being updated, or lies: try again, or --debian-mirror URL",
    ),
    (
        r"Could not (connect|resolve|handshake)|Temporary failure|timed out|Connection failed",
        BytesError,
        "MIRROR_UNREACHABLE",
        "check the network and http_proxy, or name another: --debian-mirror URL",
    ),
    (
        r"does not have a Release file|404 +Not Found|File not found",
        LockError,
        "SUITE_ABSENT",
        "correct `suites:` in the spec, or name another archive: --debian-mirror URL",
    ),
)


@dataclass(frozen=True, slots=True)
class Apt:
    """An isolated apt root on disk, for one source and one archive."""

    root: Path
    log: Callable[[str], None]

    def command(self, program: str, *words: str) -> Completed:
        """Run an apt program in this root; a non-zero status is for the caller to read."""
        if which(program) is None:
            msg = f"{program} is not installed; it resolves Debian sources"
            raise EngineError("TOOL_ABSENT", msg, hint="apt-get install apt", at=program)
        config = self.root / "etc/apt/apt.conf"
        argv = ["env", f"APT_CONFIG={config}", "LC_ALL=C", program, *words]
        return run(argv, on_line=lambda line: self.log(redact(line)))

    def update(self) -> None:
        """Fetch and verify the Release and Packages files of all suites.

        Raises BytesError or LockError with apt's own words: RELEASE_BAD_SIGNATURE,
        MIRROR_UNREACHABLE, SUITE_ABSENT, INDEX_WRONG_DIGEST, ...; EngineError DISK_FULL.
        """
        done = self.command("apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any")
        if done.returncode != 0:
            raise _update_failure(done.output)


def make_root(
    root: Path, source: DebianSource, *, mirror: str, keyring: Path, log: Callable[[str], None]
) -> Apt:
    """Write an apt root that knows one archive, one keyring and no installed package.

    A password in the mirror's address goes into an auth.conf of mode 0600 in this root.
    """
    if '"' in str(root):
        msg = f"{root}: apt cannot work in a folder with a quote in its name"
        raise UsageError("BAD_FOLDER", msg, hint="--store DIR", at=str(root))
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    bare, secret = split_credentials(mirror)
    check_address(bare)
    etc = root / "etc/apt"
    config = _CONFIG.format(root=root, architecture=source.architecture)
    (etc / "apt.conf").write_text(config, encoding="utf-8")
    lines = "".join(
        f"deb {quote(bare, safe=':/%~+')} {suite} {' '.join(source.components)}\n"
        for suite in source.suites
    )
    (etc / "sources.list").write_text(lines, encoding="utf-8")
    (etc / "preferences").write_text(preferences(source.pins), encoding="utf-8")
    (root / "var/lib/dpkg/status").touch()
    key = keyring.read_bytes()
    suffix = "asc" if key.lstrip().startswith(b"-----BEGIN") else "gpg"
    (etc / "trusted.gpg.d" / f"archive.{suffix}").write_bytes(key)
    if secret:
        _write_auth(etc / "auth.conf", bare, secret)
    return Apt(root, log)


def preferences(pins: Iterable[Pin]) -> str:
    """Write pins as apt_preferences(5) stanzas; raises UsageError BAD_PIN."""
    out = []
    for pin in pins:
        for text in (*pin.packages, pin.pin):
            if not text.strip() or "\n" in text or "\r" in text:
                msg = f"not one line of an apt pin: {text!r}"
                raise UsageError("BAD_PIN", msg, hint="man apt_preferences", at="pins")
        packages = " ".join(pin.packages)
        out.append(f"Package: {packages}\nPin: {pin.pin}\nPin-Priority: {pin.priority}\n\n")
    return "".join(out)


def complaints(output: str) -> str:
    """Pick from apt's output what went wrong, without secrets."""
    lines = redact(output).splitlines()
    start = next((i for i, line in enumerate(lines) if "unmet dependencies" in line), None)
    block = lines[start:] if start is not None else lines
    kept = [
        line.rstrip()
        for line in block
        if re.match(r"[EW]: ", line) or (start is not None and line.startswith(" "))
    ]
    return "\n".join(dict.fromkeys(kept)) or "\n".join(lines[-5:])


def _update_failure(output: str) -> VegaError:
    words = complaints(output)
    for pattern, kind, code, hint in _FAILURES:
        if re.search(pattern, words):
            return kind(code, f"the archive was refused:\n{words}", hint=hint)
    hint = "name another archive: --debian-mirror URL"
    return BytesError("APT_FAILED", f"apt-get update failed:\n{words}", hint=hint)


def _write_auth(path: Path, bare: str, secret: Credentials) -> None:
    if re.search(r"\s", secret.login + secret.password):
        msg = "a mirror's user name and password may not hold spaces"
        raise UsageError("BAD_MIRROR", msg, hint="--debian-mirror URL")
    path.touch(mode=0o600)
    text = f"machine {bare}\nlogin {secret.login}\npassword {secret.password}\n"
    path.write_text(text, encoding="utf-8")

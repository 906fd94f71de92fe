"""Our own rules for Packer's HCL: secrets, addresses, digests, transport. Pure.

Each names what it prevents. They run on core files and overlays alike, since the packer of a
distribution (1.6.6) knows neither the newer arguments nor what a secret is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vega_image.checks.finding import Finding
from vega_image.checks.hcl import STRING, WORD, Attribute, Block, HclError, Token, parse, tokens

SERIAL = "file:${var.serial_log}"
_SECRET = re.compile(
    r"(password|passwd|passphrase|secret|token|(product|private|api)_?key)$", re.IGNORECASE
)
_ASSIGNED = re.compile(
    r"\b\w*(PASSWORD|PASSWD|SECRET|TOKEN|PRODUCT_?KEY)\w*\s*=\s*[^\s$%{\"']", re.IGNORECASE
)
_KEY = re.compile(r"\b[A-Z0-9]{5}(-[A-Z0-9]{5}){4}\b|-----BEGIN [A-Z ]*PRIVATE KEY")
_ADDRESS = re.compile(r"\bhttps?://", re.IGNORECASE)
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64}|\$\{[^}]+\})")
_REFERENCE = re.compile(r"(var|local)\.([\w-]+)")
_UNVERIFIED = frozenset({"winrm_insecure", "insecure_connection", "insecure_skip_tls_verify"})
_NEWER = frozenset({"efi_boot", "efi_config", "vtpm", "tpm_device_type", "cd_content"})
OVERLAYS = "packer/overlays/"


@dataclass(frozen=True, slots=True)
class HclFile:
    """A parsed file: its path, its blocks, its tokens, and the variables of the whole set."""

    path: str
    root: Block
    tokens: tuple[Token, ...]
    variables: Mapping[str, Block] = field(default_factory=dict)

    @property
    def core(self) -> bool:
        """Whether packer 1.6.6 must be able to read it."""
        return not self.path.startswith(OVERLAYS)

    def sources(self) -> Iterator[Block]:
        """Yield the builders' settings."""
        return (block for block in self.root.walk() if block.type == "source")

    def default(self, attribute: Attribute | None) -> str | None:
        """Return an attribute's literal, or the default of the one variable it names."""
        if attribute is None:
            return None
        named = _REFERENCE.fullmatch(attribute.text)
        if named is None or attribute.tokens[0].kind == STRING:
            return attribute.literal
        variable = self.variables.get(named[2])
        value = variable.attribute("default") if variable and named[1] == "var" else None
        return value.literal if value else None


Found: TypeAlias = Iterator[tuple[int, str]]


def _literal_secret(file: HclFile) -> Found:
    for name, mark, value in zip(file.tokens, file.tokens[1:], file.tokens[2:], strict=False):
        named = _SECRET.search(name.text) if name.kind in {WORD, STRING} else None
        plain = value.kind == STRING and value.text and "${" not in value.text
        if named and mark.text in {"=", ":"} and plain:
            yield value.line, f"{name.text} holds a literal; take a sensitive variable"
    for token in file.tokens:
        if token.kind == STRING and (_ASSIGNED.search(token.text) or _KEY.search(token.text)):
            yield token.line, "a secret or key is written into this string"


def _open_variable(file: HclFile) -> Found:
    for block in file.root.blocks:
        if block.type != "variable" or not _SECRET.search("".join(block.labels)):
            continue
        name, default = block.labels[0], block.attribute("default")
        if getattr(block.attribute("sensitive"), "text", None) != "true":
            yield block.line, f"variable {name} is a secret: add sensitive = true"
        if getattr(block.attribute("type"), "text", None) != "string":
            yield block.line, f"variable {name} is a secret: add type = string"
        if default is not None and default.text not in {"", "null"}:
            yield default.line, f"variable {name} is a secret: its default must be empty"


def _address(file: HclFile) -> Found:
    for token in file.tokens:
        if token.kind == STRING and _ADDRESS.search(token.text):
            yield token.line, "an address: a build uses local files that the lock names"


def _unchecked_iso(file: HclFile) -> Found:
    for block in file.sources():
        asked = block.attribute("iso_url") or block.attribute("iso_urls")
        checksum = block.attribute("iso_checksum")
        if checksum is None:
            if asked is not None:
                yield asked.line, "an ISO without iso_checksum"
            continue
        value = file.default(checksum)
        reference = checksum.tokens[0].kind == WORD and _REFERENCE.fullmatch(checksum.text)
        if not (reference and value is None) and not _DIGEST.fullmatch(value or ""):
            yield checksum.line, "iso_checksum must be sha256:<64 digits> or a variable"


def _open_winrm(file: HclFile) -> Found:
    for block in file.sources():
        attribute = block.attribute("communicator")
        if attribute is None or file.default(attribute) != "winrm":
            continue
        for name, why in (("use_ssl", "not encrypted"), ("use_ntlm", "basic authentication")):
            value = block.attribute(f"winrm_{name}")
            if value is None or value.text != "true":
                yield attribute.line, f"winrm without winrm_{name} = true: {why}"


def _unverified(file: HclFile) -> Found:
    for block in file.root.walk():
        for item in block.attributes:
            if item.name in _UNVERIFIED and item.text != "false":
                yield item.line, f"{item.name}: whoever answers would be trusted"


def _newer(file: HclFile) -> Found:
    if not file.core:
        return
    for block in file.root.walk():
        if block.type == "required_plugins":
            yield block.line, "packer 1.6.6 has no required_plugins: move it to an overlay"
        if block.type == "provisioner" and block.labels == ("windows-update",):
            yield block.line, "packer 1.6.6 has no windows-update: move it to an overlay"
        for name, line in (
            *((item.name, item.line) for item in block.attributes),
            *((inner.type, inner.line) for inner in block.blocks),
        ):
            if name in _NEWER:
                yield line, f"packer 1.6.6 has no {name}: move it to an overlay"


def _no_serial(file: HclFile) -> Found:
    for block in file.sources():
        arguments = block.attribute("qemuargs")
        said = {token.text for token in arguments.tokens} if arguments else set()
        if block.labels[:1] == ("qemu",) and SERIAL not in said:
            yield block.line, f'the guest is not heard: qemuargs needs ["-serial", "{SERIAL}"]'


RULES: Mapping[str, Callable[[HclFile], Found]] = {
    "PKR003": _literal_secret,
    "PKR004": _open_variable,
    "PKR005": _address,
    "PKR006": _unchecked_iso,
    "PKR007": _open_winrm,
    "PKR008": _unverified,
    "PKR009": _newer,
    "PKR010": _no_serial,
}


def check_hcl(texts: Mapping[str, str]) -> tuple[list[Finding], Mapping[str, Block]]:
    """Return what breaks a rule in files (path -> text), and the variables they declare.

    PKR002 is a file that is no HCL.
    """
    findings: list[Finding] = []
    files: list[HclFile] = []
    variables: dict[str, Block] = {}
    for path, text in sorted(texts.items()):
        try:
            root = parse(text)
        except HclError as error:
            message = str(error)
            findings.append(Finding(rule="PKR002", path=path, line=error.line, message=message))
            continue
        files.append(HclFile(path, root, tuple(tokens(text)), variables))
        variables |= {
            block.labels[0]: block
            for block in root.blocks
            if block.type == "variable" and block.labels
        }
    for file in files:
        for rule, judge in RULES.items():
            for line, message in judge(file):
                found = Finding(rule=rule, path=file.path, line=line, message=message)
                findings.append(found)
    return findings, variables

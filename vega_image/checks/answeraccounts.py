"""Names, passwords, keys and what weakens a machine in an answer file. Pure.

A password with PlainText=false is base64 of UTF-16LE of the password and the element's name
(decoded so from published answer files): an encoding, which protects nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from vega_image.checks.answerrules import Found, components_of
from vega_image.checks.answerxml import Element
from vega_image.checks.secretwords import written_in

_SHELL = "Microsoft-Windows-Shell-Setup"
_ILLEGAL = re.compile(r'["/\\\[\]:;|=,+*?<>@%]')
_RESERVED = frozenset(
    {"none", "system", "local service", "network service", "everyone", "administrator", "guest"}
    | {"defaultaccount", "wdagutilityaccount", "con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)
_LONGEST_USER, _LONGEST_COMPUTER = 20, 15
_BYPASS = re.compile(r"LabConfig|Bypass(TPM|SecureBoot|RAM|CPU|Storage|Disk)Check"
                     r"|AllowUpgradesWithUnsupportedTPMOrCPU", re.IGNORECASE)  # fmt: skip
_COMMANDS = frozenset({"Path", "CommandLine"})


def wrong_computer(root: Element) -> Found:
    """Yield computer names that Windows refuses or shortens; `*` asks for a random one."""
    for component in components_of(root, _SHELL):
        for item in component.all("ComputerName"):
            name = item.text
            plain = re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?", name)
            if name != "*" and (not plain or len(name) > _LONGEST_COMPUTER or name.isdigit()):
                said = "letters, digits and hyphens, at most 15, not digits alone"
                yield item.line, f"{name!r} is no computer name: {said}"


def wrong_user(root: Element) -> Found:
    """Yield accounts whose names Windows refuses, or that differ between code pages."""
    for element in root.walk():
        if element.name not in {"LocalAccount", "AutoLogon"}:
            continue
        for item in (*element.all("Name"), *element.all("Username")):
            fault = _user_fault(item.text, local=element.name == "LocalAccount")
            if fault:
                yield item.line, f"{item.text!r} is no account name: {fault}"


def _user_fault(name: str, *, local: bool) -> str:
    if not name or not name.strip(". ") or name.endswith("."):
        return "it is empty or ends with a dot"
    if len(name) > _LONGEST_USER:
        return f"more than {_LONGEST_USER} characters"
    if not name.isascii() or not name.isprintable():
        return "not ASCII"
    illegal = _ILLEGAL.search(name)
    if illegal is not None:
        return f"{illegal[0]} is not allowed"
    return "Windows keeps it for itself" if local and name.lower() in _RESERVED else ""


def _passwords(root: Element) -> Iterator[tuple[Element, Element]]:
    """Yield password elements with the element that holds the text."""
    for element in root.walk():
        if element.name.endswith("Password"):
            yield element, next(element.all("Value"), element)


def any_password(root: Element) -> Found:
    """Yield every password that is not empty."""
    for element, holder in _passwords(root):
        if holder.text:
            said = "encoded, which protects nothing" if _encoded(element) else "in clear text"
            yield holder.line, f"{element.name} holds a password, {said}"


def _encoded(element: Element) -> bool:
    return element.value("PlainText") == "false"


def undecodable(root: Element) -> Found:
    """Yield passwords said to be encoded that Windows could not decode."""
    for element, holder in _passwords(root):
        if holder.text and _encoded(element) and not _decodes(holder.text, element.name):
            said = f"base64 of UTF-16LE of the password and {element.name!r}"
            yield holder.line, f"PlainText is false, and this is not {said}"


def _decodes(text: str, suffix: str) -> bool:
    try:
        return base64.b64decode(text, validate=True).decode("utf-16-le").endswith(suffix)
    except (binascii.Error, ValueError):
        return False


def product_key(root: Element) -> Found:
    """Yield product keys: a key is given at build time, never written."""
    for element in root.walk():
        if element.name != "ProductKey":
            continue
        holder = next(element.all("Key"), element)
        if holder.text:
            yield holder.line, "a product key: our trees never carry one"


def auto_logon(root: Element) -> Found:
    """Yield automatic logons: Windows keeps the password for them."""
    for element in root.walk():
        if element.name == "AutoLogon" and element.value("Enabled") != "false":
            yield element.line, "AutoLogon: whoever is at the machine would be logged on"


def bypass(root: Element) -> Found:
    """Yield commands that turn off Setup's checks of the machine."""
    for element in root.walk():
        found = _BYPASS.search(element.text) if element.name in _COMMANDS else None
        if found is not None:
            yield element.line, f"{found[0]}: a real machine must meet what Windows demands"


def written_secret(root: Element) -> Found:
    """Yield secrets inside commands, descriptions and every other text."""
    for element in root.walk():
        parts = ("".join(element.texts), *element.attributes.values())
        for text in parts:
            for _, what in written_in(text):
                yield element.line, f"{what} in {element.name}"

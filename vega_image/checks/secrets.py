"""No secret in any text of a rendered tree: keys, tokens, passwords. Pure.

No file is exempt. What stands for a secret (a variable, a template) is known by its exact form,
see `secretwords.py`. The content that Windows answer files and scripts give a name of their
own is read again by their checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from vega_image.checks.finding import Finding
from vega_image.checks.secretwords import is_secret, stands_for, written_in

_WHAT: Mapping[str, str] = {
    "a product key": "SEC001",
    "a private key": "SEC002",
    "an access token": "SEC003",
    "a literal for a secret": "SEC004",
    "a password in an address": "SEC005",
    "a basic authorization header": "SEC006",
    "the password of an account": "SEC007",
}
RULES: Mapping[str, str] = {
    "SEC001": "a Windows product key is written into the tree",
    "SEC002": "a private key is written into the tree",
    "SEC003": "an access token of a known service is written into the tree",
    "SEC004": "a name that means a secret is given a literal value",
    "SEC005": "an address carries a password",
    "SEC006": "a basic authorization header is written out",
    "SEC007": "a command line carries the password of an account",
}
# Formats in which `name: value` needs no quotes.
_BARE = frozenset({".yaml", ".yml", ".ini", ".cfg", ".conf", ".toml", ".env", ".j2"})
_PAIR = re.compile(r"^[ \t]*(?:-[ \t]+)?([\w.-]+)[ \t]*[:=][ \t]+([^\s#].*?)\s*$", re.MULTILINE)
_OTHERWISE = ("'", '"', "{{", "|", ">", "&", "*", "!vault", "{%")


def check_secrets(files: Mapping[str, bytes]) -> list[Finding]:
    """Return the secrets in the text files of a tree (path -> bytes), by file and line.

    UTF-8 and UTF-16 are read; bytes with a zero in them are no text.
    """
    findings: set[Finding] = set()
    for path, data in files.items():
        text = _text(data)
        for line, what in _found(path, text) if text is not None else ():
            message = f"{what} is written here"
            findings.add(Finding(rule=_WHAT[what], path=path, line=line, message=message))
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _text(data: bytes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return None if b"\0" in data else data.decode("utf-8", "replace")


def _found(path: str, text: str) -> Iterator[tuple[int, str]]:
    yield from written_in(text)
    if PurePosixPath(path).suffix.lower() not in _BARE:
        return
    for pair in _PAIR.finditer(text):
        name, value = pair[1], pair[2]
        if is_secret(name) and not value.startswith(_OTHERWISE) and not stands_for(value):
            yield text.count("\n", 0, pair.start(2)) + 1, "a literal for a secret"

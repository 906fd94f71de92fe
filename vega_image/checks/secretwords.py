"""What a secret looks like in a text, whatever its format. Pure.

Key forms: Microsoft's product keys are five groups of five; PEM names its private keys; an
AWS access key id begins with AKIA or ASIA and has 20 characters; GitHub, GitLab and Slack
prefix their tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

NAME = re.compile(
    r"(?<!publickey)(password|passwd|passphrase|secret|token|(product|private|api|access)_?key)$",
    re.IGNORECASE,
)


class Form(NamedTuple):
    """One form: what it is, how it is written."""

    what: str
    pattern: re.Pattern[str]


PRODUCT_KEY = Form(
    "a product key",
    re.compile(r"(?<![A-Za-z0-9-])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}(?![A-Za-z0-9-])"),
)
PRIVATE_KEY = Form(
    "a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY|PuTTY-User-Key-File-\d:")
)
ACCESS_KEY = Form(
    "an access token",
    re.compile(
        r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{36}"
        r"|glpat-[\w-]{20}|xox[abprs]-[\w-]{10,})(?![A-Za-z0-9])"
    ),
)


def is_secret(name: str) -> bool:
    """Whether a variable, field or option of this name holds a secret.

    >>> is_secret("$AdminPassword"), is_secret("PasswordFile"), is_secret("publicKeyToken")
    (True, False, False)
    """
    return NAME.search(name) is not None


def keys_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each product key, private key or access token, and what it is."""
    for form in (PRODUCT_KEY, PRIVATE_KEY, ACCESS_KEY):
        for found in form.pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, form.what


# What stands for a secret without being one; exact forms, matched as a whole.
_STANDS_FOR = re.compile(
    r"""
    | \$[A-Za-z_][\w:.]*            # $NAME, $env:NAME, $object.field
    | \$\{[^{}]*\}                  # ${NAME}
    | \$\([^()]*\)                  # $(command)
    | %%?[A-Za-z_]\w*%?%            # %NAME%
    | \{\{[^{}]*\}\}                # {{ name }} of Ansible and Jinja
    | <[A-Za-z_ -]+>                # <password>
    | \{\d\}                        # {0} of a format
    | (?:var|local|data)\.[\w.]+    # var.name of HCL
    | null | true | false | ~ | \*+ | \.\.\.
    """,
    re.VERBOSE,
)
_WORD = r"(?:password|passwd|passphrase|secret|token|(?:product|private|api|access)_?key)"
_ASSIGNED = re.compile(
    rf"""(?<![\w.:-])[\w.:-]*(?<!publickey){_WORD}["']?\s*(?::=|[:=])\s*
    (?P<quote>["'])(?P<value>(?:(?!(?P=quote))[^\n])*)(?P=quote)""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(
    rf"""(?<![\w.$-])[\w.-]*(?<!publickey){_WORD}=
    (?P<value>\$\([^()\n]*\)|\{{\{{[^{{}}\n]*\}}\}}|<[^<>\n]*>|[^\s"'<>|&;,)]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_ADDRESS = re.compile(
    r"""(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^/\s:@"']+:(?P<value>[^/\s@"']+)@""", re.IGNORECASE
)
_BASIC = re.compile(
    r"""\bAuthorization["']?\s*[:=,]\s*["']?Basic\s+(?P<value>[A-Za-z0-9+/=]{4,})""",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"\bnet1?(?:\.exe)?[ \t]+user[ \t]+[^\s/]+[ \t]+(?P<value>[^\s/]\S*)", re.IGNORECASE
)
FORMS = (
    Form("a password in an address", _ADDRESS),
    Form("a basic authorization header", _BASIC),
    Form("the password of an account", _ACCOUNT),
    Form("a literal for a secret", _ASSIGNED),
    Form("a literal for a secret", _BARE),
)


def stands_for(value: str) -> bool:
    """Whether a value is a variable, a template or nothing: no secret.

    >>> stands_for("${var.password}"), stands_for("{{ vault_key }}"), stands_for("hunter2")
    (True, True, False)
    """
    return _STANDS_FOR.fullmatch(value.strip()) is not None


def written_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each secret that is written out in a text of any format, and what."""
    yield from keys_in(text)
    for form in FORMS:
        for found in form.pattern.finditer(text):
            if not stands_for(found["value"]):
                yield text.count("\n", 0, found.start()) + 1, form.what

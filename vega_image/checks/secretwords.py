"""What a secret looks like in a text, whatever its format. Pure.

Key forms: Microsoft's product keys are five groups of five; PEM names its private keys; an
AWS access key id begins with AKIA or ASIA and has 20 characters.
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
PRIVATE_KEY = Form("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY"))
ACCESS_KEY = Form(
    "an access key", re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
)


def is_secret(name: str) -> bool:
    """Whether a variable, field or option of this name holds a secret.

    >>> is_secret("$AdminPassword"), is_secret("PasswordFile"), is_secret("publicKeyToken")
    (True, False, False)
    """
    return NAME.search(name) is not None


def keys_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each product, private or access key, and what it is."""
    for form in (PRODUCT_KEY, PRIVATE_KEY, ACCESS_KEY):
        for found in form.pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, form.what

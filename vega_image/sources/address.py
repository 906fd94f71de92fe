"""Addresses with secrets in them: what may be written down, and what only a server may see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit, urlunsplit

_SECRET = re.compile(r"(?<=://)[^/\s'\"]*@")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password; never in a lock, a rendered file or a log."""

    login: str
    password: str


def split_credentials(url: str) -> tuple[str, Credentials | None]:
    """Take `user:password@` out of an address.

    >>> split_credentials("https://ann:s3cret@example.org/debian")[0]
    'https://example.org/debian'
    """
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    login, _, password = userinfo.partition(":")
    bare = urlunsplit(parts._replace(netloc=host))
    return bare, Credentials(unquote(login), unquote(password))


def redact(text: str) -> str:
    """Take the secrets out of every address in a text.

    >>> redact("E: https://ann:s3cret@example.org/debian failed")
    'E: https://example.org/debian failed'
    """
    return _SECRET.sub("", text)


def join(base: str, path: str) -> str:
    """Put a path as a Release or lock names it behind the base address of an archive.

    >>> join("https://example.org/debian/", "pool/main/g/gcc/libstdc++6_1%3a2_all.deb")
    'https://example.org/debian/pool/main/g/gcc/libstdc%2B%2B6_1%253a2_all.deb'
    """
    return f"{base.rstrip('/')}/{quote(path, safe='/~-._')}"

"""The chat page: one file, nothing from elsewhere, and a policy that forbids it the rest."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from importlib import resources

from vega_image.serving.access import GUARDS

_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page and its headers."""

    body: bytes
    headers: tuple[tuple[str, str], ...]


def chat_page() -> Page:
    """Read page.html from the package."""
    return page_of(resources.files(__package__).joinpath("page.html").read_bytes())


def page_of(body: bytes) -> Page:
    """Return a page whose own script and style, known by hash, are all it may run or load."""
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(body, b'script')}",
            f"style-src {_hashes(body, b'style')}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", policy),
        *GUARDS,
    )
    return Page(body=body, headers=headers)


def _hashes(body: bytes, tag: bytes) -> str:
    texts = [text for name, text in _INLINE.findall(body) if name == tag]
    sums = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{value}'" for value in sums) or "'none'"

"""Who may ask, and how much: decided from a request's head alone. Pure."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

MAX_HEAD = 16 * 1024
MAX_BODY = 32 * 1024 * 1024
METHODS = frozenset({b"GET", b"HEAD", b"POST"})
PAGE_TARGETS = frozenset({b"/", b"/index.html"})
STATUS_TARGET = b"/vega-image/status"
HEALTH_TARGET = b"/health"

Headers = Sequence[tuple[bytes, bytes]]

GUARDS: tuple[tuple[str, str], ...] = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_TO_SERVER = frozenset({b"accept", b"content-type"})
_TO_CLIENT = frozenset({b"content-length", b"content-type", b"retry-after"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The key every question must carry, and the port this bridge answers on."""

    key: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An HTTP status, a stable word for programs and a sentence for people."""

    status: int
    kind: str
    message: str

    def body(self) -> bytes:
        """Return the error in the shape OpenAI clients read."""
        error = {"code": self.status, "type": self.kind, "message": self.message}
        return json.dumps({"error": error}).encode() + b"\n"


def refusal(access: Access, method: bytes, target: bytes, headers: Headers) -> Refusal | None:
    """Return why a request is turned away, or None. The page itself needs no key.

    The Host check stops DNS rebinding, the Origin check other sites in the user's browser:
    a browser sends both by itself and a page cannot forge them.
    """
    page = target.split(b"?")[0] in PAGE_TARGETS
    if not _host_ok(access, headers):
        return _refuse(403, "foreign_host", "ask 127.0.0.1 or localhost, by that name")
    if not _origin_ok(access, headers, page=page):
        return _refuse(403, "foreign_origin", "another site may not ask this server")
    if method not in METHODS or (page and method == b"POST"):
        return _refuse(405, "method_not_allowed", "use GET or POST")
    if not target.startswith(b"/"):
        return _refuse(400, "bad_target", "the target must be a path")
    if not page and not _key_ok(access, headers):
        return _refuse(401, "no_key", "send the key: Authorization: Bearer KEY")
    if _length(headers) > MAX_BODY:
        return _refuse(413, "body_too_large", f"more than {MAX_BODY} bytes")
    return None


def to_server(headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the few headers the server needs; the key and the browser's own stay here."""
    kept = [(name, value) for name, value in headers if name in _TO_SERVER]
    length = [(b"content-length", b"%d" % len(body))] if body else []
    return [(b"host", b"localhost"), (b"connection", b"close"), *kept, *length]


def to_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the server's headers worth passing on, and our guards; never a CORS one."""
    kept = [(name, value) for name, value in headers if name in _TO_CLIENT]
    return [*kept, *((name.encode(), value.encode()) for name, value in GUARDS)]


def _refuse(status: int, kind: str, message: str) -> Refusal:
    return Refusal(status=status, kind=kind, message=message)


def _own_names(access: Access) -> set[bytes]:
    names = {f"{host}:{access.port}" for host in ("127.0.0.1", "localhost")}
    if access.port == 80:  # noqa: PLR2004 - browsers leave HTTP's own port out
        names |= {"127.0.0.1", "localhost"}
    return {name.encode() for name in names}


def _host_ok(access: Access, headers: Headers) -> bool:
    values = _values(headers, b"host")
    return len(values) == 1 and values[0].lower() in _own_names(access)


def _origin_ok(access: Access, headers: Headers, *, page: bool) -> bool:
    own = {b"http://" + name for name in _own_names(access)}
    if any(value.lower() not in own for value in _values(headers, b"origin")):
        return False
    sites = _values(headers, b"sec-fetch-site")
    return page or all(site in {b"same-origin", b"none"} for site in sites)


def _key_ok(access: Access, headers: Headers) -> bool:
    values = _values(headers, b"authorization")
    scheme, _, key = (values[0] if len(values) == 1 else b"").partition(b" ")
    same = hmac.compare_digest(key.strip(), access.key.encode())
    return same and scheme.lower() == b"bearer"


def _length(headers: Headers) -> int:
    values = _values(headers, b"content-length")
    return max((int(value) for value in values if value.isdigit()), default=0)


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]

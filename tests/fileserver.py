"""A web server on 127.0.0.1 that serves a folder and misbehaves per path when told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass(kw_only=True)
class Fault:
    """How one path misbehaves.

    `cut`: bytes of body per answer before the connection drops; `body`: other bytes;
    `status`: an error instead; `ranges`: whether Range is understood; `hold`: set when `cut`
    bytes went out, the rest waits for the server's end; `elsewhere`: redirect there.
    """

    cut: int | None = None
    body: bytes | None = None
    status: int | None = None
    ranges: bool = True
    hold: threading.Event | None = None
    elsewhere: str | None = None


@dataclass
class FileServer:
    """`url` is the base address; `requests` are (path, Range header, Authorization)."""

    root: Path
    url: str = ""
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    password: str = ""

    def asked(self, suffix: str) -> list[str]:
        """Return the Range headers of all requests for a path with this end."""
        return [wanted for path, wanted, _secret in self.requests if path.endswith(suffix)]


@contextmanager
def serving(root: Path) -> Iterator[FileServer]:
    """Serve a folder until the block ends."""
    shared = FileServer(root)

    class Handler(_Handler):
        site = shared

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    shared.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield shared
    finally:
        shared.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    site: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the test's output clean."""

    def do_GET(self) -> None:
        path = unquote(self.path)
        wanted = self.headers.get("Range", "")
        secret = self.headers.get("Authorization", "")
        self.site.requests.append((path, wanted, secret))
        fault = self.site.faults.get(path, Fault())
        file = self.site.root / path.lstrip("/")
        if self.site.password and secret != self.site.password:
            self._short(401)
        elif fault.elsewhere:
            self._short(302, location=fault.elsewhere)
        elif fault.status or (fault.body is None and not file.is_file()):
            self._short(fault.status or 404)
        else:
            self._body(file.read_bytes() if fault.body is None else fault.body, wanted, fault)

    def _short(self, status: int, *, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self, data: bytes, wanted: str, fault: Fault) -> None:
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and fault.ranges else 0
        if start >= len(data) > 0:
            self._short(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        rest = data[start:]
        self.wfile.write(rest if fault.cut is None else rest[: fault.cut])
        self.wfile.flush()
        if fault.hold is not None:
            fault.hold.set()
            self.site.closing.wait(30)
        if fault.cut is not None:
            self.close_connection = True

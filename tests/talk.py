"""A plain socket client and a fake llama-server on a unix socket, for tests of the bridge."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any


def exchange(port: int, request: bytes, *, seconds: float = 20.0) -> bytes:
    """Send raw bytes to 127.0.0.1 and read until the other end closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(65536), b""))


def request(
    method: str, target: str, *, port: int, key: str | None, body: bytes = b"", **extra: str
) -> bytes:
    """Write one request; `extra` adds or (with `Host`) replaces headers, `_` for `-`."""
    headers = {"Host": f"127.0.0.1:{port}", "Connection": "close"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    if body:
        headers |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
    headers |= {name.replace("_", "-"): value for name, value in extra.items()}
    lines = [f"{method} {target} HTTP/1.1", *(f"{a}: {b}" for a, b in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def status_of(answer: bytes) -> int:
    """Return the status of a raw answer; 0 when there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


def body_of(answer: bytes) -> Any:
    """Decode the JSON body of a raw answer with a Content-Length."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])


@dataclass
class FakeServer:
    """What the fake saw, and what its streaming answer waits for."""

    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    first_piece_read: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        return

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        self.answer(b"")

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def answer(self, body: bytes) -> None:
        self.server.fake.seen.append((self.command, self.path, dict(self.headers), body))
        if self.path == "/die":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
        elif self.path in {"/stream", "/endless"}:
            self.stream()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Set-Cookie", "a=b")
            self.send_header("Keep-Alive", "timeout=5")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.piece(b"data: one\n\n")
        if self.path == "/endless":
            self.until_hung_up()
            return
        self.server.fake.first_piece_read.wait(20)
        self.piece(b"data: two\n\n")
        self.piece(b"")

    def piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def until_hung_up(self) -> None:
        self.connection.settimeout(20)
        if self.connection.recv(1) == b"":
            self.server.fake.hung_up.set()
        self.close_connection = True


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, fake: FakeServer) -> None:
        self.fake = fake
        super().__init__(path, _Handler)

    def handle_error(self, *_arguments: object) -> None:
        return


@contextmanager
def fake_server(path: Path) -> Iterator[FakeServer]:
    """Answer on a unix socket: /stream (two pieces), /endless, /die; other paths echo."""
    with _Server(str(path), FakeServer()) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.fake
        server.shutdown()

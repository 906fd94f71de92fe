"""One HTTP/1.1 connection, either end: h11 parses, asyncio moves bytes, deadlines end it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import h11

from vega_image.serving.access import MAX_BODY, MAX_HEAD

CHUNK = 16 * 1024
"""A head that comes in one piece may be this much above MAX_HEAD."""
HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
WRITE_SECONDS = 60.0
FAREWELL_SECONDS = 1.0
FAREWELL_BYTES = 1 << 20


class BodyTooLargeError(Exception):
    """The other end sent more than MAX_BODY bytes."""


class Wire:
    """A stream pair that speaks HTTP; `role` is h11.CLIENT or h11.SERVER.

    `begun`: bytes of a next message have come; `head_only`: the request in hand is a HEAD.
    """

    def __init__(
        self,
        role: type[h11.CLIENT | h11.SERVER],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)
        self.begun = False
        self.head_only = False
        self._reader = reader
        self._writer = writer

    async def event(self) -> h11.Event:
        """Return the next event; raises h11.RemoteProtocolError for what is not HTTP."""
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type)
                if isinstance(event, h11.Request):
                    self.begun, self.head_only = False, event.method == b"HEAD"
                return event
            data = await self._reader.read(CHUNK)
            self.begun = self.begun or bool(data)
            self.http.receive_data(data)

    async def body(self) -> bytes:
        """Read a request's whole body; raises BodyTooLargeError, TimeoutError."""
        parts: list[bytes] = []
        size = 0
        if self.http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        async with asyncio.timeout(BODY_SECONDS):
            while isinstance(event := await self.event(), h11.Data):
                size += len(event.data)
                if size > MAX_BODY:
                    raise BodyTooLargeError
                parts.append(bytes(event.data))
        return b"".join(parts)

    async def send(self, *events: h11.Event) -> None:
        """Write events and wait until the other end keeps up; raises TimeoutError."""
        for event in events:
            data = self.http.send(event)
            if data:
                self._writer.write(data)
        async with asyncio.timeout(WRITE_SECONDS):
            await self._writer.drain()

    async def gone(self) -> None:
        """Return when the other end hung up; what it sends ahead (once) is kept."""
        data = await self._reader.read(CHUNK)
        if data:
            self.http.receive_data(data)
            await asyncio.get_running_loop().create_future()

    async def farewell(self) -> None:
        """Let a client read our refusal before the cut: sip what it still sends."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        left = FAREWELL_BYTES
        async with asyncio.timeout(FAREWELL_SECONDS):
            while left > 0 and (data := await self._reader.read(CHUNK)):
                left -= len(data)

    def close(self) -> None:
        """Cut the connection."""
        self._writer.close()


async def ask(
    wire: Wire, target: str, headers: Sequence[tuple[str, str]], *, body: bytes = b""
) -> tuple[int, bytes]:
    """GET one target, or POST `body` to it, on a fresh client connection: status and body."""
    method = "POST" if body else "GET"
    sized = [("Content-Length", str(len(body)))] if body else []
    request = h11.Request(method=method, target=target, headers=[*headers, *sized])
    data = [h11.Data(body)] if body else []
    await wire.send(request, *data, h11.EndOfMessage())
    status = 0
    parts: list[bytes] = []
    while True:
        event = await wire.event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return status, b"".join(parts)

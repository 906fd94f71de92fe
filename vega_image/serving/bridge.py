"""127.0.0.1:PORT to the server's unix socket, for whoever has the key. Keeps no log at all.

The container has no network, so this is the only way in; and the server itself would answer
any local user and any web page. Bodies go through whole (bounded), answers piece by piece.
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import h11

from vega_image.digest import Json
from vega_image.errors import UsageError
from vega_image.serving import access
from vega_image.serving.access import Access, Refusal
from vega_image.serving.page import Page
from vega_image.serving.wire import HEAD_SECONDS, BodyTooLargeError, Wire

ADDRESS = "127.0.0.1"
CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 64

_NOT_READY = Refusal(status=503, kind="loading", message="the model is still being loaded")
_NO_SERVER = Refusal(status=502, kind="no_server", message="the server does not answer")
_BUSY = Refusal(status=503, kind="busy", message="too many connections")
_SLOW = Refusal(status=408, kind="too_slow", message="the request did not arrive in time")
_TOO_LARGE = Refusal(
    status=413, kind="body_too_large", message=f"more than {access.MAX_BODY} bytes"
)


class Bridge:
    """A running bridge: `ready` opens it for more than /health, `status` is for the page."""

    def __init__(
        self, key: str, upstream: Path, *, page: Page, status: Callable[[], Json]
    ) -> None:
        self.ready = False
        self.port = 0
        self._key = key
        self._upstream = upstream
        self._page = page
        self._status = status
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one. Raises UsageError PORT_TAKEN."""
        try:
            self._server = await asyncio.start_server(self._accept, ADDRESS, port)
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES, errno.EPERM}:
                raise
            code = "PORT_TAKEN" if error.errno == errno.EADDRINUSE else "PORT_REFUSED"
            msg = f"cannot listen on {ADDRESS}:{port}: {error.strerror}"
            raise UsageError(code, msg, hint="--port 0 takes a free one") from error
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        wire = Wire(h11.SERVER, reader, writer)
        try:
            if len(self._open) > MAX_CONNECTIONS:
                await _refuse(wire, _BUSY)
            else:
                await self._converse(wire)
        except (h11.ProtocolError, OSError, TimeoutError, asyncio.CancelledError):
            pass  # hung up, stalled, or we are closing: nobody is left to be told
        finally:
            self._open.discard(task)
            wire.close()

    async def _converse(self, wire: Wire) -> None:
        while True:
            try:
                again = await self._exchange(wire)
            except h11.RemoteProtocolError as error:
                kind = "not_http"
                await _refuse(
                    wire,
                    Refusal(status=error.error_status_hint, kind=kind, message="not HTTP/1.1"),
                )
                return
            if not again or wire.http.our_state is not h11.DONE:
                return
            if wire.http.their_state is not h11.DONE:
                return
            wire.http.start_next_cycle()

    async def _exchange(self, wire: Wire) -> bool:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await wire.event()
        except TimeoutError:
            if wire.begun:
                await _refuse(wire, _SLOW)
            return False
        if not isinstance(head, h11.Request):
            return False
        headers = list(head.headers)
        refused = access.refusal(
            Access(key=self._key, port=self.port), head.method, head.target, headers
        )
        if refused is not None:
            await _refuse(wire, refused)
            return False
        try:
            body = await wire.body()
        except BodyTooLargeError:
            await _refuse(wire, _TOO_LARGE)
            return False
        await self._answer(wire, head, body)
        return True

    async def _answer(self, wire: Wire, head: h11.Request, body: bytes) -> None:
        target = head.target.split(b"?")[0]
        if target in access.PAGE_TARGETS:
            await _send(wire, 200, self._page.headers, self._page.body)
        elif target == access.STATUS_TARGET:
            await _send(wire, 200, _JSON, json.dumps(self._status()).encode())
        elif not self.ready and target != access.HEALTH_TARGET:
            await _send(wire, _NOT_READY.status, _JSON, _NOT_READY.body())
        else:
            await self._relay(wire, head, body)

    async def _relay(self, wire: Wire, head: h11.Request, body: bytes) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                streams = await asyncio.open_unix_connection(self._upstream)
        except (OSError, TimeoutError):
            await _send(wire, _NO_SERVER.status, _JSON, _NO_SERVER.body())
            return
        server = Wire(h11.CLIENT, *streams)
        try:
            await _unless_gone(wire, _pump(server, wire, head, body))
        finally:
            server.close()


_JSON = (("Content-Type", "application/json"), *access.GUARDS)


async def _unless_gone(wire: Wire, work: Coroutine[None, None, None]) -> None:
    """Do the work, but drop it when the client hangs up: the server then stops computing."""
    pump = asyncio.create_task(work)
    watch = asyncio.create_task(wire.gone())
    try:
        await asyncio.wait({pump, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not pump.done():
            raise ConnectionResetError
        await pump
    finally:
        pump.cancel()
        watch.cancel()
        await asyncio.gather(pump, watch, return_exceptions=True)


async def _pump(server: Wire, client: Wire, head: h11.Request, body: bytes) -> None:
    try:
        headers = access.to_server(list(head.headers), body)
        request = h11.Request(method=head.method, target=head.target, headers=headers)
        await server.send(request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())
        response = await server.event()
        while isinstance(response, h11.InformationalResponse):
            response = await server.event()
        if not isinstance(response, h11.Response):
            raise ConnectionResetError
    except (h11.ProtocolError, OSError):
        await _send(client, _NO_SERVER.status, _JSON, _NO_SERVER.body())
        return
    await client.send(
        h11.Response(
            status_code=response.status_code, headers=access.to_client(list(response.headers))
        )
    )
    while isinstance(event := await server.event(), h11.Data):
        await client.send(h11.Data(data=event.data))
    await client.send(h11.EndOfMessage())


async def _refuse(wire: Wire, why: Refusal) -> None:
    if wire.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    extra = (("Connection", "close"), ("WWW-Authenticate", "Bearer"))
    await _send(wire, why.status, (*_JSON, *extra[: 2 if why.status == 401 else 1]), why.body())  # noqa: PLR2004
    await wire.farewell()


async def _send(
    wire: Wire, status: int, headers: Sequence[tuple[str, str]], body: bytes
) -> None:
    length = ("Content-Length", str(len(body)))
    await wire.send(
        h11.Response(status_code=status, headers=[*headers, length]),
        *(() if wire.head_only else (h11.Data(data=body),)),
        h11.EndOfMessage(),
    )

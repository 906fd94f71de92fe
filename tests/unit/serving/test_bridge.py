from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.talk import FakeServer, body_of, exchange, fake_server, request, status_of
from vega_image.errors import UsageError
from vega_image.serving import access, wire
from vega_image.serving.bridge import Bridge
from vega_image.serving.page import chat_page

KEY = "a-key-of-more-than-16-characters"


@dataclass(frozen=True)
class Running:
    """A bridge in a thread of its own, before a fake server."""

    bridge: Bridge
    fake: FakeServer
    folder: Path

    @property
    def port(self) -> int:
        return self.bridge.port

    def ask(self, method: str, target: str, *, body: bytes = b"", **extra: str) -> bytes:
        return exchange(
            self.port, request(method, target, port=self.port, key=KEY, body=body, **extra)
        )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("s")
    upstream = folder / "llama.sock"
    bridge = Bridge(KEY, upstream, page=chat_page(), status=lambda: {"state": "ready"})
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(bridge.start(0), loop).result(10)
    bridge.ready = True
    with fake_server(upstream) as fake:
        yield Running(bridge, fake, folder)
    asyncio.run_coroutine_threadsafe(bridge.close(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def test_a_question_with_the_key_reaches_the_server_without_the_key(running: Running) -> None:
    answer = running.ask("POST", "/echo?x=1", body=b'{"prompt":"hi"}', Cookie="c=d")
    assert status_of(answer) == 200
    assert body_of(answer) == {"prompt": "hi"}
    method, path, headers, body = running.fake.seen[-1]
    assert (method, path, body) == ("POST", "/echo?x=1", b'{"prompt":"hi"}')
    assert {name.lower() for name in headers} == {
        "host", "connection", "content-type", "content-length",
    }  # fmt: skip


def test_no_header_of_the_server_opens_the_answer_to_other_sites(running: Running) -> None:
    head = running.ask("POST", "/echo", body=b"{}").partition(b"\r\n\r\n")[0].lower()
    for closed in (b"access-control", b"set-cookie", b"keep-alive", b"server:"):
        assert closed not in head
    assert b"cache-control: no-store" in head


@pytest.mark.parametrize(
    "header",
    [{}, {"Authorization": f"Bearer {KEY}x"}, {"Authorization": f"Basic {KEY}"},
     {"Authorization": KEY}, {"Authorization": "Bearer"}, {"Authorization": "Bearer \xe9"}],
)  # fmt: skip
def test_without_the_key_401_and_nothing_reaches_the_server(
    running: Running, header: dict[str, str]
) -> None:
    before = len(running.fake.seen)
    for target in ("/health", "/v1/chat/completions", "/vega-image/status", "/x"):
        raw = request("GET", target, port=running.port, key=None, body=b"", **header)
        answer = exchange(running.port, raw)
        assert status_of(answer) == 401
        assert b"WWW-Authenticate: Bearer" in answer
        assert body_of(answer)["error"]["type"] == "no_key"
    assert len(running.fake.seen) == before


def test_a_second_key_is_not_tried(running: Running) -> None:
    raw = request("GET", "/health", port=running.port, key=KEY)
    twice = raw.replace(b"Connection", b"Authorization: Bearer x\r\nConnection")
    assert status_of(exchange(running.port, twice)) == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", ""])
def test_a_rebound_name_is_refused_even_with_the_key(running: Running, host: str) -> None:
    answer = running.ask("GET", "/health", Host=host.format(port=running.port))
    assert status_of(answer) == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_another_site_is_refused_also_for_the_page_and_preflight(
    running: Running, origin: str
) -> None:
    for method, target in (("GET", "/health"), ("OPTIONS", "/health"), ("GET", "/")):
        answer = running.ask(method, target, Origin=origin)
        assert status_of(answer) == 403
        assert b"access-control" not in answer.lower()


def test_own_origin_and_localhost_are_welcome(running: Running) -> None:
    host = f"localhost:{running.port}"
    answer = running.ask("GET", "/health", Host=host, Origin=f"http://{host}")
    assert status_of(answer) == 200


def test_cross_site_fetch_metadata_is_refused_for_the_api_only(running: Running) -> None:
    assert status_of(running.ask("GET", "/health", Sec_Fetch_Site="cross-site")) == 403
    assert status_of(running.ask("GET", "/", Sec_Fetch_Site="cross-site")) == 200


def test_the_page_needs_no_key_and_holds_none(running: Running) -> None:
    answer = exchange(running.port, request("GET", "/", port=running.port, key=None))
    assert status_of(answer) == 200
    assert KEY.encode() not in answer
    assert b"default-src 'none'" in answer


def test_head_has_no_body(running: Running) -> None:
    for target, status in (("/", 200), ("/health", 200)):
        answer = running.ask("HEAD", target)
        assert status_of(answer) == status
        assert answer.endswith(b"\r\n\r\n")


def test_other_methods_are_refused(running: Running) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
        assert status_of(running.ask(method, "/health")) == 405
    assert status_of(running.ask("GET", "http://evil.example/")) == 400


def test_a_stream_arrives_piece_by_piece(running: Running) -> None:
    raw = request("POST", "/stream", port=running.port, key=KEY, body=b"{}")
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(raw)
        got = b""
        while b"data: one" not in got:
            got += client.recv(65536)
        assert b"data: two" not in got
        running.fake.first_piece_read.set()
        got += b"".join(iter(lambda: client.recv(65536), b""))
    assert b"data: two" in got
    assert got.endswith(b"0\r\n\r\n")


def test_hanging_up_stops_the_server_s_work(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(request("POST", "/endless", port=running.port, key=KEY, body=b"{}"))
        while b"data: one" not in client.recv(65536):
            pass
    assert running.fake.hung_up.wait(20)


def test_a_connection_serves_several_questions(running: Running) -> None:
    keep = request("GET", "/health", port=running.port, key=KEY, Connection="keep-alive")
    last = request("GET", "/health", port=running.port, key=KEY)
    assert exchange(running.port, keep + keep + last).count(b"HTTP/1.1 200") == 3


def test_an_answer_cut_short_is_not_made_whole(running: Running) -> None:
    answer = running.ask("GET", "/die")
    assert b"content-length: 100" in answer
    assert answer.endswith(b"half")


def test_chunked_bodies_are_sent_on_whole(running: Running) -> None:
    raw = request("POST", "/echo", port=running.port, key=KEY, Transfer_Encoding="chunked")
    answer = exchange(running.port, raw + b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n')
    assert body_of(answer) == {"a": 1}
    assert running.fake.seen[-1][2]["content-length"] == "7"


def test_a_client_that_waits_for_100_is_told_to_go_on(running: Running) -> None:
    raw = request(
        "POST", "/echo", port=running.port, key=KEY, body=b"{}", Expect="100-continue"
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(raw[:-2])
        assert status_of(client.recv(65536)) == 100
        client.sendall(b"{}")
        assert status_of(client.recv(65536)) == 200


def test_a_body_too_large_is_refused_before_it_is_sent(running: Running) -> None:
    length = str(access.MAX_BODY + 1)
    raw = request("POST", "/echo", port=running.port, key=KEY, Content_Length=length)
    assert status_of(exchange(running.port, raw)) == 413


def test_a_chunked_body_too_large_is_cut(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 10)
    raw = request("POST", "/echo", port=running.port, key=KEY, Transfer_Encoding="chunked")
    assert status_of(exchange(running.port, raw + b"b\r\n" + b"x" * 11 + b"\r\n")) == 413


def test_a_head_too_large_is_refused(running: Running) -> None:
    assert status_of(running.ask("GET", "/health", X="y" * 3 * access.MAX_HEAD)) == 431


def test_a_head_that_never_ends_is_cut(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vega_image.serving.bridge.HEAD_SECONDS", 0.05)
    assert status_of(exchange(running.port, b"GET / HTTP/1.1\r\nHost: ")) == 408
    assert exchange(running.port, b"") == b""


def test_two_lengths_are_refused(running: Running) -> None:
    raw = request("POST", "/echo", port=running.port, key=KEY, Content_Length="3")
    both = raw.replace(b"Connection", b"Content-Length: 4\r\nConnection")
    assert status_of(exchange(running.port, both)) == 400


def test_before_it_is_ready_only_health_and_status_pass(running: Running) -> None:
    running.bridge.ready = False
    try:
        assert status_of(running.ask("GET", "/health")) == 200
        assert status_of(running.ask("GET", "/vega-image/status")) == 200
        assert body_of(running.ask("POST", "/echo", body=b"{}"))["error"]["type"] == "loading"
    finally:
        running.bridge.ready = True


def test_no_server_is_said_so(running: Running) -> None:
    hidden = running.folder / "hidden"
    (running.folder / "llama.sock").rename(hidden)
    try:
        assert body_of(running.ask("GET", "/health"))["error"]["type"] == "no_server"
    finally:
        hidden.rename(running.folder / "llama.sock")


def test_a_taken_port_is_named(running: Running) -> None:
    other = Bridge(KEY, Path("/nowhere"), page=chat_page(), status=dict)
    with pytest.raises(UsageError) as caught:
        asyncio.run(other.start(running.port))
    assert caught.value.code == "PORT_TAKEN"


@given(st.binary(min_size=1, max_size=400))
@settings(max_examples=60, deadline=None)
def test_garbage_gets_an_error_or_silence_and_never_the_server(
    running: Running, raw: bytes
) -> None:
    before = len(running.fake.seen)
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(raw)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert status_of(answer) in {0, 400, 401, 403, 405, 408, 431}
    assert len(running.fake.seen) == before


_TOKEN = st.sampled_from(
    ["Host", "Origin", "Authorization", "Sec-Fetch-Site", "Content-Length"]
)
_VALUE = st.one_of(
    st.text(max_size=30), st.sampled_from(["127.0.0.1:80", f"Bearer {KEY}", "9" * 5000, "²"])
)


@given(
    st.binary(max_size=8),
    st.binary(max_size=20),
    st.lists(st.tuples(_TOKEN, _VALUE), max_size=8),
)
def test_the_decision_never_fails_and_never_opens_without_the_key(
    method: bytes, target: bytes, named: list[tuple[str, str]]
) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in named]
    refused = access.refusal(access.Access(key=KEY, port=80), method, target, headers)
    keys = [value for name, value in headers if name == b"authorization"]
    if refused is None and target.split(b"?")[0] not in access.PAGE_TARGETS:
        assert keys == [f"Bearer {KEY}".encode()]
    if refused is not None:
        assert json.loads(refused.body())["error"]["code"] == refused.status

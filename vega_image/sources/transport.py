"""A file at an address, from any byte on: http, https (proxies by environment), file, copy."""

from __future__ import annotations

import base64
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vega_image import __version__
from vega_image.sources.address import split_credentials

TIMEOUT_SECONDS = 30.0
_GONE = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
_REFUSED = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class Stream:
    """An open file: `read(n)` gives up to n bytes, empty at the end.

    `start` is the byte it begins at, which is 0 when the server cannot resume; `total` is the
    size of the whole file where the server says it.
    """

    read: Callable[[int], bytes]
    start: int
    total: int | None


@contextmanager
def open_at(url: str, offset: int) -> Iterator[Stream]:
    """Open a file from `offset` on.

    Raises FileNotFoundError when it is not there, PermissionError when the server wants other
    credentials, and another OSError for what may pass by itself, also while reading.
    """
    scheme = urlsplit(url).scheme
    opener = _open_http if scheme in {"http", "https"} else _open_local
    try:
        with opener(url, offset) as stream:
            yield stream
    except http.client.HTTPException as error:
        msg = f"the server broke off: {type(error).__name__}"
        raise ConnectionError(msg) from error
    except urllib.error.HTTPError as error:
        with error:
            raise _translated(error) from None


@contextmanager
def _open_http(url: str, offset: int) -> Iterator[Stream]:
    bare, secret = split_credentials(url)
    request = urllib.request.Request(bare)  # noqa: S310 - open_at has looked at the scheme
    request.add_header("User-Agent", f"vega-image/{__version__}")
    request.add_header("Accept-Encoding", "identity")
    if secret:
        token = base64.b64encode(f"{secret.login}:{secret.password}".encode()).decode()
        # Unredirected: another host must not be sent the password.
        request.add_unredirected_header("Authorization", f"Basic {token}")
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    try:
        response = urllib.request.build_opener().open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not offset:
            raise
        error.close()
        with _open_http(url, 0) as stream:
            yield stream
        return
    with response:
        start, total = _extent(response, offset)
        yield Stream(response.read1, start, total)


@contextmanager
def _open_local(url: str, offset: int) -> Iterator[Stream]:
    path = Path(unquote(urlsplit(url).path))
    with path.open("rb") as file:
        file.seek(offset)
        yield Stream(file.read, offset, path.stat().st_size)


def _extent(response: http.client.HTTPResponse, offset: int) -> tuple[int, int | None]:
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        text = response.headers.get("Content-Range", "")
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", text.strip())
        if match is None or int(match[1]) != offset:
            msg = f"the server answered a request for byte {offset} with {text!r}"
            raise ConnectionError(msg)
        return offset, None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _translated(error: urllib.error.HTTPError) -> OSError:
    words = f"the server says {error.code} {error.reason}"
    if error.code in _GONE:
        return FileNotFoundError(words)
    if error.code in _REFUSED:
        return PermissionError(words)
    return ConnectionError(words)

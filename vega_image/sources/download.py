"""One file from the network into a partial file that a later run goes on with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.digest import hex_of
from vega_image.errors import BytesError
from vega_image.sources.address import redact
from vega_image.sources.transport import Stream, open_at
from vega_image.store import digest_file, disk_errors

ATTEMPTS = 4
CHUNK = 1 << 16
RELOCK = "vega-image lock TARGET"


class StoppedError(Exception):
    """Somebody else failed or pressed Ctrl-C; the partial file stays for the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file with everything known of it before it is fetched.

    `name` is what a person calls it, `urls` are tried in order, `size` is in bytes.
    """

    name: str
    urls: tuple[str, ...] = field(repr=False)
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file on its way: `advance` takes bytes gained (or lost by starting again)."""

    wanted: Wanted
    partial: Path
    advance: Callable[[int], None]
    stop: threading.Event

    def run(self) -> None:
        """Make `partial` the whole, verified file, from the first address that can.

        Raises the first address's BytesError: FILE_GONE, FETCH_REFUSED, FETCH_FAILED,
        FETCH_TRUNCATED, FETCH_WRONG_DIGEST; EngineError DISK_FULL; StoppedError.
        """
        first: BytesError | None = None
        for url in self.wanted.urls:
            try:
                return self._from(url)
            except BytesError as error:
                first = first or error
        raise first or self._refusal("FILE_GONE", "no address is known for it")

    def _from(self, url: str) -> None:
        resumed = self._have() > 0
        self._fill(url)
        if self._verified():
            return
        if resumed:
            # What an earlier run left may be what a crash of the host left of it.
            self._fill(url)
            if self._verified():
                return
        words = f"{redact(url)} gave other bytes than the lock promises ({self.wanted.sha256})"
        raise self._refusal("FETCH_WRONG_DIGEST", words)

    def _fill(self, url: str) -> None:
        code, problem = "FETCH_TRUNCATED", "ended early"
        for _attempt in range(ATTEMPTS):
            if self._have() == self.wanted.size:
                return
            try:
                with open_at(url, self._have()) as stream:
                    self._copy(stream, url)
                code, problem = "FETCH_TRUNCATED", "ended early"
            except FileNotFoundError:
                raise self._refusal("FILE_GONE", f"not at {redact(url)} any more") from None
            except PermissionError as error:
                raise self._refusal("FETCH_REFUSED", f"{redact(url)}: {error}") from None
            except OSError as error:
                code, problem = "FETCH_FAILED", redact(str(error))
        if self._have() != self.wanted.size:
            here = f"{self._have()} of {self.wanted.size} bytes are here"
            words = f"{redact(url)}: {problem}; {here}"
            raise self._refusal(code, words, hint="try again: it goes on where it stopped")

    def _copy(self, stream: Stream, url: str) -> None:
        size = self.wanted.size
        if stream.total is not None and stream.total != size:
            code = "FETCH_TRUNCATED" if stream.total < size else "FETCH_WRONG_DIGEST"
            words = f"{redact(url)} has {stream.total} bytes, the lock says {size}"
            raise self._refusal(code, words)
        if stream.start < self._have():
            self._discard()
        left = size - stream.start
        with disk_errors(self.partial), self.partial.open("ab") as file:
            while left and (data := self._read(stream, min(CHUNK, left))):
                file.write(data)
                left -= len(data)
                self.advance(len(data))
            file.flush()
            os.fsync(file.fileno())

    def _read(self, stream: Stream, count: int) -> bytes:
        if self.stop.is_set():
            raise StoppedError
        return stream.read(count)

    def _verified(self) -> bool:
        if hex_of(digest_file(self.partial)) == self.wanted.sha256:
            return True
        self._discard()
        return False

    def _have(self) -> int:
        try:
            have = self.partial.stat().st_size
        except FileNotFoundError:
            return 0
        if have > self.wanted.size:
            self._discard()
            return 0
        return have

    def _discard(self) -> None:
        have = self.partial.stat().st_size
        self.partial.unlink()
        self.advance(-min(have, self.wanted.size))

    def _refusal(self, code: str, words: str, *, hint: str = RELOCK) -> BytesError:
        return BytesError(code, f"{self.wanted.name}: {words}", hint=hint, at=self.wanted.name)

"""The bytes of a tree's regular files."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

from vega_image.errors import BytesError
from vega_image.rootfs.tree import Content
from vega_image.store import CHUNK, Store


@dataclass(slots=True)
class Contents:
    """Files of a tree as memory, each store object mapped once and as long as this lives."""

    store: Store
    _maps: dict[str, memoryview] = field(default_factory=dict, init=False)

    def view(self, content: Content) -> memoryview:
        """Return a file's bytes without copying them.

        Raises BytesError OBJECT_GONE or, for an object that is too short, STORE_TAMPERED.
        """
        if not content.size:
            return memoryview(b"")
        if content.object not in self._maps:
            self._maps[content.object] = self._map(content.object)
        data = self._maps[content.object][content.offset : content.offset + content.size]
        if len(data) != content.size:
            msg = f"the stored bytes of {content.object} end too early"
            at = str(self.store.path(content.object))
            raise BytesError("STORE_TAMPERED", msg, at=at, hint="run the build again")
        return data

    def chunks(self, content: Content) -> Iterator[memoryview]:
        """Yield a file's bytes in pieces."""
        data = self.view(content)
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]

    def _map(self, name: str) -> memoryview:
        path = self.store.path(name)
        try:
            with path.open("rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (FileNotFoundError, ValueError) as error:
            msg = f"not in the store, or empty: {name}"
            hint = "run the build again"
            raise BytesError("OBJECT_GONE", msg, at=str(path), hint=hint) from error

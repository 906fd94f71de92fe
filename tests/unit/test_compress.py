"""Compressed bytes: readable by others, the same on one core and on many."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
import zstandard

from vega_image.oci.compress import compress, media_type, tool_versions
from vega_image.spec import Codec, Compression
from vega_image.store import Store

ZSTD = Compression(codec=Codec.ZSTD, level=3, window_log=20)
GZIP = Compression(codec=Codec.GZIP, level=6)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def data() -> bytes:
    """More than one zstd job of a one-megabyte window, half of it compressible."""
    noise = random.Random(906)
    words = [noise.randbytes(40) for _ in range(500)]
    return b"".join(noise.choice(words) + noise.randbytes(20) for _ in range(250_000))


def test_zstd_bytes_do_not_depend_on_the_number_of_workers(store: Store, data: bytes) -> None:
    layer = store.put(data)
    blobs = {compress(layer, ZSTD, store, workers=workers) for workers in (1, 2, 3, 7)}
    assert len(blobs) == 1
    blob = store.path(blobs.pop().digest).read_bytes()
    assert len(blob) < len(data)
    assert zstandard.ZstdDecompressor().decompress(blob) == data


def test_the_single_threaded_coder_would_have_shown(store: Store, data: bytes) -> None:
    """What the test above can catch: no workers at all gives other bytes."""
    blob = store.path(compress(store.put(data), ZSTD, store, workers=2).digest).read_bytes()
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, source_size=len(data), window_log=20, threads=0, write_checksum=True
    )
    assert zstandard.ZstdCompressor(compression_params=parameters).compress(data) != blob


def test_zstd_frames_say_size_window_and_checksum(store: Store, data: bytes) -> None:
    frame = store.path(compress(store.put(data), ZSTD, store).digest).read_bytes()
    said = zstandard.get_frame_parameters(frame)
    assert (said.content_size, said.has_checksum) == (len(data), True)
    assert said.window_size <= 1 << 20


def test_gzip_header_holds_no_time_name_or_system(store: Store, data: bytes) -> None:
    blob = compress(store.put(data), GZIP, store)
    packed = store.path(blob.digest).read_bytes()
    assert packed[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    assert gzip.decompress(packed) == data
    assert blob.size == len(packed)


@pytest.mark.parametrize("options", [ZSTD, GZIP])
def test_nothing_compresses_to_something_readable(store: Store, options: Compression) -> None:
    packed = store.path(compress(store.put(b""), options, store).digest).read_bytes()
    plain = (
        gzip.decompress(packed)
        if options is GZIP
        else zstandard.ZstdDecompressor().decompress(packed)
    )
    assert plain == b""


def test_progress_ends_at_the_whole(store: Store, data: bytes) -> None:
    heard: list[tuple[int, int]] = []
    compress(
        store.put(data), ZSTD, store, progress=lambda done, total: heard.append((done, total))
    )
    assert heard[-1] == (len(data), len(data))
    assert heard == sorted(heard)


def test_the_lock_learns_which_library_decides() -> None:
    assert tool_versions(Codec.GZIP) == {"zlib": zlib.ZLIB_RUNTIME_VERSION}
    assert tool_versions(Codec.ZSTD) == {
        "libzstd": ".".join(str(part) for part in zstandard.ZSTD_VERSION)
    }
    assert media_type(Codec.GZIP).endswith("tar+gzip")

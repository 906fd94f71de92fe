"""The chat page in a real browser: its policy lets it work, text stays text."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from vega_image.digest import Json
from vega_image.process import run
from vega_image.serving.bridge import Bridge
from vega_image.serving.page import chat_page

pytestmark = [pytest.mark.needs("chromium")]
KEY = "k" * 32


@contextmanager
def page(status: Mapping[str, Json]) -> Iterator[str]:
    bridge = Bridge(KEY, Path("/nowhere"), page=chat_page(), status=lambda: status)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(bridge.start(0), loop).result(10)
    try:
        yield f"http://127.0.0.1:{bridge.port}/"
    finally:
        asyncio.run_coroutine_threadsafe(bridge.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def seen(url: str, folder: Path) -> str:
    """Return the page as it stands after its scripts ran, with the browser's complaints."""
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    argv = ["chromium", "--headless=new", *as_root, "--disable-gpu", "--enable-logging=stderr"]
    profile = f"--user-data-dir={folder / 'profile'}"
    done = run([*argv, profile, "--virtual-time-budget=4000", "--dump-dom", url])
    assert "Content Security Policy" not in done.output
    return done.output


@pytest.mark.parametrize(
    ("gpu", "words", "kind"),
    [
        (True, "Answers are computed by the GPU: AMD Radeon VII.", "notice gpu"),
        (False, "CPU: slow, no GPU used.", "notice cpu"),
    ],
)
def test_it_says_which_device_answers(
    tmp_path: Path, words: str, kind: str, *, gpu: bool
) -> None:
    status: dict[str, Json] = {"state": "ready", "model": "<b>m</b>.gguf", "gpu": gpu}
    with page({**status, "device": "AMD Radeon VII"}) as url:
        text = seen(f"{url}#key={KEY}", tmp_path)
    assert words in text
    assert f'class="{kind}"' in text
    assert "&lt;b&gt;m&lt;/b&gt;.gguf</h1>" in text


def test_without_the_key_it_says_what_to_do(tmp_path: Path) -> None:
    with page({"state": "ready", "model": "m.gguf", "gpu": True, "device": "x"}) as url:
        text = seen(url, tmp_path)
    assert "The key is missing or wrong" in text
    assert "m.gguf</h1>" not in text

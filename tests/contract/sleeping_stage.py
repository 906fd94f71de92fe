"""A program: build a stage that sleeps, for the tests that kill it. ENGINE STORE SECONDS."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.hostroot import host_parent
from vega_image.engines.base import Work
from vega_image.engines.choose import Host, opened
from vega_image.plan import Step, StepKind
from vega_image.store import Store


def main() -> None:
    name, root, seconds = sys.argv[1:]
    store = Store(Path(root))
    scratch = Path(tempfile.mkdtemp(dir=store.tmp))
    work = Work(
        store=store,
        parent=host_parent(store, scratch),
        files={"Dockerfile": f"ARG BASE\nFROM ${{BASE}}\nRUN sleep {seconds}\n".encode()},
        scratch=scratch,
        epoch=0,
        log=lambda _line: None,
        progress=lambda _done, _total: None,
    )
    step = Step(
        id=f"sha256:{os.getpid():064x}", name="asleep", kind=StepKind.STAGE, parent=None
    )
    with opened(name, Host(environ=os.environ, store=store.root)) as engine:
        engine.build(step, work)


if __name__ == "__main__":
    main()

"""A run whose child hangs, for the tests that stop it."""

from __future__ import annotations

import time
from pathlib import Path

from tests import selftestfakes as fakes
from tests.contract.test_selftest_isolation import STARTS
from vega_image.selftest.errors import Interrupted
from vega_image.selftest.isolate import Isolation, Limits
from vega_image.selftest.main import stop_on_signals
from vega_image.selftest.runner import Part, Runner, Settings
from vega_image.selftest.spawn import Child
from vega_image.selftest.suite import Work


def main(folder: str, isolation: str) -> int:
    def start(work: Work) -> Child:
        child = STARTS[isolation](work)
        pids.append(child.pid)
        return child

    def alive(_: str) -> None:
        (Path(folder) / "new").write_text(str(pids[-1]))
        (Path(folder) / "new").rename(Path(folder) / "pid")

    pids: list[int] = []
    stop_on_signals()
    isolated = Isolation(start, Limits(60.0, 30.0, 30.0, 0.5), time.monotonic)
    settings = Settings(device=f"python:{fakes.NAME}:make")
    runner = Runner(isolated, settings, time.monotonic, lambda _: None, alive)
    try:
        runner.run([Part(fakes.NAME, (fakes.item("deaf"),))])
    except (KeyboardInterrupt, Interrupted):
        return 130
    return 0

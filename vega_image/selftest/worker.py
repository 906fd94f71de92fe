"""The inside of a child process: takes trials, says before and after each what happens."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from vega_image.selftest.case import Trial
from vega_image.selftest.devices.readingback import ReadingBack
from vega_image.selftest.devices.replay import Recorder
from vega_image.selftest.examine import Examiner
from vega_image.selftest.record import Frame, encode_frame
from vega_image.selftest.seam import Device
from vega_image.selftest.spawn import claim_stdout
from vega_image.selftest.suite import Suite, Work, load_suite
from vega_image.selftest.verdict import Verdict

BEAT_SECONDS = 1.0
DEVICE_LOST = frozenset({Verdict.CRASHED, Verdict.TIMED_OUT})


@dataclass(frozen=True)
class Mouth:
    """Says frames to the parent, one whole line at a time; dies when nobody listens."""

    pipe: int
    lock: threading.Lock

    def say(self, frame: Frame) -> None:
        """Write one line."""
        data = memoryview(encode_frame(frame))
        with self.lock:
            try:
                while data:
                    data = data[os.write(self.pipe, data) :]
            except OSError:
                # The parent is gone: whatever this process does now is for nobody.
                os._exit(1)


def serve(work: Work, suite: Suite, device: Device, say: Callable[[Frame], None]) -> None:
    """Run the trials in order. Stops early when the device is lost or the budget is spent.

    A failed launch may poison what comes after it, so a crash ends this process's work; the
    parent goes on with a fresh one.
    """
    until = time.monotonic() + work.seconds if work.seconds else None
    examiner = Examiner(
        suite,
        device,
        runs=work.runs,
        repeat_seconds=work.repeat_seconds,
        known=work.known,
        plant=work.plant,
    )
    trusted: dict[str, bool] = {}
    for trial, group in zip(work.trials, work.groups):  # noqa: B905 - Python 3.10 runs this
        if until is not None and time.monotonic() >= until:
            break
        if not work.known and group not in trusted:
            trusted[group] = _check(suite, group, say)
        if not trusted.get(group, True):
            continue
        say(Frame("started", trial.key))
        record = examiner.examine(trial)
        say(Frame("done", trial.key, record=record))
        if record.verdict in DEVICE_LOST:
            return
    say(Frame("end"))


def _check(suite: Suite, group: str, say: Callable[[Frame], None]) -> bool:
    say(Frame("check", group))
    try:
        ok = bool(suite.self_check(group))
    except Exception as error:  # noqa: BLE001 - a checker that fails is a checker not to trust
        os.write(2, f"self-check of {group}: {type(error).__name__}: {error}\n".encode())
        ok = False
    say(Frame("check", group, ok=ok))
    return ok


def work_forked(work: Work, device: Callable[[], Device], pipe: int) -> None:
    """Do the work of a forked child, which is the first to touch the device."""
    mouth = Mouth(pipe, threading.Lock())
    _begin(mouth, work.memory)
    serve(work, load_suite(work.suite), _recording(work, device()), mouth.say)


def work_spawned(open_device: Callable[[str], Device]) -> int:
    """Do the work of a spawned child: the job is our standard input. Returns the exit code."""
    mouth = Mouth(claim_stdout(), threading.Lock())
    work = decode_work(sys.stdin.buffer.read())
    _begin(mouth, work.memory)
    device = _recording(work, open_device(work.device))
    serve(work, load_suite(work.suite), device, mouth.say)
    return 0


def _recording(work: Work, device: Device) -> Device:
    if work.user_db:
        device = ReadingBack(device, Path(work.user_db))
    # A second process repeats: only first answers are recorded.
    return Recorder(device, Path(work.record)) if work.record and not work.known else device


def encode_work(work: Work) -> bytes:
    """Write a job for a spawned child."""
    return json.dumps(asdict(work)).encode()


def decode_work(data: bytes) -> Work:
    """Read a job that `encode_work` wrote."""
    value = json.loads(data)
    trials = tuple(Trial(**trial) for trial in value.pop("trials"))
    groups = tuple(value.pop("groups"))
    return Work(trials=trials, groups=groups, **value)


def _begin(mouth: Mouth, memory: int) -> None:
    _limit(memory)
    mouth.say(Frame("hello"))
    threading.Thread(target=_beat, args=(mouth,), daemon=True).start()


def _beat(mouth: Mouth) -> None:
    never = threading.Event()
    while not never.wait(BEAT_SECONDS):
        mouth.say(Frame("beat"))


def _limit(memory: int) -> None:
    if os.name == "nt":
        return
    import resource  # noqa: PLC0415 - POSIX only

    # A crash is an expected answer here; nobody wants its memory image on disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

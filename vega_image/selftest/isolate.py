"""Drive children that may crash, hang or lie, and say of every trial what became of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Union

from vega_image.selftest.record import Frame, Lines, NotAFrame, TrialRecord, decode_frame
from vega_image.selftest.spawn import Child
from vega_image.selftest.suite import Work
from vega_image.selftest.verdict import Verdict

LINE_LIMIT = 1 << 20
TICK_SECONDS = 0.5
BARREN_STARTS = 2


@dataclass(frozen=True)
class Limits:
    """Seconds for one trial, of silence (no heartbeat), to start, and from TERM to KILL."""

    trial: float = 120.0
    silence: float = 30.0
    start: float = 120.0
    grace: float = 1.0


@dataclass(frozen=True)
class Checked:
    """A group's self-check is over."""

    group: str
    ok: bool


@dataclass(frozen=True)
class Alive:
    """The child says that it lives, while it works on `key`."""

    key: str


@dataclass(frozen=True)
class Died(TrialRecord):
    """A trial's record that its process did not write: what its end says."""


@dataclass(frozen=True)
class Left:
    """A child that did not end well is gone; `held`: the driver still lists it."""

    pid: int
    held: bool


Event = Union[TrialRecord, Checked, Alive, Left]  # noqa: UP007 - evaluated when imported
Launch = Callable[[Work], Child]


@dataclass
class _Watch:
    """What one child is at; `since` is when it began that, `heard` when it last spoke."""

    since: float
    heard: float
    trial: str = ""
    group: str = ""
    greeted: bool = False
    ended: bool = False
    done: int = 0
    doomed: str = ""
    timed_out: bool = False

    @property
    def idle(self) -> bool:
        return not (self.trial or self.group)

    def take(self, frame: Frame, now: float) -> Event:
        """Follow one frame. Raises NotAFrame if it makes no sense here."""
        self.heard = now
        self.greeted = True
        event: Event = Alive(self.trial or self.group)
        if frame.kind == "started":
            self.trial, self.since = frame.key, now
            event = Alive(self.trial)
        elif frame.kind == "done":
            if frame.record is None or frame.key != self.trial or frame.record.key != frame.key:
                raise NotAFrame(frame.key)
            self.trial, self.since = "", now
            event = frame.record
        elif frame.kind == "check":
            event = self._checked(frame, now)
        elif frame.kind == "end":
            self.ended = True
        return event

    def _checked(self, frame: Frame, now: float) -> Event:
        self.since = now
        if self.group == frame.key:
            self.group = ""
            return Checked(frame.key, frame.ok)
        self.group = frame.key
        return Alive(frame.key)

    def overdue(self, limits: Limits, now: float) -> str:
        """Say what took too long, if anything did."""
        if not self.greeted:
            late = now - self.since > limits.start
            return f"did not start within {limits.start:g} s" if late else ""
        if now - self.since > limits.trial and not self.idle:
            return f"no result after {limits.trial:g} s"
        if now - self.heard > limits.silence:
            return f"no heartbeat for {limits.silence:g} s"
        return ""


@dataclass(frozen=True)
class Isolation:
    """Starts children for work and classifies how they end. Times come from `clock`.

    `released` waits until the driver has let a dead child go, and says whether it did.
    """

    launch: Launch
    limits: Limits
    clock: Callable[[], float]
    released: Callable[[int], bool] = lambda _: True

    def run(self, work: Work) -> Generator[Event, None, None]:
        """Yield an event for everything that happens; goes on after the last marker.

        Trials that the child never began (budget spent, group not trusted) get no record.
        """
        left, barren = work, 0
        until = self.clock() + work.seconds if work.seconds else None
        while left.trials and barren < BARREN_STARTS:
            seen: set[str] = set()
            watch = _Watch(self.clock(), self.clock())
            with closing(self._one_child(left, watch)) as events:
                for event in events:
                    seen |= _settled(left, event)
                    yield event
            if watch.ended:
                return
            barren = 0 if seen else barren + 1
            left = _without(left, seen)
            if until is not None:
                if self.clock() >= until:
                    return
                left = replace(left, seconds=until - self.clock())
        for trial in left.trials:
            yield Died(trial.key, Verdict.UNPROVEN, "its process could not be started")

    def _one_child(self, work: Work, watch: _Watch) -> Generator[Event, None, None]:
        child = self.launch(work)
        try:
            yield from self._listen(child, watch)
        finally:
            child.stop(self.limits.grace)
        if watch.ended:
            return
        # Idle: it ended itself after a crash it reported, or before it did anything.
        if not watch.idle:
            verdict, why = _classify(child, watch)
            if watch.trial:
                yield Died(watch.trial, verdict, why)
            else:
                yield Checked(watch.group, ok=False)
        yield Left(child.pid, held=not self.released(child.pid))

    def _listen(self, child: Child, watch: _Watch) -> Iterator[Event]:
        lines = Lines()
        while not watch.ended:
            chunk = child.read(TICK_SECONDS)
            if chunk == b"" or (chunk is None and child.finished() is not None):
                break
            try:
                for line in lines.feed(chunk or b""):
                    yield watch.take(decode_frame(line), self.clock())
            except NotAFrame as error:
                watch.doomed = f"wrote what is no report line: {str(error)[:40]!r}"
                return
            if len(lines.rest) > LINE_LIMIT:
                watch.doomed = "wrote a report line without an end"
                return
            if late := watch.overdue(self.limits, self.clock()):
                watch.doomed, watch.timed_out = late, True
                return
        if lines.rest and not watch.ended:
            watch.doomed = "its report was cut short in the middle of a line"


def _classify(child: Child, watch: _Watch) -> tuple[Verdict, str]:
    if watch.timed_out:
        return Verdict.TIMED_OUT, f"{watch.doomed}; the process was ended"
    code = child.finished()
    last = child.noise().splitlines()[-1:]
    said = f": {last[0][:200]}" if last else ""
    if watch.doomed:
        return Verdict.CRASHED, watch.doomed + said
    if code is None or code == 0:
        return Verdict.CRASHED, f"the process ended without finishing its report{said}"
    if code < 0:
        return Verdict.CRASHED, f"killed by {_signal_name(-code)}{said}"
    if any("MemoryError" in line for line in last):
        return Verdict.CRASHED, f"memory limit reached{said}"
    return Verdict.CRASHED, f"the process ended with exit code {code}{said}"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    # Nobody but the kernel's out-of-memory killer sends this to our children.
    return f"{name} (out of memory?)" if name == "SIGKILL" else name


def _settled(work: Work, event: Event) -> set[str]:
    """Name the trials that need no further try after an event."""
    if isinstance(event, TrialRecord):
        return {event.key}
    if isinstance(event, (Alive, Left)) or event.ok:
        return set()
    group = event.group
    pairs = zip(work.trials, work.groups)  # noqa: B905 - Python 3.10 runs this
    return {trial.key for trial, name in pairs if name == group}


def _without(work: Work, seen: set[str]) -> Work:
    pairs = zip(work.trials, work.groups)  # noqa: B905 - Python 3.10 runs this
    kept = [(trial, group) for trial, group in pairs if trial.key not in seen]
    trials, groups = tuple(pair[0] for pair in kept), tuple(pair[1] for pair in kept)
    return replace(work, trials=trials, groups=groups)

"""Read what our Ansible callback writes: typed results, one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import ValidationError

from vega_image.model import Model


class TaskState(StrEnum):
    """How a task ended on a host; `retry` is no end but a look at something unfinished."""

    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    IGNORED = "ignored"
    RETRY = "retry"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


class TaskResult(Model):
    """One task on one host; `at` is file:line of the task, `role` may be empty."""

    event: Literal["task"] = "task"
    host: str
    task: str
    role: str = ""
    at: str = ""
    state: TaskState
    message: str = ""

    def text(self) -> str:
        """Write it as one line of progress."""
        name = f"{self.role}: {self.task}" if self.role else self.task
        first = self.message.splitlines()[0] if self.message else ""
        return f"{self.host}: {self.state}: {name}" + (f": {first}" if first else "")


class HostCounts(Model):
    """How many tasks ended how on a host."""

    ok: int = 0
    changed: int = 0
    failures: int = 0
    unreachable: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0


class Stats(Model):
    """The last event of a run: counts by host."""

    event: Literal["stats"] = "stats"
    hosts: Mapping[str, HostCounts]


Event: TypeAlias = TaskResult | Stats
_SHAPES: Mapping[object, type[TaskResult | Stats]] = {"task": TaskResult, "stats": Stats}


def parse_line(line: str, *, token: str) -> Event | None:
    """Return the event of a line; None for other text, or an event that is not of this run.

    >>> parse_line('{"vega": "t", "event": "stats", "hosts": {}}', token="t")
    Stats(event='stats', hosts={})
    >>> parse_line("[WARNING]: no inventory", token="t") is None
    True
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.pop("vega", None) != token:
        return None
    event = value.get("event")
    shape = _SHAPES.get(event) if isinstance(event, str) else None
    if shape is None:
        return None
    try:
        return shape.model_validate_json(json.dumps(value))
    except (ValidationError, RecursionError):
        return None

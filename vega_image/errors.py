"""Everything that can stop vega-image, each with the exit code a script can rely on.

Only cli.py turns one of these into an exit. The codes are those of docs/architecture.md.
"""

from __future__ import annotations

from typing import ClassVar


class VegaError(Exception):
    """A failure the user can act on: what and where, a stable code, and the next command.

    `code` is UPPER_SNAKE and never changes its meaning; `hint` is a command or a setting;
    `at` names the file, line, key or package the message is about.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, code: str, message: str, *, hint: str | None = None, at: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.at = at


class UsageError(VegaError):
    """The command line, a spec, a template, or what `check` found (exit 2)."""

    exit_code = 2


class LockError(VegaError):
    """The lock is missing, stale, edited by hand, or has unresolved entries (exit 3)."""

    exit_code = 3


class BytesError(VegaError):
    """Bytes are not the ones that were promised, or could not be fetched (exit 4)."""

    exit_code = 4


class EngineError(VegaError):
    """An engine or tool is absent, too old or refuses; the disk is full (exit 5)."""

    exit_code = 5


class StageError(VegaError):
    """A stage ran and failed, or a gate refused what it made (exit 6)."""

    exit_code = 6


class HostError(VegaError):
    """The card or the host cannot do what was asked (exit 7)."""

    exit_code = 7


class NumbersError(VegaError):
    """A device computed something its oracle rejects (exit 8)."""

    exit_code = 8


class UnprovenError(VegaError):
    """Something required was not compared with a reference (exit 9)."""

    exit_code = 9


class PolicyError(VegaError):
    """A policy says no (exit 10)."""

    exit_code = 10


class InterruptedRunError(VegaError):
    """Somebody pressed Ctrl-C or sent a signal (exit 130)."""

    exit_code = 130

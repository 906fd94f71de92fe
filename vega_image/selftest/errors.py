"""What stops a selftest before it has a verdict, with the exit code a script can rely on."""

from __future__ import annotations


class SelftestError(Exception):
    """`code` is UPPER_SNAKE and stable; `hint` is the next thing to type; `at` says where.

    `exit_code` is one of docs/architecture.md: 2 usage, 4 wrong bytes, 7 card or host.
    """

    def __init__(
        self, code: str, message: str, *, exit_code: int = 2, hint: str = "", at: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.exit_code = exit_code
        self.hint = hint
        self.at = at


class Interrupted(BaseException):
    """Somebody asked us to stop (SIGTERM); handled like Ctrl-C."""

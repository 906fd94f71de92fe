"""An Ansible stdout callback: one JSON object a line for each result; ansiblelines.py reads it.

Every line carries the word of VEGA_LINES_TOKEN, so that text which a workstation sends back
cannot be taken for a result. Only what a person needs is written: no facts, no arguments.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase  # type: ignore[import-untyped] # ansible has no types

DOCUMENTATION = """
name: vega_lines
type: stdout
short_description: one JSON object a line
description:
  - Writes every task result and the final counts as one JSON object a line.
"""
LONGEST = 4000


class CallbackModule(CallbackBase):  # type: ignore[misc] # the same
    """Write events as lines."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "vega_lines"

    def v2_runner_on_ok(self, result: Any) -> None:
        """Write a task that went well."""
        self._task(result, "changed" if result.is_changed() else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:  # noqa: FBT001, FBT002 - their signature
        """Write a task that failed, and whether the play goes on all the same."""
        self._task(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Write a task whose condition was false."""
        self._task(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Write a host that did not answer, or not as the one it should be."""
        ignored = bool(result.task.ignore_unreachable)
        self._task(result, "ignored" if ignored else "unreachable")

    def v2_runner_retry(self, result: Any) -> None:
        """Write that a task which waits for something looked again."""
        self._task(result, "retry")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the counts of each host, the last line of every run."""
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed)}
        self._write({"event": "stats", "hosts": hosts})

    def _task(self, result: Any, state: str) -> None:
        role = result.task._role  # noqa: SLF001 - there is no public way to ask
        self._write(
            {
                "event": "task",
                "host": result.host.get_name(),
                "task": result.task_name,
                "role": role.get_name() if role else "",
                "at": result.task.get_path() or "",
                "state": state,
                "message": _message(result.result, failed=state in {"failed", "ignored"}),
            }
        )

    def _write(self, event: dict[str, Any]) -> None:
        token = os.environ.get("VEGA_LINES_TOKEN", "")
        self._display.display(json.dumps({"vega": token, **event}, default=str))


def _message(result: Any, *, failed: bool) -> str:
    items = [item for item in result.get("results") or () if isinstance(item, dict)]
    bad = [item for item in items if item.get("failed") or item.get("unreachable")]
    said = [_said(result, failed=failed), *(_said(item, failed=True) for item in bad)]
    text = "\n".join(said).strip()
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _said(result: Any, *, failed: bool) -> str:
    # Of a task with changed_when, ansible-core 2.19 hands over no `failed`.
    message = result.get("msg") or ""
    text = message if isinstance(message, str) else json.dumps(message, default=str)
    if failed or result.get("failed"):
        text = "\n".join([text, *(str(result.get(key) or "") for key in ("stderr", "stdout"))])
    return text.strip()

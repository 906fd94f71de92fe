"""Run a playbook on workstations and give its results as values."""

from __future__ import annotations

import json
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vega_image.ansiblelines import HostCounts, Stats, TaskResult, TaskState, parse_line
from vega_image.ansibletool import environment, program
from vega_image.digest import Json
from vega_image.errors import (
    EngineError,
    HostError,
    PolicyError,
    StageError,
    UsageError,
    VegaError,
)
from vega_image.process import Completed, run

CALLBACK = Path(__file__).parent / "ansible_callback"
TAIL_LINES = 30
# What ssh and the TLS library say when the other side is not who it should be.
STRANGERS = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "HOST_KEY_WRONG",
    "host key is known": "HOST_KEY_UNKNOWN",
    "Host key verification failed": "HOST_KEY_WRONG",
    "CERTIFICATE_VERIFY_FAILED": "CERTIFICATE_WRONG",
}
# At the machine itself, for what comes over the network may be the stranger's.
_OWN_KEY = (
    "at the machine itself: ssh-keygen -lf C:\\ProgramData\\ssh\\ssh_host_ed25519_key.pub "
    "(Linux: /etc/ssh/ssh_host_ed25519_key.pub)"
)
_NEXT: Mapping[str, str] = {
    "HOST_KEY_WRONG": f"{_OWN_KEY}; if it was installed anew, put its key in the place of the "
    "old one in the inventory's known_hosts",
    "HOST_KEY_UNKNOWN": f"{_OWN_KEY}; compare, then add a line `ADDRESS KEY` to the "
    "inventory's known_hosts",
    "CERTIFICATE_WRONG": "openssl s_client -connect {host}:5986 -CAfile office-ca.pem, with "
    "the CA that ansible_psrp_ca_cert names, says what is wrong with the certificate",
}
_CLASSES: Sequence[type[VegaError]] = (PolicyError, StageError, HostError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What to run where: `folder` holds ansible.cfg, roles/ and the playbook.

    `hosts` limits the run as --limit does, `tags` (names of roles) as --tags does; `values` are
    variables that win over all others; `check` looks without changing anything.
    """

    folder: Path
    playbook: str
    inventory: Path
    hosts: str | None = None
    tags: Sequence[str] = ()
    values: Mapping[str, Json] = field(default_factory=dict)
    check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The results in their order, and the counts of each host."""

    results: tuple[TaskResult, ...]
    hosts: Mapping[str, HostCounts]

    @property
    def changed(self) -> int:
        """How many tasks changed something, on all hosts."""
        return sum(counts.changed for counts in self.hosts.values())


@dataclass(slots=True)
class _Heard:
    token: str
    on_result: Callable[[TaskResult], None]
    on_text: Callable[[str], None]
    results: list[TaskResult] = field(default_factory=list)
    hosts: Mapping[str, HostCounts] | None = None

    def line(self, text: str) -> None:
        event = parse_line(text, token=self.token)
        if isinstance(event, Stats):
            self.hosts = event.hosts
        elif event is not None:
            self.results.append(event)
            self.on_result(event)
        elif text:
            self.on_text(text)

    def final(self) -> Iterator[TaskResult]:
        """Yield the results that ended a host: a failure that was rescued is none of them."""
        for host, counts in (self.hosts or {}).items():
            bad = [result for result in self.results if result.host == host and _bad(result)]
            if counts.failures or counts.unreachable:
                yield from bad[-1:]
        if self.hosts is None:
            yield from filter(_bad, self.results)


def _bad(result: TaskResult) -> bool:
    return result.state in {TaskState.FAILED, TaskState.UNREACHABLE}


def run_playbook(
    play: Play,
    *,
    scratch: Path,
    on_result: Callable[[TaskResult], None] = lambda _result: None,
    on_text: Callable[[str], None] = lambda _text: None,
) -> Played:
    """Run a playbook to its end; results reach `on_result` as they come, other text `on_text`.

    Raises PolicyError when a host's key or certificate is not the pinned one (HOST_KEY_WRONG,
    HOST_KEY_UNKNOWN, CERTIFICATE_WRONG), StageError TASK_FAILED, HostError UNREACHABLE,
    UsageError PLAYBOOK_INVALID or NO_HOSTS, EngineError TOOL_ABSENT or ANSIBLE_DIED.
    """
    folder, inventory = play.folder, play.inventory
    listed = f"ls {shlex.quote(str(folder))}; a rendered tree holds it in playbooks/"
    _exists(folder / play.playbook, "PLAYBOOK_ABSENT", hint=listed)
    example = shlex.join(["cp", "-r", str(folder.parent / "inventory"), str(inventory.parent)])
    _exists(inventory, "INVENTORY_ABSENT", hint=f"{example}, then write your machines into it")
    heard = _Heard(secrets.token_hex(8), on_result, on_text)
    # A socket's name has 108 bytes at most, which a scratch folder may have used up.
    with tempfile.TemporaryDirectory(prefix="vega-ssh-") as sockets:
        env = {
            **environment(scratch, config=play.folder / "ansible.cfg"),
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACK),
            "ANSIBLE_STDOUT_CALLBACK": "vega_lines",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
            "VEGA_LINES_TOKEN": heard.token,
        }
        done = run(_argv(play, scratch), env=env, cwd=play.folder, on_line=heard.line)
    if done.returncode != 0 and (error := _error(heard.final(), play)):
        raise error
    if done.returncode != 0 or heard.hosts is None:
        raise _refused(done, play)
    if not heard.hosts:
        msg = f"{play.playbook}: no host of {play.inventory} was asked for"
        if play.hosts:
            msg += f" by {play.hosts!r}"
        hint = shlex.join(["ansible-inventory", "--inventory", str(play.inventory), "--graph"])
        raise UsageError("NO_HOSTS", msg, hint=hint, at=str(play.inventory))
    return Played(results=tuple(heard.results), hosts=heard.hosts)


def _exists(path: Path, code: str, *, hint: str) -> None:
    if not path.exists():
        msg = f"{path} does not exist"
        raise UsageError(code, msg, hint=hint, at=str(path))


def _by_hand(play: Play, *words: str) -> str:
    """Return a command that a person can type; values are left out, for they may be secret."""
    argv = ["ansible-playbook", "--inventory", str(play.inventory.resolve()), *words]
    line = f"cd {shlex.quote(str(play.folder))} && {shlex.join([*argv, play.playbook])}"
    return f"{line} (with the same --extra-vars)" if play.values else line


def _argv(play: Play, scratch: Path) -> list[str]:
    values = scratch / "values.json"
    values.write_text(json.dumps(dict(play.values)), encoding="utf-8")
    argv = [program("ansible-playbook"), "--inventory", str(play.inventory.resolve())]
    argv += ["--extra-vars", f"@{values}"]
    if play.hosts is not None:
        argv.append(f"--limit={play.hosts}")
    if play.tags:
        argv.append(f"--tags={','.join(play.tags)}")
    if play.check:
        argv.append("--check")
    return [*argv, "--", play.playbook]


def _error(results: Iterable[TaskResult], play: Play) -> VegaError | None:
    errors = [error for result in results if (error := error_of(result, play=play))]
    for kind in _CLASSES:
        if found := [error for error in errors if isinstance(error, kind)]:
            first = found[0]
            more = [f"also {error.message}" for error in errors if error is not first]
            message = "\n".join([first.message, *more])
            return kind(first.code, message, hint=first.hint, at=first.at)
    return None


def error_of(result: TaskResult, *, play: Play) -> VegaError | None:
    """Return what one result means for the whole run; None when the run may go on."""
    text = result.message.strip() or "no reason given"
    at = result.at or None
    if result.state is TaskState.FAILED:
        msg = f"{result.host}: {result.task}: {text}"
        where = ["--limit", result.host, *(["--tags", result.role] if result.role else [])]
        hint = f"when that is corrected: {_by_hand(play, *where)}"
        return StageError("TASK_FAILED", msg, hint=hint, at=at)
    if result.state is not TaskState.UNREACHABLE:
        return None
    for words, code in STRANGERS.items():
        if words in text:
            msg = f"{result.host} is not the host that is pinned: {text}"
            hint = _NEXT[code].format(host=result.host)
            return PolicyError(code, msg, hint=hint, at=result.host)
    msg = f"{result.host} cannot be reached: {text}"
    hint = (
        f"is it on? nc -zvw 5 {shlex.quote(result.host)} 22 (psrp: 5986) asks its port; "
        f"then {_by_hand(play, '--limit', result.host)}"
    )
    return HostError("UNREACHABLE", msg, hint=hint, at=result.host)


def _refused(done: Completed, play: Play) -> VegaError:
    tail = "\n".join(done.output.splitlines()[-TAIL_LINES:]).strip()
    if done.returncode > 0:
        msg = f"ansible-playbook refused ({done.returncode}): {tail}"
        return UsageError("PLAYBOOK_INVALID", msg, hint=_by_hand(play, "--syntax-check"))
    msg = f"ansible-playbook ended without its counts ({done.returncode}): {tail}"
    hint = f"it tells more by hand: {_by_hand(play, '-vvv')}"
    return EngineError("ANSIBLE_DIED", msg, hint=hint)

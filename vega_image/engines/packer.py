"""Packer through packer-py, with what packer-py lacks.

packer-py 0.3.0 is one class that renders arguments, starts packer and waits. It has no
working folder, environment, timeout, live lines or `fmt`; it writes `-flag=False` for False and
a Python list for a list; it takes a template whose name begins with `{` for JSON. So packer-py
runs in a process of its own: this module, started as a program by `vega_image.process`. That
process has the folder and the environment, and packer inherits its output, which is read line
by line as it appears. On TERM, which it also gets when vega-image is killed, it passes a
Ctrl-C on to packer and all that packer started, as a terminal would; after the grace it kills
them, itself included. Options go through `rendered`, which packer-py then writes rightly.

What is left to us: the machine-readable lines (packerlines.py), the wall clock (attend.py), and
what a build needs around it (packerbuild.py).
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from packerpy import PackerExecutable  # type: ignore[import-untyped] # noqa: TID251 - its place

from vega_image.engines.attend import LOG, OUT, Call, Ended, Watch, attend
from vega_image.engines.packerlines import Diagnostic, diagnostics
from vega_image.errors import EngineError
from vega_image.process import which

MINIMUM = (1, 6, 6)
SERIAL = "serial"
GRACE_SECONDS = 20.0
SHORT_SECONDS = 120.0
_UNFORMATTED = 3
_VERSION = re.compile(r"Packer v(\d+)\.(\d+)\.(\d+)")
_HUNK = re.compile(r"^@@ -(\d+)")
# A user's own settings must not decide what is built.
_NOT_INHERITED = ("PKR_VAR_", "PACKER_", "HCP_", "PYTHONPATH")

Option: TypeAlias = bool | str | Sequence[str] | Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackerCall:
    """One packer command: `options` without dashes; `secrets` are variables, by environment.

    `machine` is for builds: machine-readable output, and PACKER_LOG on the pipe `LOG`.
    """

    command: str
    template: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    machine: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Packer:
    """A packer that is there and new enough."""

    program: str
    version: tuple[int, int, int]
    environ: Mapping[str, str]

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> Packer:
        """Find packer on PATH and ask its version.

        Raises EngineError TOOL_ABSENT, TOOL_TOO_OLD, or TOOL_FAILED when it gives no version.
        """
        program = which("packer")
        if program is None:
            msg = "packer is not installed"
            raise EngineError("TOOL_ABSENT", msg, hint="apt-get install packer", at="packer")
        packer = cls(program=program, version=(0, 0, 0), environ=environ)
        _code, said = packer.ask(PackerCall(command="version"), cwd=Path("/"))
        found = _VERSION.search(said)
        if found is None:
            msg = f"{program} does not say its version: {said.strip()[:200]!r}"
            raise EngineError("TOOL_FAILED", msg, hint=f"{program} version", at="packer")
        version = (int(found[1]), int(found[2]), int(found[3]))
        if version < MINIMUM:
            msg = f"{program} is {_dotted(version)}; {_dotted(MINIMUM)} or newer is needed"
            raise EngineError("TOOL_TOO_OLD", msg, hint="apt-get install packer", at="packer")
        return cls(program=program, version=version, environ=environ)

    def fmt_check(self, folder: Path, files: Sequence[str]) -> tuple[Diagnostic, ...]:
        """Return what of `files` (below folder) is no HCL, or not as `packer fmt` writes it."""
        found: list[Diagnostic] = []
        parents = sorted({posixpath.dirname(name) or "." for name in files})
        # One question for a whole folder; which file it is only matters when something is.
        unclean = {name for name in parents if self._fmt(folder, name)[0] != 0}
        for name in files:
            if (posixpath.dirname(name) or ".") not in unclean:
                continue
            code, said = self._fmt(folder, name)
            if code == _UNFORMATTED:
                what, line = "not as `packer fmt` writes it", _first_change(said)
                found.append(Diagnostic(severity="fmt", message=what, path=name, line=line))
            elif code != 0:
                what = " ".join(said.split())
                found.append(Diagnostic(severity="error", message=what, path=name))
        return tuple(found)

    def _fmt(self, folder: Path, name: str) -> tuple[int, str]:
        options = {"check": True, "diff": True}
        return self.ask(PackerCall(command="fmt", template=name, options=options), cwd=folder)

    def validate(
        self,
        folder: Path,
        template: str,
        variables: Mapping[str, str],
        *,
        syntax_only: bool = False,
    ) -> tuple[Diagnostic, ...]:
        """Return packer's errors and warnings; paths as packer names them, cwd = folder.

        An empty result is a pass. It looks at every file that is copied to floppy or CD, but
        not at the ISO, of which 1.6.6 checks neither presence nor digest here.
        """
        options: dict[str, Option] = {"syntax_only": syntax_only, "var": variables}
        call = PackerCall(command="validate", template=template, options=options)
        code, said = self.ask(call, cwd=folder)
        found = diagnostics(said)
        if code != 0 and not any(item.severity == "error" for item in found):
            what = " ".join(said.split()) or f"packer validate ended with {code}"
            found = (*found, Diagnostic(severity="error", message=what))
        return found

    def inspect(self, folder: Path, template: str) -> str:
        """Return what packer says is in a template; raises EngineError TOOL_FAILED."""
        code, said = self.ask(PackerCall(command="inspect", template=template), cwd=folder)
        if code != 0:
            msg = f"packer inspect {template}: {said.strip()[:300]}"
            raise EngineError("TOOL_FAILED", msg, at=template)
        return said

    def ask(self, call: PackerCall, *, cwd: Path) -> tuple[int, str]:
        """Run a short command; return its status and all that it said."""
        said: list[str] = []
        watch = Watch(
            timeout=SHORT_SECONDS, grace=1.0, on_line=lambda _pipe, line: said.append(line)
        )
        with tempfile.TemporaryDirectory(prefix="vega-image-packer-") as name:
            ended = self.attend(call, cwd=cwd, private=Path(name), watch=watch)
        if ended.timed_out:
            msg = f"packer {call.command} did not end within {SHORT_SECONDS:.0f} s"
            raise EngineError("TOOL_TIMED_OUT", msg, at=call.template)
        return ended.returncode, "\n".join(said)

    def attend(
        self, call: PackerCall, *, cwd: Path, private: Path, watch: Watch, serial: bool = False
    ) -> Ended:
        """Run packer with `private` as its home; lines arrive with `OUT`, `LOG` or `SERIAL`."""
        what = {
            "program": self.program,
            "command": call.command,
            "template": _path_word(call.template),
            "machine": call.machine,
            "options": rendered(call.options),
            "grace": watch.grace,
        }
        argv = [sys.executable, "-P", "-m", __name__, json.dumps(what)]
        env = self._environment(private, call.secrets, logged=call.machine)
        extra = (SERIAL,) if serial else ()
        return attend(Call(argv=argv, env=env, cwd=cwd), private, watch, extra=extra)

    def _environment(
        self, private: Path, secrets: Mapping[str, str], *, logged: bool
    ) -> dict[str, str]:
        kept = {k: v for k, v in self.environ.items() if not k.startswith(_NOT_INHERITED)}
        config = private / "packerconfig"
        config.write_text("{}\n")
        kept |= {
            "HOME": str(private),
            "PACKER_CONFIG": str(config),
            "PACKER_CONFIG_DIR": str(private),
            "PACKER_CACHE_DIR": str(private / "cache"),
            "PACKER_NO_COLOR": "1",
            "CHECKPOINT_DISABLE": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        if logged:
            kept["PACKER_LOG"] = "1"
        return kept | {f"PKR_VAR_{name}": value for name, value in secrets.items()}


def rendered(options: Mapping[str, Option]) -> dict[str, bool | str | dict[str, str]]:
    """Turn options into what packer-py writes rightly: no False, no list.

    >>> rendered({"force": False, "only": ["a", "b"], "color": "false"})
    {'only': 'a,b', 'color': 'false'}
    """
    words: dict[str, bool | str | dict[str, str]] = {}
    for name, value in options.items():
        if value is None or value is False:
            continue
        if isinstance(value, Mapping):
            words[name] = dict(value)
        elif isinstance(value, str | bool):
            words[name] = value
        else:
            words[name] = ",".join(value)
    return words


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))


def _first_change(diff: str) -> int:
    """Return the line of a file at which a unified diff first changes it; 0 without a diff."""
    line = 0
    for row in diff.splitlines():
        if hunk := _HUNK.match(row):
            line = int(hunk[1])
        elif line and row[:1] in {"-", "+"}:
            return line
        elif line:
            line += 1
    return line


def _path_word(template: str | None) -> str | None:
    # packer-py takes "{..." for JSON, and packer "-..." for an option.
    if template is None or not template.lstrip().startswith(("{", "-")):
        return template
    return f"./{template}"


def main() -> int:
    """Be the process in which packer-py runs: one JSON argument, packer's status."""
    what = json.loads(sys.argv[1])
    # Packer's own provisioners may be Python programs.
    os.environ.pop("PYTHONPATH", None)

    def kill(_number: int, _frame: object) -> None:
        os.killpg(0, signal.SIGKILL)

    def pass_on(_number: int, _frame: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, what["grace"])
        os.killpg(0, signal.SIGINT)

    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, kill)
    # Not SIG_IGN: packer would inherit that.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, pass_on)
    # None: packer writes to our own output, so nothing waits for its end to be read.
    packer = PackerExecutable(
        executable_path=what["program"],
        machine_readable=what["machine"],
        config={"stdout": None, "stderr": None},
    )
    code, _out, _err = packer.execute_cmd(what["command"], what["template"], **what["options"])
    return int(code) if code >= 0 else 128 - int(code)


__all__ = ["LOG", "OUT", "Packer", "PackerCall", "rendered"]

if __name__ == "__main__":
    sys.exit(main())

"""All static checks of *.cmd and *.bat files. Pure; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from vega_image.checks.cmdlines import Batch, Command
from vega_image.checks.finding import Finding
from vega_image.checks.secretwords import written_in
from vega_image.checks.textform import Newline, line_ends, not_ascii

Found: TypeAlias = Iterator[tuple[int, str]]
SETUP_COMPLETE = "setupcomplete.cmd"
_OWN = frozenset(
    """
    assoc break cd chdir cls color copy date del dir echo endlocal erase exit ftype goto md
    mkdir mklink move path pause popd prompt pushd rd rem ren rename rmdir set setlocal shift
    time title type ver verify vol
    """.split()  # noqa: SIM905 - a table is easier to read so
)
_EXPANDED = re.compile(r"(?<!%)%(?:\w[\w()]*%|~\w*\d)", re.ASCII)
_REDIRECTED = re.compile(r">\s*(?<!%)%\w+%", re.ASCII)
_SPACED = re.compile(r"[A-Za-z]:\\Program (?:Files|Data)", re.IGNORECASE)
_LABEL = re.compile(r"\s*:([^\s:&|<>()]+)")
_JUMP = re.compile(r"(goto)\b\s*:?\s*([^\s&|<>()]+)|(call)\s+:([^\s&|<>()]+)", re.IGNORECASE)
_REBOOT = re.compile(
    r"\b(shutdown|restart-computer|wpeutil\s+reboot|psshutdown)\b", re.IGNORECASE
)
_LEVEL = re.compile(r"%errorlevel%", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CmdFile:
    """A batch file: path, bytes, text, and what cmd.exe would see."""

    path: str
    data: bytes
    text: str
    batch: Batch

    @property
    def registers(self) -> bool:
        """Whether Windows Setup itself runs it, before anybody logs on."""
        return PurePosixPath(self.path).name.lower() == SETUP_COMPLETE


def _no_echo_off(file: CmdFile) -> Found:
    first = file.text.split("\n", 1)[0].strip().lower()
    if first != "@echo off":
        yield 1, "the first line is not @echo off"


def _no_exit(file: CmdFile) -> Found:
    last = file.batch.commands[-1] if file.batch.commands else None
    if last is None:
        yield 1, "no exit /b: the file does nothing"
    elif last.depth or not re.match(r"exit\s+/b\b", last.run, re.IGNORECASE):
        yield last.line, "the last command is not exit /b"


def _unquoted(file: CmdFile) -> Found:
    for command in file.batch.commands:
        bare = re.sub(r'"[^"]*"', "", command.text)
        paths = [word for word in bare.split() if "\\" in word and _EXPANDED.search(word)]
        paths += [
            found[0] for found in (_SPACED.search(bare), _REDIRECTED.search(bare)) if found
        ]
        for path in paths:
            yield command.line, f"{path[:60]} may have blanks: put it in quotes"


def _no_label(file: CmdFile) -> Found:
    labels = {found[1].lower() for row in file.text.split("\n") if (found := _LABEL.match(row))}
    for command in file.batch.commands:
        found = _JUMP.match(command.run)
        if found is None:
            continue
        name = (found[2] or found[4]).lower()
        if name != "eof" and "%" not in name and "!" not in name and name not in labels:
            yield command.line, f"there is no label :{name}"


def _restarts(file: CmdFile) -> Found:
    if not file.registers:
        return
    for command in file.batch.commands:
        if _REBOOT.search(command.text):
            yield command.line, "Windows Setup is still running: nothing here may restart"


def _programs(file: CmdFile) -> Iterator[Command]:
    for command in file.batch.commands:
        name = command.program
        if not name or name in _OWN or command.run.startswith(":"):
            continue
        if not re.match(r"(if|for)\b|call\s+:", command.run, re.IGNORECASE):
            yield command


def _more_than_registers(file: CmdFile) -> Found:
    if not file.registers:
        return
    programs = list(_programs(file))
    if not programs:
        yield 1, "no program is run, so nothing is registered"
    for command in programs[1:]:
        yield command.line, f"{command.program}: only one program is run here, which registers"


def _secret(file: CmdFile) -> Found:
    for line, what in written_in(file.text):
        yield line, f"{what} is written here"


def _open(file: CmdFile) -> Found:
    yield from file.batch.faults


def _bare_powershell(file: CmdFile) -> Found:
    for command in file.batch.commands:
        if command.program not in {"powershell", "pwsh"}:
            continue
        words = command.run.lower()
        for wanted in ("-noprofile", "-file"):
            if not re.search(rf"(?<![\w-]){wanted}(?![\w-])", words):
                yield command.line, f"{command.program} without {wanted}"


def _stale_level(file: CmdFile) -> Found:
    for command in file.batch.commands:
        if _LEVEL.search(command.text) and (command.depth or command.place):
            said = "%errorlevel% is expanded before the block or line runs"
            yield command.line, said


_JUDGES: Mapping[str, tuple[str, Callable[[CmdFile], Found]]] = {
    "CMD003": ("a batch file does not begin with @echo off", _no_echo_off),
    "CMD004": ("a batch file does not end with exit /b", _no_exit),
    "CMD005": ("a path that may have blanks is not quoted", _unquoted),
    "CMD006": ("a jump to a label that is not there", _no_label),
    "CMD007": ("SetupComplete.cmd restarts the machine", _restarts),
    "CMD008": ("SetupComplete.cmd does not run exactly one program", _more_than_registers),
    "CMD009": ("a secret is written into a batch file", _secret),
    "CMD010": ("quotes or parentheses do not close", _open),
    "CMD011": ("PowerShell is run without -NoProfile and -File", _bare_powershell),
    "CMD012": ("%errorlevel% in a block is the one before the block", _stale_level),
}
RULES: Mapping[str, str] = {
    "CMD001": "a batch file is not ASCII without a byte order mark",
    "CMD002": "a batch file's lines do not end as Windows expects them",
    **{rule: said for rule, (said, _) in _JUDGES.items()},
}


def check_cmd_files(files: Mapping[str, bytes], *, newline: Newline = "crlf") -> list[Finding]:
    """Return the findings in every *.cmd and *.bat of a tree (path -> bytes), by file and line.

    `newline` is how lines must end: `lf` for templates, which rendering converts.
    """
    findings: set[Finding] = set()
    for path in sorted(path for path in files if path.lower().endswith((".cmd", ".bat"))):
        for rule, line, message in _judged(path, files[path], newline):
            findings.add(Finding(rule=rule, path=path, line=line, message=message))
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _judged(path: str, data: bytes, newline: Newline) -> Iterator[tuple[str, int, str]]:
    batch, text = Batch(), data.decode("latin-1")
    batch.read(text)
    file = CmdFile(path, data, text, batch)
    for line, message in not_ascii(data):
        yield "CMD001", line, message
    for line, message in line_ends(data, newline):
        yield "CMD002", line, message
    for rule, (_, judge) in _JUDGES.items():
        for line, message in judge(file):
            yield rule, line, message

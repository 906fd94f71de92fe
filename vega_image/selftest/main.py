"""selftest's words. Runs in the factory, in an image, and in the pyz."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import MutableMapping, Sequence
from dataclasses import asdict
from types import FrameType
from typing import NoReturn

from vega_image.selftest import choosing
from vega_image.selftest.arguments import parse_run, parser, with_word
from vega_image.selftest.case import Case
from vega_image.selftest.encode import Json
from vega_image.selftest.errors import Interrupted, SelftestError
from vega_image.selftest.external.ggml.place import OpenPlace, folder_place
from vega_image.selftest.out import Progress, complain, show, show_json
from vega_image.selftest.suite import load_module
from vega_image.selftest.texts import Texts
from vega_image.selftest.windows.gatewords import parse_gate

INTERRUPTED = 130


def main(argv: Sequence[str], *, open_place: OpenPlace = folder_place) -> int:
    """Do what the words say; return the exit code of docs/architecture.md.

    `open_place` opens what an external suite judges; the factory's knows images.
    """
    as_json = "--json" in argv
    try:
        stop_on_signals()
        return _dispatch(argv, open_place)
    except SelftestError as error:
        complain(error, as_json=as_json)
        return error.exit_code
    except OSError as error:
        failed = SelftestError(
            "SYSTEM",
            f"{error.filename or 'this system'}: {error.strerror or error}",
            exit_code=5,
            hint="is there room left on the disks, and may you write there?",
        )
        complain(failed, as_json=as_json)
        return failed.exit_code
    except (KeyboardInterrupt, Interrupted):
        stopped = SelftestError(
            "INTERRUPTED", "stopped before there was a verdict", exit_code=INTERRUPTED
        )
        complain(stopped, as_json=as_json)
        return INTERRUPTED


def stop_on_signals() -> None:
    """Let an end of the terminal or a polite kill stop us as Ctrl-C does, children first.

    Not in a thread, whose process handles signals itself; and a hangup that somebody ignores
    (nohup) stays ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            with contextlib.suppress(ValueError):
                signal.signal(number, _terminated)


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


def _dispatch(argv: Sequence[str], open_place: OpenPlace) -> int:
    options = parser().parse_args(with_word(argv))
    word = options.word
    if word == "run":
        return _run(options, open_place)
    if word == "list":
        return _list(options.kind, as_json=options.json)
    if word == "explain":
        return _explain(choosing.one_case(options.case), as_json=options.json)
    if word == "pack":
        from vega_image.selftest.pack import pack  # noqa: PLC0415 - only for this word

        pack(options.output)
        show_json({"pyz": str(options.output)}) if options.json else show(str(options.output))
        return 0
    if word == "golden":
        return _golden(options)
    if word == "gate":
        from vega_image.selftest.windows.word import run_gate  # noqa: PLC0415 - only for this

        return run_gate(parse_gate(options), time.time)
    if word == "program":
        return _program(write=options.write, as_json=options.json)
    from vega_image.selftest.devices.opening import open_device  # noqa: PLC0415 - torch
    from vega_image.selftest.worker import work_spawned  # noqa: PLC0415 - only in a child

    return work_spawned(open_device)


def _golden(options: Namespace) -> int:
    # By name: it needs numpy and torch, which list, explain and pack do without.
    module = load_module("vega_image.selftest.suites.golden_word")
    code = module.main(write=options.write, tables=options.tables, as_json=options.json)
    assert isinstance(code, int)
    return code


def _program(*, write: bool, as_json: bool) -> int:
    from vega_image.selftest.external.ggml import making  # noqa: PLC0415 - only for this word

    known = making.write() if write else making.compare()
    if as_json:
        show_json(dict(known))
    else:
        for name, value in known.items():
            show(f"{name:<10} {value}")
    return 0


def _run(options: Namespace, open_place: OpenPlace) -> int:
    share_processors(os.environ)
    from vega_image.selftest.session import run_selftest  # noqa: PLC0415 - not for list

    wish = parse_run(options)
    return run_selftest(wish, _progress, open_place=open_place)


def share_processors(environ: MutableMapping[str, str]) -> None:
    """Let matrix libraries use half of the processors, unless somebody has said how many.

    Their threads wait for each other by spinning: beside any other work a run on all
    processors takes three times as long as on half of them.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    environ.setdefault("OMP_NUM_THREADS", str(max(1, count // 2)))


def _progress(texts: Texts, total: int) -> Progress:
    return Progress(sys.stderr, texts, total)


def _list(kind: str | None, *, as_json: bool) -> int:
    cases = [case for case in choosing.all_cases() if kind in {None, case.kind}]
    if as_json:
        show_json({"cases": [case_json(case) for case in cases]})
        return 0
    for case in cases:
        dtypes, ways = ",".join(case.dtypes), ",".join(case.directions)
        show(f"{case.id:<28} {case.kind:<10} {case.tier} {dtypes:<16} {ways:<8} {case.name}")
    return 0


def _explain(case: Case, *, as_json: bool) -> int:
    if as_json:
        show_json(case_json(case))
        return 0
    show(f"{case.id}  {case.name}")
    for name, value in asdict(case).items():
        if name not in {"id", "name"} and value not in ((), "", {}):
            shown = ", ".join(value) if isinstance(value, tuple) else value
            show(f"  {name:<20} {shown}")
    return 0


def case_json(case: Case) -> Json:
    """Return a case as JSON values."""
    return {name: _plain(value) for name, value in asdict(case).items()}


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)

"""The words of `vega-image selftest`, and what they ask for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vega_image.selftest.case import LEVELS
from vega_image.selftest.devices.opening import WORDS
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.windows.gatewords import add_options

ISOLATION = ("fork", "spawn")
ONLY = ("direction", "dtype", "profile")
CHOSEN = "chosen"
SOLVERS_HELP = (
    "chosen: what the library picks; all, or NAME,NAME: force each MIOpen solver in a child "
    "process and read back which one ran; goes on after what the report's journal holds"
)
TARGET = "what an external suite judges: a root folder (default /), or an image: TARGET,"
TARGET += " name:tag, name@sha256:..., oci:DIR (with --store and --engine as elsewhere)"


@dataclass(frozen=True)
class Wish:
    """What a run was asked for; see `--help`. Times in seconds, memory in bytes.

    `only` holds `name=value` for a direction, dtype or profile.
    """

    device: str
    level: str
    cases: tuple[str, ...]
    only: tuple[str, ...]
    plant: str
    budget: float | None
    soak: float | None
    report: Path
    record: Path | None
    isolation: str
    timeout: float
    memory: int
    language: str
    json: bool
    suite: str
    solvers: str
    dry_run: bool
    verdict_file: Path | None
    image: str
    find_db: str
    target: str
    facts: Path | None = None

    @property
    def sweeps(self) -> bool:
        """Whether solvers are forced."""
        return self.solvers != CHOSEN


class Parser(argparse.ArgumentParser):
    """Says usage errors our way instead of exiting by itself."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise what main turns into an exit."""
        raise SelftestError("USAGE", message, hint=f"{self.prog} --help")


def parser() -> Parser:
    """Describe every word and option."""
    top = Parser(prog="vega-image selftest", description="Prove what a device computes.")
    words = top.add_subparsers(dest="word", metavar="WORD", parser_class=Parser)
    run = words.add_parser("run", help="run trials (the default word)")
    _run_options(run)
    listing = words.add_parser("list", help="list the cases")
    listing.add_argument("--kind", choices=("op", "linalg", "conv", "regression"))
    explain = words.add_parser("explain", help="say all about one case")
    explain.add_argument("case", metavar="CASE")
    golden = words.add_parser("golden", help="check the shipped golden hashes, or make them")
    golden.add_argument("--write", action="store_true", help="make them anew")
    golden.add_argument(
        "--tables", action="store_true", help="only note the digests of edited tables"
    )
    program = words.add_parser("program", help="check the shipped vega-ggml, or make it")
    program.add_argument("--write", action="store_true", help="compile it anew")
    packing = words.add_parser("pack", help="write vega-selftest.pyz")
    packing.add_argument("--output", type=Path, default=Path("vega-selftest.pyz"))
    gate = words.add_parser(
        "gate", help="may this Windows machine serve? (docs/windows-gate.md)"
    )
    add_options(gate)
    # Without a help text it is not listed: only our own children are started with it.
    words.add_parser("worker")
    for word in (run, listing, explain, golden, program, packing, gate):
        word.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return top


def _run_options(run: argparse.ArgumentParser) -> None:
    add = run.add_argument
    add("--device", default="cpu", metavar="DEVICE", help=WORDS)
    add("--level", choices=LEVELS, default="r2")
    add("--case", action="append", default=[], metavar="CASE", help="only these (id or name)")
    for name in ONLY:
        add(f"--{name}", metavar=name.upper(), help=f"only trials of this {name}")
    add("--plant", default="", metavar="FAULT", help="plant a fault; the run must fail")
    add("--budget", type=_seconds, metavar="SECONDS", help="most telling cases first")
    add("--soak", type=_seconds, metavar="SECONDS", help="length of the soak of r3 and r4")
    add("--report", type=Path, default=Path("selftest-report"), metavar="DIR")
    add("--record", type=Path, metavar="FILE", help="also record outcomes for replay:FILE")
    default = "fork" if hasattr(os, "fork") else "spawn"
    add("--isolation", choices=ISOLATION, default=default, help="how children start")
    add("--timeout", type=_some_seconds, default=120.0, metavar="SECONDS", help="for one trial")
    add("--memory", type=_megabytes, default=0, metavar="MB", help="limit of a child")
    add("--language", default="en")
    add("--suite", default="own", help="own, or an external suite: ggml")
    add("--target", default="", metavar="REF", help=TARGET)
    add("--solvers", default=CHOSEN, metavar="WHICH", help=SOLVERS_HELP)
    add("--dry-run", action="store_true", help="print what would run")
    add("--verdict-file", type=Path, metavar="FILE", help="also settle the gate")
    add("--image", default="not available", metavar="DIGEST", help="part of the gate's key")
    add("--find-db", default="none", metavar="DIGEST", help="part of the gate's key")
    add("--facts", type=Path, metavar="DIR", help="Windows: what gather-facts.ps1 wrote")


def parse_run(options: argparse.Namespace) -> Wish:
    """Turn parsed options into a wish."""
    return Wish(
        device=options.device,
        level=options.level,
        cases=tuple(options.case),
        only=tuple(
            f"{name}={value}" for name in ONLY if (value := getattr(options, name)) is not None
        ),
        plant=options.plant,
        budget=options.budget,
        soak=options.soak,
        report=options.report,
        record=options.record,
        isolation=options.isolation,
        timeout=options.timeout,
        memory=options.memory,
        language=options.language,
        json=options.json,
        suite=options.suite,
        solvers=options.solvers,
        dry_run=options.dry_run,
        verdict_file=options.verdict_file,
        image=options.image,
        find_db=options.find_db,
        target=options.target,
        facts=options.facts,
    )


def with_word(argv: Sequence[str]) -> list[str]:
    """Put the default word in front of run options.

    >>> with_word(["--level", "r1"]), with_word(["list"]), with_word(["--help"])
    (['run', '--level', 'r1'], ['list'], ['--help'])
    """
    given = list(argv)
    if given[:1] in ([], ["-h"], ["--help"]):
        return given or ["run"]
    return given if not given[0].startswith("-") else ["run", *given]


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e7:  # noqa: PLR2004 - four months
        raise ValueError(text)
    return value


def _some_seconds(text: str) -> float:
    value = _seconds(text)
    if not value:
        raise ValueError(text)
    return value


def _megabytes(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value << 20

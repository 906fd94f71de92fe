"""Ask a jailed libMIOpen about every record: what it offers, takes instead, and can load."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from vega_image.finddb.probe.cell import Cell
from vega_image.finddb.probe.question import (
    AnswerError,
    Name,
    Solved,
    compile_question,
    expressible,
    find_question,
    read_solved,
    read_status,
    solve_question,
)
from vega_image.finddb.probe.session import Outcome, Reply, Session
from vega_image.finddb.record import Record

JOBS: Final = 2
CHUNK: Final = 4000
OFFER_MS: Final = 1_000_000
MODELS: Final = "models"
# No item of the record may be outvoted, and a guess may not pass for an offer.
ASKING: Final = {"MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "0"}
GUESSING: Final = {"MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "1"}
_OPENED = re.compile(r"vega-shim: opened ([01]) (\S+)")
_QUESTION = re.compile(r"vega-probe: question (\d+)")
_NO_SOURCE = re.compile(r"Failed to load kernel source: (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the library says to one record.

    `offered` are the solvers that apply; `pick` is the one it takes from the record, with
    its workspace in bytes. `status` is MIOpen's; `outcome` is ours, with the reason.
    """

    record: Record
    offered: tuple[str, ...] = ()
    pick: str | None = None
    workspace: int = 0
    status: int = 0
    outcome: Outcome = Outcome.ANSWERED
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A heuristic's file that the library opened, or wanted to."""

    path: str
    found: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Whether a solver's kernels could be loaded for a record; `missing` names a source."""

    solver: str
    record: Record
    status: int
    missing: str | None = None
    outcome: Outcome = Outcome.ANSWERED
    detail: str = ""


Progress = Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class Survey:
    """One library in one cell; `names` is its registry."""

    cell: Cell
    names: tuple[Name, ...]
    progress: Progress = field(default=lambda _done, _total: None)
    stop: threading.Event = field(default_factory=threading.Event)

    def offers(self, records: Sequence[Record]) -> list[Answer]:
        """Ask what applies, and what each record leads to; in the order of `records`.

        Every record is given to the library as it was read, with all other solvers behind
        it at times beyond any of its own. Raises what Session.ask raises.
        """
        return self._in_parts(records, self._offers)

    def serves(self, records: Sequence[Record]) -> list[Answer]:
        """Ask what MIOpen offers from a database of these records alone, without guessing."""
        return self._in_parts(records, self._serves)

    def finds(self, records: Sequence[Record], env: Mapping[str, str]) -> list[int]:
        """Run a Find for problems that no database knows, under these variables.

        Return MIOpen's status of each, -1 where it failed; 0: some solver was left to race.
        """
        questions = [find_question(n, record.problem) for n, record in enumerate(records)]
        session = Session(cell=self.cell, databases=MODELS, env=env)
        return [
            read_status(reply.lines[-1])[1] if reply.outcome is Outcome.ANSWERED else -1
            for reply in session.ask(questions)
        ]

    def guesses(self, records: Sequence[Record]) -> tuple[list[Answer], tuple[Model, ...]]:
        """Ask what the library takes where no database knows the problem."""
        models: set[tuple[str, bool]] = set()

        def part(_number: int, records: Sequence[Record]) -> Iterator[Answer]:
            session = Session(cell=self.cell, databases=MODELS, env=GUESSING)
            yield from self._solved(session, records)
            models.update(_models(session.log))

        answers = self._in_parts(records, part)
        return answers, tuple(Model(path=path, found=found) for path, found in sorted(models))

    def kernels(self, cases: Sequence[tuple[str, Record]]) -> list[Compiled]:
        """Look up the kernels of (solver, record) pairs; nothing is really compiled."""
        ids = {name.solver: name.id for name in self.names}
        questions = [
            compile_question(number, ids[solver], record.problem)
            for number, (solver, record) in enumerate(cases)
        ]
        session = Session(cell=self.cell, databases=MODELS, env=ASKING)
        replies = list(session.ask(questions))
        missing = _missing_sources(session.log)
        return [
            _compiled(reply, *case, missing.get(reply.number))
            for reply, case in zip(replies, cases, strict=True)
        ]

    def _offers(self, number: int, records: Sequence[Record]) -> Iterator[Answer]:
        lines = (f"{record.written()}{self._others(record)}\n" for record in records)
        return self._from(f"offers{number}", lines, records)

    def _serves(self, number: int, records: Sequence[Record]) -> Iterator[Answer]:
        return self._from(f"serves{number}", (f"{r.written()}\n" for r in records), records)

    def _from(
        self, databases: str, lines: Iterable[str], records: Sequence[Record]
    ) -> Iterator[Answer]:
        self.cell.write_database("".join(lines), databases=databases)
        session = Session(cell=self.cell, databases=databases, env=ASKING)
        yield from self._solved(session, records)
        shutil.rmtree(self.cell.tools / databases)

    def _others(self, record: Record) -> str:
        """Return items of all solvers that a record does not name; W has no FFT."""
        direction = record.problem.direction
        named = {item.solver for item in record.items}
        return "".join(
            f";{name.solver}:{OFFER_MS + name.id},0,{name.algorithms[direction]}"
            for name in self.names
            if name.solver not in named
            and not (direction == "W" and name.algorithms["W"].endswith("AlgoFFT"))
        )

    def _solved(self, session: Session, records: Sequence[Record]) -> Iterator[Answer]:
        solvers = {name.id: name.solver for name in self.names}
        questions = [
            solve_question(number, record.problem) for number, record in enumerate(records)
        ]
        for reply in session.ask(questions):
            if self.stop.is_set():
                return
            yield _answer(reply, records[reply.number], solvers)

    def _in_parts(
        self,
        records: Sequence[Record],
        part: Callable[[int, Sequence[Record]], Iterator[Answer]],
    ) -> list[Answer]:
        size = max(1, min(CHUNK, -(-len(records) // JOBS)))
        parts = [records[at : at + size] for at in range(0, len(records), size)]
        done: list[Answer] = []
        with ThreadPoolExecutor(JOBS, thread_name_prefix="probe") as pool:
            work = [
                pool.submit(lambda n, p: list(part(n, p)), number, chunk)
                for number, chunk in enumerate(parts)
            ]
            try:
                for item in work:
                    done += item.result()
                    self.progress(len(done), len(records))
            except BaseException:
                self.stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return done


def askable(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Part records into those the probe can ask about and those it cannot."""
    can: list[Record] = []
    cannot: list[Record] = []
    for record in records:
        (can if expressible(record.problem) else cannot).append(record)
    return can, cannot


def _answer(reply: Reply, record: Record, solvers: Mapping[int, str]) -> Answer:
    if reply.outcome is not Outcome.ANSWERED:
        return Answer(record=record, outcome=reply.outcome, detail=reply.detail)
    try:
        solved = read_solved(reply.lines[-1])
        offers = [(solvers[found.id], found) for found in solved.solutions]
    except (AnswerError, KeyError) as error:
        detail = f"no answer: {error}"
        return Answer(record=record, outcome=Outcome.CRASHED, detail=detail)
    named = {item.solver for item in record.items}
    pick = next(((name, found) for name, found in offers if name in named), None)
    return Answer(
        record=record,
        offered=tuple(name for name, _ in offers),
        pick=pick[0] if pick else None,
        workspace=pick[1].workspace if pick else _workspace(solved),
        status=solved.status,
    )


def _workspace(solved: Solved) -> int:
    return solved.solutions[0].workspace if solved.solutions else 0


def _models(log: Sequence[str]) -> Iterator[tuple[str, bool]]:
    for line in log:
        match = _OPENED.fullmatch(line)
        if match and match[2].endswith(".model"):
            yield match[2].rpartition("/")[2], match[1] == "1"


def _missing_sources(log: Sequence[str]) -> dict[int, str]:
    """Return question -> the kernel source it needed and this library has not."""
    found: dict[int, str] = {}
    at = -1
    for line in log:
        if question := _QUESTION.fullmatch(line):
            at = int(question[1])
        elif source := _NO_SOURCE.search(line):
            found.setdefault(at, source[1])
    return found


def _compiled(reply: Reply, solver: str, record: Record, missing: str | None) -> Compiled:
    status = -1
    if reply.outcome is Outcome.ANSWERED:
        _, status = read_status(reply.lines[-1])
    return Compiled(
        solver=solver,
        record=record,
        status=status,
        missing=missing if status else None,
        outcome=reply.outcome,
        detail=reply.detail,
    )

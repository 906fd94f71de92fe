"""vega-image finddb audit: a find-db against the very library that will read it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from vega_image.clioptions import Call
from vega_image.commands.finddb.auditvalue import Report, audit_lines, audit_value
from vega_image.commands.finddb.reading import check_subject
from vega_image.errors import UnprovenError, UsageError
from vega_image.finddb.audit import (
    Guesses,
    applicable,
    judge,
    kernel_cases,
    missing_kernels,
    other_failures,
)
from vega_image.finddb.effective import PREFIX
from vega_image.finddb.installed import variables_of
from vega_image.finddb.opening import open_db
from vega_image.finddb.probe.build import tools
from vega_image.finddb.probe.card import Card, card_of
from vega_image.finddb.probe.cell import Cell, Limits
from vega_image.finddb.probe.library import find_library, inside
from vega_image.finddb.probe.session import Session
from vega_image.finddb.record import Record
from vega_image.finddb.roots import FolderRoot
from vega_image.finddb.sample import kinds, sample
from vega_image.finddb.subject import database_folder, lay_out, variables_of_image
from vega_image.finddb.survey import MODELS, Survey, askable
from vega_image.finddb.text import FindDb
from vega_image.images import layout_of
from vega_image.oci.layout import read_layout

UNDER = 9
GUESSED_AT_MOST = 150
FREE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What is audited: an image REF or a root; `sample` None asks about every record."""

    ref: str | None
    root: Path | None
    db: Path | None
    sample: int | None
    threshold: float
    arch: str | None
    cu: int | None
    env: tuple[str, ...]


def audit(call: Call, request: AuditRequest) -> int:
    """Print the shares and what is missing; exit 9 under the threshold."""
    card = card_of(request.arch, request.cu)
    if not 0 <= request.threshold <= 1:
        # NaN passes click's range.
        msg = f"--threshold {request.threshold} is no share between 0 and 1"
        raise UsageError("THRESHOLD_INVALID", msg, hint="--threshold 0.95")
    called = request.ref or str(request.root)
    store = call.store
    with ExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(dir=store.tmp)
        folder = Path(stack.enter_context(scratch))
        root, environ = _root(call, request, folder)
        library = find_library(root, called)
        databases = database_folder(root, library.path, environ)
        db = (
            open_db(request.db)
            if request.db
            else _own_db(root, databases, card=card, called=called)
        )
        cell = Cell(
            folder=folder / "cell",
            library=library,
            card=card,
            limits=Limits(),
            environ=environ,
        )
        cell.folder.mkdir()
        cell.furnish(tools(store))
        cell.show_models(MODELS, folder=databases)
        report = _report(call, cell, db, request)
    call.console.result(list(audit_lines(report)), audit_value(report))
    return 0 if report.passes else UNDER


def _report(call: Call, cell: Cell, db: FindDb, request: AuditRequest) -> Report:
    chosen = sample(db, request.sample)
    counted, unasked = askable(chosen.counted)
    if not counted:
        msg = f"{db.name}: no record to ask about"
        raise UnprovenError(
            "NOTHING_TO_AUDIT", msg, at=db.name, hint=f"vega-image finddb lint {db.name}"
        )
    survey = Survey(
        cell=cell,
        names=Session(cell=cell).names(),
        progress=lambda done, total: call.console.say(f"asked {done} of {total}"),
    )
    answers = survey.offers(counted)
    cover = survey.offers(askable(chosen.cover)[0]) if chosen.cover else []
    compiled = survey.kernels(kernel_cases([*answers, *cover]))
    missing = missing_kernels(compiled)
    found = judge(answers, missing)
    offered = applicable([*answers, *cover])
    return Report(
        db=db,
        cell=cell,
        audit=found,
        names=survey.names,
        applicable=offered,
        missing=missing,
        off=_off(survey, db, offered) if cell.environ else {},
        unloadable=other_failures(compiled),
        guesses=_guesses(survey, found.dead),
        flawed=chosen.flawed,
        unasked=len(unasked),
        sampled=len(answers) if request.sample is not None else None,
        threshold=request.threshold,
    )


def _off(survey: Survey, db: FindDb, offered: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the solvers without kernels that only the root's variables keep from applying."""
    some, _ = askable([*kinds(db), *sample(db, FREE).counted])
    free = replace(survey, cell=replace(survey.cell, environ={}))
    missing = missing_kernels(free.kernels(kernel_cases(free.offers(some))))
    return {solver: kernels for solver, kernels in missing.items() if solver not in offered}


def _guesses(survey: Survey, dead: list[Record]) -> Guesses:
    """Ask about some of the dead records, evenly taken: a heuristic costs 50 ms."""
    step = max(1, len(dead) // GUESSED_AT_MOST)
    some = dead[::step][:GUESSED_AT_MOST]
    answers, models = survey.guesses(some) if some else ([], ())
    picks = Guesses.count(answers)
    return Guesses(asked=len(some), picks=picks, models=models)


def _root(call: Call, request: AuditRequest, folder: Path) -> tuple[Path, Mapping[str, str]]:
    """Return the root and its variables for MIOpen; those of --env go before."""
    given = dict(_assignment(text) for text in request.env)
    check_subject(request.ref, request.root, word="audit")
    if request.root is not None:
        root = request.root.resolve()
        return root, _set_in(root) | given
    assert request.ref is not None
    layout = read_layout(layout_of(call.store, request.ref))
    root = folder / "root"
    root.mkdir()
    call.console.say("laying out the image's libraries")
    lay_out(layout, call.store, root)
    return root, _set_in(root) | variables_of_image(layout) | given


def _set_in(root: Path) -> dict[str, str]:
    found = variables_of(FolderRoot(root))
    return {one.name: one.value for one in found if one.name.startswith(PREFIX)}


def _assignment(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.startswith("MIOPEN_"):
        msg = f"--env {text}: not of the form MIOPEN_NAME=VALUE"
        raise UsageError("ENV_INVALID", msg, at=text, hint="--env MIOPEN_FIND_MODE=1")
    return name, value


def _own_db(root: Path, databases: str | None, *, card: Card, called: str) -> FindDb:
    """Read the find-db that the library would find for this card."""
    name = f"{card.base_name}.HIP.fdb.txt"
    path = inside(root, f"{databases}/{name}") if databases else None
    if path is None:
        where = databases or "it has no folder of databases"
        msg = f"{called} holds no {name} where its library looks ({where})"
        raise UsageError("FINDDB_ABSENT", msg, at=name, hint="--db FILE")
    return FindDb(open_db(path).data, f"/{databases}/{name}")

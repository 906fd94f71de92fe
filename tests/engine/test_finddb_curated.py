"""A wrong solver in the journal is gone from the curated db; the real MIOpen offers others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.finddbevidence import C3W, DB, curated, line, passed
from tests.miopenroot import miopen_root
from vega_image.finddb.fallback import SOLVERS
from vega_image.finddb.probe.build import tools
from vega_image.finddb.probe.card import card_of
from vega_image.finddb.probe.cell import Cell, Limits
from vega_image.finddb.probe.library import find_library
from vega_image.finddb.probe.question import read_solved, solve_question
from vega_image.finddb.probe.session import Session
from vega_image.finddb.problem import parse_key
from vega_image.finddb.profile import Profile, System, apply
from vega_image.finddb.text import FindDb
from vega_image.store import Store

__all__ = ["miopen_root"]
pytestmark = pytest.mark.needs("gcc", "network")
SUSPECT, OTHER = "ConvOclBwdWrW2<1>", "GemmWrwUniversal"
PROVEN = passed(SUSPECT) + passed(OTHER, time_ms=3.0)


@pytest.fixture(scope="module")
def cell(miopen_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Cell:
    folder = tmp_path_factory.mktemp("cell")
    found = Cell(
        folder=folder,
        library=find_library(miopen_root),
        card=card_of(None, None),
        limits=Limits(),
    )
    found.furnish(tools(Store(tmp_path_factory.mktemp("store"))))
    return found


def offered(cell: Cell, db: bytes, env: dict[str, str] | None = None) -> list[str]:
    """Return what the library offers for conv1's weight gradient, best first."""
    cell.write_database(db.decode())
    closed = {"MIOPEN_DEBUG_CONV_IMMED_FALLBACK": "0", **(env or {})}
    session = Session(cell=cell, env=closed)
    names = {name.id: name.solver for name in session.names()}
    (reply,) = session.ask([solve_question(0, parse_key(C3W))])
    return [names[one.id] for one in read_solved(reply.lines[-1]).solutions]


def profile(serves: frozenset[str], solvers: tuple[str, ...]) -> dict[str, str]:
    environ = apply(Profile.SAFE, solvers, System.IMAGE, serves=serves).environ
    return {n: v for n, v in environ.items() if n not in {
        "MIOPEN_SYSTEM_DB_PATH", "MIOPEN_USER_DB_PATH"}}  # fmt: skip


def test_upstream_offers_the_suspect(cell: Cell) -> None:
    assert offered(cell, DB)[0] == SUSPECT


def test_a_planted_wrong_gradient_is_offered_no_more(cell: Cell) -> None:
    solvers = tuple(name.solver for name in Session(cell=cell).names())
    good = curated(PROVEN)
    assert offered(cell, good.data, profile(good.serves, solvers)) == [SUSPECT, OTHER]
    wrong = curated(PROVEN, line(SUSPECT, "real", verdict="MISMATCH"))
    assert offered(cell, wrong.data, profile(wrong.serves, solvers)) == [OTHER]


def test_without_evidence_the_profile_leaves_the_fallback(cell: Cell) -> None:
    """Even where the db is upstream's: the switches hold for records too."""
    solvers = tuple(name.solver for name in Session(cell=cell).names())
    env = profile(frozenset(), solvers)
    nothing = curated()
    assert offered(cell, nothing.data, env) == ["GemmWrwUniversal", "ConvDirectNaiveConvWrw"]
    assert set(offered(cell, DB, env)) <= set(SOLVERS)


def test_every_fallback_that_we_predict_applies(cell: Cell) -> None:
    """Over a slice of the real file: no record of ours is dead in the real library."""
    from tests.miopenroot import RECORDS

    db = FindDb(RECORDS.read_bytes(), "slice")
    result = curated(db=db.data)
    cell.write_database(result.data.decode())
    solvers = tuple(name.solver for name in Session(cell=cell).names())
    env = profile(frozenset(), solvers)
    session = Session(cell=cell, env=env)
    names = {name.id: name.solver for name in session.names()}
    new = list(FindDb(result.data, "new").records())
    replies = session.ask([solve_question(n, r.problem) for n, r in enumerate(new)])
    for record, reply in zip(new, replies, strict=True):
        solved = read_solved(reply.lines[-1])
        have = {names[one.id]: one.workspace for one in solved.solutions}
        wanted = {item.solver: item.workspace for item in record.items}
        assert have == wanted, record.key

"""What MIOpen 3.5.1 does with a problem, by find mode, from what its two dbs say.

Measured with libMIOpen 7.2.4 on a machine without a GPU: which db answers, what is chosen,
what is done on a miss. What a race would choose only a card can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vega_image.finddb.record import Item, Record
from vega_image.finddb.registry import Solver, registry

USER, SYSTEM = "user", "system"
LOOKUP, RACE, HEURISTIC, NOTHING = "lookup", "race", "heuristic", "nothing"


@dataclass(frozen=True, slots=True)
class Known:
    """What the dbs say of a problem. `record` is the one MIOpen looks at, of db `origin`.

    `hidden`: the system's record that a user's one replaces.
    """

    direction: str
    record: Record | None
    origin: str
    hidden: Record | None

    @property
    def usable(self) -> tuple[Item, ...]:
        """Return the items that can serve, the fastest first."""
        items = self.record.items if self.record else ()
        good = (item for item in items if serves(item.solver, self.direction))
        return tuple(sorted(good, key=lambda item: item.time))

    @property
    def candidates(self) -> tuple[Solver, ...]:
        """Return the solvers a race may try; which apply to the problem the audit says."""
        known = registry().values()
        return tuple(one for one in known if one.usable and self.direction in one.directions)


@dataclass(frozen=True, slots=True)
class Answer:
    """What happens in one mode: by lookup, race, heuristic or not at all."""

    mode: str
    how: str
    solver: str | None
    why: str


def serves(name: str, direction: str) -> bool:
    """Whether a solver can serve a direction on gfx906 in this library."""
    solver = registry().get(name)
    return solver is not None and solver.usable and direction in solver.directions


def known_of(direction: str, *, system: Record | None, user: Record | None) -> Known:
    """Choose as MIOpen does: a user's record replaces the system's, it is not merged."""
    if user is not None:
        return Known(direction, user, USER, system)
    return Known(direction, system, SYSTEM, None)


def answers(known: Known) -> Iterator[Answer]:
    """Yield what happens in each mode of the Find API, then in immediate mode."""
    yield _normal(known)
    yield _fast(known, "FAST (2)")
    yield _hybrid(known, "HYBRID (3)", "all applicable solvers")
    yield _hybrid(known, "DYNAMIC_HYBRID (5, the default)", "applicable dynamic solvers")
    yield _trust(known)
    yield Answer(
        "TRUST_VERIFY_FULL (7)", _trust(known).how, None,
        "as TRUST_VERIFY, but this mode was never observed",
    )  # fmt: skip
    yield _fast(known, "immediate mode")


def _normal(known: Known) -> Answer:
    why = "the system's db is not asked; every applicable solver is timed again"
    if known.origin == USER and known.record:
        why += ", and the user's record is written anew"
    why += "; PyTorch's benchmark=True is this mode"
    return Answer("NORMAL (1)", RACE, None, why)


def _fast(known: Known, mode: str) -> Answer:
    if chosen := _chosen(known):
        return Answer(mode, LOOKUP, chosen.solver, _lookup(known, chosen))
    reason = _no_answer(known)
    counted = ""
    if known.record is not None:
        counted = f" ({len(known.record.items)} solutions are counted, none is returned)"
    why = (
        f"{reason}{counted}: a heuristic chooses without timing: the model of gfx908 if its "
        "files lie beside the db, else the lowest predicted work; fails with "
        "MIOPEN_DEBUG_CONV_IMMED_FALLBACK=0"
    )
    return Answer(mode, HEURISTIC, None, why)


def _hybrid(known: Known, mode: str, field: str) -> Answer:
    if chosen := _chosen(known):
        return Answer(
            mode, LOOKUP, chosen.solver, _lookup(known, chosen) + "; nothing is timed"
        )
    then = f"{field} are timed, the fastest wins and is written to the user's db"
    why = f"{_no_answer(known)}: {then}"
    return Answer(mode, RACE, None, why)


def _trust(known: Known) -> Answer:
    mode = "TRUST_VERIFY (6)"
    if chosen := _chosen(known):
        why = _lookup(known, chosen) + (
            "; it is timed again, and replaced by a race if it is slower than recorded; its "
            "numbers are never checked"
        )
        return Answer(mode, LOOKUP, chosen.solver, why)
    return Answer(mode, RACE, None, f"{_no_answer(known)}: as in HYBRID")


def _chosen(known: Known) -> Item | None:
    return known.usable[0] if known.usable else None


def _lookup(known: Known, chosen: Item) -> str:
    others = len(known.record.items) - 1 if known.record else 0
    passed = [
        item.solver
        for item in (known.record.items if known.record else ())
        if item.time < chosen.time and item not in known.usable
    ]
    text = (
        f"the fastest of the {known.origin}'s record whose workspace fits: {chosen.time:g} ms"
    )
    text += f", {chosen.workspace} bytes of workspace, {others} others"
    if passed:
        text += f"; passed over, as they cannot serve: {', '.join(passed)}"
    if known.hidden:
        text += "; the system's record is hidden by the user's"
    if registry()[chosen.solver].assembly:
        text += "; in a build without assembly kernels (Debian's) this ends in status 7"
    return text


def _no_answer(known: Known) -> str:
    if known.record is None:
        return "no db has the key"
    names = ", ".join(item.solver for item in known.record.items)
    hidden = "; it hides the system's record" if known.hidden else ""
    return f"the {known.origin}'s record names only {names}, which cannot serve{hidden}"


def item_reasons(record: Record, direction: str) -> Mapping[str, str]:
    """Say for each item of a record whether it can serve, or why not."""
    return {item.solver: _reason(item.solver, direction) for item in record.items}


def _reason(name: str, direction: str) -> str:
    solver = registry().get(name)
    if solver is None:
        return "MIOpen 3.5.1 has no such solver"
    if direction not in solver.directions:
        return f"serves {'/'.join(solver.directions) or 'nothing by itself'}, not {direction}"
    return solver.serves

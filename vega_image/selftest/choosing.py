"""From a wish to the trials that will run, in their order."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import cast

from vega_image.selftest import datafiles, endurance, speed, tables
from vega_image.selftest.arguments import Wish
from vega_image.selftest.case import LEVELS, Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.identity import Known
from vega_image.selftest.levels import TABLE, telling
from vega_image.selftest.runner import Item, Part
from vega_image.selftest.suite import OWN, Suite, group_of
from vega_image.selftest.suites.golden_table import shipped

PLAN = "vega_image.selftest.suites.plan"
WILD = "*?["
SHOWN = 12


def all_cases() -> tuple[Case, ...]:
    """Return every case. Raises SelftestError (4) unless every table is whole and right."""
    # First, for it tells another version from damage.
    shipped()
    for name in datafiles.TABLES:
        datafiles.table(name)
    try:
        return tables.cases()
    except (tables.TableError, KeyError, TypeError) as error:
        raise datafiles.damaged(str(error), at="data") from error


def one_case(name: str) -> Case:
    """Return the case of an id or name. Raises SelftestError for none."""
    all_cases()
    try:
        return tables.find_case(name)
    except tables.UnknownCaseError as error:
        raise SelftestError(
            "UNKNOWN_CASE", str(error), hint="vega-image selftest list", at=name
        ) from error


def chosen_cases(names: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases that names, ids, groups (`conv/stem_c3`) or patterns choose."""
    everything = all_cases()
    if not names:
        return everything
    picked: dict[str, Case] = {}
    for name in names:
        found = [case for case in everything if _fits(case, name)]
        for case in found or [one_case(name)]:
            picked[case.id] = case
    return tuple(case for case in everything if case.id in picked)


def _fits(case: Case, name: str) -> bool:
    words = (case.id, case.name, group_of(case))
    if any(sign in name for sign in WILD):
        return any(fnmatchcase(word, name) for word in words)
    return name in words


def problems_of(wish: Wish) -> tuple[tuple[Case, str, str], ...]:
    """Return what a solver sweep is about: convolutions with a direction and a format.

    Cases that are named are swept whatever their level. Raises SelftestError for --profile.
    """
    only = dict(item.split("=", 1) for item in wish.only)
    if "profile" in only:
        raise SelftestError(
            "USAGE",
            "a solver sweep always asks for whole numbers and for real ones",
            hint="leave --profile out",
        )
    tiers = TABLE[wish.level].tiers
    return tuple(
        (case, direction, dtype)
        for case in chosen_cases(wish.cases)
        if "miopen_key" in case.params and (wish.cases or case.tier in tiers)
        for dtype in case.dtypes
        for direction in case.directions
        if only.get("direction", direction) == direction and only.get("dtype", dtype) == dtype
    )


def needs_torch(case: Case, trial: Trial) -> bool:
    """Whether the right answer is computed with torch: not that of a convolution."""
    if case.kind != "regression":
        return case.kind in {"op", "linalg"}
    listed = cast("list[dict[str, object]]", case.params["replays"])
    return listed[int(trial.profile.rpartition(".")[2])]["kind"] != "conv"


def parts_of(wish: Wish, known: Known) -> tuple[Part, ...]:
    """Plan a run. Raises SelftestError where nothing is left to run."""
    level = TABLE[wish.level]
    found = chosen_cases(wish.cases)
    by_id = {case.id: case for case in found}
    only = [tuple(item.split("=", 1)) for item in wish.only]
    plan = cast("Suite", importlib.import_module(PLAN))
    items: list[Item] = [
        (by_id[trial.case], trial)
        for trial in plan.trials(found, wish.level)
        if all(getattr(trial, name) == value for name, value in only)
    ]
    if wish.budget is not None:
        items.sort(key=lambda item: telling(*item))
    parts = [Part(OWN, tuple(items))] if items else []
    if not (wish.cases or wish.only or wish.plant):
        size = endurance.size_of(
            level, source=known.asked_as, memory=known.memory, soak=wish.soak
        )
        long = endurance.cases_of(size)
        quick = speed.cases_of(level, source=known.asked_as)
        parts += [Part(speed.NAME, quick)] if quick else []
        parts += [Part(endurance.NAME, long)] if long else []
    if not parts:
        _refuse_unknown(plan, only)
        tiers = ", ".join(sorted({case.tier for case in found}))
        raise SelftestError(
            "NOTHING_TO_RUN",
            f"level {wish.level} asks for no trial of these cases; they begin at {tiers}",
            hint=f"--level {max(case.tier for case in found)}",
        )
    return tuple(parts)


def _refuse_unknown(plan: Suite, only: Sequence[tuple[str, ...]]) -> None:
    """Raise SelftestError for a direction, dtype or profile that no trial has at any level."""
    everything = tuple(plan.trials(all_cases(), LEVELS[-1]))
    for name, value in only:
        known = sorted({str(getattr(trial, name)) for trial in everything})
        if value not in known:
            shown = ", ".join(known[:SHOWN])
            text = f"no trial has {name} {value}"
            raise SelftestError("USAGE", text, hint=f"--{name} takes {shown}", at=value)

"""Replays of reported faults: the reported shape, through the oracle of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.suites.conv.geometry import from_params
from vega_image.selftest.suites.conv.prepare import prepare_geometry
from vega_image.selftest.suites.linalg.prepare import prepare_linalg
from vega_image.selftest.suites.ops.prepare import prepare_op
from vega_image.selftest.suites.prepared import Prepared
from vega_image.selftest.tables import find_case


def prepare_regression(case: Case, trial: Trial) -> Prepared:
    """Make one replay of a regression ready, under the regression's own name."""
    replay = replayed(case, trial)
    if replay["kind"] == "conv":
        return prepare_geometry(case, trial, from_params(replay), layout="NCHW")
    inner = _inner(replay, trial)
    target = find_case(inner.case)
    prepare = prepare_op if target.kind == "op" else prepare_linalg
    found = prepare(target, inner)
    request = replace(found.request, key=trial.key)
    where = f"{case.id}: {found.where}"
    return replace(found, trial=trial, case=case, request=request, where=where)


def replayed(case: Case, trial: Trial) -> Mapping[str, Any]:
    """Return the row that a trial's profile numbers."""
    listed = cast("list[dict[str, Any]]", case.params["replays"])
    return listed[int(trial.profile.rpartition(".")[2])]


def _inner(replay: Mapping[str, Any], trial: Trial) -> Trial:
    if replay["kind"] == "linalg":
        profile = f"{replay['profile']}.{replay['number']}"
        return Trial(replay["case"], trial.direction, trial.dtype, profile)
    number = replay["variant"]
    profile = replay["profile"] + (f".{number}" if number else "")
    return Trial(replay["op"], trial.direction, trial.dtype, profile)

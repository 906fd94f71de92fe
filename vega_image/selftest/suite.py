"""What the harness needs of a suite, so that it can be driven with any."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol, cast

from vega_image.selftest.case import Case, Trial
from vega_image.selftest.errors import SelftestError
from vega_image.selftest.judgement import Judgement
from vega_image.selftest.seam import Array, Outcome, Request

OWN = "vega_image.selftest.suites.registry"


class Prepared(Protocol):
    """A trial's request and whatever its oracle will need."""

    @property
    def request(self) -> Request:
        """What the device is asked."""
        ...

    @property
    def flops(self) -> float:
        """The operations it takes at least, 0 if nobody knows."""
        ...


class Suite(Protocol):
    """Cases, trials and oracles; a module has this shape as well as an object."""

    @property
    def FAULTS(self) -> Sequence[str]:  # noqa: N802 - a module's constant
        """Ids of the faults that `plant` knows."""
        ...

    def trials(self, cases: Sequence[Case], level: str, /) -> Iterator[Trial]:
        """Yield the trials of a level in order: what all else rests on comes first."""
        ...

    def prepare(self, trial: Trial, /) -> Prepared:
        """Make the request; the same for the same trial, always."""
        ...

    def judge(self, prepared: Prepared, outcome: Outcome, /) -> Judgement:
        """Compare with the oracle."""
        ...

    def plant(
        self, fault: str, prepared: Prepared, outputs: Mapping[str, Array], /
    ) -> Mapping[str, Array]:
        """Return outputs as a device with this fault would give them."""
        ...

    def self_check(self, group: str, /) -> bool:
        """Say whether a fault planted in a right result of this group is flagged."""
        ...


@dataclass(frozen=True)
class Work:
    """What one child does: `runs` of each trial, within `repeat_seconds` of its time.

    `known` holds digests of answers judged before; `plant` a fault. `seconds` is what is left
    of the budget, 0 for no budget. `memory` limits the child's own data in bytes, 0 for no
    limit. `record` is a recording to append to. `user_db` is where MIOpen writes its finds,
    if a solver is forced.
    """

    suite: str
    device: str
    trials: tuple[Trial, ...]
    groups: tuple[str, ...]
    runs: int = 1
    repeat_seconds: float = 1e9
    known: Mapping[str, str] = field(default_factory=dict)
    plant: str = ""
    seconds: float = 0.0
    memory: int = 0
    record: str = ""
    user_db: str = ""


def load_suite(name: str) -> Suite:
    """Import a suite by its module's name. Raises SelftestError (5) if it cannot be."""
    return cast("Suite", load_module(name))


def load_module(name: str) -> ModuleType:
    """Import what needs more than Python itself. Raises SelftestError (5) without it."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        # A library that is missing is an OSError, one of another version anything at all.
        missing = getattr(error, "name", None) or name
        why = "" if isinstance(error, ModuleNotFoundError) else f": {error}"
        raise SelftestError(
            "MODULE_MISSING",
            f"this Python cannot import {missing}{why}",
            exit_code=5,
            hint="install numpy and torch for it, or run it with the image's own Python",
            at=str(missing),
        ) from error


def group_of(case: Case) -> str:
    """Name the group a case is checked and isolated with.

    >>> from vega_image.selftest.case import Case
    >>> group_of(Case("op1", "op", "add", "elementwise", "r2", (), (), "", "", "", ""))
    'op/elementwise'
    """
    return f"{case.kind}/{case.family}"

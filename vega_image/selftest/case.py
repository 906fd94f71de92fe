"""A case of the suite and a trial of a case, as values; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("op", "linalg", "conv", "regression")
LEVELS = ("r1", "r2", "r3", "r4")


@dataclass(frozen=True)
class Case:
    """One row of the suite.

    `directions` are `fwd bwd` for operations, `F B W` for convolutions, `fwd` else. `source`
    is the upstream file, issue or report it comes from. `tier` is the first level that runs
    it. `params` holds shapes and attributes as plain JSON. `unsupported_allowed`: a device
    may say that it has no such operation without failing the level.
    """

    id: str
    kind: str
    name: str
    family: str
    tier: str
    dtypes: tuple[str, ...]
    directions: tuple[str, ...]
    source: str
    oracle: str
    bound: str
    why: str
    params: Mapping[str, object] = field(default_factory=dict)
    layout: str = ""
    unsupported_allowed: bool = False


@dataclass(frozen=True)
class Trial:
    """One thing a device is asked: `profile` names the input family, e.g. `int`, `real`.

    `solver` is empty unless one is forced; `rep` counts repeats from 0.
    """

    case: str
    direction: str
    dtype: str
    profile: str
    rep: int = 0
    solver: str = ""

    @property
    def key(self) -> str:
        """Its name everywhere: in seeds, journals, goldens and reports."""
        parts = [self.case, self.dtype, self.direction, self.profile, str(self.rep)]
        return ":".join([*parts, self.solver] if self.solver else parts)

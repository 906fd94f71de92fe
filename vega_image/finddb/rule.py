"""Deny rules: solvers kept out of every curated db, whatever the evidence says.

One YAML file each in rules/, a few conditions that must all hold. A rule says why, and where
that is known from in public (`source`) or which evidence shows it (`evidence`); one that says
neither is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from vega_image.errors import UsageError
from vega_image.finddb.problem import Problem
from vega_image.finddb.record import Item
from vega_image.finddb.registry import registry
from vega_image.model import Model

Count = Annotated[int, Field(ge=1)]
# A repository's issue, pull request or file, a tracker's number, or a public page.
SOURCE = (
    r"^([\w.-]+/[\w.-]+(#[0-9]+| PR#[0-9]+| [\w./-]+\.\w+).*|SWDEV-[0-9]+.*|https://\S+.*)$"
)
EVIDENCE = r"^[0-9a-f]{12}:[0-9]+(,[0-9]+)*$"


class When(Model):
    """Conditions on a problem and on the workspace; all that are given must hold.

    `filter`, `y_size` ... are (height, width) in 2-D; `*_above` holds if any number is above,
    `size_multiple_of` if the input's height or width is a multiple.
    """

    direction: Literal["F", "B", "W"] | None = None
    dtype: list[str] | None = None
    dims: Literal[2, 3] | None = None
    batch: Count | None = None
    x_channels: Count | None = None
    y_channels: Count | None = None
    x_size: list[Count] | None = None
    filter: list[Count] | None = None
    filter_width_even_from: Count | None = None
    stride: list[Count] | None = None
    stride_above: Count | None = None
    pads: list[Annotated[int, Field(ge=0)]] | None = None
    size_multiple_of: Count | None = None
    workspace_above: Count | None = None

    def holds(self, problem: Problem, workspace: int) -> bool:
        """Whether all conditions hold."""
        return self.of_problem(problem) and (
            self.workspace_above is None or workspace > self.workspace_above
        )

    def of_problem(self, problem: Problem) -> bool:
        """Whether all conditions but that on the workspace hold."""
        equal: tuple[tuple[object, object], ...] = (
            (self.direction, problem.direction),
            (self.dims, problem.dims),
            (self.batch, problem.batch),
            (self.x_channels, problem.x_channels),
            (self.y_channels, problem.y_channels),
            (_tuple(self.x_size), problem.x_size),
            (_tuple(self.filter), problem.filter),
            (_tuple(self.stride), problem.strides),
            (_tuple(self.pads), problem.pads),
        )
        return (
            all(wanted is None or wanted == found for wanted, found in equal)
            and (self.dtype is None or problem.dtype in self.dtype)
            and self._numbers_hold(problem)
        )

    def _numbers_hold(self, problem: Problem) -> bool:
        above, multiple, even = (
            self.stride_above, self.size_multiple_of, self.filter_width_even_from,
        )  # fmt: skip
        width = problem.filter[-1]
        return (
            (above is None or max(problem.strides) > above)
            and (multiple is None or any(n % multiple == 0 for n in problem.x_size[-2:]))
            and (even is None or (width % 2 == 0 and width >= even))
        )


class Rule(Model):
    """One deny rule; `solvers` are names or patterns with `*`."""

    id: str = Field(pattern="^[a-z0-9][a-z0-9-]*$")
    deny: list[str] = Field(min_length=1)
    when: When = When()
    why: str = Field(min_length=20)
    source: list[Annotated[str, Field(pattern=SOURCE)]] = Field(default_factory=list)
    evidence: list[Annotated[str, Field(pattern=EVIDENCE)]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_grounds(self) -> Rule:
        if not self.source and not self.evidence:
            msg = "a rule needs a public source or evidence"
            raise ValueError(msg)
        unmatched = [one for one in self.deny if not _names(one)]
        if unmatched:
            msg = f"no solver is called {unmatched[0]!r}"
            raise ValueError(msg)
        return self

    @property
    def solvers(self) -> frozenset[str]:
        """Return the solvers it may deny."""
        return frozenset(name for pattern in self.deny for name in _names(pattern))

    def denies(self, problem: Problem, item: Item) -> bool:
        """Whether it keeps an item out of a problem's record."""
        return item.solver in self.solvers and self.when.holds(problem, item.workspace)


def _tuple(numbers: list[int] | None) -> tuple[int, ...] | None:
    return None if numbers is None else tuple(numbers)


def _names(pattern: str) -> tuple[str, ...]:
    return tuple(name for name in registry() if fnmatchcase(name, pattern))


class Rules:
    """All rules, asked by solver."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.all = tuple(sorted(rules, key=lambda rule: rule.id))
        self._by_solver: dict[str, tuple[Rule, ...]] = {}
        for rule in self.all:
            for name in rule.solvers:
                self._by_solver[name] = (*self._by_solver.get(name, ()), rule)
        self._concerned = frozenset(self._by_solver)

    @property
    def concerned(self) -> frozenset[str]:
        """Return every solver that some rule may deny."""
        return self._concerned

    def denying(self, problem: Problem, item: Item) -> Rule | None:
        """Return the first rule that keeps an item out, None where none does."""
        for rule in self._by_solver.get(item.solver, ()):
            if rule.when.holds(problem, item.workspace):
                return rule
        return None


def decode_rule(text: str, at: str) -> Rule:
    """Read one rule; raises UsageError RULE_INVALID."""
    try:
        value = yaml.safe_load(text)
        rule = Rule.model_validate(value)
    except (yaml.YAMLError, ValidationError) as error:
        msg = f"{at}: {_first(error) if isinstance(error, ValidationError) else error}"
        hint = "vega_image/finddb/rules/ holds rules to copy from"
        raise UsageError("RULE_INVALID", msg, at=at, hint=hint) from None
    if f"{rule.id}.yaml" != at.rpartition("/")[2]:
        msg = f"{at}: the rule calls itself {rule.id!r}"
        raise UsageError("RULE_INVALID", msg, at=at, hint=f"name the file {rule.id}.yaml")
    return rule


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def decode_rules(texts: Mapping[str, str]) -> Rules:
    """Read rules: file name -> text."""
    return Rules(decode_rule(text, name) for name, text in sorted(texts.items()))


@lru_cache(maxsize=1)
def shipped_rules() -> Rules:
    """Return the rules that come with vega-image."""
    folder = files("vega_image.finddb") / "rules"
    texts = {
        one.name: one.read_text(encoding="utf-8")
        for one in folder.iterdir()
        if one.name.endswith(".yaml")
    }
    return decode_rules(texts)

"""The report as a value: everything a reader may ask, and its JSON form. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vega_image.selftest.encode import Json, encode
from vega_image.selftest.finding import Finding
from vega_image.selftest.result import FACT, GOOD, Result, counts, exit_code, gravest_first
from vega_image.selftest.texts import Texts
from vega_image.selftest.verdict import Verdict

SCHEMA = "vega-selftest-report/1"
WORDS = {0: "pass", 7: "fail", 8: "fail", 9: "unproven"}
EDGES = (0.0, 0.001, 0.01, 0.1, 0.5, 1.0)
"""Upper ends of the histogram's bins; one more bin holds what is above the bound."""
ACTIONS = {
    Verdict.MISMATCH: "ISOLATE",
    Verdict.NOT_FINITE: "ISOLATE",
    Verdict.CRASHED: "RESET",
    Verdict.TIMED_OUT: "RESET",
    Verdict.SUBSTITUTED: "CONFIG",
    Verdict.UNSUPPORTED: "CONFIG",
    Verdict.DEGRADED: "ISOLATE",
}
ORDER = ("ISOLATE", "RESET", "CONFIG", "TRIAGE", "RERUN", "MONITOR")


def _action(verdict: Verdict, *, cut: bool) -> str:
    """Name what a verdict asks for; what a short time left out only asks for more time."""
    if cut and verdict is Verdict.UNPROVEN:
        return "RERUN"
    return ACTIONS.get(verdict, "TRIAGE")


@dataclass(frozen=True)
class Run:
    """What is known of the run besides its results; times are seconds, `started` ISO 8601.

    `flags` are texts' names and values: whatever a reader must know beside the verdict.
    """

    level: str
    device: str
    source: str
    identity: Mapping[str, object]
    suite: str
    started: str
    seconds: float
    digests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Family:
    """One family's numbers; `histogram` counts error over bound by EDGES and one above."""

    group: str
    trials: int
    proven: int
    unproven: int
    unsupported: int
    wrong: int
    seconds: float
    histogram: tuple[int, ...]


@dataclass(frozen=True)
class Report:
    """A run, its results and what they add up to."""

    run: Run
    results: tuple[Result, ...]

    @property
    def exit_code(self) -> int:
        """Return 0, 7 (the card answers no more until the host resets it), 8 or 9."""
        return 7 if "reset" in self.run.flags else exit_code(self.results)

    @property
    def verdict(self) -> str:
        """Return pass, fail or unproven."""
        return WORDS[self.exit_code]

    @property
    def flags(self) -> Mapping[str, str]:
        """The run's flags, and whether less precise results were accepted."""
        soft = sum(item.verdict == Verdict.DEGRADED and item.accepted for item in self.results)
        return {**self.run.flags, **({"degraded": str(soft)} if soft else {})}

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do, most urgent first: the severity of an error is an action."""
        if self.run.flags.get("planted"):
            # What was found was put there; it says nothing of the device.
            return ()
        bad = gravest_first(self.results)
        cut = bool(self.run.flags.get("budget"))
        found = {_action(item.verdict, cut=cut) for item in bad}
        if not bad and self.flags.get("degraded"):
            found = {"MONITOR"}
        return tuple(action for action in ORDER if action in found)

    def words(self, texts: Texts) -> str:
        """Say the verdict in words, and at once if no card gave it or a fault was planted."""
        marks = [texts.say(f"mark.{self.run.source}")] if self.run.source != "device" else []
        marks += [texts.say("mark.planted")] if self.run.flags.get("planted") else []
        word = texts.say(f"verdict.{'silent' if self._silent else self.verdict}")
        return f"{word} [{'; '.join(marks)}]" if marks else word

    @property
    def _silent(self) -> bool:
        """Whether all that failed gave no numbers at all, right or wrong."""
        failing = {item.verdict for item in self.results if item.failing}
        return bool(failing) and failing <= {Verdict.CRASHED, Verdict.TIMED_OUT}

    def headline(self, texts: Texts) -> str:
        """Return the verdict's line."""
        return f"{self.words(texts)}: {self.sentence(texts)}"

    def todo(self, texts: Texts) -> tuple[str, ...]:
        """Say what to do, in sentences; never nothing."""
        found = self.run.flags.get("planted") and self.verdict == "fail"
        rest = "none" if self.run.source == "device" else "reference"
        names = ("planted",) if found else self.actions or (rest,)
        return tuple(texts.say(f"action.{name}") for name in names)

    def sentence(self, texts: Texts) -> str:
        """Say the verdict in one sentence."""
        part = ".chosen" if self.verdict == "pass" and self.flags.get("cases") else ""
        required = [item for item in self.results if item.required]
        proven = sum(item.accepted for item in required)
        wrong = sum(item.failing for item in required)
        return texts.say(
            f"sentence.{self.verdict}{part}",
            device=self.run.device,
            level=self.run.level,
            required=len(required),
            proven=proven,
            wrong=wrong,
            missing=len(required) - proven,
        )

    def labels(self, texts: Texts) -> tuple[str, ...]:
        """Say where the numbers come from and every flag: part of the verdict's line."""
        flags = (texts.say(f"flag.{name}", value=value) for name, value in self.flags.items())
        return (texts.say(f"source.{self.run.source}"), *flags)


def families(results: Sequence[Result]) -> tuple[Family, ...]:
    """Add up each family, in the order it ran; facts of the machine prove no numbers."""
    computed = [item for item in results if item.case.kind != FACT]
    groups = dict.fromkeys(item.group for item in computed)
    return tuple(
        _family(group, [item for item in computed if item.group == group]) for group in groups
    )


def _family(group: str, items: Sequence[Result]) -> Family:
    return Family(
        group=group,
        trials=len(items),
        proven=sum(item.verdict in GOOD and item.accepted for item in items),
        unproven=sum(
            not (item.accepted or item.failing or item.verdict == Verdict.UNSUPPORTED)
            for item in items
        ),
        unsupported=sum(item.verdict == Verdict.UNSUPPORTED for item in items),
        wrong=sum(item.failing for item in items),
        seconds=math.fsum(item.record.seconds for item in items),
        histogram=histogram([item.usage for item in items]),
    )


def histogram(usages: Sequence[float | None]) -> tuple[int, ...]:
    """Count shares of the bound by EDGES; what is not a number counts as above.

    >>> histogram([0.0, 0.05, 1.0, 1.5, float("nan"), None])
    (1, 0, 0, 1, 0, 1, 2)
    """
    bins = [0] * (len(EDGES) + 1)
    for usage in usages:
        if usage is not None:
            fits = (number for number, edge in enumerate(EDGES) if usage <= edge)
            bins[next(fits, len(EDGES))] += 1
    return tuple(bins)


def to_json(report: Report, texts: Texts) -> Json:
    """Return the whole report as JSON values, as data/report.schema.json says."""
    run = report.run
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "sentence": report.sentence(texts),
        "labels": list(report.labels(texts)),
        "actions": list(report.actions),
        "level": run.level,
        "source": run.source,
        "device": {"name": run.device, **{key: str(run.identity[key]) for key in run.identity}},
        "suite": run.suite,
        "digests": dict(run.digests),
        "versions": dict(run.versions),
        "flags": dict(report.flags),
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "counts": dict(counts(report.results)),
        "histogram_edges": list(EDGES),
        "families": encode(families(report.results)),
        "findings": encode(run.findings),
        "results": [result_json(item) for item in report.results],
    }


def summary_json(report: Report, folder: str) -> Json:
    """Return what `--json` prints."""
    run = report.run
    return {
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "level": run.level,
        "device": run.device,
        "source": run.source,
        "flags": dict(report.flags),
        "counts": dict(counts(report.results)),
        "failures": [_failure(item) for item in gravest_first(report.results)],
        "report": folder,
    }


def _failure(item: Result) -> Json:
    return {
        "case": item.case.id,
        "direction": item.trial.direction,
        "dtype": item.trial.dtype,
        "verdict": item.verdict.value,
        "bound": finite(item.record.bound),
        "error": finite(item.record.error),
        "detail": item.record.detail,
    }


def result_json(item: Result) -> Json:
    """Return one result; numbers that JSON has no word for are null."""
    record, trial = item.record, item.trial
    return {
        "key": trial.key,
        "case": item.case.id,
        "name": item.case.name,
        "group": item.group,
        "direction": trial.direction,
        "dtype": trial.dtype,
        "profile": trial.profile,
        "rep": trial.rep,
        "solver": trial.solver,
        "solver_ran": record.solver,
        "verdict": record.verdict.value,
        "required": item.required,
        "accepted": item.accepted,
        "oracle": record.oracle,
        "error": finite(record.error),
        "bound": finite(record.bound),
        "seconds": finite(record.seconds),
        "repeatable": record.repeatable,
        "digest": record.digest,
        "source": item.case.source,
        "detail": record.detail,
    }


def finite(value: float | None) -> float | None:
    """Return a number JSON can hold."""
    return value if value is not None and math.isfinite(value) else None

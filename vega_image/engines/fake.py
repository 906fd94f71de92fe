"""The engine of `--dry-run` and of fast tests: checks all that can be checked, runs nothing.

Its artifacts depend on the step's id alone. They are not what a real engine would make, so
they belong in a store of their own.
"""

from __future__ import annotations

from vega_image.engines.base import ARCHIVE, LAYERS, MANIFEST, REPORT, TREE, Artifact, Work
from vega_image.engines.context import context_tar
from vega_image.engines.dockerfile import check_closed
from vega_image.engines.stage import DOCKERFILE, dockerfile_of
from vega_image.plan import Step, StepKind

_MADE = {
    StepKind.ROOT: TREE,
    StepKind.STAGE: TREE,
    StepKind.SLIM: TREE,
    StepKind.CENSUS: REPORT,
    StepKind.FINDDB: TREE,
    StepKind.LAYERS: LAYERS,
    StepKind.IMAGE: MANIFEST,
    StepKind.ARCHIVE: ARCHIVE,
}


class FakeEngine:
    """Implements `Engine` for every kind of step."""

    @property
    def name(self) -> str:
        """What a listing calls this engine."""
        return "fake"

    def build(self, step: Step, work: Work) -> Artifact:
        """Say what would run; raises UsageError as a real engine does for a bad context."""
        if step.kind is StepKind.STAGE:
            text = dockerfile_of(step, work)
            check_closed(text, at=f"stage {step.name}: {DOCKERFILE}")
            for _chunk in context_tar(work.files, {}, epoch=work.epoch):
                pass
        work.log(f"{step.name}: would run ({step.kind})")
        digest = work.store.put_json({"schema": 1, "entries": [], "not_built": step.id})
        return Artifact(step=step.id, digest=digest, media_type=_MADE[step.kind])

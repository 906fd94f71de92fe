"""Run one stage on a Docker-API engine: parent in, Dockerfile run, what changed out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

from vega_image.engines.base import TREE, Artifact, Work
from vega_image.engines.container import LABEL
from vega_image.engines.context import context_tar
from vega_image.engines.dockerfile import check_closed
from vega_image.engines.events import BuildEvents, failure_of
from vega_image.engines.parent import ParentImage
from vega_image.engines.saved import layers_above
from vega_image.errors import EngineError, UsageError
from vega_image.plan import Step, StepKind
from vega_image.rootfs.overlay import apply_layers
from vega_image.rootfs.tarread import ByteSource
from vega_image.rootfs.tree import Tree
from vega_image.store import disk_errors

DOCKERFILE = "Dockerfile"


class StageApi(Protocol):
    """What a stage needs of an engine."""

    @property
    def owner(self) -> str:
        """Whose label goes on everything made."""
        ...

    def load_image(self, archive: Iterable[bytes], *, progress: Callable[[int], None]) -> str:
        """Load an archive and return the image id."""
        ...

    def build_image(
        self,
        context: Iterable[bytes],
        *,
        base: str,
        on_event: Callable[[Mapping[str, object]], None],
    ) -> None:
        """Build without network; every event goes to `on_event`."""
        ...

    def saved(self, image: str) -> AbstractContextManager[ByteSource]:
        """Open an image's archive for reading."""
        ...

    def clear(self, labels: Mapping[str, str]) -> None:
        """Remove every container and image that carries all these labels."""
        ...


def build_stage(api: StageApi, step: Step, work: Work, *, owner_label: str) -> Artifact:
    """Build a step of kind `stage`; nothing of it stays in the engine, whatever happens.

    Raises UsageError for a Dockerfile that reaches out, StageError STAGE_FAILED when its
    program fails, EngineError when the engine does.
    """
    if step.kind is not StepKind.STAGE or work.parent is None:
        msg = f"{step.name}: a container engine builds stages on a tree, not {step.kind}"
        raise UsageError("NOT_A_STAGE", msg, at=step.name)
    check_closed(dockerfile_of(step, work), at=f"stage {step.name}: {DOCKERFILE}")
    labels = {LABEL: step.id, owner_label: api.owner}
    tree = Tree.from_json(
        work.store.read_json(work.parent.digest, what=f"what {step.name} builds on")
    )
    parent = ParentImage(tree=tree, store=work.store, labels=labels, epoch=work.epoch)
    try:
        layers = _layers(api, parent, step, work)
    except BaseException:
        # What cannot be removed now goes at the next start; the first error matters more.
        with suppress(EngineError):
            api.clear(labels)
        raise
    api.clear(labels)
    with disk_errors(work.store.root):
        result = apply_layers(
            tree, layers, store=work.store, owner=f"stage:{step.name}", note=work.log
        )
    return artifact_of(result, step, work)


def artifact_of(tree: Tree, step: Step, work: Work) -> Artifact:
    """Store a tree as the step's result."""
    needs = {entry.content.object for entry in tree.entries if entry.content}
    digest = work.store.put_json(tree.to_json())
    return Artifact(step=step.id, digest=digest, media_type=TREE, needs=tuple(sorted(needs)))


def _layers(api: StageApi, parent: ParentImage, step: Step, work: Work) -> list[Path]:
    total = parent.size()
    loaded = api.load_image(
        parent.stream(), progress=lambda sent: work.progress(min(sent, total), total)
    )
    if loaded != parent.image_id:
        msg = f"the engine loaded {loaded}, not the parent {parent.image_id}"
        raise EngineError("ENGINE_EXPORT", msg, at=step.name)
    events = BuildEvents(work.log)
    placed = {
        path: work.store.verify(digest, what=f"{step.name}: {path}")
        for path, digest in work.objects.items()
    }
    context = context_tar(work.files, placed, epoch=work.epoch)
    api.build_image(context, base=parent.image_id, on_event=events.feed)
    events.close()
    if events.failure is not None or events.image is None:
        raise failure_of(events, step.name, work.log_path)
    with api.saved(events.image) as source, disk_errors(work.scratch):
        return layers_above(source, parent.diff_id, scratch=work.scratch)


def dockerfile_of(step: Step, work: Work) -> str:
    """Return a stage's Dockerfile; raises UsageError STAGE_NO_DOCKERFILE."""
    data = work.files.get(DOCKERFILE)
    if data is None:
        msg = f"stage {step.name}: its recipe renders no {DOCKERFILE}"
        hint = f"add {DOCKERFILE}.j2 to the recipe"
        raise UsageError("STAGE_NO_DOCKERFILE", msg, at=step.name, hint=hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"stage {step.name}: {DOCKERFILE} is not UTF-8 at byte {error.start}"
        raise UsageError("STAGE_NO_DOCKERFILE", msg, at=step.name) from None

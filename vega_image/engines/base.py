"""What any builder of steps must offer, and what the executor hands it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vega_image.plan import Step
from vega_image.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Something a step produced: `digest` is a store object of type `media_type`.

    `needs` are the objects it points to; while one of them is missing, the step is unbuilt.
    """

    step: str
    digest: str
    media_type: str
    needs: tuple[str, ...] = ()


TREE = "application/vnd.vega-image.tree.v1+json"
LAYERS = "application/vnd.vega-image.layers.v1+json"
REPORT = "application/vnd.vega-image.census.v1+json"
ARCHIVE = "application/vnd.vega-image.wsl.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a step may use.

    `parent` is what the step before made. `files` are the exact bytes rendered for the step
    (a stage's Dockerfile and scripts), `objects` further files of its context: path -> store
    digest. `log` takes lines for the stage's log file at `log_path`, `progress` (done, total)
    in bytes or items.
    """

    store: Store
    parent: Artifact | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    scratch: Path
    epoch: int
    log: Callable[[str], None]
    progress: Callable[[int, int], None]
    log_path: Path | None = None
    objects: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Build one step on top of its parent."""

    @property
    def name(self) -> str:
        """What `--engine` calls this engine."""
        ...

    def build(self, step: Step, work: Work) -> Artifact:
        """Run the step to its end.

        Raises StageError STAGE_FAILED when its program fails, EngineError when the engine does.
        """
        ...

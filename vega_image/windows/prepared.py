"""The first half of every word about a Windows target: spec, lock check, stages, the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vega_image.errors import UsageError
from vega_image.factory import Factory
from vega_image.finddb.profile import PLACES, Profile, System, apply
from vega_image.finddb.registry import registry
from vega_image.lock import Lock
from vega_image.lockfile import check_lock, decode_lock
from vega_image.selftest.pack import archive
from vega_image.windows.parts import Job, Parts
from vega_image.windows.references import unsupported
from vega_image.windows.render import image_id, render_windows
from vega_image.windows.spec import Platform, WindowsTarget
from vega_image.windows.stages import (
    SCRIPTS,
    NativeStage,
    StageParts,
    native_stages,
    stage_files,
)

SELFTEST = "media/vega/vega-selftest.pyz"
_TEMPLATES = "templates/"
_WINDOWS = "windows/"
_PATCHES = "windows/patches/clr/"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWindows:
    """A Windows target with its stages and every file of its tree, by path."""

    job: Job
    stages: tuple[NativeStage, ...]
    files: Mapping[str, bytes]

    @property
    def target(self) -> WindowsTarget:
        """Return the spec."""
        return self.job.target

    @property
    def platform(self) -> Platform:
        """Return where it is to live: the spec's platform, or that of --platform."""
        return self.job.platform

    @property
    def image(self) -> str:
        """Return the digest by which the gate knows what the tree makes."""
        return image_id(self.job)


def windows_lock(factory: Factory, target: WindowsTarget) -> Lock:
    """Read a target's lock and check it against the spec; raises LockError."""
    at = f"images/{target.name}.lock.json"
    lock = decode_lock(factory.lock_text(target.name), at=at)
    check_lock(lock, target, tools={})
    return lock


def prepare_windows(
    factory: Factory, target: WindowsTarget, lock: Lock, *, platform: Platform | None = None
) -> PreparedWindows:
    """Plan and render; touches only the factory's texts. `platform` goes before the spec's.

    Raises UsageError PLATFORM_UNSUPPORTED, and what native_stages and render_windows raise.
    """
    chosen = platform or target.platform
    refused = [f"  {path}: {what}" for path, what in unsupported(target, chosen)]
    if refused:
        at = f"images/{target.name}.yaml"
        msg = "\n".join([f"{at} asks for what {chosen} cannot have:", *refused])
        hint = f"edit {at}, or choose another --platform"
        raise UsageError("PLATFORM_UNSUPPORTED", msg, at=at, hint=hint)
    texts = {
        **_below(factory, "templates/windows"),
        **_below(factory, "templates/firstboot/windows"),
    }
    parts = _stage_parts(factory, target, texts)
    stages = native_stages(target, lock.sources, parts=parts)
    kept = Parts(
        texts=texts,
        stage_files=stage_files(stages, parts=parts),
        stages=stages,
        shared=factory.folder("playbooks") | factory.folder("inventory"),
    )
    files = render_windows(target, lock, platform=chosen, parts=kept)
    return PreparedWindows(
        job=Job(target, lock, chosen, kept),
        stages=stages,
        files=dict(sorted({**files, SELFTEST: archive()}.items())),
    )


def find_db(profile: Profile) -> dict[str, bytes]:
    """Return the files of a profile for a Windows machine, by name; {} for `upstream`.

    No find-db is among them: without evidence from a card every problem is the fallback's. The
    names of solvers are those of MIOpen 7.2.4: the library that the stages make was never
    seen, and one that lacks a name refuses every search (status 3) rather than choose.
    """
    folder = PLACES[System.WINDOWS].folder
    made = apply(profile, list(registry()), System.WINDOWS).files
    return {path.removeprefix(f"{folder}/"): data for path, data in made.items()}


def _below(factory: Factory, folder: str) -> dict[str, bytes]:
    return {
        path.removeprefix(_TEMPLATES): data for path, data in factory.folder(folder).items()
    }


def _stage_parts(
    factory: Factory, target: WindowsTarget, texts: Mapping[str, bytes]
) -> StageParts:
    return StageParts(
        recipes={stage.recipe: factory.recipe(stage.recipe).files for stage in target.stages},
        scripts={name: texts[_WINDOWS + name] for name in SCRIPTS if _WINDOWS + name in texts},
        patches={
            path.removeprefix(_PATCHES): data
            for path, data in texts.items()
            if path.startswith(_PATCHES)
        },
        finddb=find_db(Profile(target.finddb.value)),
    )

"""What in a Windows spec points nowhere, or asks for what does not go together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from vega_image.errors import UsageError
from vega_image.spec import IsoSource
from vega_image.windows.isofacts import IsoFact, IsoImage, image_of, iso_fact
from vega_image.windows.spec import Platform, Strategy, WindowsTarget

STAGES = (
    "prerequisites",
    "compiler-runtime",
    "enumeration",
    "math-libs",
    "wheels",
    "pytorch",
    "seal",
)
MAKING = frozenset({"compiler-runtime", "math-libs", "wheels", "pytorch"})
# What packer's plugins for these platforms, or the bare machine, do not have.
_NO_SECURE_BOOT: Mapping[Platform, str] = MappingProxyType(
    {
        Platform.METAL: "the firmware of the machine decides that, not the image",
        Platform.PROXMOX: "its answer file is for a machine without TPM",
    }
)


def windows_dangling(target: WindowsTarget) -> Iterator[tuple[str, str]]:
    """Yield (dotted path, what is wrong) of everything that does not fit together."""
    yield from _edition(target)
    yield from _stages(target)
    yield from unsupported(target, target.platform)
    for name, source in target.sources.items():
        if source.kind in {"debian", "archive"}:
            path = f"sources.{name}.kind"
            yield path, f"a Windows target has iso, file and git sources, not {source.kind}"


def unsupported(target: WindowsTarget, platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield the features that the spec wants and the platform cannot have."""
    why = _NO_SECURE_BOOT.get(platform)
    if target.machine.secure_boot and why:
        yield "machine.secure_boot", f"not with platform {platform}: {why}"
    if target.updates.install_while_building and platform is Platform.METAL:
        message = f"not with platform {platform}: no virtual machine runs while it is built"
        yield "updates.install_while_building", message


def edition_of(target: WindowsTarget) -> IsoImage:
    """Return the chosen edition; raises UsageError UNKNOWN_ISO or UNKNOWN_EDITION."""
    wanted = target.edition
    source = target.sources[wanted.source]
    assert isinstance(source, IsoSource)
    if source.iso is not None:
        return image_of(iso_fact(source.iso), index=wanted.index, name=wanted.name)
    assert source.size is not None
    assert source.sha256 is not None
    if not source.editions:
        # Nobody said what the medium holds: the spec's word is all there is.
        return IsoImage(index=wanted.index or 1, name=wanted.name or f"image {wanted.index}")
    images = tuple(IsoImage(index=i, name=n) for i, n in sorted(source.editions.items()))
    own = IsoFact(
        id=wanted.source, version="0", size=source.size, sha256=source.sha256, images=images
    )
    return image_of(own, index=wanted.index, name=wanted.name)


def _edition(target: WindowsTarget) -> Iterator[tuple[str, str]]:
    source = target.sources.get(target.edition.source)
    if not isinstance(source, IsoSource):
        yield "edition.source", f"no iso source called {target.edition.source!r}"
        return
    try:
        edition_of(target)
    except UsageError as error:
        path = (
            "edition" if error.code == "UNKNOWN_EDITION" else f"sources.{target.edition.source}"
        )
        yield path, f"{error.message} ({error.hint})" if error.hint else error.message


def _stages(target: WindowsTarget) -> Iterator[tuple[str, str]]:
    names = [stage.name for stage in target.stages]
    wanted = [name for name in STAGES if name in names]
    for index, name in enumerate(names):
        if name not in STAGES:
            yield f"stages.{index}.name", f"no stage {name!r}; there are {', '.join(STAGES)}"
    if [name for name in names if name in STAGES] != wanted:
        yield "stages", f"the order is {', '.join(STAGES)}, each once"
    for index, stage in enumerate(target.stages):
        path = f"stages.{index}.strategy"
        if stage.name in MAKING and stage.strategy is None:
            yield path, f"stage {stage.name} wants `source` or `prebuilt`"
        elif stage.name not in MAKING and stage.strategy is not None:
            yield path, f"stage {stage.name} makes nothing, so it has no strategy"
        if stage.strategy is Strategy.PREBUILT and not _files(target, stage.sources):
            yield f"stages.{index}.sources", "`prebuilt` wants a `file` source to take it from"
    if "compiler-runtime" in names and "enumeration" not in names:
        yield "stages", "after compiler-runtime comes enumeration: it compiled proves nothing"


def _files(target: WindowsTarget, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(target.sources.get(name), "kind", "") == "file"]

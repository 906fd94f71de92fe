"""The engine of every step that needs no container: packages, slimming, layers, the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from vega_image.digest import Json
from vega_image.engines.base import ARCHIVE, LAYERS, MANIFEST, TREE, Artifact, Work
from vega_image.engines.device_code import judge_tree, report_json, slim_tree
from vega_image.engines.find_db import with_finddb
from vega_image.errors import StageError
from vega_image.finddb.payload import Payload
from vega_image.lock import Lock, LockedDebian
from vega_image.lockfile import encode_lock
from vega_image.oci.compress import compress, describe, media_type
from vega_image.oci.image import ImageLayer, labels_of, make_image
from vega_image.oci.layer import split, write_layers
from vega_image.plan import Step, StepKind
from vega_image.rootfs.assemble import assemble, merge
from vega_image.rootfs.extract import extract_each
from vega_image.rootfs.generated import Provenance, generated, package_records, skeleton
from vega_image.rootfs.install import install
from vega_image.rootfs.tree import Tree
from vega_image.spec import RootMethod, Target
from vega_image.wsl.archive import archive_tree, write_archive
from vega_image.wsl.reading import refuse_broken

NOTHING = Payload()


class NativeEngine:
    """Implements `Engine` for one target; stages are for the container engines."""

    def __init__(self, target: Target, lock: Lock, payload: Payload = NOTHING) -> None:
        self._target = target
        self._lock = lock
        self._payload = payload

    @property
    def name(self) -> str:
        """What a listing calls this engine."""
        return "native"

    def build(self, step: Step, work: Work) -> Artifact:
        """Make a step; raises what its part raises (StageError, BytesError, EngineError)."""
        makers: Mapping[StepKind, Callable[[Step, Work], Artifact]] = {
            StepKind.ROOT: self._root,
            StepKind.SLIM: self._slim,
            StepKind.CENSUS: self._census,
            StepKind.FINDDB: self._finddb,
            StepKind.LAYERS: self._layers,
            StepKind.IMAGE: self._image,
            StepKind.ARCHIVE: self._archive,
        }
        return makers[step.kind](step, work)

    def _root(self, step: Step, work: Work) -> Artifact:
        root = self._target.root
        source = self._lock.sources[root.source]
        assert isinstance(source, LockedDebian)
        if root.method is RootMethod.INSTALL:
            return _kept(step, work, install(source.packages, root, work))
        parts = extract_each(source.packages, root, work)
        for part in parts:
            for note in part.notes:
                work.log(note)
        entries = [entry for part in parts for entry in part.entries]
        tree = assemble([*entries, *package_records(parts, source.packages, work.store)])
        return _kept(step, work, merge(tree, skeleton(root)))

    def _slim(self, step: Step, work: Work) -> Artifact:
        assert self._target.slim is not None
        return _kept(step, work, slim_tree(_parent(work), self._target.slim, work))

    def _census(self, step: Step, work: Work) -> Artifact:
        """Pass the tree on, or refuse it: this step is a gate."""
        assert self._target.census is not None
        tree = _parent(work)
        found = judge_tree(tree, work.store, target=self._target, census=self._target.census)
        report = work.store.put_json(report_json(found))
        return _kept(step, work, tree, report)

    def _finddb(self, step: Step, work: Work) -> Artifact:
        tree = with_finddb(_parent(work), self._target, self._payload, work)
        return _kept(step, work, tree)

    def _layers(self, step: Step, work: Work) -> Artifact:
        provenance = Provenance(target=self._target, lock=encode_lock(self._lock))
        tree = merge(_parent(work), generated(provenance, work.store))
        parts = split(tree, self._target.layers)
        tars = write_layers(parts, work.store, epoch=work.epoch, progress=work.progress)
        digest = work.store.put_json({"schema": 1, "layers": [tar.to_json() for tar in tars]})
        return Artifact(
            step=step.id,
            digest=digest,
            media_type=LAYERS,
            needs=tuple(tar.diff_id for tar in tars),
        )

    def _archive(self, step: Step, work: Work) -> Artifact:
        """Write the archive and judge its bytes: this step is a gate."""
        provenance = Provenance(target=self._target, lock=encode_lock(self._lock))
        tree = archive_tree(_parent(work), provenance, work.files, work.store)
        level = self._target.compression.level
        made = write_archive(
            tree, work.store, level=level, epoch=work.epoch, progress=work.progress
        )
        work.log(f"archive: {made.uncompressed} -> {made.size} bytes")
        refuse_broken(work.store.path(made.digest), epoch=work.epoch, name=self._target.name)
        digest = work.store.put_json(made.to_json())
        return Artifact(step=step.id, digest=digest, media_type=ARCHIVE, needs=(made.digest,))

    def _image(self, step: Step, work: Work) -> Artifact:
        rows = _rows(work)
        total, before = sum(row["size"] for row in rows), 0
        layers: list[ImageLayer] = []
        for row in rows:
            layers.append(self._compressed(row, work, _offset(work, before, total)))
            before += row["size"]
        image = make_image(
            layers,
            self._target.config,
            labels=labels_of(self._target, self._lock),
            epoch=work.epoch,
        )
        needs = (work.store.put(image.config), *(layer.blob for layer in layers))
        digest = work.store.put(image.manifest)
        return Artifact(step=step.id, digest=digest, media_type=MANIFEST, needs=needs)

    def _compressed(
        self, row: dict[str, Any], work: Work, progress: Callable[[int, int], None]
    ) -> ImageLayer:
        options = self._target.compression
        blob = compress(row["diff_id"], options, work.store, progress=progress)
        work.log(f"{row['name']}: {row['size']} -> {blob.size} bytes")
        return ImageLayer(
            name=row["name"],
            diff_id=row["diff_id"],
            size=row["size"],
            blob=blob.digest,
            blob_size=blob.size,
            media_type=media_type(options.codec),
            compression=describe(options),
        )


def _offset(work: Work, before: int, total: int) -> Callable[[int, int], None]:
    return lambda done, _size: work.progress(before + done, total)


def _parent(work: Work) -> Tree:
    if work.parent is None or work.parent.media_type != TREE:
        msg = "this step needs a tree to work on"
        raise StageError("NO_TREE", msg)
    return Tree.from_json(work.store.read_json(work.parent.digest, what="the step before"))


def _rows(work: Work) -> list[dict[str, Any]]:
    assert work.parent is not None
    value = work.store.read_json(work.parent.digest, what="layers")
    return cast("list[dict[str, Any]]", cast("dict[str, Json]", value)["layers"])


def _kept(step: Step, work: Work, tree: Tree, *also: str) -> Artifact:
    objects = {entry.content.object for entry in tree.entries if entry.content}
    digest = work.store.put_json(tree.to_json())
    needs = (*sorted(objects), *also)
    return Artifact(step=step.id, digest=digest, media_type=TREE, needs=needs)

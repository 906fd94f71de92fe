"""vega-image reproduce: rebuild from the lock inside an image, from an empty store, compare."""

from __future__ import annotations

from pydantic import ValidationError

from vega_image.checks.differ import explained
from vega_image.clioptions import Call
from vega_image.commands.build import keep_image
from vega_image.digest import Json
from vega_image.errors import BytesError, LockError
from vega_image.executor import execute
from vega_image.finddb.payload import FOLDER, ORIGIN, Origin
from vega_image.finddb.profile import ENVIRONMENT
from vega_image.freshstore import empty_store
from vega_image.images import layout_of
from vega_image.line import real_job
from vega_image.lock import Lock
from vega_image.lockfile import check_lock, decode_lock
from vega_image.oci.compare import Difference, first_difference
from vega_image.oci.compress import parse, tool_versions
from vega_image.oci.layout import Layout, read_layout
from vega_image.oci.unpack import image_files
from vega_image.prepare import Prepared, prepare
from vega_image.rootfs.content import Contents
from vega_image.rootfs.generated import LOCK_PATH, TARGET_PATH
from vega_image.spec import Target
from vega_image.store import Store
from vega_image.wsl.handover import archive_of
from vega_image.wsl.rebuilding import reproduce_archive


def reproduce(call: Call, ref: str) -> int:
    """Rebuild and compare; raises BytesError NOT_REPRODUCED naming the first difference."""
    call.factory.refuse_windows(ref)
    store = call.store
    archive = archive_of(store, ref)
    if archive is not None:
        return reproduce_archive(call, ref, archive)
    old = read_layout(layout_of(store, ref))
    target, lock = inside(old, store)
    prepared = prepare(call.factory, target, lock, baked=_baked(old, target, store))
    with empty_store(store, lock) as fresh:
        new = _rebuilt(call, prepared, fresh)
        found = first_difference(old, new, fresh)
        if found is not None:
            lines = [f"{ref}: the rebuild is {new.digest}, not {old.digest}"]
            lines += [f"  first: {found}", *_explained(found, (old, new), fresh)]
            msg = "\n".join(lines)
            hint = f"vega-image inspect {ref}"
            raise BytesError("NOT_REPRODUCED", msg, at=found.where, hint=hint)
    value: Json = {"ref": ref, "digest": old.digest, "reproduced": True}
    call.console.result(
        [f"{ref}: rebuilt from an empty store, same digest {old.digest}"], value
    )
    return 0


def _explained(found: Difference, layouts: tuple[Layout, Layout], store: Store) -> list[str]:
    """Look into the first differing file with diffoscope, if that is here."""
    if found.what != "content":
        return []
    contents = Contents(store)
    sides: dict[str, memoryview] = {}
    for side, layout in zip(("image", "rebuild"), layouts, strict=True):
        files = {file.path: file.content for file in image_files(layout, store)}
        content = files[found.where]
        sides[side] = memoryview(b"") if content is None else contents.view(content)
    return [f"  {line}" for line in explained(sides)]


def inside(layout: Layout, store: Store) -> tuple[Target, Lock]:
    """Read spec and lock out of an image; raises LockError NO_LOCK_INSIDE, LOCK_EDITED."""
    files = {file.path: file.content for file in image_files(layout, store)}
    contents = Contents(store)
    spec, locked = files.get(TARGET_PATH), files.get(LOCK_PATH)
    compression = parse(layout.layers[0].compression) if layout.layers else None
    if spec is None or locked is None or compression is None:
        msg = f"{layout.folder}: the image does not carry its spec, lock and compression"
        raise LockError(
            "NO_LOCK_INSIDE", msg, hint="vega-image build TARGET makes ones that do"
        )
    try:
        target = Target.model_validate_json(bytes(contents.view(spec)))
    except ValidationError as error:
        msg = f"{layout.folder}: {TARGET_PATH}: {error.error_count()} errors"
        raise LockError("NO_LOCK_INSIDE", msg, hint="vega-image build TARGET") from None
    target = target.model_copy(update={"compression": compression})
    lock = decode_lock(bytes(contents.view(locked)), at=LOCK_PATH)
    check_lock(lock, target, tools=_tools(lock, target))
    return target, lock


def _baked(layout: Layout, target: Target, store: Store) -> dict[str, bytes]:
    """Read the find-db that was baked into an image; one made in the build is made again."""
    if target.config.labels.get(ORIGIN) != Origin.BAKED:
        return {}
    contents = Contents(store)
    recorded = f"{FOLDER}/{ENVIRONMENT}"
    return {
        file.path.removeprefix(f"{FOLDER}/"): bytes(contents.view(file.content))
        for file in image_files(layout, store)
        if file.path.startswith(f"{FOLDER}/") and file.content and file.path != recorded
    }


def _tools(lock: Lock, target: Target) -> dict[str, str]:
    """Compare only the tools that the lock names: `build --codec` may use others."""
    here = tool_versions(target.compression.codec)
    return {**lock.tools, **{name: here[name] for name in lock.tools if name in here}}


def _rebuilt(call: Call, prepared: Prepared, fresh: Store) -> Layout:
    with real_job(call, prepared, fresh) as job:
        done = execute(job, call.console)
    _image, layout = keep_image(fresh, prepared, done)
    return layout

"""Lay the layers a stage made over the tree it started from.

What comes out is the same whichever engine and storage driver ran the stage: files that only
look changed stay the parent's, what an engine mounts is left out, and the bytes of the changed
files go to the store in path order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from vega_image.errors import StageError
from vega_image.rootfs.collect import parents, through_files
from vega_image.rootfs.tarread import Member, TarStream, hostile, safe_path
from vega_image.rootfs.tree import Content, Entry, Kind, Tree
from vega_image.rootfs.volatile import STABLE
from vega_image.store import Store

CHUNK = 1 << 20
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
ENGINE_MOUNTS = frozenset(
    {
        ".dockerenv",
        "etc/hostname",
        "etc/hosts",
        "etc/mtab",
        "etc/resolv.conf",
        "run/.containerenv",
        "run/secrets",
    }
)
"""Files an engine mounts or leaves in every container; no stage decides them."""
ENGINE_FOLDERS = frozenset({"dev", "proc", "sys"})
_MOUNT_POINTS = ENGINE_FOLDERS | {"etc", "run"}
_PRIVILEGED = 0o6000


@dataclass(frozen=True, slots=True)
class _Layered:
    """An entry of a layer; its bytes still lie in the layer's tar."""

    entry: Entry
    layer: Path
    offset: int
    size: int


@dataclass(slots=True, kw_only=True)
class _Changes:
    """The state of the tree while layers are laid on: parent entries and layer entries."""

    what: str
    owner: str
    note: Callable[[str], None]
    state: dict[str, Entry | _Layered] = field(default_factory=dict)

    def lay(self, layer: Path) -> None:
        """Lay one layer on; its whiteouts speak of what was there before it."""
        lower = dict(self.state)
        added: dict[str, Entry | _Layered] = {}
        with layer.open("rb") as file:
            for member in TarStream(file, self.what):
                name = PurePosixPath(member.path).name
                if name.startswith(WHITEOUT):
                    _erase(lower, member.path)
                elif not _of_engine(member.path):
                    self._add(added, lower, layer, member)
        for path, item in added.items():
            if _entry(item).kind is not Kind.DIR:
                _erase_below(lower, path)
        self.state = lower | added

    def _add(
        self,
        added: dict[str, Entry | _Layered],
        lower: dict[str, Entry | _Layered],
        layer: Path,
        member: Member,
    ) -> None:
        path = member.path
        if not path:
            return
        if member.type == "1":
            target = safe_path(member.link, partial(hostile, self.what))
            original = added.get(target) or lower.get(target)
            if original is None or _entry(original).kind is not Kind.FILE:
                raise hostile(
                    self.what, path, f"hard link to {member.link!r}, which is no file"
                )
            added[path] = _renamed(original, path)
            return
        added[path] = _Layered(self._entry(member), layer, member.offset, member.size)

    def _entry(self, member: Member) -> Entry:
        kinds = {"0": Kind.FILE, "7": Kind.FILE, "2": Kind.SYMLINK, "5": Kind.DIR}
        kind = kinds.get(member.type)
        if kind is None:
            msg = f"{self.what}: {member.path}: a device node or fifo has no place in an image"
            raise StageError("STAGE_LEFT_DEVICE", msg, at=member.path)
        mode = 0o777 if kind is Kind.SYMLINK else member.mode
        if mode & _PRIVILEGED:
            self.note(f"{member.path}: mode {mode:o}, setuid and setgid dropped")
            mode &= ~_PRIVILEGED
        target = member.link if kind is Kind.SYMLINK else ""
        return Entry(
            path=member.path,
            kind=kind,
            mode=mode,
            uid=member.uid,
            gid=member.gid,
            target=target,
            owner=self.owner,
        )


def apply_layers(
    parent: Tree,
    layers: Sequence[Path],
    *,
    store: Store,
    owner: str,
    note: Callable[[str], None] = lambda _line: None,
) -> Tree:
    """Return the tree after `layers` (plain tars, lowest first), new entries owned by `owner`.

    Raises StageError HOSTILE_TAR, BROKEN_TAR or STAGE_LEFT_DEVICE naming the path.
    """
    changes = _Changes(
        what=owner,
        owner=owner,
        note=note,
        state={entry.path: entry for entry in parent.entries},
    )
    for layer in layers:
        changes.lay(layer)
    state = _without_volatile(changes.state, note)
    for path, through in through_files(map(_entry, state.values())):
        raise hostile(owner, path, f"leads through {through}, which is no folder")
    before = parent.by_path()
    settled: list[Entry] = []
    changed: list[_Layered] = []
    for path, item in sorted(_without_mount_points(state, before).items()):
        old = before.get(path)
        if isinstance(item, Entry):
            settled.append(item)
        elif old is not None and _same(old, item, store):
            settled.append(old)
        else:
            changed.append(item)
    return Tree.of([*settled, *_stored(changed, store)])


def _without_volatile(
    state: dict[str, Entry | _Layered], note: Callable[[str], None]
) -> dict[str, Entry | _Layered]:
    """Drop what a stage left where only its moment shows; what packages have there stays."""
    dropped = {
        path
        for path, item in state.items()
        if isinstance(item, _Layered) and not STABLE.keeps(path)
    }
    for path in sorted(dropped):
        note(f"{path}: left out, it would tell when or where this was built")
    return {path: item for path, item in state.items() if path not in dropped}


def _without_mount_points(
    state: dict[str, Entry | _Layered], before: Iterable[str]
) -> dict[str, Entry | _Layered]:
    """Leave out empty folders an engine makes to mount on, unless the parent had them."""
    known = set(before)
    used = {parent for path in state for parent in parents(path)}
    return {
        path: item
        for path, item in state.items()
        if path not in _MOUNT_POINTS or path in known or path in used
    }


def _stored(changed: list[_Layered], store: Store) -> Iterator[Entry]:
    """Write the bytes of all changed files into one object, in the order given."""
    files = [item for item in changed if item.entry.kind is Kind.FILE]
    offsets: dict[str, int] = {}
    digest = ""
    if files:
        with store.writer() as out:
            for item in files:
                offsets[item.entry.path] = out.size
                for chunk in _chunks(item.layer, item.offset, item.size):
                    out.write(chunk)
            digest = out.commit()
    for item in changed:
        if item.entry.kind is Kind.FILE:
            content = Content(digest, offsets[item.entry.path], item.size)
            yield replace(item.entry, content=content)
        else:
            yield item.entry


def _same(old: Entry, item: _Layered, store: Store) -> bool:
    if replace(item.entry, owner=old.owner, content=old.content) != old:
        return False
    if old.content is None:
        return True
    if old.content.size != item.size:
        return False
    mine = _chunks(item.layer, item.offset, item.size)
    parents_own = _chunks(store.path(old.content.object), old.content.offset, old.content.size)
    return all(one == other for one, other in zip(mine, parents_own, strict=True))


def _chunks(path: Path, offset: int, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        yield from _limited(file, size)


def _limited(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        data = file.read(min(CHUNK, size))
        if not data:
            msg = f"{file.name}: {size} bytes short"
            raise StageError("BROKEN_TAR", msg, at=file.name)
        size -= len(data)
        yield data


def _erase(state: dict[str, Entry | _Layered], whiteout: str) -> None:
    folder, _, name = whiteout.rpartition("/")
    if name == OPAQUE:
        _erase_below(state, folder)
        return
    victim = f"{folder}/{name.removeprefix(WHITEOUT)}".lstrip("/")
    if not _of_engine(victim):
        state.pop(victim, None)
        _erase_below(state, victim)


def _erase_below(state: dict[str, Entry | _Layered], folder: str) -> None:
    prefix = f"{folder}/" if folder else ""
    for path in [path for path in state if path.startswith(prefix)]:
        del state[path]


def _of_engine(path: str) -> bool:
    return path in ENGINE_MOUNTS or (path.partition("/")[0] in ENGINE_FOLDERS and "/" in path)


def _renamed(item: Entry | _Layered, path: str) -> Entry | _Layered:
    if isinstance(item, Entry):
        return replace(item, path=path)
    return replace(item, entry=replace(item.entry, path=path))


def _entry(item: Entry | _Layered) -> Entry:
    return item if isinstance(item, Entry) else item.entry

"""Turn the members of one archive into entries, refusing what no image may hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from vega_image.errors import StageError
from vega_image.rootfs.selection import Selection, canonical
from vega_image.rootfs.tarread import Member, hostile, safe_path
from vega_image.rootfs.tree import Content, Entry, Kind

_TYPES = {"1": "a hard link", "3": "a device node", "4": "a device node", "6": "a fifo"}
_PRIVILEGED = 0o6000


@dataclass(slots=True, kw_only=True)
class Collector:
    """What one archive adds to a tree.

    `what` names the archive in errors, `owner` is that of its entries, `links` are folders
    that are symlinks in the image (merged /usr). `prune` drops folders that exclusion emptied.
    `notes` says what was changed on the way.
    """

    what: str
    owner: str
    selection: Selection = field(default_factory=Selection)
    links: Mapping[str, str] = field(default_factory=dict)
    prune: bool = True
    notes: list[str] = field(default_factory=list)
    _entries: dict[str, Entry] = field(default_factory=dict, init=False)
    _dropped: set[str] = field(default_factory=set, init=False)

    def add(self, member: Member, content: Callable[[], Content]) -> None:
        """Take a member in; `content` is called when its bytes are wanted.

        Raises StageError HOSTILE_TAR naming archive and path.
        """
        path = canonical(member.path, self.links)
        if not path or self._is_given_link(path, member):
            return
        if member.type != "5" and not self.selection.keeps(path):
            self._dropped.add(path)
            return
        entry = self._entry(path, member, content)
        known = self._entries.get(path)
        if known is not None and not (known.kind is entry.kind is Kind.DIR):
            raise self._hostile(path, "given twice")
        self._entries[path] = entry

    def entries(self) -> list[Entry]:
        """Return everything kept.

        Raises StageError HOSTILE_TAR for a path that leads through a file or a symlink.
        """
        kept = [entry for entry in self._entries.values() if entry.kind is not Kind.DIR]
        needed = {parent for entry in kept for parent in parents(entry.path)}
        dropped = self._dropped if self.prune else set[str]()
        emptied = {parent for path in dropped for parent in parents(path)}
        kept += [
            entry
            for entry in self._entries.values()
            if entry.kind is Kind.DIR
            and (
                entry.path in needed
                or (entry.path not in emptied and self.selection.keeps(entry.path))
            )
        ]
        for path, through in through_files(kept):
            raise self._hostile(path, f"leads through {through}, which is no folder")
        return kept

    def _entry(self, path: str, member: Member, content: Callable[[], Content]) -> Entry:
        match member.type:
            case "1":
                return self._hard_link(path, member.link)
            case "2":
                return self._made(path, Kind.SYMLINK, member, target=self._target(path, member))
            case "5":
                return self._made(path, Kind.DIR, member)
            case "0" | "7":
                return replace(self._made(path, Kind.FILE, member), content=content())
            case other:
                raise self._hostile(path, _TYPES.get(other, f"member type {other!r}"))

    def _made(self, path: str, kind: Kind, member: Member, *, target: str = "") -> Entry:
        mode = 0o777 if kind is Kind.SYMLINK else member.mode
        if mode & _PRIVILEGED:
            self.notes.append(f"{self.what}: {path}: mode {mode:o}, setuid and setgid dropped")
            mode &= ~_PRIVILEGED
        return Entry(
            path=path,
            kind=kind,
            mode=mode,
            uid=member.uid,
            gid=member.gid,
            target=target,
            owner=self.owner,
        )

    def _target(self, path: str, member: Member) -> str:
        if not member.link:
            raise self._hostile(path, "a symlink to nothing")
        return member.link

    def _hard_link(self, path: str, raw: str) -> Entry:
        target = canonical(safe_path(raw, self._hostile), self.links)
        if target in self._dropped:
            msg = f"{self.what}: {path} is a hard link to the excluded {target}"
            hint = "exclude both in root.exclude, or keep the other with root.include"
            raise StageError("EXCLUDED_LINK_TARGET", msg, at=path, hint=hint)
        original = self._entries.get(target)
        if original is None or original.kind is not Kind.FILE:
            raise self._hostile(path, f"hard link to {raw!r}, which is no file before it")
        return replace(original, path=path)

    def _is_given_link(self, path: str, member: Member) -> bool:
        target = self.links.get(path)
        if target is None:
            return False
        if member.type == "5" or (member.type == "2" and member.link == target):
            return True
        raise self._hostile(path, f"the spec makes it a symlink to {target}")

    def _hostile(self, path: str, why: str) -> StageError:
        return hostile(self.what, path, why)


def parents(path: str) -> list[str]:
    """List the folders above a path, nearest first, without the root.

    >>> parents("usr/lib/libz.so.1")
    ['usr/lib', 'usr']
    """
    return [str(parent) for parent in PurePosixPath(path).parents][:-1]


def through_files(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """Find (path, ancestor) pairs where the ancestor is a file or a symlink."""
    kinds = {entry.path: entry.kind for entry in entries}
    return [
        (path, parent)
        for path in sorted(kinds)
        for parent in parents(path)
        if kinds.get(parent, Kind.DIR) is not Kind.DIR
    ]

"""Which paths of a package stay: the globs of a spec's `root.exclude` and `root.include`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import dirname, join, normpath

from vega_image.digest import digest
from vega_image.errors import UsageError
from vega_image.spec import Root

_HOPS = 40


@dataclass(frozen=True, slots=True)
class Selection:
    """Globs matched against `usr/...`; `*` crosses `/`, and `include` wins."""

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()

    def keeps(self, path: str) -> bool:
        """Whether a path stays.

        >>> docs = Selection(("usr/share/doc/*",), ("*/copyright",))
        >>> docs.keeps("usr/share/doc/zlib1g/changelog"), docs.keeps("usr/lib/libz.so.1")
        (False, True)
        >>> docs.keeps("usr/share/doc/zlib1g/copyright")
        True
        """
        dropped = _union(self.exclude)
        if dropped is None or not dropped.match(path):
            return True
        kept = _union(self.include)
        return kept is not None and kept.match(path) is not None


def rules_digest(root: Root) -> str:
    """Identify everything in a spec's `root` that changes what a package contributes."""
    return digest({"exclude": root.exclude, "include": root.include, "links": root.links})


def canonical(path: str, links: Mapping[str, str]) -> str:
    """Follow the links of a spec in a path's folders, so that /lib/x and /usr/lib/x are one.

    The last component is not followed. Raises UsageError BAD_LINK for links that climb out
    or run in a circle.

    >>> canonical("lib/x86_64-linux-gnu/libz.so.1", {"lib": "usr/lib"})
    'usr/lib/x86_64-linux-gnu/libz.so.1'
    """
    for _hop in range(_HOPS):
        crossed = next((link for link in sorted(links) if path.startswith(link + "/")), None)
        if crossed is None:
            return path
        path = resolve(crossed, links[crossed]) + path[len(crossed) :]
        path = path.removeprefix("/")
    msg = f"root.links: {path!r} runs in a circle"
    raise UsageError("BAD_LINK", msg, at="root.links")


def resolve(link: str, target: str) -> str:
    """Say where a symlink of an image points, relative to the image's root ("" is the root).

    Raises UsageError BAD_LINK when it climbs out.

    >>> resolve("usr/lib64/ld.so", "../lib/ld.so"), resolve("etc/os-release", "/usr/x")
    ('usr/lib/ld.so', 'usr/x')
    """
    folder = "" if target.startswith("/") else dirname(link)
    place = normpath(join(folder, target.lstrip("/")))
    if place == ".." or place.startswith("../"):
        msg = f"{link} -> {target} leaves the image"
        raise UsageError("BAD_LINK", msg, at=link)
    return "" if place == "." else place


@lru_cache(maxsize=64)
def _union(globs: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(fnmatch.translate, globs))) if globs else None

r"""Paths of the second CD and of the installed machine, as paths of a rendered tree. Pure.

`X:\vega\...` is `media/vega/...` whatever the letter; `C:\Program Files\VegaImage\...` is the
same, for the folders that are copied there. What is computed in a path stands as `*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_VARIABLE = (
    r"(?:[A-Za-z]:|%%?~?\w+%?:?|\$\{[\w:]+\}|\$\w+(?::\w+)?|\$\([^()]*\)|\{\{[^{}]*\}\}|\{\d\})"
)
_REST = r"(?:\$\([^()\n]*\)|\{\{[^{}\n]*\}\}|\{\d\}|[^\s\"'`,;|<>&(){}])+"
_FOLDERS = r"(?:firstboot|stages|patches|scripts)"
_CD = re.compile(
    rf"(?:(?<!\w){_VARIABLE}[\\/]vega[\\/]|(?<=['\"])vega\\)(?P<rest>{_REST})", re.IGNORECASE
)
_INSTALLED = re.compile(
    rf"""(?:C:\\Program\ Files|%ProgramFiles%|\$env:ProgramFiles|\$\{{env:ProgramFiles\}})
    \\VegaImage\\(?P<rest>{_FOLDERS}\\{_REST}|image\.json|vega-selftest\.pyz)""",
    re.IGNORECASE | re.VERBOSE,
)
# In small letters: `Scripts\` is a folder of every Python.
_BELOW = re.compile(
    rf"""(?:(?P<join>Join-Path\s+(?:-Path\s+)?(?P<base>\S+)\s+(?:-ChildPath\s+)?)?['"]
    (?P<ours>VegaImage\\)?|(?<!\w)(?P<variable>{_VARIABLE})[\\/])(?P<rest>{_FOLDERS}[\\/]{_REST})""",
    re.VERBOSE,
)
_SCRIPT = re.compile(
    r"""(?P<join>Join-Path\s+(?:-Path\s+)?(?P<base>\S+)\s+(?:-ChildPath\s+)?)?['"]
    (?P<rest>[\w-]+\.(?:ps1|cmd))['"]""",
    re.VERBOSE | re.IGNORECASE,
)
# Variables of ours that hold the programs' folder, the medium, or a folder of scripts.
_OURS = re.compile(
    r"\W*(script:)?(programs|media|medium|drive|payload|psscriptroot|firstboot|scripts|stages)\W*",
    re.IGNORECASE,
)
_TREE = re.compile(
    rf"(?<![\w/.\\:-])(?:\./)?(?P<rest>(?:media|answer|packer|playbooks|inventory)/{_REST})"
)
_COMPUTED = re.compile(
    r"%%?~?\w+%?|\$\{[^{}]*\}|\$\w+(?::\w+)?|\$\([^()]*\)|\{\{[^{}]*\}\}|\{\d\}"
)


def paths_in(text: str) -> Iterator[str]:
    r"""Yield every path of the tree that a text names: small letters, `*` for what is computed.

    >>> list(paths_in(r"E:\vega\scripts\prepare.ps1 and $Drive\vega\stages\$Name\stage.json"))
    ['media/vega/scripts/prepare.ps1', 'media/vega/stages/*/stage.json']
    """
    for pattern in (_CD, _INSTALLED):
        for found in pattern.finditer(text):
            yield as_pattern("media/vega/" + found["rest"])
    for found in _BELOW.finditer(text):
        if found["ours"] or _is_ours(found["base"] or found["variable"]):
            yield as_pattern("media/vega/" + found["rest"])
    for found in _TREE.finditer(text):
        yield as_pattern(found["rest"])
    for found in _SCRIPT.finditer(text):
        if _is_ours(found["base"]):
            yield "*/" + found["rest"].lower()


def _is_ours(base: str | None) -> bool:
    """Whether what a path is joined to is a folder of ours, as opposed to a tree of sources."""
    return base is None or not base.startswith("$") or _OURS.fullmatch(base) is not None


def as_pattern(path: str) -> str:
    """Return a path with slashes, in small letters, `*` for what is computed."""
    return _COMPUTED.sub("*", path).replace("\\", "/").rstrip("/.:").lower()


def names(text: str, name: str) -> bool:
    r"""Whether a text contains a file name as a word of its own, in whatever letters.

    A name without a dot could be any word: it counts behind a slash or a quote.

    >>> names("run A.ps1 now", "a.ps1"), names("data.ps1", "a.ps1"), names("a rule", "rule")
    (True, False, False)
    """
    before = r"(?<![\w.-])" if "." in name else r"(?<=[\\/'\"])"
    found = re.search(rf"{before}{re.escape(name)}(?![\w-])", text, re.IGNORECASE)
    return found is not None


def matches(pattern: str, path: str) -> bool:
    """Whether a path, or a folder above it, is what a pattern names.

    >>> matches("media/vega", "media/vega/image.json"), matches("a/*.json", "a/b.ps1")
    (True, False)
    """
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch("[^/]*".join(parts) + "(/.*)?", path.lower()) is not None

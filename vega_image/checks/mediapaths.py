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
    rf"(?:(?<=['\"])(?:VegaImage\\)?|(?<!\w){_VARIABLE}[\\/])(?P<rest>{_FOLDERS}[\\/]{_REST})"
)
_TREE = re.compile(
    rf"(?<![\w/.\\:-])(?:\./)?(?P<rest>(?:media|answer|packer|playbooks|inventory)/{_REST})"
)
_SCRIPT = re.compile(r"['\"](?P<rest>[\w-]+\.(?:ps1|cmd))['\"]")
_COMPUTED = re.compile(
    r"%%?~?\w+%?|\$\{[^{}]*\}|\$\w+(?::\w+)?|\$\([^()]*\)|\{\{[^{}]*\}\}|\{\d\}"
)
_NAME = re.compile(r"(?<![\w.-])[\w-][\w.-]*\.\w+")


def paths_in(text: str) -> Iterator[str]:
    r"""Yield every path of the tree that a text names: small letters, `*` for what is computed.

    >>> list(paths_in(r"E:\vega\scripts\prepare.ps1 and $Drive\vega\stages\$Name\stage.json"))
    ['media/vega/scripts/prepare.ps1', 'media/vega/stages/*/stage.json']
    """
    for pattern in (_CD, _INSTALLED, _BELOW):
        for found in pattern.finditer(text):
            yield as_pattern("media/vega/" + found["rest"])
    for found in _TREE.finditer(text):
        yield as_pattern(found["rest"])
    for found in _SCRIPT.finditer(text):
        yield "*/" + found["rest"].lower()


def as_pattern(path: str) -> str:
    """Return a path with slashes, in small letters, `*` for what is computed."""
    return _COMPUTED.sub("*", path).replace("\\", "/").rstrip("/.:").lower()


def names_in(text: str) -> set[str]:
    """Return every file name in a text, in small letters."""
    return {found[0].lower() for found in _NAME.finditer(text)}


def matches(pattern: str, path: str) -> bool:
    """Whether a path, or a folder above it, is what a pattern names.

    >>> matches("media/vega", "media/vega/image.json"), matches("a/*.json", "a/b.ps1")
    (True, False)
    """
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch("[^/]*".join(parts) + "(/.*)?", path.lower()) is not None

"""The words a person reads, in one table per language: a second language is data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from string import Formatter

from vega_image.selftest.datafiles import damaged, raw
from vega_image.selftest.errors import SelftestError

PACKAGE = "vega_image.selftest"
ENGLISH = "en"
FILE = r"texts\.[a-z]{2}\.json"


@dataclass(frozen=True)
class Texts:
    """One language."""

    language: str
    table: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """Fill in a text. Raises KeyError for a key that no table has."""
        return self.table[key].format(**values)

    def name(self, kind: str, key: str) -> str:
        """Return the word for a thing that has one, e.g. `direction.W`; else the thing."""
        return self.table.get(f"{kind}.{key}", key)


def load_texts(language: str = ENGLISH) -> Texts:
    """Read a language's table.

    Raises SelftestError: a language that is not there (2), a damaged table or one that lacks
    a text (4).
    """
    english, table = _table(ENGLISH), _table(language)
    if english is None:
        name = f"texts.{ENGLISH}.json"
        text = f"{name} is missing"
        raise damaged(text, at=name)
    if table is None:
        raise SelftestError(
            "LANGUAGE",
            f"no texts in {language!r}; there is {', '.join(languages())}",
            hint=f"--language {ENGLISH}",
            at=language,
        )
    texts = Texts(language, table)
    _check(texts, english)
    return texts


def languages() -> tuple[str, ...]:
    """List the languages that are there."""
    names = (item.name for item in (resources.files(PACKAGE) / "data").iterdir())
    return tuple(sorted(name[6:-5] for name in names if re.fullmatch(FILE, name)))


def _table(language: str) -> dict[str, str] | None:
    name = f"texts.{language}.json"
    known = re.fullmatch("[a-z]{2}", language)
    if not known or not (resources.files(PACKAGE) / "data" / name).is_file():
        return None
    try:
        table = json.loads(raw(name))
        return {str(key): str(text) for key, text in table.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        text = f"{name}: {error}"
        raise damaged(text, at=name) from error


def _check(texts: Texts, english: Mapping[str, str]) -> None:
    """Refuse now what would end a run at its very end: a text missing or asking for more."""
    for key, text in english.items():
        if key not in texts.table or _fields(texts.table[key]) != _fields(text):
            why = f"texts.{texts.language}.json: {key!r} is missing or has other values"
            raise SelftestError(
                "LANGUAGE", why, exit_code=4, hint=f"--language {ENGLISH}", at=key
            )


def _fields(text: str) -> set[str | None]:
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}

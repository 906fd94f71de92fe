"""The words a person reads, in one table per language: a second language is data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from vega_image.selftest.errors import SelftestError


@dataclass(frozen=True)
class Texts:
    """One language."""

    language: str
    table: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """Fill in a text. Raises KeyError for a key that no table has."""
        return self.table[key].format(**values)


def load_texts(language: str = "en") -> Texts:
    """Read a language's table. Raises SelftestError for a language that is not there."""
    file = resources.files("vega_image.selftest") / "data" / f"texts.{language}.json"
    known = len(language) == 2 and language.isalpha()  # noqa: PLR2004 - ISO 639-1
    try:
        table = json.loads(file.read_text("utf-8")) if known else None
    except FileNotFoundError:
        table = None
    if table is None:
        raise SelftestError(
            "LANGUAGE", f"no texts in {language!r}", hint="--language en", at=language
        )
    return Texts(language, {str(key): str(text) for key, text in table.items()})

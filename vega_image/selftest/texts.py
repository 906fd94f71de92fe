"""The words a person reads, in one table per language: a second language is data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from vega_image.selftest.datafiles import damaged, raw
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
    """Read a language's table; what it does not say yet is said in English.

    Raises SelftestError: a language that is not there (2), a damaged table (4).
    """
    file = resources.files("vega_image.selftest") / "data" / f"texts.{language}.json"
    known = len(language) == 2 and language.isalpha()  # noqa: PLR2004 - ISO 639-1
    if not known or not file.is_file():
        raise SelftestError(
            "LANGUAGE", f"no texts in {language!r}", hint="--language en", at=language
        )
    english = _table("texts.en.json")
    return Texts(language, {**english, **_table(f"texts.{language}.json")})


def _table(name: str) -> Mapping[str, str]:
    try:
        table = json.loads(raw(name))
        return {str(key): str(text) for key, text in table.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        text = f"{name}: {error}"
        raise damaged(text, at=name) from error

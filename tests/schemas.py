"""What a word prints under --json, held against its exported schema, and that against it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from vega_image.commands.targets import SCHEMAS


def hold(word: str, value: dict[str, Any]) -> None:
    """Fail unless the schema of a word takes this value, and nothing more or less."""
    schema = json.loads((SCHEMAS / f"{word}.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(value)
    assert not validator.is_valid({**value, "surprise": 1})
    for key in value:
        assert not validator.is_valid({k: v for k, v in value.items() if k != key})

"""The one pydantic base: frozen, closed, and every complaint at once with file and line."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value read from a file. Unknown keys are refused, nothing changes after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

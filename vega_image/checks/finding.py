"""What a static check says."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from vega_image.digest import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: rule id, file and line (0 = the whole file), what is wrong."""

    rule: str
    path: str
    line: int
    message: str

    def to_json(self) -> Json:
        """Encode for --json."""
        return {**asdict(self)}

    def text(self) -> str:
        """Write it as compilers do."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.rule}: {self.message}"

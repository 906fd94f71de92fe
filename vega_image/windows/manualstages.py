"""The table of stages in the operator's page, each number with its source. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from vega_image.windows.parts import Bound, StageRow


def stage_table(stages: Sequence[StageRow]) -> dict[str, object]:
    """Return the rows, what they need together, and the list of sources they point to.

    Time adds up; of disk and memory the largest counts, because stages run one after another.
    """
    numbers: dict[str, int] = {}
    rows = [
        {
            "name": row.name,
            "strategy": row.strategy or "",
            "minutes": _cell(row.forecast.minutes, numbers),
            "disk": _cell(row.forecast.disk_gib, numbers),
            "memory": _cell(row.forecast.memory_gib, numbers),
        }
        for row in stages
    ]
    return {
        "stages": rows,
        "total_minutes": sum(row.forecast.minutes.value for row in stages),
        "most_disk": max((row.forecast.disk_gib.value for row in stages), default=0),
        "most_memory": max((row.forecast.memory_gib.value for row in stages), default=0),
        "sources": [f"[{number}] {said}" for said, number in numbers.items()],
    }


def _cell(bound: Bound, numbers: dict[str, int]) -> str:
    said = f"{bound.basis}: {bound.source}"
    return f"{bound.value} [{numbers.setdefault(said, len(numbers) + 1)}]"

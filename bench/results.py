"""One line of the benchmarks' output."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """A figure beside its baseline of the same run."""

    name: str
    value: float
    unit: str
    baseline: float
    ratio: float | None = None
    """Where it is not value / baseline but the median of the ratios of short rounds, which other load disturbs less."""

    def line(self) -> str:
        """One JSON object."""
        ratio = self.ratio if self.ratio is not None else self.value / self.baseline if self.baseline else None
        return json.dumps(
            {
                "name": self.name,
                "value": round(self.value, 4),
                "unit": self.unit,
                "baseline": round(self.baseline, 4),
                "ratio": None if ratio is None else round(ratio, 4),
            }
        )

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

    def line(self) -> str:
        """One JSON object; ratio = value / baseline."""
        return json.dumps(
            {
                "name": self.name,
                "value": round(self.value, 4),
                "unit": self.unit,
                "baseline": round(self.baseline, 4),
                "ratio": round(self.value / self.baseline, 4) if self.baseline else None,
            }
        )

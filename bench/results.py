"""One line of the benchmarks' output, and tables of figures in pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


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


def write_table(page: Path, block: str, rows: Iterable[Sequence[object]]) -> None:
    """Renew the table between the markers of a block in a page; its first row is the heading."""
    heading, *others = (f"| {' | '.join(map(str, row))} |" for row in rows)
    begin, end = f"<!-- {block}: begin -->", f"<!-- {block}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    rule = "|---" * (heading.count("|") - 1) + "|"
    table = "\n".join([heading, rule, *others])
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}", encoding="utf-8")

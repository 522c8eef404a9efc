"""What it costs to say nothing of the software stack: step errors of `partitioning` from facts alone, said and unsaid.

``python research/score_unsaid.py TABLE.csv...`` for tables of transformers (`partitioning_modern/*.csv`). Printed, once
with every cell and once with each set of columns emptied: rows answered and refused, mean |predicted / measured - 1| of
the step, bias of ln(predicted / measured) rate, share within 90 % intervals.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

UNSAID: Final = {
    "all said": (),
    "stack": ("framework", "recompute"),
    "and splits of it": ("framework", "recompute", "sequence_parallel", "zero_stage"),
    "and micro-batch": ("framework", "recompute", "sequence_parallel", "zero_stage", "micro_batch"),
}
"""Columns that are emptied, each set with those before it."""
NOTHING_ANSWERED: Final = 3
"""Exit status of a command that refused every row."""


def without(table: Path, columns: Sequence[str], folder: Path) -> Path:
    """The table with those cells empty."""
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    stripped = folder / table.name
    with stripped.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows({name: "" if name in columns else cell for name, cell in row.items()} for row in rows)
    return stripped


def scores(table: Path) -> dict[str, Any]:
    """Metrics of `nodewise backtest`."""
    command = [str(Path(sys.executable).parent / "nodewise"), "backtest", str(table), "--estimator", "partitioning"]
    said = subprocess.run([*command, "--json"], check=False, capture_output=True, text=True)
    if said.returncode == NOTHING_ANSWERED:
        return {"n": 0, "refused": "all", "step_mape": None}
    found: dict[str, Any] = json.loads(said.stdout)["estimators"]["partitioning"]
    return found


def main() -> None:
    """Strip, score and print."""
    for table in map(Path, sys.argv[1:]):
        for words, columns in UNSAID.items():
            with tempfile.TemporaryDirectory() as folder:
                found = scores(without(table, columns, Path(folder)))
            told = ""
            if found["step_mape"] is not None:
                told = (
                    f"step_mape {found['step_mape']:6.1%}  bias {found['bias']:+.3f}  within {found['coverage90']:4.0%}"
                )
            print(f"{table.stem:22s} {words:18s} {found['n']:4d} answered {found['refused']!s:>3s} refused  {told}")


if __name__ == "__main__":
    main()

"""Score the choice of `auto` beside every single estimator: `score_choice.py TABLE.csv...`.

For each table: the error of `auto` over that of the single estimator that turned out best among those that answered as
much, and the mean of that ratio over the tables. Estimators are those that are installed, so the published baselines
join in where their example plugin is (`examples/plugins/nodewise_baselines`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from nodewise.estimation.question import AUTO
from nodewise.evaluation.backtest import ALL

METRIC: Final = "mape"


def evaluations(table: Path) -> dict[str, Any]:
    """Metrics by estimator, through the command that users have."""
    command = [sys.executable, "-m", "nodewise", "backtest", str(table), "--estimator", ALL, "--estimator", AUTO]
    ran = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.returncode)
    return dict(json.loads(ran.stdout)["estimators"])


def ranked(found: dict[str, Any]) -> list[tuple[float, str]]:
    """Single estimators that answered most rows, the best first."""
    single = {name: metrics for name, metrics in found.items() if name != AUTO and metrics["n"]}
    most = max(metrics["n"] for metrics in single.values())
    return sorted((metrics[METRIC], name) for name, metrics in single.items() if metrics["n"] == most)


def main() -> int:
    """Print a line for each table, and the mean ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements with train and test rows")
    ratios = []
    for table in parser.parse_args().tables:
        found = evaluations(table)
        best, *others = ranked(found)
        ratios.append(found[AUTO][METRIC] / best[0])
        told = ", ".join(f"{name} {100 * error:.1f}" for error, name in others)
        auto = found[AUTO]
        print(
            f"{table.stem}: auto {100 * auto[METRIC]:.1f} % ({auto['n']} rows, coverage90 {auto['coverage90']:.2f}), "
            f"best {best[1]} {100 * best[0]:.1f} %, ratio {ratios[-1]:.2f}; {told}",
            flush=True,
        )
    print(f"mean ratio over {len(ratios)} tables: {sum(ratios) / len(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

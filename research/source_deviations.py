"""How far predictions of transformers from facts alone lie from what each published source measured.

    NODEWISE_DATA=FOLDER python research/source_deviations.py

The deviations of `plugins/nodewise_partitioning/evidence.py`: between the means of sources, and between jobs of one.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

SOURCES: Final = (
    *(f"abroad/{name}_dev.csv" for name in ("dgxc", "bridge", "torchtitan", "fms", "maxtext")),
    *(f"partitioning_modern/{name}.csv" for name in ("bigscience", "foundry", "mlperf", "bridge_dense")),
)


def residuals(table: Path, folder: Path) -> dict[str, list[float]]:
    """Ln(predicted / measured) of each job's rows, of which the estimator sees facts alone."""
    out = folder / "predictions.csv"
    command = [str(Path(sys.executable).with_name("nodewise")), "backtest", str(table), "--estimator", "partitioning"]
    subprocess.run([*command, "--evidence", "0", "--predictions", str(out)], check=True, stdout=subprocess.DEVNULL)
    with table.open(encoding="utf-8-sig", newline="") as stream:
        measured = list(csv.DictReader(stream))
    found: dict[str, list[float]] = defaultdict(list)
    with out.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rate = float(measured[int(row["row"])]["steps_per_s"] or 0.0)
            if row["steps_per_s"] and rate > 0.0:
                found[row["job"]].append(float(np.log(float(row["steps_per_s"]) / rate)))
    return found


def main() -> int:
    """Print a line for each source, and the deviations."""
    data = os.environ.get("NODEWISE_DATA")
    if not data:
        print("NODEWISE_DATA does not say where the measurements are", file=sys.stderr)
        return 2
    means, jobs = [], []
    with TemporaryDirectory() as folder:
        for source in SOURCES:
            found = residuals(Path(data) / "measurements" / source, Path(folder))
            middle = np.array([np.median(each) for each in found.values()])
            means.append(float(np.mean(np.concatenate(list(found.values())))))
            jobs.append(float(middle.std()))
            print(f"{source}: {len(found)} jobs, mean ln {means[-1]:+.3f}, deviation between jobs {jobs[-1]:.3f}")
    between, within = (float(np.sqrt(np.mean(np.square(each)))) for each in (means, jobs))
    print(f"between sources {between:.3f}, between jobs of one {within:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

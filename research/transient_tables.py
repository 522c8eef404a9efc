"""The published tables of spot machines, as values: lifetimes, runs, fleets, availability, saves, switch points.

CM-DARE, the transient study (ICAC'19) and Sync-Switch are cake-lab's (Apache-2.0), the p3 trace is Bamboo's (MIT). The
availability of skypilot-org/spot-traces has no licence: it is read here, and no number of it is kept.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_transient.fitting import LifetimeSample, sample_of_bins
from nodewise_transient.hybrid import SwitchPoint
from nodewise_transient.provenance import Provenance
from nodewise_transient.traces import Availability, Fleet, fleet_of

CAP_S: Final = 24 * 3600.0
"""The provider of CM-DARE's and ICAC's machines ended them after a day."""
ICAC_STEPS: Final = 64_000.0
PER_H: Final = {"K80 spot": 0.000071 * 3600, "K80 on demand": 0.00020083 * 3600, "P100 spot": 0.00015306 * 3600}
SERVER_PER_H: Final = 0.0000397 * 3600
"""Dollars per hour that the transient study's repository bills."""


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a table with a header."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def lifetimes(folder: Path) -> dict[tuple[str, str], LifetimeSample]:
    """CM-DARE's shares of K80 and P100 machines revoked after each hour, by device and region."""
    cells: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows_of(folder / "cmdare_lifetime_cdf.csv"):
        cells[row["gpu"], row["region"]].append((float(row["lifetime_hours_le"]), float(row["cdf_revoked_fraction"])))
    found = {}
    for (gpu, region), points in cells.items():
        hours, shares = np.array(points).T
        origin = Provenance(data_set="CM-DARE lifetimes", device=gpu, place=f"GCP {region}")
        machines = 48 if (gpu, region) in {("K80", "us-central1"), ("K80", "us-west1")} else 30
        found[gpu, region] = sample_of_bins(hours * 3600.0, shares, machines=machines, cap_s=CAP_S, provenance=origin)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class SpotRun:
    """A run on four K80 on spot: its zone, length, cost, every worker's uptime, and whether it was revoked."""

    zone: str
    duration_s: float
    dollars: float
    uptimes_s: Floats
    revoked: Floats


def spot_runs(folder: Path) -> list[SpotRun]:
    """The 31 runs of ICAC'19 on 4 x K80 spot that finished."""
    uptimes: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows_of(folder / "icac19_worker_uptime.csv"):
        if row["experiment"] == "k80_spot/4-spot":
            run = row["vm"].rsplit("-run", 1)[0] + "-run" + row["vm"].rsplit("-run", 1)[1].split("-")[0]
            uptimes[run].append((float(row["uptime_s"]), float(row["status"] == "Revoked")))
    runs = []
    for row in rows_of(folder / "icac19_runs.csv"):
        if row["experiment"] == "k80_spot/4-spot":
            up, revoked = np.array(uptimes[f"{row['zone']}-run{row['run']}"]).T
            runs.append(SpotRun(row["zone"], float(row["duration_s"]), float(row["cost_usd"]), up, revoked))
    return runs


def p3_fleet(folder: Path) -> tuple[Fleet, float]:
    """Bamboo's fleet of AWS p3 nodes, and the length of its record in seconds."""
    with (folder / "spot" / "p3-trace.csv").open(encoding="utf-8", newline="") as lines:
        events = list(csv.reader(lines))
    times = [float(row[0]) / 1000.0 for row in events]
    return fleet_of(times, [row[1] == "add" for row in events], [row[2] for row in events]), times[-1]


def availability(folder: Path) -> Iterator[tuple[str, str, float, Availability]]:
    """Kind, name, grain in seconds, and record of each trace of availability."""
    traces: dict[tuple[str, str, str], list[tuple[float, int]]] = defaultdict(list)
    for row in rows_of(folder / "spot_gpu_availability.csv"):
        traces[row["kind"], row["trace"], row["length_s"]].append((float(row["since_s"]), int(row["instances"])))
    for (kind, name, length), points in traces.items():
        since = [time for time, _ in points]
        grain = float(math.gcd(int(length), *(int(time) for time in since)))
        counts = np.array([count for _, count in points])
        yield kind, name, grain, Availability(since_s=np.array(since), instances=counts, length_s=float(length))


@dataclass(frozen=True, slots=True, eq=False)
class Saves:
    """CM-DARE's saves of twenty models: mean seconds, megabytes of weights and of the graph's description."""

    models: tuple[str, ...]
    seconds: Floats
    weights_mb: Floats
    graph_mb: Floats


def saves(folder: Path) -> Saves:
    """Means over the five saves of each model."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for row in rows_of(folder / "cmdare_checkpoint_points.csv"):
        values = (row["Duration"], row["Weight File Size"], row["Meta File Size"])
        found[row["Model"]].append((float(values[0]), float(values[1]), float(values[2])))
    means = np.array([np.mean(each, axis=0) for each in found.values()])
    return Saves(tuple(found), means[:, 0], means[:, 1], means[:, 2])


def switch_runs(folder: Path) -> tuple[float, float, dict[float, float], tuple[SwitchPoint, ...]]:
    """Sync-Switch on CIFAR-10: synchronous and asynchronous seconds, seconds by fraction, and accuracies.

    One half is published under three names, of which the misspelt ones are single runs; 0.06 and 0.75 have single runs
    too. As the note on them does, the nine fractions with repeated runs count.
    """
    whole: dict[str, float] = {}
    times: dict[float, float] = {}
    points = []
    for row in rows_of(folder / "syncswitch_summary.csv"):
        name = row["config"].rsplit("/", 1)[1]
        if name.endswith("_clean_runs"):
            whole[name[:3]] = float(row["loss_dur_mean_s"])
        elif name.startswith("b") and "-a" in name and int(row["runs"]) > 1:
            share = float(name[1:].split("-a")[0]) / 100.0
            times[share] = float(row["loss_dur_mean_s"])
            points.append(SwitchPoint(fraction=share, accuracy=float(row["final_acc_mean"])))
    return whole["bsp"], whole["asp"], times, tuple(points)

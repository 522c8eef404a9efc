"""Tables of measured parameter-server jobs, read without the service: profiles of the rows that may be seen."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measurements import data_path

from nodewise.plugin import (
    Configurations,
    Network,
    Observations,
    PhaseTimings,
    Profile,
    SyncMode,
    Workload,
    as_floats,
    as_ints,
    constant_floats,
)

PHASES = ("download_s", "compute_s", "upload_s", "update_s")


@dataclass(frozen=True)
class Job:
    """One job of a table: what an estimator may see, and what it is asked."""

    name: str
    profile: Profile
    asked: Configurations
    measured_steps_per_s: np.ndarray

    def ratios(self, step_s: np.ndarray) -> np.ndarray:
        """Predicted over measured steps/s: ASYNC, cycles of all workers; else global steps."""
        cycles = np.where(self.asked.sync_mode == SyncMode.ASYNC, self.asked.workers, 1)
        return cycles / step_s / self.measured_steps_per_s


def table_path(name: str, folder: str = "measurements") -> Path:
    """A shared table, for tests marked `data`."""
    return data_path(folder, name)


def sync_switch_seconds() -> tuple[float, float, dict[float, float]]:
    """Seconds of a CIFAR-10 job all asynchronous, all synchronous, and synchronous for each measured share at first.

    Configurations name their shares: b10-a90 is 10 % BSP first. Rows whose shares do not add up to the whole job are
    other experiments.
    """
    with table_path("syncswitch_summary.csv", "transient").open(encoding="utf-8", newline="") as lines:
        seconds = {row["config"].rsplit("/", 1)[-1]: float(row["loss_dur_mean_s"]) for row in csv.DictReader(lines)}
    named = ((re.fullmatch(r"b(\d+)-a(\d+)", name), found) for name, found in seconds.items())
    shares = {int(match[1]): found for match, found in named if match and int(match[1]) + int(match[2]) == 100}
    switched = {percent / 100: found for percent, found in sorted(shares.items())}
    return seconds["asp_clean_runs"], seconds["bsp_clean_runs"], switched


def jobs_of(path: Path, also_train: tuple[int, ...] = (), modes: tuple[str, ...] = ("async", "sync")) -> Iterator[Job]:
    """Jobs of a table in their order; rows at `also_train` workers are seen as well."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["sync"] in modes]
    for name in dict.fromkeys(row["job"] for row in rows):
        mine = [row for row in rows if row["job"] == name]
        seen = [row for row in mine if row["split"] == "train" or int(row["workers"]) in also_train]
        asked = [row for row in mine if row not in seen]
        if asked:
            measured = np.array([float(row["steps_per_s"]) for row in asked])
            yield Job(name, profile_of(seen), configurations_of(asked), measured)


def configurations_of(rows: list[dict[str, str]]) -> Configurations:
    """Rows of a table as configurations."""
    plain = Configurations.of(
        len(rows),
        nodes=as_ints([int(row["nodes"]) for row in rows]),
        workers=as_ints([int(row["workers"]) for row in rows]),
        device=rows[0]["device"] if rows else "",
    )
    return plain.replaced(
        sync_mode=as_ints([int(SyncMode[row["sync"].upper()]) for row in rows]),
        parameter_servers=as_ints([int(row.get("parameter_servers") or 0) for row in rows]),
        batch_per_worker=as_ints([int(row.get("batch_per_worker") or 0) for row in rows]),
        link_bytes_per_s=as_floats([float(row.get("link_bytes_per_s") or 0) for row in rows]),
    )


def profile_of(rows: list[dict[str, str]]) -> Profile:
    """What the seen rows of a job tell."""
    timed = [row for row in rows if row.get("compute_s")]
    configurations = configurations_of(timed)
    unknown = constant_floats(len(timed), -1.0)
    timings = replace(
        PhaseTimings.none(),
        configurations=configurations,
        **{name: as_floats([float(row[name]) for row in timed]) for name in PHASES},
        compute_variation=as_floats([float(row.get("compute_cv") or -1.0) for row in timed]),
        transfer_variation=unknown,
        hidden_s=constant_floats(len(timed), 0.0),
        steps=as_ints([0] * len(timed)),
    )
    size, link = rows[0].get("parameter_bytes"), rows[0].get("link_bytes_per_s")
    return Profile(
        workload=Workload(parameter_bytes=int(float(size)) if size else None),
        network=Network(link_bytes_per_s=float(link) if link else None),
        phase_timings=timings,
        observations=Observations.of(configurations_of(rows), as_floats([float(r["steps_per_s"]) for r in rows])),
    )

"""Decisions to simulate, from tables of measurements: what may be run, how long its steps take, and what is known."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from measurement_designs import Row
from nodewise.domain.columns import as_floats, as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import UNKNOWN, Observations, PhaseTimings, Profile
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.digest import content_digest

__all__ = ["Case", "Job", "cases_of", "jobs_of"]

PHASES: Final = ("compute_s", "download_s", "upload_s", "update_s")
FIRST_RUN_S: Final = 1.0
"""When the first run ends, and seconds between runs: they differ, or one measurement sent twice counts once."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job of a table; configurations of equal nodes, workers, batch and servers are averaged over placements.

    Attributes
    ----------
    name, device : str
    sync_mode : SyncMode
    steps_per_s : mapping of Row to float
        One over the mean step time.
    phases : mapping of Row to float values of PHASES
        Of rows that were timed.
    parameter_bytes, link_bytes_per_s : float
        0 = not known.
    """

    name: str
    device: str
    sync_mode: SyncMode
    steps_per_s: Mapping[Row, float]
    phases: Mapping[Row, tuple[float, ...]]
    parameter_bytes: float
    link_bytes_per_s: float

    @property
    def network(self) -> str:
        """The part of the name before its slash: jobs of one network are alike."""
        return self.name.split("/")[0]

    def configurations(self, rows: Sequence[Row]) -> Configurations:
        """As asked and as observed."""
        plain = Configurations.of(
            len(rows),
            nodes=[row.nodes for row in rows],
            workers=[row.workers for row in rows],
            device=self.device,
            sync_mode=self.sync_mode,
            link_bytes_per_s=self.link_bytes_per_s,
        )
        return plain.replaced(
            batch_per_worker=as_ints([row.batch for row in rows]),
            parameter_servers=as_ints([row.servers for row in rows]),
        )

    def profile(self, ran: Sequence[Row]) -> Profile:
        """What is known once these ran, in this order."""
        observations = Observations.of(self.configurations(ran), as_floats([self.steps_per_s[row] for row in ran]))
        profile = Profile(
            workload=Workload(parameter_bytes=int(self.parameter_bytes) or None),
            network=Network(link_bytes_per_s=self.link_bytes_per_s or None),
            phase_timings=self._timings([row for row in ran if row in self.phases]),
            observations=replace(observations, measured_at_s=as_floats(FIRST_RUN_S * (1.0 + np.arange(len(ran))))),
        )
        return replace(profile, digest=content_digest(profile))

    def _timings(self, timed: Sequence[Row]) -> PhaseTimings:
        if not timed:
            return PhaseTimings.none()
        columns = zip(PHASES, zip(*(self.phases[row] for row in timed), strict=True), strict=True)
        return replace(
            PhaseTimings.none(),
            configurations=self.configurations(timed),
            **{name: as_floats(values) for name, values in columns},
            compute_variation=constant_floats(len(timed), UNKNOWN),
            transfer_variation=constant_floats(len(timed), UNKNOWN),
            hidden_s=constant_floats(len(timed), 0.0),
            steps=constant_ints(len(timed), 0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One decision of a job: which of the rows; ``batch`` is what they share, ``start`` the two runs before it."""

    job: Job
    batch: int
    rows: tuple[Row, ...]
    start: tuple[Row, ...]


def jobs_of(paths: Iterable[Path]) -> list[Job]:
    """All jobs of some tables, all rows of them; of a job in several tables that with most configurations."""
    found: dict[tuple[str, str], Job] = {}
    for path in paths:
        listed: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
        with path.open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                listed[line["job"], line["device"]].append(line)
        for name, lines in listed.items():
            job = _job(*name, lines)
            if name not in found or len(job.steps_per_s) > len(found[name].steps_per_s):
                found[name] = job
    return [found[name] for name in sorted(found)]


def _job(name: str, device: str, lines: Sequence[Mapping[str, str]]) -> Job:
    step_s: dict[Row, list[float]] = defaultdict(list)
    phases = {}
    for line in lines:
        row = Row(
            int(line["nodes"]),
            int(line["workers"]),
            int(line.get("batch_per_worker") or 0),
            int(line.get("parameter_servers") or 0),
        )
        step_s[row].append(1.0 / float(line["steps_per_s"]))
        if line.get("compute_s"):
            phases[row] = tuple(float(line[phase]) for phase in PHASES)
    return Job(
        name=name,
        device=device,
        sync_mode=SyncMode[(lines[0].get("sync") or "allreduce").upper()],
        steps_per_s={row: 1.0 / float(np.mean(several)) for row, several in sorted(step_s.items())},
        phases=phases,
        parameter_bytes=float(lines[0].get("parameter_bytes") or 0.0),
        link_bytes_per_s=float(lines[0].get("link_bytes_per_s") or 0.0),
    )


def cases_of(job: Job, *, weak: bool, second_nodes: int, least_rows: int, most_cases: int) -> Iterator[Case]:
    """At most so many decisions of a job, evenly over its batches, of at least so many configurations each.

    Parameters
    ----------
    weak : bool
        Rows share the batch of a worker, and fill one node in part or all nodes in full; else the global batch. Jobs of
        one batch per worker, or of none that is known, have no other decision.
    second_nodes : int
        Full nodes of the second run before the decision.
    """
    weak = weak or len({row.batch for row in job.steps_per_s}) == 1
    start = _start(job, second_nodes)
    if start is None:
        return
    per_node = max(row.workers for row in job.steps_per_s if row.nodes == 1)
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in job.steps_per_s:
        if not weak or row.nodes == 1 or row.workers == row.nodes * per_node:
            groups[row.batch if weak else row.batch * row.workers].append(row)
    batches = sorted(batch for batch, rows in groups.items() if len(rows) >= least_rows)
    for place in np.unique(np.linspace(0, len(batches) - 1, min(most_cases, len(batches))).round().astype(int)):
        yield Case(job, batches[place], tuple(groups[batches[place]]), start)


def _start(job: Job, second_nodes: int) -> tuple[Row, ...] | None:
    """One worker with the middle of its batches, and full nodes with the batch next to it; None where they did not run.

    Where one node holds one worker, the second run is on two nodes at least.
    """
    single = [row for row in job.steps_per_s if row.workers == 1]
    full = [row for row in job.steps_per_s if row.nodes == second_nodes and row.workers > 1]
    full = full or [row for row in job.steps_per_s if row.nodes == 2]
    if not single or not full:
        return None
    middle = single[len(single) // 2]
    most = max(row.workers for row in full)
    near = [row for row in full if row.workers == most]
    return middle, min(near, key=lambda row: (abs(math.log(max(row.batch, 1) / max(middle.batch, 1))), row))

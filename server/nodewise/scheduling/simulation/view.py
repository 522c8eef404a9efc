"""The policy's view: the cluster's state and the jobs' curves, updated instead of built again for every decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.schedule import (
    CURVE_COLUMNS,
    ClusterState,
    Curves,
    JobColumns,
    JobState,
    NodePool,
    submission_order,
)
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["View"]

_COLUMNS: Final = tuple(each.name for each in fields(JobColumns) if each.name != "order")


class View:
    """Active jobs by submission, their states, and the columns of their curves.

    A waiting job costs nothing but its rows in the columns. The columns are copied only if jobs arrived or ended since
    the last decision: one mask selects the rows that stay, and rows of new jobs are appended (jobs arrive in order).
    Until then the policy gets the same ``Curves`` object.
    """

    def __init__(self, pools: Sequence[NodePool], settings: SimulationSettings, parameters: dict[str, float]) -> None:
        self.jobs: list[ActiveJob] = []
        self._states: list[JobState] = []
        self._arrivals: list[ActiveJob] = []
        self._departures: list[ActiveJob] = []
        self._jobs_to_update: dict[int, ActiveJob] = {}
        self._next_entry = 0
        self._pools = tuple(pools)
        self._settings = settings
        self._parameters = parameters
        self._devices = tuple(dict.fromkeys(pool.device for pool in pools))
        codes = [self._devices.index(pool.device) for pool in pools]
        self._device_of: Ints = as_ints(codes)
        self._lengths: Ints = np.zeros(0, dtype=np.int64)
        none: Ints = np.zeros(0, dtype=np.int64)
        self._columns: list[NDArray[Any]] = [none, none, none, np.zeros(0)]
        self._entries: Ints = none
        self._in_order = True
        self._facts = {name: getattr(JobColumns.of(()), name) for name in _COLUMNS}
        self._curves = self._assemble()
        self._sharing: SharedPairs | None = None

    def arrive(self, job: ActiveJob) -> None:
        """Add a job."""
        self._arrivals.append(job)

    def depart(self, job: ActiveJob) -> None:
        """Remove a job."""
        self._departures.append(job)

    def note_start(self, job: ActiveJob) -> None:
        """Note that a job got devices: its state changes until one update after it has none."""
        self._jobs_to_update[job.number] = job

    def places(self, jobs: Iterable[ActiveJob]) -> list[int]:
        """Indexes of some jobs that the policy saw last."""
        entries = [job.entry for job in jobs]
        return np.searchsorted(self._entries, entries).tolist() if entries else []

    @property
    def states(self) -> Sequence[JobState]:
        """The state of each job, as the policy sees it."""
        return self._states

    @property
    def sharing(self) -> SharedPairs | None:
        """The pairs of jobs that may share, as the policy saw them last."""
        return self._sharing

    @property
    def has_changed(self) -> bool:
        """Whether jobs arrived or ended since the policy saw them last."""
        return bool(self._arrivals or self._departures)

    def nodes_changed(self, nodes: Sequence[PoolNodes]) -> None:
        """Update the nodes after failures and repairs."""
        self._pools = tuple(
            replace(pool, available_devices=as_ints(each.capacity())) for pool, each in zip(self._pools, nodes)
        )

    def state(self, now_s: float, memory: bytes) -> tuple[ClusterState, Curves]:
        """The state at a time; only running jobs change with time."""
        self.refresh()
        state = ClusterState(
            now_s=now_s,
            pools=self._pools,
            jobs=tuple(self._states),
            quotas=self._settings.quotas,
            parameters=self._parameters,
            memory=memory,
            sharing=self._sharing_pairs(),
        )
        self._tell(now_s)
        order = np.arange(len(self.jobs)) if self._in_order else submission_order(state.jobs)
        state.knows(JobColumns(order=freeze(order), **{name: freeze(each) for name, each in self._facts.items()}))
        return state, self._curves

    def _sharing_pairs(self) -> SharedPairs | None:
        """The pairs of jobs that may share; computed again when jobs have arrived or ended."""
        rule = self._settings.sharing
        if rule is not None and self._sharing is None:
            self._sharing = rule.visible_pairs(as_ints([job.spec.kind for job in self.jobs]))
        return self._sharing

    def _tell(self, now_s: float) -> None:
        """Update the state of jobs that run, or ran at the last decision."""
        jobs = list(self._jobs_to_update.values())
        for job in jobs:
            if job.devices:
                job.tell(now_s)
        states = [job.state for job in jobs]
        news = {
            "remaining_samples": [state.remaining_samples for state in states],
            "pool": [job.pool for job in jobs],
            "held_devices": [job.devices and job.devices + job.spec.server_devices for job in jobs],
            "has_run": [job.devices > 0 or job.state.attained_service_device_s > 0 for job in jobs],
        }
        places = self.places(jobs)
        for name, values in news.items():
            column = self._facts[name].copy()
            column[places] = values
            self._facts[name] = column
        self._jobs_to_update = {job.number: job for job in jobs if job.devices}

    def refresh(self) -> None:
        """Add jobs that have arrived and remove those that have ended."""
        if not self.has_changed:
            return
        if self._departures:
            self._remove_departures(self.places(self._departures))
        if self._arrivals:
            self._add_arrivals(sorted(self._arrivals, key=lambda job: (job.spec.arrival_s, job.spec.job_id)))
        self._columns = [freeze(column) for column in self._columns]
        self._arrivals, self._departures = [], []
        self._sharing = None
        self._curves = self._assemble()

    def _remove_departures(self, places: list[int]) -> None:
        for job in self._departures:
            self._jobs_to_update.pop(job.number, None)
        stays = np.ones(len(self.jobs), dtype=bool)
        stays[places] = False
        rows = np.repeat(stays, self._lengths)
        self._columns = [column[rows] for column in self._columns]
        self._facts = {name: column[stays] for name, column in self._facts.items()}
        self._lengths, self._entries = self._lengths[stays], self._entries[stays]
        for place in sorted(places, reverse=True):
            del self.jobs[place], self._states[place]

    def _add_arrivals(self, new: list[ActiveJob]) -> None:
        states_in_order = self._states[-1:] + [job.state for job in new]
        names = [(state.submit_time_s, state.job_id) for state in states_in_order]
        self._in_order &= all(before < after for before, after in pairwise(names))
        curves = [job.curve for job in new]
        self._columns = [
            np.concatenate((column, *(getattr(curve, name) for curve in curves)))
            for name, column in zip(CURVE_COLUMNS, self._columns)
        ]
        states = [job.state for job in new]
        facts = JobColumns.of(states)
        self._facts = {name: np.concatenate((column, getattr(facts, name))) for name, column in self._facts.items()}
        self._lengths = np.concatenate((self._lengths, [len(curve) for curve in curves]))
        self._entries = np.concatenate((self._entries, self._next_entry + np.arange(len(new))))
        for entry, job in enumerate(new, start=self._next_entry):
            job.entry = entry
        self._next_entry += len(new)
        self.jobs += new
        self._states += states

    def _assemble(self) -> Curves:
        pool, devices, nodes, rates = self._columns
        offsets = np.zeros(len(self._lengths) + 1, dtype=np.int64)
        np.cumsum(self._lengths, out=offsets[1:])
        if len(self._devices) == 1:
            configurations = Configurations.of(len(devices), workers=devices, nodes=nodes, device=self._devices[0])
        else:
            configurations = Configurations.of(len(devices), workers=devices, nodes=nodes).replaced(
                devices=self._devices or ("",), device_index=freeze(self._device_of[pool])
            )
        return Curves(
            offsets=freeze(offsets),
            pool=pool,
            devices=devices,
            nodes=nodes,
            samples_per_s=rates,
            configurations=configurations,
        )

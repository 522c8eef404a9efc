"""What the policy sees: the cluster's state and the jobs' curves, kept up to date instead of built anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.schedule import ClusterState, Curves, NodePool
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.nodes import PoolNodes
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["View"]

_COLUMNS = ("pool", "devices", "nodes", "samples_per_s")


class View:
    """Active jobs by submission, and the columns of their curves.

    The columns are copied only when jobs came or went since the last decision: what stays is kept by one mask, what is
    new is appended (jobs arrive in order). Between such changes the policy gets the same ``Curves`` object.
    """

    def __init__(self, pools: Sequence[NodePool], settings: SimulationSettings, parameters: dict[str, float]) -> None:
        self.jobs: list[ActiveJob] = []
        self._new: list[ActiveJob] = []
        self._some_done = False
        self._pools = tuple(pools)
        self._settings = settings
        self._parameters = parameters
        self._devices = tuple(dict.fromkeys(pool.device for pool in pools))
        codes = [self._devices.index(pool.device) for pool in pools]
        self._device_of: Ints = as_ints(codes)
        self._lengths: Ints = np.zeros(0, dtype=np.int64)
        none: Ints = np.zeros(0, dtype=np.int64)
        self._columns: list[NDArray[Any]] = [none, none, none, np.zeros(0)]
        self._curves = self._assembled()

    def arrive(self, job: ActiveJob) -> None:
        """A job is there to be decided about."""
        self._new.append(job)

    def depart(self) -> None:
        """Some job is done."""
        self._some_done = True

    @property
    def changed(self) -> bool:
        """Whether jobs came or went since the policy saw them last."""
        return bool(self._new) or self._some_done

    def nodes_changed(self, nodes: Sequence[PoolNodes]) -> None:
        """Nodes went down or came back."""
        self._pools = tuple(
            replace(pool, available_devices=as_ints(each.capacity())) for pool, each in zip(self._pools, nodes)
        )

    def state(self, now_s: float, memory: bytes, running: Iterable[ActiveJob]) -> tuple[ClusterState, Curves]:
        """The state of now; of jobs that do not run nothing moves."""
        self.refresh()
        for job in running:
            job.tell(now_s)
        state = ClusterState(
            now_s=now_s,
            pools=self._pools,
            jobs=tuple([job.state for job in self.jobs]),
            quotas=self._settings.quotas,
            parameters=self._parameters,
            memory=memory,
        )
        return state, self._curves

    def refresh(self) -> None:
        """Take in who came and leave out who went."""
        if not self.changed:
            return
        new = [job for job in self._new if not job.done]
        new.sort(key=lambda job: (job.spec.arrival_s, job.spec.job_id))
        columns, lengths = self._columns, self._lengths
        if self._some_done:
            stays = np.array([not job.done for job in self.jobs], dtype=bool)
            rows = np.repeat(stays, lengths)
            columns = [column[rows] for column in columns]
            lengths = lengths[stays]
            self.jobs = [job for job in self.jobs if not job.done]
        if new:
            curves = [job.curve for job in new]
            columns = [
                np.concatenate((column, *(getattr(curve, name) for curve in curves)))
                for name, column in zip(_COLUMNS, columns)
            ]
            lengths = np.concatenate((lengths, [len(curve) for curve in curves]))
            self.jobs = self.jobs + new
        self._columns = [freeze(column) for column in columns]
        self._lengths = lengths
        self._new, self._some_done = [], False
        self._curves = self._assembled()

    def _assembled(self) -> Curves:
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

"""Whether a configuration is the recorded job at all, and over which link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Configurations, Floats, Profile, Refusal, SyncMode, catalogue_key
from nodewise_replay.estimating.recordings import Recording

__all__ = ["Evidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Facts of a profile about its recorded job besides the traces.

    Attributes
    ----------
    batches, accumulations : frozenset of int
        Of measured and timed runs; empty = not known.
    devices : frozenset of str
        Keys of the devices that runs were on, else of those that the traces name; empty = not known.
    link_bytes_per_s : float
        0 = not known.
    """

    batches: frozenset[int]
    accumulations: frozenset[int]
    devices: frozenset[str]
    link_bytes_per_s: float

    @staticmethod
    def of(profile: Profile, recordings: Sequence[Recording]) -> Evidence:
        """Read it off a profile."""
        runs = (profile.observations.configurations, profile.phase_timings.configurations)
        batches = {batch for run in runs for batch in run.batch_per_worker.tolist() if batch > 0}
        devices = {
            catalogue_key(run.devices[place])
            for run in runs
            for place in run.device_index.tolist()
            if run.devices[place]
        }
        traces = [trace for recording in recordings for trace in recording.scenario.traces.values()]
        device_keys = {catalogue_key(name) for trace in traces for name in trace.devices if name}
        return Evidence(
            batches=frozenset(batches),
            accumulations=frozenset(count for run in runs for count in run.accumulation.tolist()),
            devices=frozenset(devices or device_keys),
            link_bytes_per_s=profile.network.link_bytes_per_s or 0.0,
        )

    def judge(
        self, configurations: Configurations, recordings: Sequence[Recording]
    ) -> tuple[Floats, list[Refusal | None]]:
        """By row: how many times the recorded link's bandwidth, and why the row is not the recorded job, if so."""
        rows = len(configurations)
        server_flags = {recording.hub >= 0 for recording in recordings}
        exchanging = any(len(recording.exchanges) for recording in recordings)
        ratios = np.ones(rows)
        refusals: list[Refusal | None] = []
        for row in range(rows):
            workers = int(configurations.workers[row])
            link = float(configurations.link_bytes_per_s[row])
            refusal = (
                self._mode(configurations, row, server_flags, exchanging=exchanging)
                or self._batch(configurations, row)
                or self._device(configurations.devices[int(configurations.device_index[row])])
                or (_WORKERS if workers < 1 else None)
            )
            if refusal is None and link and link != self.link_bytes_per_s and workers > 1:
                if self.link_bytes_per_s:
                    ratios[row] = link / self.link_bytes_per_s
                else:
                    refusal = _LINK
            refusals.append(refusal)
        return ratios, refusals

    @staticmethod
    def _mode(configurations: Configurations, row: int, server_flags: set[bool], *, exchanging: bool) -> Refusal | None:
        mode, servers = int(configurations.sync_mode[row]), int(configurations.parameter_servers[row])
        if True in server_flags and len(server_flags) == 1:
            is_recorded = mode == SyncMode.SYNC and servers in (-1, 1)
            kind = "synchronous training with one parameter server"
        else:
            is_recorded = mode == SyncMode.ALLREDUCE or (not exchanging and int(configurations.workers[row]) == 1)
            kind = "synchronous training by all-reduce"
        if is_recorded:
            return None
        return Refusal.unsupported(f"the traces are of {kind}: record traces of the other exchange")

    def _batch(self, configurations: Configurations, row: int) -> Refusal | None:
        batch, accumulation = int(configurations.batch_per_worker[row]), int(configurations.accumulation[row])
        if (self.accumulations and accumulation not in self.accumulations) or (
            not self.accumulations and accumulation > 1
        ):
            return Refusal.unsupported(f"no recorded step has {accumulation} micro-steps: record such steps", "traces")
        if batch == 0 or batch in self.batches:
            return None
        if not self.batches:
            return Refusal.missing(
                "the recorded batch is not known, so it cannot be compared with the row's: leave batch_per_worker "
                "unset, or ingest an observation of the recorded run that states it",
                "observations.configurations.batch_per_worker",
            )
        batches = ", ".join(map(str, sorted(self.batches)))
        return Refusal.unsupported(
            f"a batch of {batch} per worker was not recorded (recorded: {batches}): record traces with this batch",
            "traces",
        )

    def _device(self, name: str) -> Refusal | None:
        key = catalogue_key(name)
        if not key or not self.devices or any(key in known or known in key for known in self.devices):
            return None
        return Refusal.unsupported(f"no trace was recorded on {name}: record a run on it", "traces")


_WORKERS = Refusal.unsupported("workers must be at least 1")
_LINK = Refusal.missing(
    "the link of the recorded run is not known, so transfers cannot be scaled to another one: state it",
    "network.link_bytes_per_s",
)

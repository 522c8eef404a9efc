"""Evidence of a profile that a queueing model can use, per device: phases of one worker, and measured throughputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, Ints, Observations, PhaseTimings, Profile, SyncMode
from nodewise_queueing.exchange import share_that_pulls_each
from nodewise_queueing.rows import Clients, Setting, clients_of, settings_of

__all__ = [
    "CAMPAIGN_LOG_SPREAD",
    "DeviceEvidence",
    "Facts",
    "Phases",
    "Runs",
    "evidence_of",
    "facts_of",
    "run_log_spread",
]

CAMPAIGN_LOG_SPREAD: Final = 0.047 * math.sqrt(math.pi) / 2.0
"""Standard deviation of ln(rate) when the same run is measured again: two campaigns on the project's testbed differed
by 4.7 % on average, and two normal variables of deviation σ differ by 2σ/√π on average. Gives 4.2 %."""

MACHINE_LOG_SPREAD: Final = 0.068
"""Standard deviation of ln(speed) among machines of one kind. One-worker runs of the same job on rented machines differ
by up to 15 % between campaigns (CM-DARE): 0.08 in all, 0.042 of it as above. The mean of n machines varies by it /
√n."""

PARAMETER_SERVER_MODES: Final = (SyncMode.ASYNC, SyncMode.SYNC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of the job that the laws use.

    Attributes
    ----------
    parameter_bytes : float
        Bytes per step and direction; 0 = not known.
    half_duplex : bool
        Both directions of the server's link share one rate.
    worker_link_bytes_per_s : float
        Highest rate of one worker's link; 0 = not known, as fast as the server's.
    messages_s : float
        Seconds of one transfer that its messages cost beside their bytes; 0 = not known.
    round_trip_s : float
        Seconds of one transfer that are a round trip, which loads no link; 0 = not known.
    shard_bytes, shard_tensors : tuple of float
        What each server holds of the parameters; empty = not known, assumed even.
    pulls_each : float
        Probability that every device of a worker pulls the parameters for itself.
    """

    parameter_bytes: float = 0.0
    half_duplex: bool = False
    worker_link_bytes_per_s: float = 0.0
    messages_s: float = 0.0
    round_trip_s: float = 0.0
    shard_bytes: tuple[float, ...] = ()
    shard_tensors: tuple[float, ...] = ()
    pulls_each: float = 1.0

    @property
    def stations(self) -> tuple[str, ...]:
        """Stations that workers share, in the order of a cycle."""
        return ("link", "update") if self.half_duplex else ("downlink", "uplink", "update")

    def byte_share(self, servers: int) -> float:
        """Share of the bytes at the server with most."""
        return _largest_share(self.shard_bytes, servers)

    def message_share(self, servers: int) -> float:
        """Share of the messages at the server with most."""
        return _largest_share(self.shard_tensors, servers)


def _largest_share(shards: tuple[float, ...], servers: int) -> float:
    """Largest shard over all of them, if there is one for each server; else even ones."""
    return max(shards) / sum(shards) if len(shards) == servers and sum(shards) > 0.0 else 1.0 / servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Mean phases of one worker's step, in seconds, combined over the timed runs.

    Attributes
    ----------
    hidden_s : float
        Transfer time that ran while the worker computed; at most the transfers, and at most the compute.
    compute_cv : float or None
        Coefficient of variation of compute; None = not measured.
    setting : Setting
        Setting of the measurement.
    runs, steps : int
        Timed runs, and the steps that they cover (0 = not known).
    """

    download_s: float
    compute_s: float
    upload_s: float
    update_s: float
    hidden_s: float
    compute_cv: float | None
    setting: Setting
    runs: int
    steps: int

    @property
    def download_share(self) -> float:
        """Share of the download in both transfers; half where there are none."""
        both = self.download_s + self.upload_s
        return self.download_s / both if both > 0.0 else 0.5

    def slow_compute(self, factor: float) -> Phases:
        """The same with compute multiplied; no transfer hides behind compute that does not exist."""
        compute = self.compute_s * factor
        hidden = min(self.hidden_s, compute, self.download_s + self.upload_s)
        return replace(self, compute_s=compute, hidden_s=hidden)

    @property
    def cycle_s(self) -> float:
        """Seconds of one worker's step when it is alone."""
        return self.download_s + self.compute_s + self.upload_s + self.update_s - self.hidden_s


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Runs:
    """Measured throughputs of one mode, sorted so that the order of the evidence cannot matter.

    Attributes
    ----------
    workers : int
    log_rate : float
        ln of steps/s (ASYNC: mini-batches of all workers together).
    log_noise : float
        Standard deviation of it, from another campaign and from counting.
    settings : tuple of Setting
        Setting of each run.
    """

    workers: Ints
    log_rate: Floats
    log_noise: Floats
    settings: tuple[Setting, ...]

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def usual_setting(self) -> Setting:
        """The setting of most runs; among equals the largest, so that nothing depends on their order."""
        return max(set(self.settings), key=lambda each: (self.settings.count(each), each))

    def by_setting(self) -> list[tuple[Setting, Ints]]:
        """Each setting with the places of its runs."""
        alike = {setting: [each == setting for each in self.settings] for setting in sorted(set(self.settings))}
        return [(setting, np.flatnonzero(rows)) for setting, rows in alike.items()]

    def pool(self) -> Runs:
        """Runs of the same setting and number of workers merged into one, with their mean by precision.

        Least squares over runs and over merged runs differ by a constant only, and there are far fewer of the latter.
        """
        alike = zip(self.workers.tolist(), self.settings)
        firsts = [next(members)[0] for _, members in groupby(enumerate(alike), key=itemgetter(1))]  # they are sorted
        counts = np.diff([*firsts, len(self)])
        begin = self.log_rate[firsts]
        precision = 1.0 / self.log_noise**2
        total = np.add.reduceat(precision, firsts)
        # Of a single run, and of equal ones, the mean must be the rate to the last digit.
        beyond = np.add.reduceat(precision * (self.log_rate - np.repeat(begin, counts)), firsts) / total
        return Runs(
            workers=self.workers[firsts],
            log_rate=begin + beyond,
            log_noise=1.0 / np.sqrt(total),
            settings=tuple(self.settings[first] for first in firsts),
        )

    @property
    def worker_counts(self) -> tuple[int, ...]:
        """Distinct numbers of workers, ascending."""
        return tuple(sorted(set(self.workers.tolist())))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceEvidence:
    """Evidence about one kind of accelerator. Workers are those that exchange with the servers, of one device or more.

    Attributes
    ----------
    phases : Phases or None
        Of one worker without others.
    queued_timings : tuple of int
        Numbers of workers of timed runs that are ignored, because with more than one worker phases include waiting.
    runs : mapping of mode to Runs
        Only modes that were measured.
    """

    phases: Phases | None
    queued_timings: tuple[int, ...]
    runs: Mapping[int, Runs]


KEPT_PROFILES: Final = 1024
"""Profiles whose evidence is cached: every new question about a job starts from the same evidence."""
_evidence_by_digest: dict[str, dict[str, DeviceEvidence]] = {}


def evidence_of(profile: Profile) -> dict[str, DeviceEvidence]:
    """The usable evidence of a profile by device; a device that was not stated is ``""``. Treat it as read-only.

    Cached by the profile's digest, which identifies its content.
    """
    cached_evidence = _evidence_by_digest.get(profile.digest)
    if cached_evidence is None:
        cached_evidence = _gather(profile)
        if profile.digest:
            if len(_evidence_by_digest) >= KEPT_PROFILES:
                _evidence_by_digest.clear()
            _evidence_by_digest[profile.digest] = cached_evidence
    return cached_evidence


def _gather(profile: Profile) -> dict[str, DeviceEvidence]:
    link, devices_per_worker = profile.network.link_bytes_per_s or 0.0, profile.workload.devices_per_worker or 1
    timed = clients_of(profile.phase_timings.configurations, devices_per_worker)
    alone, queued = _timings(profile.phase_timings, timed)
    runs = _runs(profile.observations, clients_of(profile.observations.configurations, devices_per_worker), link)
    devices = sorted({*alone, *queued, *(device for device, _ in runs)})
    return {
        device: DeviceEvidence(
            phases=_combine(profile.phase_timings, timed, alone[device], link) if device in alone else None,
            queued_timings=tuple(sorted(queued.get(device, ()))),
            runs={mode: runs[device, mode] for mode in PARAMETER_SERVER_MODES if (device, mode) in runs},
        )
        for device in devices
    }


def facts_of(profile: Profile) -> Facts:
    """The facts of a profile."""
    workload, network = profile.workload, profile.network
    return Facts(
        parameter_bytes=float(workload.parameter_bytes or 0),
        half_duplex=bool(network.half_duplex),
        worker_link_bytes_per_s=float(network.worker_link_bytes_per_s or 0.0),
        messages_s=float(workload.tensors or 0) * float(network.per_message_s or 0.0),
        round_trip_s=float(network.round_trip_s or 0.0),
        shard_bytes=tuple(float(size) for size in workload.shard_bytes or ()),
        shard_tensors=tuple(float(count) for count in workload.shard_tensors or ()),
        pulls_each=share_that_pulls_each(workload.framework or ""),
    )


def _plain(configurations: Configurations) -> NDArray[np.bool_]:
    """Runs that the laws describe: data parallel, without backup workers."""
    is_plain: NDArray[np.bool_] = (
        (configurations.tensor_parallel <= 1)
        & (configurations.pipeline_parallel <= 1)
        & (configurations.backup_workers == 0)
        & (configurations.workers >= 1)
    )
    return is_plain


def _timings(timings: PhaseTimings, clients: Clients) -> tuple[dict[str, list[int]], dict[str, set[int]]]:
    """Rows of timed runs of one worker, and the numbers of workers of the others, by device."""
    configurations = timings.configurations
    alone: dict[str, list[int]] = {}
    queued: dict[str, set[int]] = {}
    devices = configurations.device_names()
    timed = timings.download_s + timings.compute_s + timings.upload_s + timings.update_s > 0.0
    usable = _plain(configurations) & (configurations.sync_mode != SyncMode.ALLREDUCE)
    for row in np.flatnonzero(usable).tolist():
        if clients.clients[row] > 1:
            queued.setdefault(devices[row], set()).add(int(clients.clients[row]))
        elif timed[row]:
            alone.setdefault(devices[row], []).append(row)
    return alone, queued


def _combine(timings: PhaseTimings, clients: Clients, rows: list[int], link: float) -> Phases:
    """Means weighted by steps, over the runs of the setting that most steps were timed with.

    A run whose steps are not known counts like the mean of those that are. Runs with another setting are excluded:
    bringing them to this one would mix assumptions into measurements.
    """
    settings_found = settings_of(timings.configurations, clients, np.array(rows, dtype=np.int64), link)
    settings = dict(zip(rows, settings_found, strict=True))
    columns = (timings.download_s, timings.compute_s, timings.upload_s, timings.update_s, timings.hidden_s)
    ordered = sorted(rows, key=lambda row: (settings[row], *(column[row] for column in columns)))
    steps = {row: int(timings.steps[row]) for row in ordered}
    step_counts = [count for count in steps.values() if count > 0]
    usual = sum(step_counts) / len(step_counts) if step_counts else 1.0
    total: dict[Setting, float] = {}
    for row in ordered:
        total[settings[row]] = total.get(settings[row], 0.0) + (steps[row] or usual)
    setting = max(total, key=lambda each: (total[each], each))
    rows_of_setting = [row for row in ordered if settings[row] == setting]
    weights = np.array([steps[row] or usual for row in rows_of_setting])

    def mean(column: Floats) -> float:
        values = column[rows_of_setting]
        # A mean of equal values must be that value to the last digit.
        return float(values[0] + (weights * (values - values[0])).sum() / weights.sum())

    download, compute, upload, update, hidden = map(mean, columns)
    measured = timings.compute_variation[rows_of_setting]
    has_cv = measured >= 0.0
    variance = (weights[has_cv] * measured[has_cv] ** 2).sum() / weights[has_cv].sum() if has_cv.any() else None
    return Phases(
        download_s=download,
        compute_s=compute,
        upload_s=upload,
        update_s=update,
        hidden_s=min(max(hidden, 0.0), compute, download + upload),
        compute_cv=None if variance is None else math.sqrt(float(variance)),
        setting=setting,
        runs=len(rows_of_setting),
        steps=sum(steps[row] for row in rows_of_setting),
    )


def _runs(observations: Observations, clients: Clients, link: float) -> dict[tuple[str, int], Runs]:
    """Measured throughputs by device and mode."""
    configurations = observations.configurations
    runs_by_key: dict[tuple[str, int], list[tuple[int, Setting, float, float]]] = {}
    devices = configurations.device_names()
    usable = _plain(configurations) & (observations.steps_per_s > 0.0)
    usable &= np.isin(configurations.sync_mode, PARAMETER_SERVER_MODES)
    rows = np.flatnonzero(usable)
    modes, workers = configurations.sync_mode[rows], clients.clients[rows]
    # Each push is the mini-batches of all devices of a worker.
    each = np.where(modes == SyncMode.ASYNC, configurations.workers[rows] / workers, 1.0)
    spreads = [run_log_spread(mode, workers) for mode in PARAMETER_SERVER_MODES]
    columns = (
        modes,
        workers,
        observations.steps_per_s[rows] / each,
        observations.steps[rows],
        observations.step_variation[rows],
        np.where(modes == PARAMETER_SERVER_MODES[0], *spreads),
    )
    alike = settings_of(configurations, clients, rows, link)
    for row, setting, (mode, count, rate, steps, variation, spread) in zip(
        rows.tolist(), alike, zip(*(column.tolist() for column in columns))
    ):
        entry = count, setting, math.log(rate), math.hypot(_count_log_noise(steps, variation), spread)
        runs_by_key.setdefault((devices[row], mode), []).append(entry)
    runs = {}
    for key, entries in runs_by_key.items():
        counts, settings, log_rates, noises = zip(*sorted(entries), strict=True)
        runs[key] = Runs(
            workers=np.array(counts, dtype=np.int64),
            log_rate=np.array(log_rates),
            log_noise=np.array(noises),
            settings=settings,
        )
    return runs


def run_log_spread(mode: SyncMode, workers: Ints) -> Floats:
    """Standard deviation of ln(rate) when a job is run again on other machines.

    Asynchronous workers add up their own speeds. A synchronous round is as slow as its slowest machine; its excess over
    the mean is represented by the variation of compute.
    """
    machines = MACHINE_LOG_SPREAD**2 / workers if mode == SyncMode.ASYNC else np.zeros(np.shape(workers))
    return np.asarray(np.sqrt(CAMPAIGN_LOG_SPREAD**2 + machines))


def _count_log_noise(steps: int, step_variation: float) -> float:
    """Noise of a counted ln(rate): the mean of varying steps, and the step at the window's edge; 0 = not known."""
    if steps <= 0:
        return 0.0
    varying = max(step_variation, 0.0) / math.sqrt(steps)
    # A window that begins and ends anywhere within a step miscounts by the difference of two uniform variables.
    return math.hypot(varying, 1.0 / (steps * math.sqrt(6.0)))

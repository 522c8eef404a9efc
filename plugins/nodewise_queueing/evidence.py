"""What a profile says that a queueing model can use: phases of one worker, and measured throughputs, per device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.plugin import Configurations, Floats, Ints, Profile, SyncMode
from nodewise_queueing.rows import Setting, setting_of

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
        What each server holds of the parameters; empty = not known, taken as even.
    """

    parameter_bytes: float = 0.0
    half_duplex: bool = False
    worker_link_bytes_per_s: float = 0.0
    messages_s: float = 0.0
    round_trip_s: float = 0.0
    shard_bytes: tuple[float, ...] = ()
    shard_tensors: tuple[float, ...] = ()

    def byte_share(self, servers: int) -> float:
        """Share of the bytes at the server that holds most."""
        return _largest_share(self.shard_bytes, servers)

    def message_share(self, servers: int) -> float:
        """Share of the messages at the server that gets most."""
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
        Transfer time that ran while the worker computed; at most what there was to hide, and to hide behind.
    compute_cv : float or None
        Coefficient of variation of compute; None = not measured.
    setting : Setting
        What it was measured with.
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

    def slowed(self, factor: float) -> Phases:
        """The same with compute multiplied; nothing hides behind compute that is not there."""
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
        What each ran with.
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

    @property
    def worker_counts(self) -> tuple[int, ...]:
        """Distinct numbers of workers, ascending."""
        return tuple(sorted(set(self.workers.tolist())))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceEvidence:
    """Evidence about one kind of accelerator.

    Attributes
    ----------
    phases : Phases or None
        Of one worker alone.
    queued_timings : tuple of int
        Numbers of workers of timed runs that were left out, because with more than one worker phases hold waiting.
    runs : mapping of mode to Runs
        Only modes that were measured.
    """

    phases: Phases | None
    queued_timings: tuple[int, ...]
    runs: Mapping[int, Runs]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timing:
    """One timed run of one worker; fields in the order that sorts them."""

    setting: Setting
    download_s: float
    compute_s: float
    upload_s: float
    update_s: float
    hidden_s: float
    compute_cv: float
    steps: int


KEPT_PROFILES: Final = 1024
"""Profiles whose evidence is remembered: every new question about a job starts from the same one."""
_kept: dict[str, dict[str, DeviceEvidence]] = {}


def evidence_of(profile: Profile) -> dict[str, DeviceEvidence]:
    """The usable evidence of a profile by device; a device that was not stated is ``""``. Treat it as read-only.

    Remembered under the profile's digest, which stands for its content.
    """
    known = _kept.get(profile.digest)
    if known is None:
        known = _gathered(profile)
        if profile.digest:
            if len(_kept) >= KEPT_PROFILES:
                _kept.clear()
            _kept[profile.digest] = known
    return known


def _gathered(profile: Profile) -> dict[str, DeviceEvidence]:
    link = profile.network.link_bytes_per_s or 0.0
    alone, queued = _timings(profile, link)
    runs = _runs(profile, link)
    devices = sorted({*alone, *queued, *(device for device, _ in runs)})
    return {
        device: DeviceEvidence(
            phases=_combined(alone[device]) if device in alone else None,
            queued_timings=tuple(sorted(set(queued.get(device, ())))),
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
    )


def _plain(configurations: Configurations, row: int) -> bool:
    """Whether a run is one that the laws describe: data parallel, nobody left behind."""
    return bool(
        configurations.tensor_parallel[row] <= 1
        and configurations.pipeline_parallel[row] <= 1
        and configurations.backup_workers[row] == 0
        and configurations.workers[row] >= 1
    )


def _timings(profile: Profile, link: float) -> tuple[dict[str, list[_Timing]], dict[str, list[int]]]:
    """Timed runs of one worker, and the numbers of workers of the others, by device."""
    timings = profile.phase_timings
    configurations = timings.configurations
    alone: dict[str, list[_Timing]] = {}
    queued: dict[str, list[int]] = {}
    devices = configurations.device_names() if len(timings) else []
    for row, device in enumerate(devices):
        if not _plain(configurations, row) or configurations.sync_mode[row] == SyncMode.ALLREDUCE:
            continue
        if configurations.workers[row] > 1:
            queued.setdefault(device, []).append(int(configurations.workers[row]))
            continue
        timing = _Timing(
            setting=setting_of(configurations, row, link),
            download_s=float(timings.download_s[row]),
            compute_s=float(timings.compute_s[row]),
            upload_s=float(timings.upload_s[row]),
            update_s=float(timings.update_s[row]),
            hidden_s=float(timings.hidden_s[row]),
            compute_cv=float(timings.compute_variation[row]),
            steps=int(timings.steps[row]),
        )
        if timing.download_s + timing.compute_s + timing.upload_s + timing.update_s > 0.0:
            alone.setdefault(device, []).append(timing)
    return alone, queued


def _combined(timings: list[_Timing]) -> Phases:
    """Means weighted by steps, over the runs of the setting that most steps were timed with.

    A run whose steps are not known counts like the mean of those that are. Runs with another setting are left out:
    bringing them to this one would mix assumptions into measurements.
    """
    ordered = sorted(timings, key=lambda t: (t.setting, t.download_s, t.compute_s, t.upload_s, t.update_s, t.hidden_s))
    known = [timing.steps for timing in ordered if timing.steps > 0]
    usual = sum(known) / len(known) if known else 1.0
    total: dict[Setting, float] = {}
    for timing in ordered:
        total[timing.setting] = total.get(timing.setting, 0.0) + (timing.steps or usual)
    setting = max(total, key=lambda each: (total[each], each))
    kept = [timing for timing in ordered if timing.setting == setting]
    weights = np.array([timing.steps or usual for timing in kept])

    def mean(name: str) -> float:
        values = np.array([getattr(timing, name) for timing in kept])
        # A mean of equal values must be that value to the last digit.
        return float(values[0] + (weights * (values - values[0])).sum() / weights.sum())

    download, compute, upload = mean("download_s"), mean("compute_s"), mean("upload_s")
    measured = np.array([timing.compute_cv for timing in kept])
    has_cv = measured >= 0.0
    variance = (weights[has_cv] * measured[has_cv] ** 2).sum() / weights[has_cv].sum() if has_cv.any() else None
    return Phases(
        download_s=download,
        compute_s=compute,
        upload_s=upload,
        update_s=mean("update_s"),
        hidden_s=min(max(mean("hidden_s"), 0.0), compute, download + upload),
        compute_cv=None if variance is None else math.sqrt(float(variance)),
        setting=setting,
        runs=len(kept),
        steps=sum(timing.steps for timing in kept),
    )


def _runs(profile: Profile, link: float) -> dict[tuple[str, int], Runs]:
    """Measured throughputs by device and mode."""
    observations = profile.observations
    configurations = observations.configurations
    found: dict[tuple[str, int], list[tuple[int, Setting, float, float]]] = {}
    devices = configurations.device_names() if len(observations) else []
    for row, device in enumerate(devices):
        mode, rate = int(configurations.sync_mode[row]), float(observations.steps_per_s[row])
        if mode not in PARAMETER_SERVER_MODES or not rate > 0.0 or not _plain(configurations, row):
            continue
        workers = int(configurations.workers[row])
        counted = _count_log_noise(int(observations.steps[row]), float(observations.step_variation[row]))
        noise = math.hypot(counted, float(run_log_spread(SyncMode(mode), np.array(workers))))
        entry = (workers, setting_of(configurations, row, link), math.log(rate), noise)
        found.setdefault((device, mode), []).append(entry)
    return {
        key: Runs(
            workers=np.array([workers for workers, _, _, _ in entries], dtype=np.int64),
            log_rate=np.array([log_rate for _, _, log_rate, _ in entries]),
            log_noise=np.array([noise for _, _, _, noise in entries]),
            settings=tuple(setting for _, setting, _, _ in entries),
        )
        for key, entries in ((key, sorted(entries)) for key, entries in found.items())
    }


def run_log_spread(mode: SyncMode, workers: Ints) -> Floats:
    """Standard deviation of ln(rate) when a job is run again on other machines.

    Asynchronous workers add up their own speeds. A synchronous round is its slowest machine's, whose excess over the
    mean the variation of compute stands for.
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

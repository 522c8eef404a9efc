"""Jobs in the log of a cluster: those that cannot be simulated and why, and the simulated jobs of the others.

A log names no models and has no curves, so the mapping is a rule, stated here:

- arrival = time of submission after the first; requested devices = GPUs; queue = the queue or virtual cluster;
- without curves a job is rigid, and its work is its duration at one unit per second on the devices it requested;
- with curves each job is dealt one of those that have its requested count, at random by the seed, and as much work as
  takes its duration there. It may then run on any count of its curve.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import numpy as np

from nodewise_job_traces.faults import JobsFileError, Row
from nodewise_job_traces.jobs import Curve, Job

__all__ = [
    "LeftOut",
    "LoggedJob",
    "Reason",
    "jobs_of_log",
    "merge_parts",
    "number_of",
    "runnable",
    "seconds_of",
    "span_s",
    "time_of",
]

_UNKNOWN: Final = frozenset({"", "unknown", "none", "null", "nan", "nat", "n/a", "na", "\\n", "-", "invalid"})
"""How logs write a value that they do not have, in lower case."""


class Reason(StrEnum):
    """Why a job cannot be simulated."""

    NO_GPUS = "no_gpus"
    NEVER_STARTED = "never_started"
    UNKNOWN_TIMES = "unknown_times"
    ZERO_DURATION = "zero_duration"
    GPU_FRACTION = "gpu_fraction"
    LARGER_THAN_THE_CLUSTER = "larger_than_the_cluster"
    UNREADABLE = "unreadable"


_REASON_TEXTS: Final[Mapping[Reason, str]] = {
    Reason.NO_GPUS: "without GPUs",
    Reason.NEVER_STARTED: "never started",
    Reason.UNKNOWN_TIMES: "with unknown times",
    Reason.ZERO_DURATION: "with a duration of 0 or no work",
    Reason.GPU_FRACTION: "on a fraction of a GPU",
    Reason.LARGER_THAN_THE_CLUSTER: "larger than every pool of the cluster",
    Reason.UNREADABLE: "that cannot be read",
}


@dataclass(slots=True)
class LeftOut:
    """Jobs of a file that are not simulated, by reason.

    Attributes
    ----------
    first_fault : str
        What is wrong in the first row that cannot be read; empty = all rows can be read.
    """

    counts: Counter[Reason] = field(default_factory=Counter)
    first_fault: str = ""

    def add(self, reason: Reason) -> None:
        """Count a job."""
        self.counts[reason] += 1

    def add_fault(self, fault: JobsFileError) -> None:
        """Count a row that cannot be read."""
        self.add(Reason.UNREADABLE)
        self.first_fault = self.first_fault or str(fault)

    def add_empty(self, samples: float, devices: int) -> bool:
        """Count a job that has no work or asks for no devices; whether it is one."""
        if devices and samples:
            return False
        self.add(Reason.ZERO_DURATION if devices else Reason.NO_GPUS)
        return True

    @property
    def total(self) -> int:
        """Jobs that are left out."""
        return self.counts.total()

    @property
    def summary(self) -> str:
        """The counts in words."""
        text = ", ".join(f"{count:,} {_REASON_TEXTS[reason]}" for reason, count in self.counts.items())
        return f"{text} (the first: {self.first_fault})" if self.first_fault else text


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedJob:
    """A job as a log has it.

    Attributes
    ----------
    submit_s, duration_s : float or None
        None = not known.
    gpus : float or None
        All that the job held; None = not known.
    started : bool
    shares_gpu : bool
        Some process of the job held a part of a GPU.
    """

    job_id: str
    submit_s: float | None
    duration_s: float | None
    gpus: float | None
    started: bool = True
    shares_gpu: bool = False
    queue: str = ""

    def reason(self, most_devices: int) -> Reason | None:
        """Why it cannot be simulated where the largest pool has so many devices; None = it can be."""
        if self.gpus == 0 and not self.shares_gpu:
            return Reason.NO_GPUS
        if not self.started:
            return Reason.NEVER_STARTED
        if self.gpus is None:
            return Reason.NO_GPUS
        if self.submit_s is None or self.duration_s is None or self.duration_s < 0:
            return Reason.UNKNOWN_TIMES
        if self.duration_s == 0:
            return Reason.ZERO_DURATION
        if self.shares_gpu or self.gpus != int(self.gpus):
            return Reason.GPU_FRACTION
        return Reason.LARGER_THAN_THE_CLUSTER if self.gpus > most_devices else None


def time_of(row: Row, *columns: str) -> float | None:
    """Seconds since 1970 in the first of the columns that the row has; None where the log does not know it.

    Raises
    ------
    JobsFileError
        For a cell that is no time.
    """
    column = next((name for name in columns if row.has(name)), None)
    return None if column is None else seconds_of(row, column, row.text(column, ""))


def seconds_of(row: Row, column: str, text: str) -> float | None:
    """Seconds since 1970 of a date and time, or of a number of seconds; None where the log does not know it."""
    text = text.strip()
    if text.lower() in _UNKNOWN:
        return None
    try:
        value = float(text)
    except ValueError:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise row.fault(column, f"must be such as 2017-10-09 07:01:55, found {text!r}") from None
        value = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value):
        raise row.fault(column, f"must be a time, found {text!r}")
    return value


def number_of(row: Row, column: str) -> float | None:
    """A finite number; None where the log does not know it.

    Raises
    ------
    JobsFileError
        For a cell that is no number.
    """
    if row.text(column, "").lower() in _UNKNOWN:
        return None
    return row.number(column, -math.inf)


def span_s(start_s: float | None, end_s: float | None) -> float | None:
    """Seconds between; None where one is not known."""
    return None if start_s is None or end_s is None else end_s - start_s


def merge_parts(parts: Sequence[LoggedJob]) -> LoggedJob:
    """The job that several rows of a log are parts of, which hold their GPUs at the same time."""
    if len(parts) == 1:
        return parts[0]
    holders = [part for part in parts if part.gpus != 0 or part.shares_gpu] or parts
    gpu_counts = [part.gpus for part in holders if part.gpus is not None]
    submit_times = [part.submit_s for part in holders if part.submit_s is not None]
    lengths = [part.duration_s for part in holders]
    return replace(
        holders[0],
        submit_s=min(submit_times, default=None),
        duration_s=None if None in lengths else max(length for length in lengths if length is not None),
        gpus=math.fsum(gpu_counts) if len(gpu_counts) == len(holders) else None,
        started=any(part.started for part in holders),
        shares_gpu=any(part.shares_gpu for part in holders),
    )


def runnable(jobs: Iterable[Job], pool_devices: Sequence[int], left_out: LeftOut) -> list[Job]:
    """Jobs that fit into a pool of the cluster; jobs without a curve are kept, as the simulation counts them."""
    runnable_jobs = []
    for job in jobs:
        counts = [
            devices <= pool_devices[pool]
            for pool, devices in job.curve.rates
            if not job.rigid or devices == job.requested_devices
        ]
        too_large = job.rigid and job.requested_devices > max(pool_devices)
        if too_large or (counts and not any(counts)):
            left_out.add(Reason.LARGER_THAN_THE_CLUSTER)
        else:
            runnable_jobs.append(job)
    return runnable_jobs


def jobs_of_log(
    log: Iterable[LoggedJob | JobsFileError],
    left_out: LeftOut,
    *,
    curves: Sequence[Curve] = (),
    pool_devices: Sequence[int],
    seed: int = 0,
) -> Iterator[Job]:
    """Jobs by arrival, made one at a time; those that cannot be simulated are counted.

    Without curves a job runs in any pool that is large enough, at the same rate. A job that no curve has the count of
    gets none: it can never run, and the result says so.

    Parameters
    ----------
    log : iterable of LoggedJob or JobsFileError
        Jobs, and what is wrong in rows that cannot be read.
    pool_devices : sequence of int
        Devices of each pool.
    """
    logged_jobs = []
    for job in log:
        if isinstance(job, JobsFileError):
            left_out.add_fault(job)
        elif (reason := job.reason(max(pool_devices))) is not None:
            left_out.add(reason)
        else:
            logged_jobs.append(job)
    logged_jobs.sort(key=_submit_s)
    return _deal_jobs(logged_jobs, _Deal(curves, pool_devices, seed))


def _submit_s(job: LoggedJob) -> float:
    assert job.submit_s is not None
    return job.submit_s


class _Deal:
    """Assigns curves to jobs."""

    def __init__(self, curves: Sequence[Curve], pool_devices: Sequence[int], seed: int) -> None:
        self._curves = curves
        self._pool_devices = pool_devices
        self._random = np.random.default_rng(seed)
        self._by_count: dict[int, list[tuple[Curve, float]]] = {}

    def __call__(self, count: int) -> tuple[Curve, float] | None:
        """A curve that has the count, and its rate there in the first pool that has it."""
        if count not in self._by_count:
            self._by_count[count] = self._having(count)
        having = self._by_count[count]
        if not having:
            return None
        return having[int(self._random.integers(len(having)))] if len(having) > 1 else having[0]

    def _having(self, count: int) -> list[tuple[Curve, float]]:
        if not self._curves:
            pools = [pool for pool, devices in enumerate(self._pool_devices) if devices >= count]
            return [(Curve.of({(pool, count): 1.0 for pool in pools}), 1.0)]
        rates = [(curve, curve.rate_on(count)) for curve in self._curves]
        return [(curve, rate) for curve, rate in rates if rate is not None]


_NO_CURVE: Final = Curve.of({})


def _deal_jobs(jobs: Sequence[LoggedJob], deal: _Deal) -> Iterator[Job]:
    runs: Counter[str] = Counter()
    first_s = _submit_s(jobs[0]) if jobs else 0.0
    for job in jobs:
        assert job.duration_s is not None
        assert job.gpus is not None
        runs[job.job_id] += 1
        # A log may have a job several times, as Slurm has one that was requeued.
        suffix = f"#{runs[job.job_id]}" if runs[job.job_id] > 1 else ""
        curve, rate = deal(int(job.gpus)) or (_NO_CURVE, 1.0)
        yield Job(
            job_id=job.job_id + suffix,
            arrival_s=_submit_s(job) - first_s,
            samples=job.duration_s * rate,
            curve=curve,
            requested_devices=int(job.gpus),
            queue=job.queue,
        )

"""Pollux' workloads, replayed at their own batch sizes over a table of measured (or predicted) step times.

A workload is a CSV with the columns name, time (s), application, num_replicas (the tuned request) and batch_size. How
long a job's optimizer step takes on n devices follows from single steps of its application, as Pollux' simulator
accumulates gradients (Qiao et al., OSDI'21, artifact):

    local = ceil(B / n);  accumulation = ceil(local / most local) - 1, at least 1 where n = 1
    micro = min(ceil(local / (accumulation + 1)), floor(most global / (n (accumulation + 1))))
    step(n) = T(n, micro) + accumulation x min(T(n, micro), T(1, micro))

T is a step's time in packed placement. The unit of work is the optimizer step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import numpy as np

from nodewise_job_traces.faults import JobsFileError, rows_of
from nodewise_job_traces.jobs import Curve, Job
from nodewise_job_traces.logs import LeftOut

__all__ = [
    "APPLICATIONS",
    "SETTINGS",
    "Application",
    "MeasuredSteps",
    "StepTime",
    "pollux_curve",
    "pollux_curves",
    "pollux_step_s",
    "read_pollux_workload",
    "read_step_times",
]

StepTime = Callable[[int, int], float]
"""Seconds of one synchronous step on so many packed devices at so many samples per device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What a job of this application does.

    Attributes
    ----------
    most_local, most_global : int
        Samples that one device's memory holds, and largest useful global batch.
    steps : mapping of int to int
        Optimizer steps until it has converged, by global batch.
    most_devices : int
    """

    most_local: int
    most_global: int
    steps: Mapping[int, int] = field(default_factory=dict)
    most_devices: int = 64


APPLICATIONS: Final[Mapping[str, Application]] = {
    "bert": Application(most_local=12, most_global=384, steps={384: 476}),
    "cifar10": Application(most_local=1024, most_global=4096, steps={2048: 3343, 4096: 2143}),
    "ncf": Application(most_local=32768, most_global=32768, steps={32768: 1552}, most_devices=1),
}
"""Limits and steps from the artifact's traces and convergence records (2, 100 and 10 epochs)."""


SETTINGS: Final[Mapping[str, Any]] = {
    "clock": "fixed-rounds",
    "round_s": 60.0,
    "restart_cost_s": 30.0,
    "first_start_cost_s": 30.0,
}
"""How Pollux' simulator tells time; every start and every change costs the same."""


class MeasuredSteps:
    """Step times from measurements: linear in the batch, and in the count between packed multiples of a node's devices.

    Beyond the batches measured at a count, the nearest one answers.
    """

    def __init__(self, by_count: Mapping[int, Mapping[int, float]], devices_per_node: int) -> None:
        self._devices_per_node = devices_per_node
        self._tables = {
            count: (np.array(sorted(times)), np.array([times[batch] for batch in sorted(times)]))
            for count, times in by_count.items()
        }
        self._full = sorted(count for count in self._tables if count % devices_per_node == 0)

    def __call__(self, devices: int, batch: int) -> float:
        """Seconds of a step.

        Raises
        ------
        ValueError
            When nothing was measured on at most, or at least, so many devices.
        """
        if devices in self._tables:
            return float(np.interp(batch, *self._tables[devices]))
        below = [count for count in self._full if count < devices]
        above = [count for count in self._full if count > devices]
        if not below or not above:
            raise ValueError(f"no measurement is near {devices} devices")
        times = [float(np.interp(batch, *self._tables[count])) for count in (below[-1], above[0])]
        return float(np.interp(devices, (below[-1], above[0]), times))


def read_step_times(stream: TextIO, devices_per_node: int = 4, file: str = "measurements") -> dict[str, MeasuredSteps]:
    """Packed step times by job of a measurements table: rows of equal count and batch are averaged.

    A row is packed if its nodes are full but for one, or if it does not say where its workers are.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    times_by_job: dict[str, dict[int, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows_of(stream, file, ("job", "nodes", "workers", "batch_per_worker", "steps_per_s")):
        workers, nodes = row.whole("workers", 1), row.whole("nodes", 1)
        is_packed = nodes == -(-workers // devices_per_node) and _is_packed(row.text("placement", ""), devices_per_node)
        if not is_packed or not row.has("steps_per_s", filled=True):
            continue
        seconds = 1.0 / row.number("steps_per_s", above=True)
        times_by_job[row.text("job")][workers][row.whole("batch_per_worker", 1)].append(seconds)
    return {
        job: MeasuredSteps(
            {n: {batch: float(np.mean(times)) for batch, times in batches.items()} for n, batches in counts.items()},
            devices_per_node,
        )
        for job, counts in times_by_job.items()
    }


def _is_packed(placement: str, devices_per_node: int) -> bool:
    counts = sorted((int(part) for part in placement.split("+") if part.isdigit()), reverse=True)
    return all(count == devices_per_node for count in counts[:-1])


def pollux_step_s(step_time: StepTime, application: Application, batch: int, devices: int) -> float:
    """Seconds of one optimizer step of ``batch`` samples on packed devices."""
    local = -(-batch // devices)
    accumulation = max(-(-local // application.most_local) - 1, 1 if devices == 1 else 0)
    micro = min(-(-local // (accumulation + 1)), application.most_global // (devices * (accumulation + 1)))
    step_s = step_time(devices, micro)
    if accumulation:
        step_s += accumulation * min(step_s, step_time(1, micro))
    return step_s


def pollux_curve(step_time: StepTime, application: Application, batch: int, devices: int) -> Curve:
    """Optimizer steps/s in one pool on 1 to as many devices as there are, the application takes and the batch has."""
    most = min(devices, application.most_devices, batch)
    rates = {(0, n): 1.0 / pollux_step_s(step_time, application, batch, n) for n in range(1, most + 1)}
    return Curve.of(rates)


def read_pollux_workload(
    stream: TextIO,
    curves: Mapping[tuple[str, int], Curve],
    *,
    predicted: Mapping[tuple[str, int], Curve] | None = None,
    applications: Mapping[str, Application] = APPLICATIONS,
    only: Iterable[str] | None = None,
    rigid: bool = False,
    left_out: LeftOut | None = None,
    file: str = "workload",
) -> list[Job]:
    """Jobs by arrival, with curves by (application, batch size).

    Parameters
    ----------
    only : iterable of str
        Applications to keep; jobs of others are left out. None = all, which must be known.
    rigid : bool
        Jobs run on their tuned request (at most what the curve has) only.
    left_out : LeftOut or None
        Counts jobs that request no devices; None = they are faults.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    names = None if only is None else frozenset(only)
    jobs = []
    for row in rows_of(stream, file, ("name", "time", "application", "num_replicas", "batch_size")):
        name, batch = row.text("application"), row.whole("batch_size", 1)
        if names is not None and name not in names:
            continue
        if name not in applications:
            raise row.fault("application", f"must be one of {', '.join(sorted(applications))}; found {name!r}")
        steps = applications[name].steps.get(batch)
        curve = curves.get((name, batch))
        if steps is None or curve is None:
            sizes = sorted(size for size in applications[name].steps if (name, size) in curves)
            raise row.fault(
                "batch_size", f"must be a batch with known steps and curve, {sizes} for {name}; found {batch}"
            )
        requested = row.whole("num_replicas", 1 if left_out is None else 0)
        if left_out is not None and left_out.add_empty(steps, requested):
            continue
        jobs.append(
            Job(
                job_id=row.text("name"),
                arrival_s=row.number("time"),
                samples=float(steps),
                curve=curve,
                predicted=None if predicted is None else predicted.get((name, batch)),
                requested_devices=min(requested, curve.counts[-1]) if len(curve) else requested,
                rigid=rigid,
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))


def pollux_curves(
    step_times: Mapping[str, StepTime],
    devices: int,
    applications: Mapping[str, Application] = APPLICATIONS,
) -> dict[tuple[str, int], Curve]:
    """Curves of all applications that have step times (by application), at every batch with known steps."""
    missing: Sequence[str] = [name for name in step_times if name not in applications]
    if missing:
        raise JobsFileError("step_times", f"must be of {', '.join(sorted(applications))}; found {missing[0]!r}")
    return {
        (name, batch): pollux_curve(step_time, applications[name], batch, devices)
        for name, step_time in step_times.items()
        for batch in applications[name].steps
    }

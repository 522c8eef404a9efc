"""Arrivals of Microsoft's Philly cluster, mapped to jobs.

The extract is a CSV with the columns timestamp (ISO, one zone), duration (s), num_gpus, gpu_time (s) and cluster; cite
Jeon et al., ATC'19. It names no models and has no curves, so the mapping is a rule, stated here:

- arrival = timestamp minus the first timestamp; requested devices = num_gpus; queue = the virtual cluster;
- without curves a job is rigid, and its work is its duration at one unit per second on the devices it requested;
- with curves each job is dealt one of those that have its requested count, at random by the seed, and as much work as
  takes its duration there. It may then run on any count of its curve.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from nodewise_job_traces.faults import Row, rows_of
from nodewise_job_traces.jobs import Curve, Job

__all__ = ["read_philly"]

_COLUMNS: Final = ("timestamp", "duration", "num_gpus", "cluster")


def read_philly(
    stream: TextIO,
    *,
    curves: Sequence[Curve] = (),
    pools: int = 1,
    seed: int = 0,
    file: str = "philly",
) -> Iterator[Job]:
    """Jobs by arrival, made one at a time; the file is read whole, into 40 bytes per job.

    Without curves a job runs in any of the ``pools`` at the same rate. A job that no curve has the count of gets none:
    it can never run, and the result says so.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    queues: dict[str, int] = {}
    values = array("d")
    for row in rows_of(stream, file, _COLUMNS):
        queue = queues.setdefault(row.text("cluster", ""), len(queues))
        values.extend(
            (_seconds(row), row.number("duration", above=True), row.whole("num_gpus", 1), queue, float(row.line))
        )
    table = np.frombuffer(values).reshape(-1, 5)
    return _jobs(table, np.argsort(table[:, 0], kind="stable"), list(queues), _Deal(curves, pools, seed))


def _seconds(row: Row) -> float:
    text = row.text("timestamp")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise row.fault("timestamp", f"must be such as 2017-10-09 07:01:55, found {text!r}") from None


class _Deal:
    """Deals curves out."""

    def __init__(self, curves: Sequence[Curve], pools: int, seed: int) -> None:
        self._curves = curves
        self._pools = range(pools)
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
            return [(Curve.of({(pool, count): 1.0 for pool in self._pools}), 1.0)]
        rates = [(curve, curve.rate_on(count)) for curve in self._curves]
        return [(curve, rate) for curve, rate in rates if rate is not None]


_NO_CURVE: Final = Curve.of({})


def _jobs(table: NDArray[np.float64], order: NDArray[np.int64], queues: Sequence[str], deal: _Deal) -> Iterator[Job]:
    first_s = table[order[0], 0] if len(order) else 0.0
    for index in order:
        time_s, duration_s, count, queue, line = table[index].tolist()
        curve, rate = deal(int(count)) or (_NO_CURVE, 1.0)
        yield Job(
            job_id=f"{int(line):06d}",
            arrival_s=float(time_s - first_s),
            samples=duration_s * rate,
            curve=curve,
            requested_devices=int(count),
            queue=queues[int(queue)],
        )

"""Arrivals of Microsoft's Philly cluster, mapped to jobs.

The extract is a CSV with the columns timestamp (ISO, one zone), duration (s), num_gpus, gpu_time (s) and cluster; cite
Jeon et al., ATC'19. It names no models and has no curves, so the mapping is a rule, stated here:

- arrival = timestamp minus the first timestamp; requested devices = num_gpus; queue = the virtual cluster;
- without curves a job is rigid, and its work is its duration at one unit per second on the devices it requested;
- with curves each job is dealt one of those that have its requested count, at random by the seed, and as much work as
  takes its duration there. It may then run on any count of its curve.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

import numpy as np

from nodewise_job_traces.faults import Row, wrong
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
    reader = csv.DictReader(stream)
    for name in _COLUMNS:
        if name not in (reader.fieldnames or ()):
            raise wrong(file, 1, name, "is missing in the header row")
    queues: dict[str, int] = {}
    times, durations = array("d"), array("d")
    counts, clusters, lines = array("l"), array("l"), array("l")
    for cells in reader:
        row = Row(file, reader.line_num, {name: text or "" for name, text in cells.items() if name is not None})
        times.append(_seconds(row))
        durations.append(row.number("duration", above=True))
        counts.append(row.whole("num_gpus", 1))
        clusters.append(queues.setdefault(cells["cluster"] or "", len(queues)))
        lines.append(reader.line_num)
    names = list(queues)
    order = np.argsort(np.frombuffer(times, dtype=np.float64), kind="stable") if times else np.zeros(0, dtype=np.int64)
    return _jobs(
        order,
        times,
        durations,
        counts,
        [names[cluster] for cluster in clusters],
        lines,
        _Deal(curves, pools, seed),
    )


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


def _jobs(
    order: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    times: Sequence[float],
    durations: Sequence[float],
    counts: Sequence[int],
    queues: Sequence[str],
    lines: Sequence[int],
    deal: _Deal,
) -> Iterator[Job]:
    first_s = times[int(order[0])] if len(order) else 0.0
    for index in order.tolist():
        curve, rate = deal(counts[index]) or (_NO_CURVE, 1.0)
        yield Job(
            job_id=f"{lines[index]:06d}",
            arrival_s=times[index] - first_s,
            samples=durations[index] * rate,
            curve=curve,
            requested_devices=counts[index],
            queue=queues[index],
        )

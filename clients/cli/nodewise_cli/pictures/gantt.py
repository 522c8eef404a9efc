"""The picture of simulations: when each job waits and runs, and the devices in use of each pool, policy by policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodewise_cli.pictures.figures import COLOURS, DASHED, bare, save
from nodewise_client import HeldDevices, NodePool, SimulationAnswer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GANTT_FORMATS", "draw_gantt"]

GANTT_FORMATS: Final = (".html", ".png", ".svg")
NAMED_JOBS: Final = 40
"""Jobs up to which each has its name beside its line."""
HOUR_S: Final = 3600.0
WAITING: Final = "#9a9a9a"


def draw_gantt(path: Path, results: Mapping[str, SimulationAnswer], pools: Sequence[NodePool]) -> None:
    """Draw the first repetition of each policy: a line per job in the order of arrival; below, devices in use by pool.

    A thin line is waiting. A bar is running; it is as thick as the job has devices. All policies share the time axis.

    Parameters
    ----------
    results : mapping of str to SimulationAnswer
        By the name of the policy.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure

    runs = {name: _Run(result) for name, result in results.items()}
    heights = [part for run in runs.values() for part in (1.2 + min(max(len(run.jobs), 8), NAMED_JOBS) * 0.14, 1.6)]
    figure = Figure(figsize=(9.6, 0.4 + sum(heights)), dpi=140, layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    for (name, run), above, below in zip(runs.items(), axes[::2], axes[1::2], strict=True):
        _jobs(bare(above), run, pools)
        _pools(bare(below), run.stretches, pools)
        above.set_title(f"{name}: {run.summary}", loc="left", fontsize=10)
    axes[-1].set_xlabel("hours")
    save(figure, path, ", ".join(runs))


class _Run:
    """The first repetition of a simulation: times of its jobs, and the devices that they had."""

    def __init__(self, result: SimulationAnswer) -> None:
        run = result.runs[0]
        self.stretches = sorted(result.timelines.get(run.seed, ()), key=lambda each: (each.begin_seconds, each.job_id))
        finished = {each.job_id: each for each in result.jobs.get(run.seed, ())}
        first_begins: dict[str, float] = {}
        ends: dict[str, float] = {}
        for each in self.stretches:
            first_begins.setdefault(each.job_id, each.begin_seconds)
            ends[each.job_id] = max(ends.get(each.job_id, 0.0), each.end_seconds)
        arrivals = {
            job_id: finished[job_id].arrival_seconds if job_id in finished else begin
            for job_id, begin in first_begins.items()
        }
        self.jobs = sorted(arrivals, key=lambda job_id: (arrivals[job_id], job_id))
        self.waits = [(arrivals[job_id], ends[job_id]) for job_id in self.jobs]
        """Arrival and end of each job: it waits where no stretch covers the time between."""
        mean = "" if run.average_jct_seconds is None else f", mean response {run.average_jct_seconds:,.0f} s"
        self.summary = f"{run.finished_count:,} of {run.jobs_count:,} jobs finished{mean}"


def _jobs(axes: Axes, run: _Run, pools: Sequence[NodePool]) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

    lines = {job_id: line for line, job_id in enumerate(run.jobs)}
    most = max((each.devices_count for each in run.stretches), default=1)
    begins, ends = ([wait[at] / HOUR_S for wait in run.waits] for at in range(2))
    axes.hlines(range(len(run.jobs)), begins, ends, color=WAITING, linewidth=0.8, zorder=1)
    for pool in range(len(pools)):
        boxes = []
        for each in run.stretches:
            if each.pool_index == pool:
                half, line = _half_height(each.devices_count, most), lines[each.job_id]
                begin, end = each.begin_seconds / HOUR_S, each.end_seconds / HOUR_S
                boxes.append([(begin, line - half), (begin, line + half), (end, line + half), (end, line - half)])
        colour = COLOURS[pool % len(COLOURS)]
        axes.add_collection(PolyCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.2, zorder=2))
    axes.set_ylim(len(run.jobs) - 0.3, -0.7)
    axes.autoscale_view(scaley=False)
    if len(run.jobs) <= NAMED_JOBS:
        axes.set_yticks(range(len(run.jobs)), run.jobs, fontsize=6)
    axes.set_ylabel("job, by arrival")
    handles = [Line2D([], [], color=WAITING, linewidth=0.8, label="waiting")]
    for count in sorted({1, most}):
        width = 12.0 * _half_height(count, most)
        label = f"{count:,} {'devices' if count != 1 else 'device'}"
        handles.append(Line2D([], [], color=COLOURS[0], linewidth=width, label=label))
    if len(pools) > 1:
        handles += [
            Line2D([], [], color=COLOURS[at % len(COLOURS)], linewidth=6, label=pool.name)
            for at, pool in enumerate(pools)
        ]
    axes.legend(handles=handles, frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _half_height(devices: int, most: int) -> float:
    return 0.1 + 0.35 * devices / most


def _pools(axes: Axes, stretches: Sequence[HeldDevices], pools: Sequence[NodePool]) -> None:
    for pool, pool_spec in enumerate(pools):
        changes: Counter[float] = Counter()
        for each in stretches:
            if each.pool_index == pool:
                changes[each.begin_seconds] += each.devices_count
                changes[each.end_seconds] -= each.devices_count
        times = sorted(changes)
        devices = list(accumulate(changes[at_s] for at_s in times))
        colour = COLOURS[pool % len(COLOURS)]
        axes.step(
            [at_s / HOUR_S for at_s in times], devices, where="post", color=colour, linewidth=1.2, label=pool_spec.name
        )
        axes.axhline(sum(pool_spec.available_devices), color=colour, linewidth=0.6, linestyle=DASHED)
    axes.set_ylabel("devices in use")
    axes.set_ylim(bottom=0)

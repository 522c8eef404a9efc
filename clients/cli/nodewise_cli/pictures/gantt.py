"""The picture of a simulation: every job's devices over time, and the devices in use of every pool."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodewise_cli.outputs import writing
from nodewise_cli.pictures.figures import COLOURS, DASHED, bare
from nodewise_client import HeldDevices, NodePool, SimulationAnswer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GANTT_FORMATS", "draw_gantt"]

GANTT_FORMATS: Final = (".html", ".png", ".svg")
NAMED_JOBS: Final = 40
"""Jobs up to which each has its name beside its line."""
HOUR_S: Final = 3600.0


def draw_gantt(path: Path, result: SimulationAnswer, pools: Sequence[NodePool]) -> None:
    """Draw the first repetition: a line per job by first start, as thick as it is wide; below, devices in use by pool.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure

    run = result.runs[0]
    stretches = sorted(result.timelines.get(run.seed, ()), key=lambda each: (each.begin_seconds, each.job_id))
    jobs = list(dict.fromkeys(each.job_id for each in stretches))
    height = 3.2 + min(max(len(jobs), 8), NAMED_JOBS) * 0.14
    figure = Figure(figsize=(9.6, height), dpi=140, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(height - 2.4, 1.6))
    _jobs(bare(above), stretches, jobs, pools)
    _pools(bare(below), stretches, pools)
    name = f"{result.policy} {result.policy_version}"
    mean = "" if run.average_jct_seconds is None else f", mean response {run.average_jct_seconds:,.0f} s"
    above.set_title(f"{name}: {run.finished_count} of {run.jobs_count} jobs finished{mean}", loc="left")
    with writing(path):
        if path.suffix.lower() == ".html":
            text = io.StringIO()
            figure.savefig(text, format="svg")
            svg = text.getvalue()
            page = f"<!doctype html><meta charset=utf-8><title>{escape(name)}</title>{svg[svg.index('<svg') :]}"
            path.write_text(page, encoding="utf-8")
        else:
            figure.savefig(path)


def _jobs(axes: Axes, stretches: Sequence[HeldDevices], jobs: Sequence[str], pools: Sequence[NodePool]) -> None:
    from matplotlib.collections import PolyCollection

    lines = {job_id: line for line, job_id in enumerate(jobs)}
    most = max((each.devices_count for each in stretches), default=1)
    for pool, pool_spec in enumerate(pools):
        boxes = []
        for each in stretches:
            if each.pool_index == pool:
                half, line = 0.1 + 0.35 * each.devices_count / most, lines[each.job_id]
                begin, end = each.begin_seconds / HOUR_S, each.end_seconds / HOUR_S
                boxes.append([(begin, line - half), (begin, line + half), (end, line + half), (end, line - half)])
        colour = COLOURS[pool % len(COLOURS)]
        axes.add_collection(
            PolyCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.2, label=pool_spec.name)
        )
    axes.set_ylim(len(jobs) - 0.3, -0.7)
    axes.autoscale_view(scaley=False)
    if len(jobs) <= NAMED_JOBS:
        axes.set_yticks(range(len(jobs)), jobs, fontsize=6)
    axes.set_ylabel("job")
    if len(pools) > 1:
        axes.legend(frameon=False, fontsize=8)


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
    axes.set_xlabel("hours")
    axes.set_ylabel("devices in use")
    axes.set_ylim(bottom=0)

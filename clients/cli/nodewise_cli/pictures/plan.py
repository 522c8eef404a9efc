"""The picture of a plan: the throughput of its frontier over devices, beside linear scaling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodewise_cli.pictures.figures import COLOURS, plain_axes, save, write_numbers
from nodewise_client import PlanAnswer
from nodewise_client.plots import CHOSEN_COLOUR, draw_linear_scaling, use_scales

__all__ = ["draw_frontier"]


def draw_frontier(path: Path, result: PlanAnswer) -> None:
    """Draw the fastest configuration of each number of devices, with its interval; the best one is marked.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    fastest: dict[int, tuple[float, float, float]] = {}
    for each in result.frontier:
        row = each.prediction
        rate = row.samples_per_second
        if rate is not None and rate > fastest.get(row.workers, (0.0,))[0]:
            fastest[row.workers] = rate, row.lower_samples_per_second or rate, row.upper_samples_per_second or rate
    devices = sorted(fastest)
    rates, lower, upper = ([fastest[count][at] for count in devices] for at in range(3))
    figure, axes = plain_axes(7.2, 4.6)
    axes.fill_between(devices, lower, upper, color=COLOURS[0], alpha=0.15, linewidth=0, label="interval")
    axes.plot(devices, rates, color=COLOURS[0], marker="o", markersize=4, linewidth=1.6, label="fastest")
    use_scales(axes, devices)
    if len(devices) > 1:
        draw_linear_scaling(axes, devices[0], devices[-1], rates[0])
    best = None if result.best is None else result.best.prediction
    if best is not None and best.samples_per_second is not None:
        ring: dict[str, Any] = {"facecolor": "none", "edgecolor": CHOSEN_COLOUR, "linewidth": 2}
        axes.scatter([best.workers], [best.samples_per_second], s=150, zorder=4, label="best", **ring)
    axes.set_xlabel("devices")
    axes.set_ylabel("throughput (samples per second)")
    write_numbers(axes)
    axes.legend(frameon=False, fontsize=9)
    save(figure, path)

"""The picture of a card: how far each figure may be off, as a multiple of its value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nodewise_cli.pictures.figures import COLOURS, INK, plain_axes, save
from nodewise_client import EstimateRunResponse

__all__ = ["draw"]


def draw(path: Path, result: EstimateRunResponse) -> None:
    """Draw the interval of each figure over its value, and the memory's capacity, into a file.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    bars = list(_bars(result))[::-1]
    figure, axes = plain_axes(7.2, 1.3 + 0.45 * len(bars))
    for place, (_, lower, upper) in enumerate(bars):
        axes.plot([lower, upper], [place, place], color=COLOURS[0], linewidth=7, solid_capstyle="butt", alpha=0.55)
        axes.plot([1.0], [place], color=COLOURS[0], marker="|", markersize=16, markeredgewidth=2)
    memory = result.memory
    if memory is not None and memory.bytes and memory.capacity_bytes:
        place, capacity = len(bars) - 1, memory.capacity_bytes / memory.bytes
        axes.plot([capacity], [place], color=COLOURS[1], marker="|", markersize=22, markeredgewidth=2)
        axes.annotate("capacity", (capacity, place), (4, 8), textcoords="offset points", fontsize=8, color=COLOURS[1])
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.set_ylim(-0.6, len(bars) - 0.3)
    axes.set_xlabel("times the figure (90 % intervals; time and cost: from the median to 90 % of runs)")
    save(figure, path)


def _bars(result: EstimateRunResponse) -> Iterator[tuple[str, float, float]]:
    """Name and interval over the value, of all that has both; memory first."""
    memory, completion, energy = result.memory, result.completion, result.energy
    if memory is not None and memory.bytes:
        lower, upper = memory.lower_bytes or memory.bytes, memory.upper_bytes or memory.bytes
        yield "memory", lower / memory.bytes, upper / memory.bytes
    if completion is not None:
        for name, spread in (("time", completion.time_seconds), ("cost", completion.cost)):
            if spread is not None and spread.mean and spread.p50 is not None and spread.p90 is not None:
                yield name, spread.p50 / spread.mean, spread.p90 / spread.mean
    if energy is not None:
        quantities = (("power", energy.device_watts), ("energy", energy.joules), ("CO2", energy.co2_grams))
        for name, quantity in quantities:
            if quantity is not None and quantity.value:
                yield name, quantity.lower / quantity.value, quantity.upper / quantity.value

"""The picture of offers: cost against time from the median to the 90th percentile, coloured by the risk to be late."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nodewise_cli.pictures.figures import DASHED, plain_axes, save, write_numbers
from nodewise_client import CompletionRow, EstimateCompletionResponse, RowStatus
from nodewise_client.plots import CHOSEN_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

HOUR_S: Final = 3600.0
MOST_NAMED: Final = 24
"""Offers that the legend names; of more, those of the frontier come first."""
_INK: Final = "#4a4a4a"


def draw(path: Path, result: EstimateCompletionResponse) -> None:
    """Draw answered offers into a file.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure, axes = plain_axes(9.6, 5.0)
    colours = ScalarMappable(Normalize(0.0, 1.0), "YlOrBr")  # read alike by all eyes
    chosen_row = None if result.choice is None else result.choice.row
    places = {at: place for at, row in enumerate(result.rows) if (place := _place(row)) is not None}
    for at in places:
        row = result.rows[at]
        _offer(axes, row, colours.to_rgba(np.array([_risk(row)])), number=at + 1, chosen=at == chosen_row)
    line = sorted(places[at] for at in result.frontier_rows if at in places)
    if len(line) > 1:
        axes.plot(*zip(*line, strict=True), color=_INK, linewidth=1, linestyle=DASHED, zorder=1)
        axes.plot([], [], " ", label="dashed: frontier of time and cost")
    for at in sorted(sorted(places, key=lambda each: each not in result.frontier_rows)[:MOST_NAMED]):
        star = "" if at not in result.frontier_rows else " (frontier)"
        axes.plot([], [], " ", label=f"{at + 1}  {result.rows[at].name}{', recommended' if at == chosen_row else star}")
    figure.colorbar(colours, ax=axes, fraction=0.04, pad=0.02).set_label(_risk_label(result))
    axes.set_title(f"by {result.estimator} {result.estimator_version}; bars from p50 to p90", loc="left")
    axes.set_xlabel("time to finish (h)")
    axes.set_ylabel("cost (currency of the prices)")
    write_numbers(axes)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.08)
    if places:
        figure.legend(loc="outside right upper", frameon=False, fontsize=7.5, handlelength=0, handletextpad=0)
    save(figure, path)


def _place(row: CompletionRow) -> tuple[float, float] | None:
    """Mean hours and cost; None = there are none."""
    time_s, cost = row.time_seconds, row.cost
    if row.status is not RowStatus.ANSWERED or time_s is None or cost is None:
        return None
    return None if time_s.mean is None or cost.mean is None else (time_s.mean / HOUR_S, cost.mean)


def _offer(axes: Axes, row: CompletionRow, colour: Any, *, number: int, chosen: bool) -> None:
    place, time_s, cost = _place(row), row.time_seconds, row.cost
    assert place is not None
    assert time_s is not None
    assert cost is not None
    bar: dict[str, Any] = {"color": _INK, "linewidth": 1.2, "zorder": 2}
    if time_s.p50 is not None and time_s.p90 is not None:
        axes.plot([time_s.p50 / HOUR_S, time_s.p90 / HOUR_S], [place[1]] * 2, **bar)
    if cost.p50 is not None and cost.p90 is not None:
        axes.plot([place[0]] * 2, [cost.p50, cost.p90], **bar)
    edge = CHOSEN_COLOUR if chosen else _INK
    axes.scatter(*place, s=90, c=colour, edgecolors=edge, linewidths=2.4 if chosen else 0.8, zorder=3)
    # Neighbours' numbers go to both sides.
    offset = (6, 6) if number % 2 else (-12, -12)
    axes.annotate(str(number), place, xytext=offset, textcoords="offset points", fontsize=8, zorder=4)


def _risk(row: CompletionRow) -> float:
    """Chance to be late, or without a deadline never to be done."""
    if row.deadline_probability is not None:
        return 1.0 - row.deadline_probability
    return row.failure_probability or 0.0


def _risk_label(result: EstimateCompletionResponse) -> str:
    late = any(row.deadline_probability is not None for row in result.rows)
    return "probability of being late" if late else "probability of never finishing"

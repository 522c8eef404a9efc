"""Plots of predictions, for notebooks and for the command line. Needs matplotlib, which is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes  # optional, and slow to import

    from nodewise_client._answers import PredictResult
    from nodewise_client._row_kinds import Prediction

__all__ = [
    "CHOSEN_COLOUR",
    "DASHED",
    "INK",
    "MeasuredPoint",
    "draw_linear_scaling",
    "plot_prediction",
    "use_scales",
    "write_numbers",
]

DASHED: Final = (0, (4, 3))
INK: Final = "#4a4a4a"
LEAST_POWERS: Final = 4
"""Powers of two from which an axis is logarithmic: a linear axis suits fewer of them better."""
_CURVE: Final = "#1f5fa8"
_MEASURED_COLOUR: Final = "#222222"
CHOSEN_COLOUR: Final = "#d1495b"


class MeasuredPoint(Protocol):
    """A measured run. ``train``: whether the model was given it."""

    @property
    def nodes(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def train(self) -> bool: ...


ScaleOf: TypeAlias = Callable[[Any], int]
RateOf: TypeAlias = Callable[[Any, str], float | None]
"""The throughput of a row or point; the text is "", or "lower_" or "upper_" for a bound of its interval."""


def plot_prediction(
    result: PredictResult,
    axes: Any = None,
    *,
    points: Sequence[MeasuredPoint] = (),
    rate_of: RateOf | None = None,
    counts: str = "",
    by_nodes: bool | None = None,
) -> Any:
    """Draw throughput with its interval, linear scaling and the recommendation. Extrapolated parts are dashed.

    Both axes are logarithmic if all scales are powers of two.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or None
        None = those of a new figure.
    points : sequence of MeasuredPoint
        Measured runs to draw beside the curve.
    rate_of : callable or None
        The throughput of a row or point; None = samples per second if every row has them, else steps per second.
    counts : str
        What the throughput counts; "" = as ``rate_of`` by default.
    by_nodes : bool or None
        Whether the x axis counts nodes; None = if rows differ in nodes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if axes is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415  # optional, and slow to import

        axes = plt.subplots(layout="constrained")[1]
    rows = [row for row in result if row.answered]
    if by_nodes is None:
        by_nodes = len({row.nodes for row in rows}) > 1
    if rate_of is None:
        counts = "samples" if all(row.samples_per_second is not None for row in rows) else "steps"
        rate_of = _rate_in(counts)
    by = "nodes" if by_nodes else "workers"
    scale_of: ScaleOf = attrgetter(by)
    answered = sorted(rows, key=scale_of)
    _curve(axes, answered, scale_of, rate_of)
    _points(axes, points, scale_of, rate_of)
    use_scales(axes, [scale_of(row) for row in answered])
    _linear(axes, answered, points, scale_of, rate_of)
    if result.recommended is not None:
        _mark_recommendation(axes, result, by, rate_of)
    axes.set_xlabel(by)
    axes.set_ylabel(f"throughput ({counts} per second)")
    write_numbers(axes)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)
    return axes


def _rate_in(counts: str) -> RateOf:
    def rate_of(row: Any, bound: str) -> float | None:
        rate: float | None = getattr(row, f"{bound}{counts}_per_second")
        return rate

    return rate_of


def use_scales(axes: Axes, values: Sequence[int]) -> None:
    """Scale both axes: logarithmic if all values of x are powers of two, so that a straight line stays a power law."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator  # noqa: PLC0415  # optional, and slow to import

    distinct = sorted(set(values))
    if len(distinct) >= LEAST_POWERS and all(value.bit_count() == 1 for value in distinct):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(distinct))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def write_numbers(axes: Axes) -> None:
    """Write the numbers of both axes in full, with thousands separators and without powers of ten."""
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415  # optional, and slow to import

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _curve(axes: Axes, answered: Sequence[Prediction], scale_of: ScaleOf, rate_of: RateOf) -> None:
    rows_with_interval = [row for row in answered if row.upper_steps_per_second is not None]
    if rows_with_interval:
        basis = rows_with_interval[0].interval_basis
        how = "" if basis is None else f" ({basis.replace('_', ' ')})"
        axes.fill_between(
            [scale_of(row) for row in rows_with_interval],
            [rate_of(row, "lower_") or 0.0 for row in rows_with_interval],
            [rate_of(row, "upper_") or 0.0 for row in rows_with_interval],
            color=_CURVE,
            alpha=0.15,
            linewidth=0,
            label=f"{100 * (rows_with_interval[0].interval_coverage or 0):.4g} % interval{how}",
        )
    within = [row for row in answered if (row.extrapolation_ratio or 0.0) <= 1.0]
    beyond = [row for row in answered if (row.extrapolation_ratio or 0.0) > 1.0]
    if beyond and within and scale_of(beyond[0]) > scale_of(within[-1]):
        axes.axvspan(scale_of(within[-1]), scale_of(beyond[-1]), color=INK, alpha=0.06, linewidth=0)
        beyond = [within[-1], *beyond]  # the dashed line begins where the other ends
    for rows, style, label in ((within, "-", "predicted"), (beyond, DASHED, "predicted, extrapolated")):
        if rows:
            scale, rates = [scale_of(row) for row in rows], [rate_of(row, "") or 0.0 for row in rows]
            axes.plot(scale, rates, color=_CURVE, marker=".", linestyle=style, linewidth=1.8, label=label)


def _linear(
    axes: Axes, answered: Sequence[Prediction], points: Sequence[MeasuredPoint], scale_of: ScaleOf, rate_of: RateOf
) -> None:
    """Draw linear scaling from the smallest measured point, or from the smallest row if nothing was measured."""
    known = [row for row in (points or answered) if rate_of(row, "")]
    if not known or len(answered) < 2:
        return
    first = min(known, key=scale_of)
    draw_linear_scaling(axes, scale_of(first), scale_of(answered[-1]), rate_of(first, "") or 0.0)


def draw_linear_scaling(axes: Axes, begin: float, end: float, rate: float) -> None:
    """Draw what the rate at the begin becomes if it grows in proportion."""
    axes.set_ylim(axes.get_ylim())  # the line must not flatten a curve that saturates
    axes.plot([begin, end], [rate, rate * end / begin], color=INK, linewidth=0.9, linestyle=":", label="linear scaling")


def _points(axes: Axes, points: Sequence[MeasuredPoint], scale_of: ScaleOf, rate_of: RateOf) -> None:
    for train, face, label in (
        (True, _MEASURED_COLOUR, "measured, learned from"),
        (False, "white", "measured, held out"),
    ):
        shown_points = [point for point in points if point.train == train and rate_of(point, "") is not None]
        if shown_points:
            scale, rates = (
                [scale_of(point) for point in shown_points],
                [rate_of(point, "") or 0.0 for point in shown_points],
            )
            ring: dict[str, Any] = {"facecolor": face, "edgecolor": _MEASURED_COLOUR, "linewidth": 1.2}
            axes.scatter(scale, rates, s=38, zorder=3, label=label, **ring)


def _mark_recommendation(axes: Axes, result: PredictResult, by: str, rate_of: RateOf) -> None:
    row, recommendation = result.recommended, result.recommendation
    assert row is not None
    assert recommendation is not None
    rate = rate_of(row, "")
    if rate is None:
        return
    scale = getattr(row, by)
    axes.axvline(scale, color=CHOSEN_COLOUR, linewidth=1, linestyle=DASHED)
    rule = (recommendation.rule or "").replace("_", " ")
    label = f"recommended: {scale} {by if scale != 1 else by[:-1]} ({rule})"
    ring: dict[str, Any] = {"facecolor": "none", "edgecolor": CHOSEN_COLOUR, "linewidth": 2}
    axes.scatter([scale], [rate], s=150, marker="o", zorder=4, label=label, **ring)

"""The picture of a prediction: curve, interval, measured points, linear scaling, and the recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nodewise_cli.inputs.measured_points import Point
from nodewise_cli.pictures.figures import DASHED, INK, plain_axes, save, use_scales, write_numbers
from nodewise_cli.views.units import Unit
from nodewise_client import Prediction, PredictResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

_CURVE: Final = "#1f5fa8"
_MEASURED_COLOUR: Final = "#222222"
_CHOSEN_COLOUR: Final = "#d1495b"


def draw(path: Path, name: str, result: PredictResult, points: Sequence[Point], unit: Unit, *, by_nodes: bool) -> None:
    """Draw a prediction into a file.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    answered = sorted((row for row in result if row.answered), key=lambda row: _scale(row, by_nodes))
    figure, axes = plain_axes(7.2, 4.6)
    _curve(axes, answered, unit, by_nodes)
    _points(axes, points, unit, by_nodes)
    use_scales(axes, [_scale(row, by_nodes) for row in answered])
    _linear(axes, answered, points, unit, by_nodes)
    if result.recommended is not None:
        _mark_recommendation(axes, result, unit, by_nodes)
    axes.set_title(f"{name}: predicted by {result.basis.estimator} {result.basis.estimator_version}", loc="left")
    axes.set_xlabel("nodes" if by_nodes else "workers")
    axes.set_ylabel(f"throughput ({unit.counts} per second)")
    write_numbers(axes)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)
    save(figure, path)


def _scale(row: Prediction | Point, by_nodes: bool) -> int:
    return row.nodes if by_nodes else row.workers


def _curve(axes: Axes, answered: Sequence[Prediction], unit: Unit, by_nodes: bool) -> None:
    rows_with_interval = [row for row in answered if row.upper_steps_per_second is not None]
    if rows_with_interval:
        basis = rows_with_interval[0].interval_basis
        how = "" if basis is None else f" ({basis.replace('_', ' ')})"
        axes.fill_between(
            [_scale(row, by_nodes) for row in rows_with_interval],
            [unit.rate(row, "lower_") or 0.0 for row in rows_with_interval],
            [unit.rate(row, "upper_") or 0.0 for row in rows_with_interval],
            color=_CURVE,
            alpha=0.15,
            linewidth=0,
            label=f"{100 * (rows_with_interval[0].interval_coverage or 0):.4g} % interval{how}",
        )
    within = [row for row in answered if (row.extrapolation_ratio or 0.0) <= 1.0]
    beyond = [row for row in answered if (row.extrapolation_ratio or 0.0) > 1.0]
    if beyond and within and _scale(beyond[0], by_nodes) > _scale(within[-1], by_nodes):
        axes.axvspan(_scale(within[-1], by_nodes), _scale(beyond[-1], by_nodes), color=INK, alpha=0.06, linewidth=0)
        beyond = [within[-1], *beyond]  # the dashed line begins where the other ends
    for rows, style, label in ((within, "-", "predicted"), (beyond, DASHED, "predicted, extrapolated")):
        if rows:
            scale, rates = [_scale(row, by_nodes) for row in rows], [unit.rate(row) or 0.0 for row in rows]
            axes.plot(scale, rates, color=_CURVE, marker=".", linestyle=style, linewidth=1.8, label=label)


def _linear(axes: Axes, answered: Sequence[Prediction], points: Sequence[Point], unit: Unit, by_nodes: bool) -> None:
    """Draw linear scaling from the smallest measured point, or from the smallest row if nothing was measured."""
    known = [row for row in (points or answered) if unit.rate(row)]
    if not known or len(answered) < 2:
        return
    first = min(known, key=lambda row: _scale(row, by_nodes))
    begin, end = _scale(first, by_nodes), _scale(answered[-1], by_nodes)
    rate = unit.rate(first) or 0.0
    axes.set_ylim(axes.get_ylim())  # the line must not flatten a curve that saturates
    axes.plot([begin, end], [rate, rate * end / begin], color=INK, linewidth=0.9, linestyle=":", label="linear scaling")


def _points(axes: Axes, points: Sequence[Point], unit: Unit, by_nodes: bool) -> None:
    for train, face, label in (
        (True, _MEASURED_COLOUR, "measured, learned from"),
        (False, "white", "measured, held out"),
    ):
        shown_points = [point for point in points if point.train == train and unit.rate(point) is not None]
        if shown_points:
            scale, rates = (
                [_scale(point, by_nodes) for point in shown_points],
                [unit.rate(point) or 0.0 for point in shown_points],
            )
            ring: dict[str, Any] = {"facecolor": face, "edgecolor": _MEASURED_COLOUR, "linewidth": 1.2}
            axes.scatter(scale, rates, s=38, zorder=3, label=label, **ring)


def _mark_recommendation(axes: Axes, result: PredictResult, unit: Unit, by_nodes: bool) -> None:
    row, recommendation = result.recommended, result.recommendation
    assert row is not None
    assert recommendation is not None
    rate = unit.rate(row)
    if rate is None:
        return
    scale = _scale(row, by_nodes)
    what = "nodes" if by_nodes else "workers"
    axes.axvline(scale, color=_CHOSEN_COLOUR, linewidth=1, linestyle=DASHED)
    rule = (recommendation.rule or "").replace("_", " ")
    label = f"recommended: {scale} {what if scale != 1 else what[:-1]} ({rule})"
    ring: dict[str, Any] = {"facecolor": "none", "edgecolor": _CHOSEN_COLOUR, "linewidth": 2}
    axes.scatter([scale], [rate], s=150, marker="o", zorder=4, label=label, **ring)

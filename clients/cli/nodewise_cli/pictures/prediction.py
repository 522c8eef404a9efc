"""The picture of a prediction: curve, interval, measured points, and what is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodewise_cli.inputs.measured import Point
from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_cli.views.predict import rate_of, unit_of
from nodewise_client import Prediction, PredictResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["checked_plot", "draw"]

_FORMATS: Final = (".pdf", ".png", ".svg")
_CURVE: Final = "#1f5fa8"
_MEASURED: Final = "#222222"
_CHOSEN: Final = "#d1495b"


def checked_plot(path: Path | None, option: str = "--plot") -> None:
    """Refuse before the work what would fail after it.

    Raises
    ------
    InputError
        If the file cannot be of that name.
    CommandError
        If matplotlib is not installed.
    """
    checked_output(path, option, _FORMATS)
    if path is not None:
        needs_matplotlib(option)


def draw(path: Path, name: str, result: PredictResult, points: Sequence[Point], *, by_nodes: bool) -> None:
    """Draw a prediction into a file.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    unit = unit_of(result)
    answered = sorted((found for found in result if found.answered), key=lambda found: _scale(found, by_nodes))
    figure = Figure(figsize=(7.2, 4.6), dpi=160, layout="constrained")
    axes = figure.add_subplot()
    _curve(axes, answered, unit, by_nodes)
    _points(axes, points, unit, by_nodes)
    if result.recommended is not None:
        _recommended(axes, result, unit, by_nodes)
    axes.set_title(f"{name}: predicted by {result.basis.estimator} {result.basis.estimator_version}", loc="left")
    axes.set_xlabel("nodes" if by_nodes else "workers")
    axes.set_ylabel(f"throughput ({unit} per second)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)
    with writing(path):
        figure.savefig(path)


def _scale(found: Prediction | Point, by_nodes: bool) -> int:
    return found.nodes if by_nodes else found.workers


def _curve(axes: Axes, answered: Sequence[Prediction], unit: str, by_nodes: bool) -> None:
    scale = [_scale(found, by_nodes) for found in answered]
    banded = [found for found in answered if found.upper_steps_per_second is not None]
    if banded:
        samples = unit == "samples"
        basis = banded[0].interval_basis
        how = "" if basis is None else f" ({basis.replace('_', ' ')})"
        axes.fill_between(
            [_scale(found, by_nodes) for found in banded],
            [(f.lower_samples_per_second if samples else f.lower_steps_per_second) or 0.0 for f in banded],
            [(f.upper_samples_per_second if samples else f.upper_steps_per_second) or 0.0 for f in banded],
            color=_CURVE,
            alpha=0.15,
            linewidth=0,
            label=f"{100 * (banded[0].interval_coverage or 0):.4g} % interval{how}",
        )
    rates = [rate_of(found, unit) or 0.0 for found in answered]
    axes.plot(scale, rates, color=_CURVE, marker=".", linewidth=1.8, label="predicted")


def _points(axes: Axes, points: Sequence[Point], unit: str, by_nodes: bool) -> None:
    for train, face, label in ((True, _MEASURED, "measured, learned from"), (False, "white", "measured, held out")):
        known = [point for point in points if point.train == train and rate_of(point, unit) is not None]
        if known:
            axes.scatter(
                [_scale(point, by_nodes) for point in known],
                [rate_of(point, unit) or 0.0 for point in known],
                s=38,
                facecolor=face,
                edgecolor=_MEASURED,
                linewidth=1.2,
                zorder=3,
                label=label,
            )


def _recommended(axes: Axes, result: PredictResult, unit: str, by_nodes: bool) -> None:
    found, chosen = result.recommended, result.recommendation
    assert found is not None
    assert chosen is not None
    rate = rate_of(found, unit)
    if rate is None:
        return
    scale = _scale(found, by_nodes)
    what = "nodes" if by_nodes else "workers"
    axes.axvline(scale, color=_CHOSEN, linewidth=1, linestyle=(0, (4, 3)))
    axes.scatter(
        [scale],
        [rate],
        s=150,
        marker="o",
        facecolor="none",
        edgecolor=_CHOSEN,
        linewidth=2,
        zorder=4,
        label=f"recommended: {scale} {what if scale != 1 else what[:-1]} ({(chosen.rule or '').replace('_', ' ')})",
    )

"""The picture of a prediction: curve, interval, measured points, linear scaling, and the recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodewise_cli.inputs.measured_points import Point
from nodewise_cli.pictures.figures import plain_axes, save
from nodewise_cli.views.units import Unit
from nodewise_client import PredictResult
from nodewise_client.plots import plot_prediction

__all__ = ["draw"]


def draw(path: Path, name: str, result: PredictResult, points: Sequence[Point], unit: Unit, *, by_nodes: bool) -> None:
    """Draw a prediction into a file.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    figure, axes = plain_axes(7.2, 4.6)
    plot_prediction(result, axes, points=points, rate_of=unit.rate, counts=unit.counts, by_nodes=by_nodes)
    axes.set_title(f"{name}: predicted by {result.basis.estimator} {result.basis.estimator_version}", loc="left")
    save(figure, path)

"""The picture of a sweep: mean response time over load, a line per policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodewise_cli.outputs import writing
from nodewise_cli.pictures.figures import COLOURS, plain_axes
from nodewise_cli.views.sweep import Comparison, Row, compare_rows

__all__ = ["draw"]

_STYLES: Final = ("-", "--", ":", "-.")
"""Of prediction errors; colours are policies'."""


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Mean response time over load with its confidence, a line per policy (and prediction error).

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    figure, axes = plain_axes(7.2, 4.6)
    lines: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in compare_rows(rows):
        if "average_jct_s" in comparison.estimates:
            job, row = comparison.group["job_sigma"], comparison.group["row_sigma"]
            error = f", errors {job:g}/{row:g}" if job or row else ""
            lines.setdefault((comparison.group["policy"], error), []).append(comparison)
    policies, errors = (list(dict.fromkeys(key[part] for key in lines)) for part in range(2))
    for (policy, error), points in lines.items():
        points.sort(key=lambda point: point.group["load"])
        axes.errorbar(
            [point.group["load"] for point in points],
            [point.estimates["average_jct_s"].mean for point in points],
            yerr=[point.jct_half_s or 0.0 for point in points],
            color=COLOURS[policies.index(policy) % len(COLOURS)],
            linestyle=_STYLES[errors.index(error) % len(_STYLES)],
            marker="o",
            markersize=4,
            capsize=3,
            linewidth=1.4,
            label=policy + error,
        )
    axes.set_xlabel("load factor (divides the inter-arrival times)")
    axes.set_ylabel("mean response time (s), 95 % confidence over seeds")
    axes.set_ylim(bottom=0)
    if lines:
        axes.legend(frameon=False, fontsize=8)
    with writing(path):
        figure.savefig(path)

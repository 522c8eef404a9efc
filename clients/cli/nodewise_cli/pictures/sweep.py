"""The picture of a sweep: mean response time over load, and each policy relative to the first on the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nodewise.runtime.engine_runs import estimate_mean
from nodewise_cli.pictures.figures import COLOURS, DASHED, INK, bare, save, write_numbers
from nodewise_cli.views.sweep import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

_STYLES: Final = ("-", "--", ":", "-.")
"""Of prediction errors; colours are policies'."""
_Seeds: TypeAlias = Mapping[int, float]
"""Mean response time (s) by seed."""
_Key: TypeAlias = tuple[str, float, float]
"""Policy, and the deviations of the prediction errors of jobs and of rows."""


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Draw mean response times over load, a line per policy (and prediction error); below, ratios to the first policy.

    All policies have the same jobs in the same seed, so a ratio is computed seed by seed. Its confidence interval is
    much narrower than those of the means, which mostly differ by their seeds.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure

    lines: dict[_Key, dict[float, dict[int, float]]] = {}
    for row in rows:
        if row.get("average_jct_s") is not None:
            line = lines.setdefault((row["policy"], row["job_sigma"], row["row_sigma"]), {})
            line.setdefault(row["load"], {})[row["seed"]] = row["average_jct_s"]
    policies = list(dict.fromkeys(policy for policy, *_ in lines))
    errors = list(dict.fromkeys(key[1:] for key in lines))
    panels = 2 if len(policies) > 1 else 1
    figure = Figure(figsize=(7.2, 2.6 + 2.4 * panels), dpi=160, layout="constrained")
    axes = [bare(each) for each in figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]]
    for each in axes:
        each.grid(color="#dddddd", linewidth=0.7)
        each.set_axisbelow(True)
    for (policy, job_sigma, row_sigma), loads in lines.items():
        style = {
            "color": COLOURS[policies.index(policy) % len(COLOURS)],
            "linestyle": _STYLES[errors.index((job_sigma, row_sigma)) % len(_STYLES)],
        }
        label = policy + (f", errors {job_sigma:g}/{row_sigma:g}" if job_sigma or row_sigma else "")
        _means(axes[0], loads, label, style)
        if policy != policies[0]:
            _ratios(axes[1], loads, lines.get((policies[0], job_sigma, row_sigma), {}), style)
    axes[0].set_ylabel("mean response time (s)")
    axes[0].set_ylim(bottom=0)
    write_numbers(axes[0])
    if panels > 1:
        axes[1].axhline(1.0, color=INK, linewidth=0.8, linestyle=DASHED)
        axes[1].set_ylabel(f"ratio to {policies[0]},\nsame seeds, 95 % interval")
    axes[-1].set_xlabel("load factor (divides the inter-arrival times)")
    if lines:
        axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)


def _means(axes: Axes, loads: Mapping[float, _Seeds], label: str, style: Mapping[str, Any]) -> None:
    """Draw the mean over seeds, and each seed as a small point."""
    xs = sorted(loads)
    means = [sum(loads[load].values()) / len(loads[load]) for load in xs]
    axes.plot(xs, means, marker="o", markersize=4, linewidth=1.4, label=label, **style)
    seeds = [(load, value) for load in xs for value in loads[load].values()]
    axes.scatter(
        [load for load, _ in seeds], [value for _, value in seeds], s=8, color=style["color"], alpha=0.35, linewidths=0
    )


def _ratios(
    axes: Axes, loads: Mapping[float, _Seeds], baseline: Mapping[float, _Seeds], style: Mapping[str, Any]
) -> None:
    """Draw the geometric mean of the ratios by seed, with its confidence interval."""
    points = list(_pair_seeds(loads, baseline))
    if points:
        xs, middles, below, above = zip(*points, strict=True)
        axes.errorbar(xs, middles, yerr=(below, above), marker="o", markersize=4, capsize=3, linewidth=1.4, **style)


def _pair_seeds(
    loads: Mapping[float, _Seeds], baseline: Mapping[float, _Seeds]
) -> Iterator[tuple[float, float, float, float]]:
    """Yield load, ratio, and how far its interval reaches below and above."""
    for load in sorted(loads):
        base = baseline.get(load, {})
        logs = [math.log(value / base[seed]) for seed, value in loads[load].items() if base.get(seed) and value]
        if logs:
            estimate = estimate_mean(logs)
            middle = math.exp(estimate.mean)
            half = 0.0 if estimate.upper is None else estimate.upper - estimate.mean
            yield load, middle, middle - math.exp(estimate.mean - half), math.exp(estimate.mean + half) - middle

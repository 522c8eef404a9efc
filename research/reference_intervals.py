"""Intervals about the reference form (`reference` of examples/plugins/nodewise_baselines), to compare widths with.

The form is fitted to a job's train rows alone. Its 90 % interval is conformal across jobs: of jobs of other models, the
quantile of |ln(measured / predicted)| over the distance of extrapolation, every job weighing alike, times the distance
of the row that is asked about. The distance is ln of the workers over the most that were seen, ln 1.25 at least.
(Split conformal: G. Shafer and V. Vovk, J. Machine Learning Research 9, 2008; scaled residuals: J. Lei et al., J. Am.
Stat. Assoc. 113(523), 2018.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from nodewise_baselines.points import points_of  # type: ignore[import-not-found,unused-ignore]
from nodewise_baselines.reference import Reference  # type: ignore[import-not-found,unused-ignore]
from nodewise_baselines.rows import Rows  # type: ignore[import-not-found,unused-ignore]

from nodewise.domain.columns import Floats, as_floats
from nodewise.plugin import SyncMode

Job = tuple[str, str]
"""Name and device."""

LEVEL: Final = 0.9
LEAST_DISTANCE: Final = float(np.log(1.25))
LEAST_STEP_S: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Extrapolated:
    """Test rows of a job: ln(measured / predicted by the reference), and distances from what was seen."""

    log_errors: Floats
    distances: Floats


def extrapolated(train: Sequence[tuple[Floats, float]], test: Sequence[tuple[Floats, float]]) -> Extrapolated:
    """Fit the reference to train rows, each a key (nodes, workers, fullest, batch, ...) and seconds; predict others."""
    seen, seen_s = _columns(train)
    asked, asked_s = _columns(test)
    points = points_of(_rows(seen), seen_s, as_floats(np.full(len(seen), np.nan)))
    step_s = Reference().fitted(points, SyncMode.ALLREDUCE)(_rows(asked))
    distances = np.maximum(np.log(asked[:, 1] / seen[:, 1].max()), LEAST_DISTANCE)
    return Extrapolated(np.log(asked_s / np.maximum(step_s, LEAST_STEP_S)), distances)


def widths_of(jobs: Mapping[Job, Extrapolated], model_of: Mapping[Job, str]) -> dict[Job, tuple[Floats, Floats]]:
    """Of every job ln(upper / lower) of its rows, and whether the measurement lies inside (1 or 0)."""
    found = {}
    for job, own in jobs.items():
        half = _quantile(other for name, other in jobs.items() if model_of[name] != model_of[job]) * own.distances
        found[job] = 2.0 * half, as_floats(np.abs(own.log_errors) <= half)
    return found


def _quantile(jobs: Iterable[Extrapolated]) -> float:
    """Of the scaled errors, jobs weighing alike; one more row than there are, as wide as the widest, counts as well."""
    scores = [np.abs(each.log_errors) / each.distances for each in jobs]
    values = np.concatenate(scores)
    weights = np.concatenate([np.full(len(each), 1.0 / len(each)) for each in scores])
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    level = min(LEVEL * (1.0 + 1.0 / len(values)), 1.0)
    return float(values[order][min(int(np.searchsorted(share, level - 1e-12)), len(values) - 1)])


def _columns(rows: Sequence[tuple[Floats, float]]) -> tuple[Floats, Floats]:
    return as_floats(np.array([key for key, _ in rows])), as_floats([step_s for _, step_s in rows])


def _rows(keys: Floats) -> Rows:
    nodes, workers, batch = keys[:, 0], keys[:, 1], keys[:, 3]
    return Rows(nodes=nodes, workers=workers, servers=np.zeros(len(keys)), batch_samples=batch)

"""Small profiles and questions for the published forms, and the points of the golden check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from nodewise_baselines.estimator import FormModel
from nodewise_baselines.plugin import nodewise_estimators
from nodewise_baselines.points import Points, points_of
from nodewise_baselines.rows import Rows

from nodewise.estimation.estimators.check import check_predictions
from nodewise.plugin import (
    Assessment,
    Configurations,
    Estimator,
    Floats,
    Observations,
    Options,
    Predictions,
    Profile,
    Query,
    SyncMode,
    as_floats,
    as_ints,
)

Run = tuple[int, int, int, float]
"""Nodes, workers, batch per worker, seconds per step."""

GOLDEN: Final[tuple[Run, ...]] = (
    (1, 1, 4, 0.45532),
    (1, 1, 8, 0.70326),
    (1, 1, 12, 0.92151),
    (1, 2, 8, 0.71218),
    (1, 4, 8, 0.74076),
    (2, 2, 8, 1.39869),
    (2, 4, 8, 2.05662),
    (2, 8, 8, 2.53326),
)
"""BERT on nodes of four T4, batches of 4, 8 and 12: mean step times in the published profiles of Pollux and Sia."""


def variables(asked: Sequence[Sequence[float]]) -> Rows:
    """Rows of (nodes, workers, batch) or (nodes, workers, batch, servers)."""
    columns = np.array([[*row, 0.0][:4] for row in asked], dtype=float).T
    nodes, workers, batch, servers = (as_floats(column) for column in columns)
    return Rows(nodes=nodes, workers=workers, servers=servers, batch_samples=batch)


def points(runs: Sequence[Run]) -> Points:
    step_s = as_floats([run[3] for run in runs])
    return points_of(variables([run[:3] for run in runs]), step_s, as_floats(np.full(len(runs), np.nan)))


def configurations(
    asked: Sequence[Sequence[int]],
    mode: SyncMode = SyncMode.ALLREDUCE,
    *,
    device: str = "T4",
    servers: Sequence[int] = (),
) -> Configurations:
    """Rows of (nodes, workers, batch), as a question holds them when it reaches an estimator."""
    nodes, workers, batch = (as_ints([row[place] for row in asked]) for place in range(3))
    plain = Configurations.of(len(asked), nodes=nodes, workers=workers, device=device, sync_mode=mode)
    return plain.replaced(batch_per_worker=batch, parameter_servers=as_ints(servers or [0] * len(asked)))


def profile(
    runs: Sequence[Run],
    mode: SyncMode = SyncMode.ALLREDUCE,
    *,
    device: str = "T4",
    servers: Sequence[int] = (),
) -> Profile:
    ran = configurations([run[:3] for run in runs], mode, device=device, servers=servers)
    return Profile(observations=Observations.of(ran, rates(ran, [run[3] for run in runs])))


def rates(ran: Configurations, step_s: Sequence[float]) -> Floats:
    return as_floats(ran.cycles_per_step() / np.array(step_s))


def estimator(name: str) -> Estimator:
    (found,) = (record.estimator for record in nodewise_estimators() if record.name == name)
    return found


def assessed(name: str, known: Profile, asked: Configurations) -> Assessment:
    return estimator(name).assess(known, Query(configurations=asked))


def fitted(name: str, known: Profile) -> FormModel:
    model = estimator(name).fit(known, None)  # type: ignore[arg-type]
    assert isinstance(model, FormModel)
    return model


def predicted(name: str, known: Profile, asked: Configurations) -> Predictions:
    """What the server would accept."""
    return check_predictions(fitted(name, known).predict(asked, Options()), asked)

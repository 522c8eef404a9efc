"""Jobs whose runs and steps are written down, for the rules of one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from nodewise.catalogue.loading import load_catalogue
from nodewise.estimation.estimators.check import check_predictions
from nodewise.plugin import (
    Assessment,
    Configurations,
    Ints,
    Observations,
    Options,
    Predictions,
    Profile,
    Query,
    SyncMode,
    Workload,
    as_floats,
    as_ints,
    constant_ints,
)
from nodewise_simple.plugin import nodewise_estimators

Run = tuple[int, int, float]
"""Workers (eight on a node), samples of a step over all of them, seconds per step."""

RECORDS = {record.name: record for record in nodewise_estimators()}
CATALOGUE = load_catalogue()


BARE: Any = SimpleNamespace(catalogue=CATALOGUE)
"""A context of facts alone."""


def asked(scales: Sequence[tuple[int, int]], *, mode: SyncMode = SyncMode.ALLREDUCE, **columns: int) -> Configurations:
    """Workers and samples of a step."""
    workers = as_ints([count for count, _ in scales])
    rows = Configurations.of(len(scales), nodes=-(-workers // 8), workers=workers, device="A100")
    batches = as_ints([samples for _, samples in scales])
    return rows.replaced(
        sync_mode=constant_ints(len(scales), int(mode)), global_batch=batches, **constants(len(scales), columns)
    )


def constants(rows: int, columns: Mapping[str, int]) -> dict[str, Ints]:
    """Columns with one value."""
    return {name: constant_ints(rows, value) for name, value in columns.items()}


def job(runs: Sequence[Run], workload: Workload | None = None, **columns: int) -> Profile:
    """A job of some runs."""
    rows = asked([(workers, samples) for workers, samples, _ in runs]).replaced(**constants(len(runs), columns))
    rates = as_floats([1.0 / step_s for _, _, step_s in runs])
    return Profile(workload=workload or Workload(), observations=Observations.of(rows, rates))


def predicted(name: str, profile: Profile, rows: Configurations) -> Predictions:
    """The checked answer of a rule."""
    model = RECORDS[name].estimator.fit(profile, BARE)
    return check_predictions(model.predict(rows, Options()), rows)


def assessed(name: str, profile: Profile, rows: Configurations) -> Assessment:
    """What a rule says that it can do."""
    return RECORDS[name].estimator.assess(profile, Query(configurations=rows, catalogue=CATALOGUE))

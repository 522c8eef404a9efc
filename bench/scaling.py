"""Fits and predictions of all-reduce jobs beside Ernest's: non-negative least squares over four features."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from results import Result
from scipy.optimize import nnls

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.predictions import Options
from nodewise.domain.profile import Observations, Profile
from nodewise.hosting.registry import load_registry
from nodewise.plugin import Catalogue, Model

ROWS = 200_000


class NoContext:
    """What a fit may use besides the profile: nothing."""

    prior = None
    catalogue = Catalogue()
    seed = 0

    def model(self, estimator: str) -> Model:
        raise NotImplementedError


def configurations(rows: int, most_nodes: int) -> Configurations:
    draw = np.random.default_rng(rows)
    nodes = draw.integers(1, most_nodes + 1, rows)
    return Configurations.of(rows, nodes=nodes, workers=4 * nodes, sync_mode=SyncMode.ALLREDUCE, device="T4").replaced(
        batch_per_worker=as_ints(draw.integers(4, 64, rows))
    )


def job(rows: int) -> Profile:
    ran = configurations(rows, 4)
    step_s = 0.1 + 0.01 * ran.batch_per_worker + 0.3 * (ran.nodes > 1) * (1.0 - 1.0 / ran.nodes)
    return Profile(observations=Observations.of(ran, as_floats(1.0 / step_s)))


def features(ran: Configurations) -> np.ndarray:
    """Ernest's: constant, samples per worker, workers, their logarithm."""
    workers = ran.workers.astype(np.float64)
    return np.stack([np.ones(len(ran)), ran.batch_per_worker, workers, np.log(workers)], axis=1)


def best_s(work: Callable[[], object], repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def run() -> Iterator[Result]:
    """One core, models made anew each time."""
    estimator = load_registry(safe_mode=True).estimators["scaling"].record.estimator
    context = NoContext()
    for rows in (10, 500):
        profile = job(rows)
        matrix = features(profile.observations.configurations)
        step_s = 1.0 / profile.observations.steps_per_s
        ours = best_s(lambda profile=profile: estimator.fit(profile, context))
        theirs = best_s(lambda matrix=matrix, step_s=step_s: nnls(matrix, step_s))
        yield Result(f"scaling_fit_of_{rows}", 1e3 * ours, "ms", 1e3 * theirs)
    model = estimator.fit(job(10), context)
    asked = configurations(ROWS, 64)
    weights = np.array([0.1, 0.01, 0.001, 0.01])
    ours = ROWS / best_s(lambda: model.predict(asked, Options()))
    yield Result("scaling_predictions", ours, "predictions/s", ROWS / best_s(lambda: features(asked) @ weights))

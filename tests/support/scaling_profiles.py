"""Small profiles and questions for the scaling estimator, and jobs whose step times follow a law that is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Final

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.estimation.estimators.check import check_predictions
from nodewise.plugin import (
    Assessment,
    Configurations,
    Observations,
    Options,
    Placement,
    Predictions,
    Prior,
    Profile,
    Query,
    Reason,
    RowStatus,
    SyncMode,
    as_floats,
    as_ints,
)
from nodewise_scaling.estimator import ScalingEstimator
from nodewise_scaling.points import Points, points_of
from nodewise_scaling.replicas import ScalingModel

Scale = tuple[int, int, int]
"""Nodes, workers, samples per worker."""

CATALOGUE: Final = load_catalogue()
"""The shipped facts."""

PER_NODE: Final = 4
"""Workers on a full node of the made-up clusters."""

EIGHT: Final = ((1, 1, 4), (1, 1, 8), (1, 1, 16), (1, 2, 8), (1, 4, 8), (2, 2, 8), (2, 4, 8), (2, 8, 8))
"""Runs on up to two nodes, as a job has before it grows."""

TEN: Final = (*EIGHT, (3, 12, 8), (4, 16, 8))
"""The same and two more nodes."""


@dataclass(frozen=True)
class Law:
    """Step times by compute, a ring inside the node and one across nodes, none of it hidden.

    ``two`` is what the ring of exactly two nodes takes longer than the curve.
    """

    fixed_s: float = 0.05
    sample_s: float = 0.02
    inside_s: float = 0.1
    across_s: float = 0.4
    two: float = 1.5

    def step_s(self, scales: Iterable[Scale]) -> list[float]:
        """Seconds of a step at each scale."""
        return [self._step_s(*scale) for scale in scales]

    def _step_s(self, nodes: int, workers: int, batch: int) -> float:
        inside = self.inside_s * (workers / nodes - 1) / (PER_NODE - 1)
        across = self.across_s * (1 - 1 / nodes) / 0.75 * (self.two if nodes == 2 else 1.0)
        return self.fixed_s + self.sample_s * batch + inside + across


USUAL: Final = Law()


def full(nodes: Iterable[int], batch: int = 8) -> list[Scale]:
    """Full nodes at one batch per worker."""
    return [(count, PER_NODE * count, batch) for count in nodes]


def rows(
    scales: Sequence[Scale],
    *,
    device: str = "T4",
    placement: Sequence[Sequence[int]] = (),
    **columns: int | Sequence[int],
) -> Configurations:
    """All-reduce configurations; other columns hold one value, or one per row."""
    values: dict[str, int | Sequence[int]] = {
        "sync_mode": int(SyncMode.ALLREDUCE),
        "batch_per_worker": [batch for _, _, batch in scales],
        **columns,
    }
    listed = {name: [value] * len(scales) if isinstance(value, int) else value for name, value in values.items()}
    plain = Configurations.of(
        len(scales),
        nodes=as_ints([nodes for nodes, _, _ in scales]),
        workers=as_ints([workers for _, workers, _ in scales]),
        device=device,
    )
    return plain.replaced(
        placement=Placement.of(placement) if placement else None,
        **{name: as_ints([int(each) for each in column]) for name, column in listed.items()},
    )


def several(*parts: Configurations) -> Configurations:
    """The rows of all parts."""
    return Configurations.concatenated(parts)


def profile(
    configurations: Configurations, step_s: Iterable[float], digest: str = "", measured_at_s: Sequence[float] = ()
) -> Profile:
    """A job of which these steps were measured."""
    measured = Observations.of(configurations, as_floats([1.0 / each for each in step_s]))
    if measured_at_s:
        measured = replace(measured, measured_at_s=as_floats(measured_at_s))
    return Profile(digest=digest, observations=measured)


def job(
    law: Law = USUAL, scales: Sequence[Scale] = EIGHT, *, device: str = "T4", digest: str = "", times: float = 1.0
) -> Profile:
    """A job that follows a law, all its times multiplied."""
    return profile(rows(scales, device=device), [times * each for each in law.step_s(scales)], digest)


def joined(*jobs: Profile) -> Profile:
    """One profile with the observations of all."""
    return Profile(observations=Observations.concatenated([each.observations for each in jobs]))


def taken(of: Profile, order: Sequence[int]) -> Profile:
    """The same profile with these of its observations, in this order."""
    return replace(of, observations=of.observations.take(as_ints(order)))


def fitted(of: Profile, prior: Prior | None = None) -> ScalingModel:
    """The model of a profile."""
    model = ScalingEstimator().fit(of, SimpleNamespace(prior=prior, catalogue=CATALOGUE))  # type: ignore[arg-type]  # all that it asks for
    assert isinstance(model, ScalingModel)
    return model


def predicted(of: Profile, asked: Configurations, prior: Prior | None = None) -> Predictions:
    """Fit and predict, checked as the core checks."""
    return check_predictions(fitted(of, prior).predict(asked, Options()), asked)


def answered(of: Profile, asked: Configurations, prior: Prior | None = None) -> Predictions:
    """The same, where every row must be answered."""
    answer = predicted(of, asked, prior)
    assert answer.answered.all(), answer.refusals
    return answer


def refused(answer: Predictions) -> dict[int, tuple[Reason, str]]:
    """Reason and message of each row that is not answered."""
    found = {row: (each.refusal.reason, each.refusal.message) for each in answer.refusals for row in each.rows}
    assert [row for row, status in enumerate(answer.status) if status == RowStatus.REFUSED] == sorted(found)
    return found


def notices(answer: Predictions) -> dict[str, str]:
    """Messages to the reader by their reasons."""
    return {notice.reason: notice.message for notice in answer.notices}


def assessed(of: Profile, asked: Configurations) -> Assessment:
    """What the estimator says it can do."""
    return ScalingEstimator().assess(of, Query(configurations=asked, catalogue=CATALOGUE))


def points(of: Profile) -> Points:
    """The points of a profile of one device."""
    (settings,) = points_of(of).values()
    (found,) = settings.values()
    return found


def summed(answer: Predictions) -> np.ndarray:
    """The parts of each step added up."""
    return np.sum(list(answer.breakdown_s.values()), axis=0)

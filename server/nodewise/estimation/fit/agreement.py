"""Check whether a model reproduces the measurements that it was fitted to."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Notice, Options
from nodewise.domain.profile import Profile
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.fitted_model import ModelKey
from nodewise.estimation.resolution import Resolution
from nodewise.plugin import Model

__all__ = ["disagreement"]

DISAGREEMENT: Final = 1.5
"""Factor between the measured and the predicted rate of an observation above which an answer warns. Repeated
one-worker campaigns of the same job differ by up to 24 % (research/queueing.md)."""
COMPARED_OBSERVATIONS: Final = 4096
"""Maximum number of observations, newest first, that a new model is compared with."""


def disagreement(
    estimators: Estimators, key: ModelKey, model: Model, profile: Profile, resolution: Resolution
) -> tuple[Notice, ...]:
    """Return a notice if the model does not reproduce its own evidence, else an empty tuple.

    No answer depends on this comparison. An error in it is ignored; a query that hits the same error reports it.
    """
    observations = profile.observations
    if not len(observations):
        return ()
    try:
        newest = np.lexsort((observations.number, observations.measured_at_s))[-COMPARED_OBSERVATIONS:]
        comparisons = observations.take(as_ints(np.sort(newest)))
        support = estimators.supported_rows(key.estimator, profile, resolution.of(profile, comparisons.configurations))
        options = Options(seed=key.seed)
        predictions = estimators.predict(key.estimator, model, support.configurations, options, quiet=True)
    except NodewiseError:
        return ()
    runs = comparisons if support.rows is None else comparisons.take(support.rows)
    rows = np.flatnonzero(predictions.answered & (runs.steps_per_s > 0))
    rate = support.configurations.rates.cycles_per_step[rows] / predictions.step_s[rows]
    log_ratio = np.abs(np.log(rate / runs.steps_per_s[rows]))
    apart = int((log_ratio > np.log(DISAGREEMENT)).sum())
    if not apart:
        return ()
    at = int(log_ratio.argmax())
    worst = int(rows[at])
    number = int(runs.number[worst])
    names = f"number {number}" if number else f"the one with {support.configurations.workers[worst]} workers"
    batch = support.configurations.rates.samples_per_step[worst]
    per_step, unit = (batch, "samples/s") if batch > 0 else (1.0, "steps/s")
    message = (
        f"{apart} of {len(rows)} observations differ from the model by more than a factor of {DISAGREEMENT:g}; the "
        f"worst is {names}: measured {runs.steps_per_s[worst] * per_step:.4g} {unit}, predicted "
        f"{rate[at] * per_step:.4g}"
    )
    return (Notice("EVIDENCE_DISAGREES", message),)

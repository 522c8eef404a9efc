"""Regret: an objective's recommendation under uncertain step times, and the loss from recommending another row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import Predictions
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.objectives import verdict_of
from nodewise.estimation.reach import Reach

__all__ = ["Decision", "Samples", "likelihoods"]

LEAST_NOISE: Final = 1e-9
"""Noise in ln(step time) that replaces a noise of zero."""


class Decision:
    """The objective's recommendation for a vector of step times, and the loss from recommending another row.

    Rows are the answered rows.
    """

    def __init__(
        self,
        objective: Objective,
        configurations: Configurations,
        predictions: Predictions,
        workload: Workload,
        reach: Reach,
    ) -> None:
        rates = configurations.rates
        per_step = rates.samples_per_step if rates.batch_known else rates.minibatches_per_step
        self._objective, self._workload, self._reach = objective, workload, reach
        self._configurations, self._predictions = configurations, predictions
        self._samples = rates.cycles_per_step * rates.samples_per_step
        self._minibatches = rates.cycles_per_step * rates.minibatches_per_step
        self._counted = rates.cycles_per_step * per_step

    def row(self, log_step: Floats, log_spread: Floats) -> int:
        """Return the recommended row, -1 where none meets the objective."""
        step_s = np.exp(log_step)
        verdict = verdict_of(
            self._objective,
            self._configurations,
            replace(self._predictions, step_s=step_s, log_spread=log_spread),
            self._samples / step_s,
            self._minibatches / step_s,
            self._workload,
            self._reach,
        )
        return -1 if verdict.recommendation is None else verdict.recommendation.row

    def losses(self, log_steps: Floats, best: Ints) -> Floats:
        """Return the loss of each recommendation in each truth: |X(row) - X(best)| / X(best), with X the true rate.

        Parameters
        ----------
        log_steps : float, of shape (truths, rows)
            ln(step time).
        best : int
            The right row in each truth, -1 = none.

        Returns
        -------
        float, of shape (truths, rows + 1)
            1 where a row is recommended and none should be. The last column recommends no row: 1 where one should be.
        """
        truths, rows = log_steps.shape
        log_rates = np.log(self._counted) - log_steps
        right = log_rates[np.arange(truths), best][:, np.newaxis]
        outcomes = np.where(best[:, np.newaxis] >= 0, np.abs(np.expm1(log_rates - right)), 1.0)
        return np.column_stack([outcomes, best >= 0]).reshape(truths, rows + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples of the true step times, with the noise of a measurement in each.

    Attributes
    ----------
    log_steps : float, of shape (truths, rows)
        ln(step time).
    deviates : float
        Noise of ln(step time), one for each truth.
    best : int
        The right row in each truth, -1 = none.
    losses : float, of shape (truths, rows + 1)
        Loss of each recommendation (``Decision.losses``).
    """

    log_steps: Floats
    deviates: Floats
    best: Ints
    losses: Floats


def likelihoods(outcomes: Floats, truths: Floats, noise: float) -> Floats:
    """Return each truth's likelihood given each measurement, of shape (measurements, truths); each row adds up to 1."""
    apart = np.subtract.outer(outcomes, truths) / max(noise, LEAST_NOISE)
    weights = np.exp(-0.5 * (apart**2 - (apart**2).min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))

"""Search for the next measurements by preposterior analysis: the expected benefit of each one, and its cost.

ln(step time) of the answered rows is taken as jointly normal around the predictions. A measurement of one row changes
the predictions of all correlated rows, and may so change the objective's decision. Its worth is the expected fall of
the decision's regret (the expected value of sample information: Raiffa and Schlaifer, Applied Statistical Decision
Theory, 1961). Expectations are means over samples with a fixed seed: the same question has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints, as_ints
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.objective import KNEE
from nodewise.domain.predictions import Notice, Predictions
from nodewise.domain.words import pluralize
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.estimation.reach import Reach
from nodewise.estimation.suggestion.boundaries import Boundary
from nodewise.estimation.suggestion.covariance import LogCovariance, measure
from nodewise.estimation.suggestion.ran_before import ran_before
from nodewise.estimation.suggestion.regret import Decision, Samples, likelihoods
from nodewise_values import MeasurementSuggestion

__all__ = ["MOST_ROWS", "Suggestions", "Wish", "choose_measurements", "refusal_of"]

MOST_ROWS: Final = 1024
"""Most rows of a search: the time to decompose their covariance grows with the third power of their number (about half
a second for this many)."""
DRAWS: Final = 256
DRAWS_OF_MANY: Final = 64
MANY_ROWS: Final = 128
"""Samples of the truth, in antithetic pairs: fewer where there are more than ``MANY_ROWS`` rows. The objective is
applied as many times for each candidate: a suggestion among 16 rows takes a tenth of a second, one among 1,024 about a
second."""
CANDIDATES: Final = 48
"""Most rows whose measurement is evaluated, besides the recommended one."""
CONTENDERS: Final = 16
"""Most candidates that are included because they are the right decision in some sample, whatever their cost."""
LEAST_REGRET_FALL: Final = 1e-4
"""Smallest fall of regret, as a share of the throughput, for which a run is worthwhile: 0.01 %."""
KNOWN_SHARE: Final = 0.1
"""A row counts as known if its variance is at most this share of a measurement's variance."""
_ORDER: Final = (
    ("link_bytes_per_s", "accumulation", "global_batch", "batch_per_worker", "sync_mode"),
    ("parameter_servers", "workers", "nodes"),
)
"""Columns that define an order of rows, the last first: those compared after the device, then those before it."""
LEAST_SHARE_LEFT: Final = 1e-12
"""Share of a variance that remains after any measurement: an objective with a confidence skips rows without a
spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The number of measurements to suggest, and the facts of one measurement.

    Attributes
    ----------
    count : int
        Most suggestions, at least 1. Each further one assumes that those before it are made.
    start_up_s : float
        Seconds to start a run, in which its nodes are occupied.
    run_steps : int
        Steps of a run: one worker's cycles where a step is its mini-batch (ASYNC, HYBRID), else global batches.
    """

    count: int = 1
    start_up_s: float = 0.0
    run_steps: int = 100


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Suggestions:
    """The next measurements, best first; none if no measurement is useful, and a notice gives the reason.

    ``expected_regret`` is the expected regret of deciding now, as a share of the best throughput.
    """

    suggestions: tuple[MeasurementSuggestion, ...]
    expected_regret: float
    notices: tuple[Notice, ...]
    basis: Basis


def refusal_of(predictions: Predictions) -> Refusal | None:
    """Return the refusal of the first row if no row is answered; None = some rows are answered."""
    if predictions.answered.any():
        return None
    if predictions.refusals:
        return min(predictions.refusals, key=lambda refusal: min(refusal.rows, default=len(predictions))).refusal
    return Refusal(Reason.OBJECTIVE_UNREACHABLE, "no row fits into memory: there is nothing to run")


def choose_measurements(
    question: Question,
    answer: Answer,
    covariance: LogCovariance,
    wish: Wish,
    reach: Reach,
    boundary: Boundary | None,
) -> Suggestions:
    """Return the next measurements, best first; a run across an unmeasured boundary comes first.

    Measurements are ranked by the expected fall of regret per node-second. If none is expected to improve the decision,
    they are ranked by the expected fall of the interval's width per node-second. Each further suggestion assumes that
    those before it are made, and starts from the uncertainty that they leave. Configurations that the profile has
    measured are not suggested again. The order of the question's rows has no influence.

    Parameters
    ----------
    question : Question
        A question with an objective.
    answer : Answer
        The answer to that question, with at least one answered row.
    covariance : LogCovariance
        Covariance of the answered rows, in their order.
    reach : Reach
        Reach of the job's evidence.

    Raises
    ------
    NodewiseError
        DEADLINE_EXCEEDED: a shorter search would give a different answer.
    """
    search = _Search(question, answer, covariance, wish, reach, boundary)
    rows, regret = search.best()
    notices = answer.notices if boundary is None else (*answer.notices, boundary.notice)
    if not rows:
        notices = (*notices, _nothing(covariance))
    return Suggestions(suggestions=rows, expected_regret=regret, notices=notices, basis=answer.basis)


def _nothing(covariance: LogCovariance) -> Notice:
    """Return the notice why no measurement is suggested."""
    if not covariance.values.any():
        return Notice("NO_SPREAD", "the model states no spread, so the value of a measurement is not known")
    message = "no measurement is worthwhile: every row was measured, or is known better than a measurement would show"
    return Notice("NOTHING_TO_MEASURE", message)


class _Search:
    """One search for measurements.

    Rows are the answered ones in a fixed order (``_order``), so that the samples do not depend on the question's order;
    ``places`` are the rows' indices in the question.

    Measured rows are no candidates. Repeats do not reveal the error that all runs of a configuration share, such as
    that of a placement or a day, so models stay unsure of these rows by about the noise of one run. Their repeats are
    cheap and would look useful again and again, and the search would not reach configurations that never ran.
    """

    def __init__(
        self,
        question: Question,
        answer: Answer,
        covariance: LogCovariance,
        wish: Wish,
        reach: Reach,
        boundary: Boundary | None,
    ) -> None:
        answered_rows = np.flatnonzero(answer.predictions.answered)
        order = _order(answer, answered_rows, covariance.values.diagonal())
        self._places = answered_rows[order]
        self._configurations = answer.configurations.take(as_ints(self._places))
        self._ran = ran_before(self._configurations, question.profile)
        self._covariance = covariance.values[np.ix_(order, order)]
        self._noise = covariance.measurement_log_spread
        predictions = answer.predictions
        step_s, self._log_spread = predictions.step_s[self._places], predictions.log_spread[self._places]
        once_s = 0.0 if predictions.once_s is None else predictions.once_s[self._places]
        self._log_step = np.log(step_s)
        extrapolation = predictions.extrapolation[self._places]
        self._ratios = reach.ratios(self._configurations, extrapolation)
        self._boundary = None if boundary is None else (int(np.flatnonzero(self._places == boundary.row)[0]), boundary)
        self._decision = Decision(
            (question.objective or KNEE).of_rows(self._places.tolist()),
            self._configurations,
            Predictions.of(step_s, log_spread=self._log_spread, extrapolation=extrapolation, once_s=once_s),
            question.profile.workload,
            reach,
        )
        self._costs = self._configurations.nodes_held() * (wish.start_up_s + wish.run_steps * step_s)
        self._wish = wish
        self._deviations = float(-scipy.special.ndtri((1.0 - question.terms.coverage) / 2.0))
        self._budget = question.terms.options.budget
        generator = np.random.default_rng(question.terms.options.seed % 2**64)
        draws = DRAWS if len(step_s) <= MANY_ROWS else DRAWS_OF_MANY
        half = generator.standard_normal((draws // 2, len(step_s) + 1))
        self._normal = np.concatenate([half, -half])

    def best(self) -> tuple[tuple[MeasurementSuggestion, ...], float]:
        """Return the suggestions, best first, and the expected regret of deciding now."""
        covariance, expected_regret = self._covariance, 0.0
        rows: list[int] = []
        suggestions: list[MeasurementSuggestion] = []
        for number in range(self._wish.count):
            _in_time(self._budget, f"{number} of {self._wish.count} suggestions were found in time")
            samples = self._samples(covariance)
            spread = self._remaining_spread(covariance.diagonal())
            decision = self._decision.row(self._log_step, spread)
            regret = float(samples.losses[:, decision].mean())
            expected_regret = expected_regret if number else regret
            width_falls = self._width_falls(covariance)
            open_rows = (covariance.diagonal() > KNOWN_SHARE * self._noise**2) & ~self._ran
            open_rows[rows] = False
            candidates = self._candidates(open_rows, width_falls, decision, samples)
            crossing = None if number or self._boundary is None else self._boundary[0]
            if crossing is not None and crossing not in candidates:
                candidates.append(crossing)
            if not candidates:
                break
            falls = np.zeros(len(open_rows))
            falls[candidates] = [self._regret_fall(covariance, row, decision, samples) for row in candidates]
            goals = (falls, self._regrets_explained(covariance, decision, samples), width_falls)
            row = self._first(candidates, goals) if crossing is None else crossing
            suggestions.append(self._suggestion(row, goals, regret, decision, first=not number))
            rows.append(row)
            covariance = measure(covariance, row, self._noise)
        return tuple(suggestions), expected_regret

    def _samples(self, covariance: Floats) -> Samples:
        """Draw truths from the joint distribution of the rows, and find the best row in each."""
        values, vectors = np.linalg.eigh(covariance)
        # The symmetric root: any other one depends on the signs that the decomposition gives to its vectors.
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        log_steps = self._log_step + self._normal[:, :-1] @ root
        certain = np.zeros(len(self._log_step))
        best = as_ints([self._decision.row(truth, certain) for truth in log_steps])
        losses = self._decision.losses(log_steps, best)
        return Samples(log_steps, self._noise * self._normal[:, -1], best, losses)

    def _remaining_spread(self, variance: Floats) -> Floats:
        """Return the predictions' own spread, reduced as the variance was reduced."""
        before = self._covariance.diagonal()
        left = np.divide(variance, before, out=np.ones(len(before)), where=before > 0.0)
        return np.asarray(self._log_spread * np.sqrt(np.clip(left, LEAST_SHARE_LEFT, 1.0)))

    def _regret_fall(self, covariance: Floats, row: int, decision: int, samples: Samples) -> float:
        """Return the expected fall of the regret after a row is measured.

        Each sample is measured once. The loss of a decision is then its mean over all samples, weighted with the
        likelihood of the measurement in each. A single sample would say nothing about rows that the measurement does
        not concern, and chance would look like a benefit.
        """
        _in_time(self._budget, "not every row was weighed in time")
        gain = covariance[:, row] / (covariance[row, row] + self._noise**2)
        truths = samples.log_steps[:, row]
        outcomes = truths + samples.deviates
        spread = self._remaining_spread(covariance.diagonal() - gain * covariance[:, row])
        decisions = [
            self._decision.row(self._log_step + gain * by, spread) for by in (outcomes - self._log_step[row]).tolist()
        ]
        savings = samples.losses[:, decision] - samples.losses[:, decisions].T
        if not savings.any():
            return 0.0
        weights = likelihoods(outcomes, truths, self._noise)
        return max(0.0, float((weights * savings).sum(axis=1).mean()))

    def _width_falls(self, covariance: Floats) -> Floats:
        """Return the expected fall of the mean ln(upper / lower) after each row is measured."""
        variance = covariance.diagonal()
        total = variance + self._noise**2
        reduction = np.divide(covariance**2, total, out=np.zeros_like(covariance), where=total > 0.0)
        left = np.sqrt(np.maximum(variance[:, np.newaxis] - reduction, 0.0))
        falls = np.sqrt(variance)[:, np.newaxis] - left
        return np.asarray(2.0 * self._deviations * np.maximum(falls, 0.0).mean(axis=0))

    def _candidates(
        self, open_rows: NDArray[np.bool_], width_falls: Floats, decision: int, samples: Samples
    ) -> list[int]:
        """Return the candidates: the recommended row, rows that may be the right one, and those that teach most."""
        rank = np.argsort(-width_falls / self._costs, kind="stable")
        wins = np.bincount(samples.best[samples.best >= 0], minlength=len(rank))
        contenders = np.argsort(-wins, kind="stable")[:CONTENDERS]
        ranked_rows = [*contenders[wins[contenders] > 0].tolist(), *rank.tolist()]
        candidates = [row for row in dict.fromkeys(ranked_rows) if open_rows[row]][:CANDIDATES]
        if decision >= 0 and open_rows[decision] and decision not in candidates:
            candidates.append(decision)
        return sorted(candidates)

    def _regrets_explained(self, covariance: Floats, decision: int, samples: Samples) -> Floats:
        """Return the part of the current regret that each row's measurement explains; at least 0.

        Several measurements together may change a decision that each alone does not change. The worth of one then says
        nothing about the sequence (P. Frazier and W. Powell, Decision Analysis 7(4), 2010). The regret against each row
        that may be right is uncertainty about the ratio of two step times; a measurement explains a share of its
        variance.
        """
        if decision < 0:
            return np.zeros(len(covariance))
        right = samples.best >= 0
        regrets = np.bincount(
            samples.best[right], weights=samples.losses[right, decision], minlength=len(covariance)
        ) / len(samples.best)
        rivals = np.flatnonzero(regrets > 0.0)
        difference = covariance[rivals] - covariance[decision]
        doubt = difference[np.arange(len(rivals)), rivals] - difference[:, decision]
        total_variance = (covariance.diagonal() + self._noise**2) * doubt[:, np.newaxis]
        reduction = np.divide(difference**2, total_variance, out=np.zeros_like(difference), where=total_variance > 0.0)
        return np.asarray(regrets[rivals] @ np.minimum(reduction, 1.0))

    def _first(self, candidates: list[int], goals: tuple[Floats, ...]) -> int:
        """Return the best candidate by the first goal that any candidate serves; ties: the cheaper, then the first."""
        for values in goals[:-1]:
            worth = [row for row in candidates if values[row] >= LEAST_REGRET_FALL]
            if worth:
                break
        else:
            worth, values = candidates, goals[-1]
        return min(worth, key=lambda row: (-values[row] / self._costs[row], self._costs[row], row))

    def _suggestion(
        self, row: int, goals: tuple[Floats, ...], regret: float, decision: int, *, first: bool
    ) -> MeasurementSuggestion:
        fall, reduction, width_fall = (float(values[row]) for values in goals)
        nodes, workers = int(self._configurations.nodes[row]), int(self._configurations.workers[row])
        what = f"measuring {pluralize(workers, 'worker')} on {pluralize(nodes, 'node')}"
        then = "" if first else "after the measurements before it, "
        percent = 100 * -math.expm1(-width_fall)
        narrows = f"{what} narrows the intervals most per node-second (upper / lower by {percent:.3g} % on average)"
        if first and self._boundary is not None:
            why = f"{self._boundary[1].reason}; {what} is the smallest run that decides it"
        elif fall >= LEAST_REGRET_FALL:
            after = max(regret - fall, 0.0)
            why = (
                f"{then}{what} is expected to cut the regret of the decision from {100 * regret:.3g} % to "
                f"{100 * after:.3g} % of the best throughput, the most per node-second"
            )
        elif reduction >= LEAST_REGRET_FALL:
            why = (
                f"{then}no single run is expected to change the decision, but several may: {what} explains the most of "
                f"its expected regret per node-second ({100 * reduction:.3g} of {100 * regret:.3g} points)"
            )
        elif decision >= 0 and self._ratios[decision] > 1.0:
            why = (
                f"{then}the decision is for {self._ratios[decision]:.3g} times the largest measured scale, where no "
                f"run has tested the model; no single run is expected to improve it by "
                f"{100 * LEAST_REGRET_FALL:g} %, and {narrows}"
            )
        else:
            why = (
                f"{then}no further run would change the decision: none is expected to improve it by "
                f"{100 * LEAST_REGRET_FALL:g} %; {narrows}"
            )
        return MeasurementSuggestion(
            row=int(self._places[row]),
            nodes=nodes,
            workers=workers,
            cost_node_seconds=float(self._costs[row]),
            expected_regret_fall=fall,
            expected_width_fall=width_fall,
            why=why,
        )


def _order(answer: Answer, answered_rows: NDArray[np.int64], variance: Floats) -> Ints:
    """Return an order of the answered rows by their values; equal rows stay in the question's order."""
    configurations = answer.configurations
    later, first = ([getattr(configurations, name)[answered_rows] for name in names] for names in _ORDER)
    devices = np.asarray(configurations.device_names())[answered_rows]
    return as_ints(np.lexsort((variance, answer.predictions.step_s[answered_rows], *later, devices, *first)))


def _in_time(budget: Budget | None, progress: str) -> None:
    """Raise DEADLINE_EXCEEDED once no caller waits any more."""
    if budget is not None and budget.remaining_s() <= 0:
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the call's time was over: {progress}", {"progress": progress})

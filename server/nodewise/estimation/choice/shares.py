"""Choose the estimator, or the mixture of estimators, for each row from their expected errors.

The choice is made row by row, so that the answer of a row does not depend on the other rows of a question.

An expected error is a weighted mean of the estimator's own claim and of the claim scaled by its trials. A trial
predicts a run of the job from the other runs, or a similar job of the store. A run that is left out lies nearer to the
other runs than a queried row does. So a trial scales the claim by the ratio of its error to the error that was
stated for it.
Estimators with an expected error near the least one are mixed, with weights proportional to the inverse of the squared
error (J. M. Bates and C. W. J. Granger, Operational Research Quarterly 20(4), 1969). The others have no weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, only_value
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.estimation.lessons.trials import Trial
from nodewise.estimation.question import MixtureShare
from nodewise.plugin import Assessment

__all__ = ["Candidate", "RowKinds", "Shares", "expected_log_errors", "shares_of", "why"]

STRONG_LOG_ERROR: Final = 0.05
"""Expected error of a model whose constants are all measured: the noise between equal runs, about 5 %."""

WEAK_LOG_ERROR: Final = 0.65
"""Expected error of an answer from stated facts alone. Fitted formulas that extrapolate beyond their evidence are off
by a factor of two (research/scaling.md, "Beside the published peers")."""

CLAIM_WEIGHT: Final = 1.0
"""Number of trials that an estimator's own claim counts as. Claims of different authors are hard to compare, but a
single trial may be accurate by luck. At 2, a difference of claims outweighed a dozen small trials
(docs/explanation/choice.md)."""

OTHER_DEVICE_WEIGHT: Final = 0.25
"""Weight of a trial on another device: another cluster says little about this one. All such trials together weigh no
more than a claim."""

ABOUT_AS_GOOD: Final = 4.0 / 3.0
"""Largest expected error, relative to the least one, with which an estimator takes part in a mixture. Expected errors
are means of a few trials and uncertain by about a third. A larger difference is taken as real."""

MOST_RATIO: Final = 4.0
"""Largest factor by which a trial scales a claim, since a few runs are weak evidence."""

LEAST_LOG_ERROR: Final = 1e-9
"""Expected errors below this get equal weights: no measurement is that accurate."""

MOST_NAMED: Final = 4
"""Maximum number of unused estimators that the explanation names."""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class RowKinds:
    """Pairs of sync mode and device among rows. Trials are grouped by these pairs.

    Attributes
    ----------
    kinds : tuple of (SyncMode, str)
        The distinct pairs.
    index : int or None
        Place of each row's pair in ``kinds``; None = all rows have the same pair.
    """

    kinds: tuple[tuple[SyncMode, str], ...]
    index: Ints | None

    @staticmethod
    def of(configurations: Configurations) -> RowKinds:
        """Return the kinds of resolved rows."""
        mode, device = only_value(configurations.sync_mode), only_value(configurations.device_index)
        if mode is not None and device is not None:
            return RowKinds(((SyncMode(mode), configurations.devices[int(device)]),), None)
        keys = list(zip(configurations.sync_mode.tolist(), configurations.device_names(), strict=True))
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        index = np.array([places[key] for key in keys], dtype=np.int64)
        return RowKinds(tuple((SyncMode(mode), device) for mode, device in places), index)

    @property
    def key(self) -> tuple[object, ...]:
        """A cache key: equal for equal kinds and the same number of rows."""
        return self.kinds, None if self.index is None else self.index.tobytes()

    @property
    def devices(self) -> frozenset[str]:
        """Devices of all rows."""
        return frozenset(device for _, device in self.kinds)

    @property
    def modes(self) -> tuple[SyncMode, ...]:
        """Sync modes of all rows, ascending."""
        return tuple(sorted({mode for mode, _ in self.kinds}))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """An estimator that can answer, with its claim and its trials.

    Attributes
    ----------
    estimator : str
    assessment : Assessment
        The estimator's own assessment of each row of the question.
    own : sequence of Trial
        Trials on the job's own runs, each predicted from the others.
    similar : sequence of Trial
        Trials on other jobs.
    quick : bool
        Whether its fits take almost no time: a simple rule. Rules make similar errors.
    """

    estimator: str
    assessment: Assessment
    own: Sequence[Trial] = ()
    similar: Sequence[Trial] = ()
    quick: bool = False

    def expected_log_errors(self, kinds: RowKinds) -> Floats:
        """Return the expected mean |ln(predicted / measured)| of each row: infinite if refused; one value = all rows.

        An expected error is linear in the claim. Slope and offset depend on the row's sync mode and device.
        """
        claims = np.atleast_1d(np.asarray(self.claim, dtype=np.float64))
        if not self.own and not self.similar:
            return claims
        lines = np.array([self._line(mode, device) for mode, device in kinds.kinds])
        slope, offset = (lines[0] if kinds.index is None else lines[kinds.index].T)[:2]
        errors: Floats = slope * claims + offset
        return errors

    def _line(self, mode: SyncMode, device: str) -> tuple[float, float]:
        """Return slope and offset of the expected error over the claim, for rows of one sync mode and device."""
        slope, offset, weight = CLAIM_WEIGHT, 0.0, CLAIM_WEIGHT
        own = [trial for trial in self.own if trial.sync_mode == mode]
        similar = [trial for trial in self.similar if trial.sync_mode == mode]
        elsewhere = sum(trial.device != device for trial in similar)
        other = min(OTHER_DEVICE_WEIGHT, CLAIM_WEIGHT / elsewhere) if elsewhere else 0.0
        weighted_trials = [(trial, 1.0) for trial in own]
        weighted_trials += [(trial, 1.0 if trial.device == device else other) for trial in similar]
        for trial, own_weight in weighted_trials:
            error, stated_error = trial.mean_absolute_log_error, trial.stated_log_error
            weight += own_weight
            if stated_error == 0.0:
                offset += own_weight * error
            else:
                slope += own_weight * min(max(error / stated_error, 1.0 / MOST_RATIO), MOST_RATIO)
        return slope / weight, offset / weight

    @property
    def claim(self) -> float | Floats:
        """Expected error by the estimator's own claim, or derived from the strength of its evidence."""
        claim = self.assessment.expected_log_error
        if claim is None:
            return STRONG_LOG_ERROR + (WEAK_LOG_ERROR - STRONG_LOG_ERROR) * (1.0 - self.assessment.strength)
        return claim

    def reasons(self, modes: Sequence[SyncMode]) -> str:
        """Describe the trials that the expected error is based on besides the claim, as text for people."""
        reasons = []
        for trials, noun in ((self.own, "scale"), (self.similar, "similar job")):
            errors = [trial.mean_absolute_log_error for trial in trials if trial.sync_mode in modes]
            if errors:
                tests, of_job = ("leave-one-out tests on ", " of the job") if noun == "scale" else ("tests on ", "")
                mean = 100 * sum(errors) / len(errors)
                reasons.append(f"{mean:.0f} % in {tests}{_count(len(errors), noun)}{of_job}")
        return ", ".join(reasons) or "as it claims"


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The estimators that answer each row, and their weights.

    Attributes
    ----------
    mixture : tuple of MixtureShare
        Estimators with a weight in at least one row, largest weight first. Weights and errors are means over the rows.
    weights, errors : (estimators, rows or 1) float
        Weight and expected error of each estimator in each row; one column = equal in all rows. The weights of a row
        add up to 1, or are all 0 if every candidate refuses the row.
    """

    mixture: tuple[MixtureShare, ...]
    weights: Floats
    errors: Floats

    @staticmethod
    def alone(estimator: str) -> Shares:
        """Return shares by which one estimator answers every row, whatever its error."""
        share = MixtureShare(estimator=estimator, weight=1.0, expected_log_error=0.0)
        return Shares((share,), np.ones((1, 1)), np.zeros((1, 1)))


def expected_log_errors(candidates: Sequence[Candidate], kinds: RowKinds) -> Floats:
    """Return the expected errors, as (candidates, rows or 1)."""
    each = [candidate.expected_log_errors(kinds) for candidate in candidates]
    rows = max(map(len, each), default=1)
    return np.stack([np.broadcast_to(errors, rows) for errors in each])


def shares_of(candidates: Sequence[Candidate], errors: Floats, *, mixed: bool = True) -> Shares:
    """Return the estimators that answer each row, and their weights.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one.
    errors : (candidates, rows or 1) float
        Expected errors; infinite where the candidate refuses the row.
    mixed : bool
        Whether several estimators may answer a row together.
    """
    order = sorted(range(len(candidates)), key=lambda place: candidates[place].estimator)
    candidates, errors = [candidates[place] for place in order], errors[order]
    best = errors.min(axis=0)
    votes = errors.copy()
    rules = [place for place, candidate in enumerate(candidates) if candidate.quick]
    if len(rules) > 1:
        # Rules make similar errors and often give equal answers, so only the best rule takes part.
        votes[rules] = np.where(_first_least(errors[rules]), errors[rules], np.inf)
    taking_part = (votes <= ABOUT_AS_GOOD * best) if mixed else _first_least(errors)
    taking_part &= np.isfinite(votes)
    weights = np.where(taking_part, np.maximum(errors, LEAST_LOG_ERROR) ** -2.0, 0.0)
    total = weights.sum(axis=0)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0.0)
    places = [place for place in range(len(candidates)) if taking_part[place].any()]
    if not places:
        places = [0]  # every row is refused: the answer holds the refusals of this estimator
    means = [
        MixtureShare(
            estimator=candidates[place].estimator,
            weight=float(weights[place].mean()),
            expected_log_error=_mean_where(errors[place], taking_part[place]),
        )
        for place in places
    ]
    heaviest = sorted(range(len(places)), key=lambda at: (-means[at].weight, means[at].estimator))
    places = [places[at] for at in heaviest]
    return Shares(tuple(means[at] for at in heaviest), weights[places], errors[places])


def why(shares: Sequence[MixtureShare], candidates: Sequence[Candidate], errors: Floats, kinds: RowKinds) -> str:
    """Explain the choice of the estimators, as text for people."""
    if len(candidates) == 1:
        return "the only one that can answer"
    by_name = {candidate.estimator: candidate for candidate in candidates}
    if len(shares) == 1 and not any(candidate.own or candidate.similar for candidate in candidates):
        return f"strongest evidence of {len(candidates)} that can answer"
    names = {share.estimator for share in shares}

    def describe(share: MixtureShare) -> str:
        part = f"{share.estimator} {share.weight:.2f}" if len(shares) > 1 else share.estimator
        reasons = by_name[share.estimator].reasons(kinds.modes)
        return f"{part} (expected error {100 * share.expected_log_error:.0f} %: {reasons})"

    others = sorted(
        (_mean_where(own, np.isfinite(own)), candidate.estimator)
        for own, candidate in zip(errors, candidates, strict=True)
        if candidate.estimator not in names
    )
    left = (
        f"; not {', '.join(f'{name} ({100 * error:.0f} %)' for error, name in others[:MOST_NAMED])}" if others else ""
    )
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    kind = "mixture of " if len(shares) > 1 else "least expected error: "
    return kind + ", ".join(describe(share) for share in shares) + left + more


def _first_least(errors: Floats) -> NDArray[np.bool_]:
    """Return a mask of the first least entry of each column."""
    return np.asarray(np.arange(len(errors))[:, None] == errors.argmin(axis=0))


def _mean_where(values: Floats, mask: NDArray[np.bool_]) -> float:
    """Return the mean of the masked values; 0 if the mask is empty."""
    return float(values[mask].mean()) if mask.any() else 0.0

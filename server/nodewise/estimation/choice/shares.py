"""Choice: which estimator answers a row, or which mixture of several, from how far off each is expected to be.

Each row is chosen for by itself, so that its answer does not depend on the other rows of a question.

An expected error is a mean over what is known: the estimator's own claim, and what its errors on the job's own runs,
each predicted from the others, and on similar jobs of the store make of the claim: runs that are left out lie nearer to
the others than what is asked, so an error there counts in the deviations that were stated there. Estimators that are
about as good as the best one are mixed with weights in proportion to the inverse of the squared error (J. M. Bates and
C. W. J. Granger, Operational Research Quarterly 20(4), 1969); the others have no part.
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
"""Error of a model whose every constant is measured: what is left is noise, some 5 % between equal runs."""

WEAK_LOG_ERROR: Final = 0.65
"""Error of an answer from facts alone: fitted forms that extrapolate without fitting evidence err by a factor of two
(research/scaling.md, "Beside the published peers")."""

CLAIM_WEIGHT: Final = 1.0
"""Trials that an estimator's own claim stands for: claims are of several hands and compare badly, but one lucky trial
is not all there is. With 2, a difference of claims outweighed a dozen small trials (docs/explanation/choice.md)."""

OTHER_DEVICE_WEIGHT: Final = 0.25
"""What a similar job on another device weighs: another cluster, of which one says little of this one. However many,
they say no more than a claim."""

ABOUT_AS_GOOD: Final = 4.0 / 3.0
"""Expected error, relative to the best, up to which an estimator takes part. Expected errors are means of a few trials
and known to about a third; whoever is worse by more than that is worse."""

MOST_RATIO: Final = 4.0
"""What a trial moves a claim by, at most: a few runs are not all there is."""

LEAST_LOG_ERROR: Final = 1e-9
"""Expected errors below this weigh alike: no run is known as well."""

MOST_NAMED: Final = 4
"""Estimators that are named among those that have no part."""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class RowKinds:
    """What trials are told apart by: the sync modes and devices of rows.

    Attributes
    ----------
    kinds : tuple of (SyncMode, str)
        Each once.
    index : int or None
        The kind of each row; None = every row is of the only one.
    """

    kinds: tuple[tuple[SyncMode, str], ...]
    index: Ints | None

    @staticmethod
    def of(configurations: Configurations) -> RowKinds:
        """The kinds of resolved rows."""
        mode, device = only_value(configurations.sync_mode), only_value(configurations.device_index)
        if mode is not None and device is not None:
            return RowKinds(((SyncMode(mode), configurations.devices[int(device)]),), None)
        keys = list(zip(configurations.sync_mode.tolist(), configurations.device_names(), strict=True))
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        index = np.array([places[key] for key in keys], dtype=np.int64)
        return RowKinds(tuple((SyncMode(mode), device) for mode, device in places), index)

    @property
    def key(self) -> tuple[object, ...]:
        """The same for equal kinds of as many rows."""
        return self.kinds, None if self.index is None else self.index.tobytes()

    @property
    def devices(self) -> frozenset[str]:
        """Every device that some row is asked about."""
        return frozenset(device for _, device in self.kinds)

    @property
    def modes(self) -> tuple[SyncMode, ...]:
        """Every sync mode that some row has, ascending."""
        return tuple(sorted({mode for mode, _ in self.kinds}))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """An estimator that can answer, and what is known of its errors.

    Attributes
    ----------
    estimator : str
    assessment : Assessment
        What it claims, of every row of the question.
    own : sequence of Trial
        On the job's own runs, each predicted from the others.
    similar : sequence of Trial
        On other jobs.
    quick : bool
        Whether its fits cost next to nothing: a rule, of which others are kin.
    """

    estimator: str
    assessment: Assessment
    own: Sequence[Trial] = ()
    similar: Sequence[Trial] = ()
    quick: bool = False

    def expected_log_errors(self, kinds: RowKinds) -> Floats:
        """Mean |ln(predicted / measured)| that is expected of each row, infinite where it refuses; one number = of all.

        An expected error is linear in the claim; the line is that of the row's sync mode and device.
        """
        claims = np.atleast_1d(np.asarray(self.claim, dtype=np.float64))
        if not self.own and not self.similar:
            return claims
        lines = np.array([self._line(mode, device) for mode, device in kinds.kinds])
        slope, offset = (lines[0] if kinds.index is None else lines[kinds.index].T)[:2]
        errors: Floats = slope * claims + offset
        return errors

    def _line(self, mode: SyncMode, device: str) -> tuple[float, float]:
        """Slope and offset of the expected error over the claim, for rows of one sync mode and device."""
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
        """The error that it claims, or that its strength of evidence is worth."""
        claim = self.assessment.expected_log_error
        if claim is None:
            return STRONG_LOG_ERROR + (WEAK_LOG_ERROR - STRONG_LOG_ERROR) * (1.0 - self.assessment.strength)
        return claim

    def reasons(self, modes: Sequence[SyncMode]) -> str:
        """What the expected error rests on besides the claim, for people."""
        reasons = []
        for trials, noun in ((self.own, "scale"), (self.similar, "similar job")):
            errors = [trial.mean_absolute_log_error for trial in trials if trial.sync_mode in modes]
            if errors:
                left_out = " of the job left out in turn" if noun == "scale" else ""
                reasons.append(f"{sum(errors) / len(errors):.0%} on {_count(len(errors), noun)}{left_out}")
        return ", ".join(reasons) or "as it claims"


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Who answers each row.

    Attributes
    ----------
    mixture : tuple of MixtureShare
        The estimators that have a part in some row, the heaviest first; weights and errors are means over the rows.
    weights, errors : (estimators, rows or 1) float
        Weight and expected error of each estimator in each row; one column = the same in every row. The weights of a
        row add up to 1, or are all 0 where every candidate refuses it.
    """

    mixture: tuple[MixtureShare, ...]
    weights: Floats
    errors: Floats

    @staticmethod
    def alone(estimator: str) -> Shares:
        """One estimator answers every row, whatever its error."""
        share = MixtureShare(estimator=estimator, weight=1.0, expected_log_error=0.0)
        return Shares((share,), np.ones((1, 1)), np.zeros((1, 1)))


def expected_log_errors(candidates: Sequence[Candidate], kinds: RowKinds) -> Floats:
    """(candidates, rows or 1) expected errors."""
    each = [candidate.expected_log_errors(kinds) for candidate in candidates]
    rows = max(map(len, each), default=1)
    return np.stack([np.broadcast_to(errors, rows) for errors in each])


def shares_of(candidates: Sequence[Candidate], errors: Floats, *, mixed: bool = True) -> Shares:
    """Who answers each row.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one.
    errors : (candidates, rows or 1) float
        Their expected errors; infinite where one refuses.
    mixed : bool
        Whether several may answer a row together.
    """
    order = sorted(range(len(candidates)), key=lambda place: candidates[place].estimator)
    candidates, errors = [candidates[place] for place in order], errors[order]
    best = errors.min(axis=0)
    votes = errors.copy()
    rules = [place for place, candidate in enumerate(candidates) if candidate.quick]
    if len(rules) > 1:
        # Rules err alike, and often answer the same: the best of them alone has a vote.
        votes[rules] = np.where(_first_least(errors[rules]), errors[rules], np.inf)
    taking_part = (votes <= ABOUT_AS_GOOD * best) if mixed else _first_least(errors)
    taking_part &= np.isfinite(votes)
    weights = np.where(taking_part, np.maximum(errors, LEAST_LOG_ERROR) ** -2.0, 0.0)
    total = weights.sum(axis=0)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0.0)
    places = [place for place in range(len(candidates)) if taking_part[place].any()]
    if not places:
        places = [0]  # every row is refused: its refusals are the answer
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
    """Why these answer, for people."""
    if len(candidates) == 1:
        return "the only one that can answer"
    by_name = {candidate.estimator: candidate for candidate in candidates}
    if len(shares) == 1 and not any(candidate.own or candidate.similar for candidate in candidates):
        return f"strongest evidence of {len(candidates)} that can answer"
    names = {share.estimator for share in shares}

    def describe(share: MixtureShare) -> str:
        part = f"{share.estimator} {share.weight:.2f}" if len(shares) > 1 else share.estimator
        reasons = by_name[share.estimator].reasons(kinds.modes)
        return f"{part} (expected error {share.expected_log_error:.0%}: {reasons})"

    others = sorted(
        (_mean_where(own, np.isfinite(own)), candidate.estimator)
        for own, candidate in zip(errors, candidates, strict=True)
        if candidate.estimator not in names
    )
    left = f"; not {', '.join(f'{name} ({error:.0%})' for error, name in others[:MOST_NAMED])}" if others else ""
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    kind = "mixture of " if len(shares) > 1 else "least expected error: "
    return kind + ", ".join(describe(share) for share in shares) + left + more


def _first_least(errors: Floats) -> NDArray[np.bool_]:
    """The first least entry of each column."""
    return np.asarray(np.arange(len(errors))[:, None] == errors.argmin(axis=0))


def _mean_where(values: Floats, mask: NDArray[np.bool_]) -> float:
    """Mean of the masked values; 0 of none."""
    return float(values[mask].mean()) if mask.any() else 0.0

"""Choice: which estimator answers a job, or which mixture of several, from how far off each is expected to be.

An expected error is a mean over what is known: the estimator's own claim, and what its errors on the job's own runs,
each predicted from the others, and on similar jobs of the store make of the claim: runs that are left out lie nearer to
the others than what is asked, so an error there counts in the deviations that were stated there. Estimators that are
about as good as the best one are mixed with weights in proportion to the inverse of the squared error (J. M. Bates and
C. W. J. Granger, Operational Research Quarterly 20(4), 1969); the others have no part, but in rows that these refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nodewise.domain.configurations import SyncMode
from nodewise.estimation.lessons.trials import Trial
from nodewise.estimation.question import MixtureShare
from nodewise.plugin import Assessment

__all__ = ["Candidate", "shares_of", "similar_to", "why"]

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

STAND_IN: Final = 1e-6
"""Weight of who answers but the rows that all others refuse."""

MOST_TOLD: Final = 4
"""Estimators that are named among those that have no part."""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """An estimator that can answer, and what is known of its errors.

    Attributes
    ----------
    estimator : str
    assessment : Assessment
        What it claims.
    own : sequence of Trial
        On the job's own runs, each predicted from the others.
    similar : sequence of Trial
        On other jobs of the same sync mode.
    quick : bool
        Whether its fits cost next to nothing: a rule, of which others are kin.
    """

    estimator: str
    assessment: Assessment
    own: Sequence[Trial] = ()
    similar: Sequence[Trial] = ()
    quick: bool = False

    def expected_log_error(self, devices: Iterable[str]) -> float:
        """Mean |ln(predicted / measured)| that is expected on the asked devices."""
        asked = set(devices)
        claim = self.claim
        total, weight = CLAIM_WEIGHT * claim, CLAIM_WEIGHT
        for trial in self.own:
            total, weight = total + _told(trial, claim), weight + 1.0
        elsewhere = sum(trial.device not in asked for trial in self.similar)
        for trial in self.similar:
            of_device = 1.0 if trial.device in asked else min(OTHER_DEVICE_WEIGHT, CLAIM_WEIGHT / elsewhere)
            total, weight = total + of_device * _told(trial, claim), weight + of_device
        return total / weight

    @property
    def claim(self) -> float:
        """The error that it claims, or that its strength of evidence is worth."""
        claimed = self.assessment.expected_log_error
        if claimed is None:
            return STRONG_LOG_ERROR + (WEAK_LOG_ERROR - STRONG_LOG_ERROR) * (1.0 - self.assessment.strength)
        return claimed

    def reasons(self) -> str:
        """What the expected error rests on besides the claim, for people."""
        told = []
        if self.own:
            mean = sum(trial.mean_absolute_log_error for trial in self.own) / len(self.own)
            told.append(f"{mean:.0%} on {_counted(len(self.own), 'scale')} of the job left out in turn")
        if self.similar:
            mean = sum(trial.mean_absolute_log_error for trial in self.similar) / len(self.similar)
            told.append(f"{mean:.0%} on {_counted(len(self.similar), 'similar job')}")
        return ", ".join(told) or "as it claims"


def _told(trial: Trial, claim: float) -> float:
    """The error to expect by a trial: the claim, by how far off what was stated there was; the error if nothing was."""
    error, stated = trial.mean_absolute_log_error, trial.stated_log_error
    if stated == 0.0:
        return error
    return claim * min(max(error / stated, 1.0 / MOST_RATIO), MOST_RATIO)


def similar_to(trials: Iterable[Trial], modes: Iterable[SyncMode]) -> tuple[Trial, ...]:
    """The trials of jobs that are like the one asked about."""
    asked = set(modes)
    return tuple(trial for trial in trials if trial.sync_mode in asked)


def shares_of(
    candidates: Sequence[Candidate], devices: Iterable[str], *, mixed: bool = True
) -> tuple[MixtureShare, ...]:
    """Who answers, the heaviest first.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one.
    devices : iterable of str
        What is asked about.
    mixed : bool
        Whether several may answer together.
    """
    asked = tuple(devices)
    errors = [(candidate.expected_log_error(asked), candidate) for candidate in candidates]
    errors.sort(key=lambda entry: (entry[0], entry[1].estimator))
    # Rules err alike, and often answer the same: the best of them alone has a vote.
    rules = [entry for entry in errors if entry[1].quick]
    voters = [entry for entry in errors if entry not in rules[1:]]
    able = [entry for entry in voters if entry[0] <= ABOUT_AS_GOOD * errors[0][0]] if mixed else errors[:1]
    weights = [1.0 / max(error, 1e-9) ** 2 for error, _ in able]
    total, refused = sum(weights), min(candidate.assessment.refused_count for _, candidate in able)
    for entry in errors if mixed else ():
        if entry not in able and entry[1].assessment.refused_count < refused:
            able, weights, refused = [*able, entry], [*weights, STAND_IN * total], entry[1].assessment.refused_count
    return tuple(
        MixtureShare(estimator=candidate.estimator, weight=weight / sum(weights), expected_log_error=error)
        for weight, (error, candidate) in zip(weights, able, strict=True)
    )


def why(shares: Sequence[MixtureShare], candidates: Sequence[Candidate], devices: Iterable[str]) -> str:
    """Why these answer, for people."""
    if len(candidates) == 1:
        return "the only one that can answer"
    by_name = {candidate.estimator: candidate for candidate in candidates}
    if len(shares) == 1 and not any(candidate.own or candidate.similar for candidate in candidates):
        return f"strongest evidence of {len(candidates)} that can answer"
    asked = tuple(devices)
    chosen = {share.estimator for share in shares}

    def told(share: MixtureShare) -> str:
        part = f"{share.estimator} {share.weight:.2f}" if len(shares) > 1 else share.estimator
        if share.weight <= STAND_IN:
            part = f"{share.estimator} where these refuse"
        return f"{part} (expected error {share.expected_log_error:.0%}: {by_name[share.estimator].reasons()})"

    others = sorted(
        (candidate.expected_log_error(asked), candidate.estimator)
        for candidate in candidates
        if candidate.estimator not in chosen
    )
    left = f"; not {', '.join(f'{name} ({error:.0%})' for error, name in others[:MOST_TOLD])}" if others else ""
    more = f" and {len(others) - MOST_TOLD} more" if len(others) > MOST_TOLD else ""
    kind = "mixture of " if len(shares) > 1 else "least expected error: "
    return kind + ", ".join(told(share) for share in shares) + left + more

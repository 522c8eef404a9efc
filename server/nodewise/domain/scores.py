"""Accuracy of predictions against later observations, as sums that can be added in any order."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["RunningScore", "ScoreSums"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSums:
    """Sums over scored observations; ln is that of predicted over measured steps per second.

    Attributes
    ----------
    observations : int
        Observations that a prediction was made for.
    absolute_log_error, log_error : float
        Sums of |ln| and of ln: the latter is above 0 where predictions were too fast.
    intervals, covered : int
        Observations whose prediction had an interval, and whose measurement lay in it, bounds included.
    unanswered : int
        Further observations without an answer.
    """

    observations: int = 0
    absolute_log_error: float = 0.0
    log_error: float = 0.0
    intervals: int = 0
    covered: int = 0
    unanswered: int = 0

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """The sums of both."""
        return ScoreSums(**{name: getattr(self, name) + getattr(other, name) for name in _SUMS})

    @property
    def mean_absolute_log_error(self) -> float:
        """Mean of |ln| over the observations, at least one."""
        return self.absolute_log_error / self.observations

    @property
    def mean_log_error(self) -> float:
        """Mean of ln over the observations, at least one; above 0 = predicted too fast."""
        return self.log_error / self.observations

    @property
    def coverage(self) -> float | None:
        """Share of the intervals that held the measurement; None = there was no interval."""
        return self.covered / self.intervals if self.intervals else None


_SUMS = tuple(each.name for each in fields(ScoreSums))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningScore:
    """The score of one version of an estimator; ``update_time_s`` in seconds since 1970."""

    estimator: str
    version: str
    sums: ScoreSums
    update_time_s: float

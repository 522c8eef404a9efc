"""What a store keeps for running scores: commits that wait to be scored, and the scores so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nodewise.domain.scores import RunningScore, ScoreSums

__all__ = ["MOST_ATTEMPTS", "MOST_WAITING", "ScoreLedger", "UnscoredCommit"]

MOST_WAITING: Final = 4096
"""Commits that wait at most, the oldest dropped first: minutes of scoring, and a file that does not grow where nobody
scores."""
MOST_ATTEMPTS: Final = 3
"""Times that a commit is taken up: one whose scoring ends the process must not end it at every start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredCommit:
    """A commit with observations whose profile had a revision before.

    Attributes
    ----------
    key : int
        Names it in the store; never used twice.
    uid : str
        Of the profile: another profile may have its name by now.
    revision : int
        That the commit made; the revision before is what predicts.
    first_number, last_number : int
        Of its observations.
    retracted : frozenset of int
        Those of them that were retracted meanwhile.
    """

    key: int
    profile_id: str
    uid: str
    revision: int
    first_number: int
    last_number: int
    retracted: frozenset[int] = frozenset()


class ScoreLedger(Protocol):
    """Running scores of a store. Safe from many threads and processes; may block.

    The transaction that stores a commit puts it down here too, so none is forgotten; the one that adds its scores takes
    it away, so none counts twice, however often and by whomever it was worked on. Every method raises NodewiseError
    STORE_UNAVAILABLE if the database does not answer.
    """

    def claim(self, lease_s: float) -> UnscoredCommit | None:
        """The commit that has waited longest, for one scorer alone until the lease ends; None = none is free.

        One that was claimed MOST_ATTEMPTS times is dropped instead.
        """

    def release(self, commit: UnscoredCommit) -> None:
        """Give a claimed commit back untouched: the next claim may have it, and this one does not count."""

    def settle(self, commit: UnscoredCommit, sums: Mapping[tuple[str, str], ScoreSums]) -> bool:
        """Add what a commit's observations scored, by (estimator, version), and take it off the list.

        False = nothing was added: it was settled or dropped before, or its profile is deleted.
        """

    def waiting(self) -> int:
        """Commits that are not settled yet, claimed or not."""

    def scores(self) -> Sequence[RunningScore]:
        """All scores, by estimator and version."""

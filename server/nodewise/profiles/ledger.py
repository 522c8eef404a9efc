"""Running scores in a store: commits that wait to be scored, and the scores so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Final

import structlog

from nodewise.domain.scores import RunningScore, ScoreSums
from nodewise.profiles.ingest import Commit
from nodewise.profiles.sql_rows import Connected, Connection, insert_keyed

__all__ = ["MOST_ATTEMPTS", "MOST_WAITING", "ScoreLedger", "UnscoredCommit", "put_unscored"]


MOST_WAITING: Final = 4096
"""Most commits that wait, the oldest dropped first: minutes of scoring, and a file that does not grow where no server
scores."""
MOST_ATTEMPTS: Final = 3
"""Most attempts to score a commit: one whose scoring crashes the process must not crash it at every start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredCommit:
    """A commit with observations whose profile had a revision before.

    Attributes
    ----------
    key : int
        Identifies it in the store; never used twice.
    uid : str
        Uid of the profile: another profile may have its name by now.
    revision : int
        Revision of the commit; the revision before it makes the predictions.
    first_number, last_number : int
        Range of its observations.
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


_SWEEP: Final = 256
"""Commits between two counts of those that wait: a commit itself costs one row."""
_FREE: Final = """
SELECT u.key, u.attempts, p.key, p.profile_id, p.uid, u.revision, u.first_number, u.last_number
FROM unscored u JOIN profiles p ON p.key = u.profile_key WHERE u.claimed_until_s <= ? ORDER BY u.key LIMIT 1"""
_SUMS: Final = tuple(f.name for f in fields(ScoreSums))
_ADD: Final = f"""
INSERT INTO scores (estimator, version, update_time_s, {", ".join(_SUMS)})
VALUES ({", ".join("?" * (3 + len(_SUMS)))}) ON CONFLICT (estimator, version) DO UPDATE SET
    {", ".join(f"{name} = scores.{name} + excluded.{name}" for name in _SUMS)},
    update_time_s = CASE WHEN scores.update_time_s > excluded.update_time_s THEN scores.update_time_s
        ELSE excluded.update_time_s END"""  # noqa: S608  # names are the schema's
_SCORES: Final = f"SELECT estimator, version, update_time_s, {', '.join(_SUMS)} FROM scores ORDER BY estimator, version"  # noqa: S608  # the same

_log = structlog.get_logger(__name__)


def put_unscored(connection: Connection, profile_key: int, commits: tuple[Commit, ...]) -> None:
    """Queue the commits that can be scored, in the transaction that stores them."""
    for commit in commits:
        if commit.revision == 1 or not commit.rows:
            continue
        first = commit.first_observation_number
        numbers = {"first_number": first, "last_number": first + commit.rows - 1}
        key = insert_keyed(connection, "unscored", profile_key=profile_key, revision=commit.revision, **numbers)
        if key % _SWEEP == 0:
            dropped_count = connection.execute("DELETE FROM unscored WHERE key <= ?", (key - MOST_WAITING,)).rowcount
            if dropped_count:
                _log.warning("scoring_behind", commits_dropped=dropped_count)


class ScoreLedger:
    """Running scores of a store. Safe from many threads and processes; may block.

    The transaction that stores a commit queues it too, so none is lost; the transaction that adds its scores removes
    it, so none counts twice, however many processes score it. Every method raises NodewiseError
    STORE_UNAVAILABLE if the database does not answer.


    Parameters
    ----------
    reading, writing : callable
        Give a connection in a transaction of either kind.
    now : callable
        Seconds since 1970.
    """

    def __init__(self, reading: Connected, writing: Connected, now: Callable[[], float]) -> None:
        self._reading, self._writing, self._now = reading, writing, now

    def claim(self, lease_s: float) -> UnscoredCommit | None:
        """The commit that has waited longest, for one scorer until the lease ends; None = none is free.

        A commit that was claimed MOST_ATTEMPTS times is dropped instead.
        """
        now = self._now()
        with self._reading("look for commits to score") as connection:
            if connection.execute(_FREE, (now,)).fetchone() is None:
                return None  # the usual case, in which no other process waits for this
        with self._writing("claim a commit to score") as connection:
            while (row := connection.execute(_FREE, (now,)).fetchone()) is not None:
                key, attempts, profile_key, profile_id, uid, revision, first, last = row
                if attempts >= MOST_ATTEMPTS:
                    connection.execute("DELETE FROM unscored WHERE key = ?", (key,))
                    _log.warning("scoring_given_up", profile_id=profile_id, revision=revision, attempts=attempts)
                    continue
                connection.execute(
                    "UPDATE unscored SET claimed_until_s = ?, attempts = attempts + 1 WHERE key = ?",
                    (now + lease_s, key),
                )
                retracted_rows = connection.execute(
                    "SELECT number FROM retracted WHERE profile_key = ? AND number BETWEEN ? AND ?",
                    (profile_key, first, last),
                )
                return UnscoredCommit(
                    key=key,
                    profile_id=profile_id,
                    uid=uid,
                    revision=revision,
                    first_number=first,
                    last_number=last,
                    retracted=frozenset(number for (number,) in retracted_rows),
                )
        return None

    def release(self, commit: UnscoredCommit) -> None:
        """Return a claimed commit: the next claim may take it, and this claim is not counted."""
        with self._writing("release a commit to score") as connection:
            connection.execute(
                "UPDATE unscored SET claimed_until_s = 0, attempts = attempts - 1 WHERE key = ?", (commit.key,)
            )

    def settle(self, commit: UnscoredCommit, sums: Mapping[tuple[str, str], ScoreSums]) -> bool:
        """Add the scores of a commit's observations, by (estimator, version), and remove it from the queue.

        False = nothing was added: it was settled or dropped before, or its profile is deleted.
        """
        now = self._now()
        with self._writing("add scores") as connection:
            if not connection.execute("DELETE FROM unscored WHERE key = ?", (commit.key,)).rowcount:
                return False
            connection.executemany(
                _ADD,
                [
                    (*identity, now, *astuple(each))
                    for identity, each in sums.items()
                    if each.observations or each.unanswered
                ],
            )
            return True

    def waiting(self) -> int:
        """Number of commits that are not settled yet, claimed or not."""
        with self._reading("count commits to score") as connection:
            (count,) = connection.execute("SELECT count(*) FROM unscored").fetchone()
            return int(count)

    def scores(self) -> tuple[RunningScore, ...]:
        """All scores, by estimator and version."""
        with self._reading("read scores") as connection:
            rows = connection.execute(_SCORES).fetchall()
        return tuple(
            RunningScore(
                estimator=estimator, version=version, update_time_s=time_s, sums=ScoreSums(**dict(zip(_SUMS, sums)))
            )
            for estimator, version, time_s, *sums in rows
        )

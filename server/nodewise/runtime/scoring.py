"""Scoring while serving, off every request's path: what arrives is compared with what the revision before predicts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.namespaces import namespace_of
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO
from nodewise.evaluation.running_scores import auto_version, scorable_observations, score_predictions
from nodewise.ports.cache import LruCache
from nodewise.profiles.ledger import UnscoredCommit
from nodewise.profiles.reader import profile_bytes
from nodewise.profiles.store import ProfileStore
from nodewise.runtime.learning.effects import Effects

__all__ = ["Scoring"]

_log = structlog.get_logger(__name__)

LEASE_S: Final = 300.0
"""Time for which a commit is one scorer's alone: longer than several hosted estimators that use up their budget. Only
what a killed process held waits so long."""
REST: Final = 3.0
"""Seconds of rest per second of work, so that a backlog takes at most a quarter of one core from requests and fits."""
HEAD_START_S: Final = 0.1
"""Seconds that a commit's reply, and the fit that starts with it, are ahead of scoring."""
LOOK_S: Final = 30.0
"""Seconds between looks for commits of other processes that are not scored yet."""
KEPT_BYTES: Final = 16 << 20
"""Of profiles that are kept to read only what came after them: the next commit to the same job is often near."""

MOST_NAMESPACES: Final = 20
"""That metrics tell apart: each costs Prometheus four series for every estimator."""


class Scoring:
    """Scores commits one after the other, in one thread of low demands.

    Parameters
    ----------
    answers : Answers
        Answers as it would have answered a question about the revision before; models that it keeps are not fitted
        again. Others may take its place.
    store : ProfileStore
        Whose ledger says what waits, and takes the scores.
    lease_s, look_s : float
        See LEASE_S and LOOK_S.
    effects : Effects or None
        Gets the scores without the lessons of the profile's namespace; None = they are not computed.
    """

    def __init__(
        self,
        answers: Answers,
        store: ProfileStore,
        *,
        lease_s: float = LEASE_S,
        look_s: float = LOOK_S,
        effects: Effects | None = None,
    ) -> None:
        self._answers = answers
        self._store = store
        self._lease_s, self._look_s = lease_s, look_s
        self._effects = effects
        self.sums: dict[tuple[str, str], ScoreSums] = {}
        """What this process scored, by estimator and namespace; beyond MOST_NAMESPACES these are one, "other"."""
        self._profiles: LruCache[str, Profile] = LruCache(KEPT_BYTES)
        self._wake_event = threading.Event()
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nodewise-scoring", daemon=True)

    def start(self) -> None:
        """Begin, with what earlier processes left."""
        self._thread.start()

    def follow(self, answers: Answers) -> None:
        """Score these from the next commit on."""
        self._answers = answers

    def notify(self) -> None:
        """Something was committed."""
        self._wake_event.set()

    def stop(self) -> None:
        """Begin to stop, once. The commit in hand waits in the store with the others."""
        self._stop_event.set()
        self._wake_event.set()

    def join(self) -> None:
        """Wait until the thread has ended, which is forever where an estimator never returns. After ``stop``."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop_event.is_set():
            self._wake_event.clear()
            start_s = time.monotonic()
            try:
                did_score = self.score_one()
            except NodewiseError as error:  # the store does not answer; it said why
                _log.warning("scoring_paused", reason=str(error.reason))
                did_score = False
            except Exception as error:  # noqa: BLE001 - the thread must outlive whatever one commit brings
                _log.error("scoring_failed", exc_info=error)
                did_score = False
            if did_score:
                self._stop_event.wait(REST * (time.monotonic() - start_s))
            elif self._wake_event.wait(self._look_s):
                self._stop_event.wait(HEAD_START_S)

    def score_one(self) -> bool:
        """Score the commit that has waited longest; False = none waits."""
        ledger = self._store.scores
        commit = ledger.claim(self._lease_s)
        if commit is None:
            return False
        sums = self._sums(commit)
        if sums is None:
            ledger.release(commit)
            return False
        is_counted = ledger.settle(commit, sums)
        if is_counted:
            self._add(namespace_of(commit.profile_id), sums)
        _log.debug(
            "commit_scored",
            profile_id=commit.profile_id,
            revision=commit.revision,
            counted=is_counted,
            observations={name: each.observations for (name, _), each in sums.items()},
        )
        return True

    def _add(self, namespace: str, sums: Mapping[tuple[str, str], ScoreSums]) -> None:
        """Count what was scored, for metrics."""
        known = {each for _, each in self.sums}
        if namespace not in known and len(known) >= MOST_NAMESPACES:
            namespace = "other"
        for (name, _), more in sums.items():
            self.sums[name, namespace] = self.sums.get((name, namespace), ScoreSums()) + more

    def _sums(self, commit: UnscoredCommit) -> dict[tuple[str, str], ScoreSums] | None:
        """What a commit scores, by estimator and version; None = the process stops."""
        sums: dict[tuple[str, str], ScoreSums] = {}
        answers = self._answers
        try:
            before = self._profile(commit, commit.revision - 1, self._profiles.get(commit.uid))
            after = self._profile(commit, commit.revision, before)
        except NodewiseError as error:
            if error.reason == Reason.PROFILE_NOT_FOUND:  # deleted meanwhile
                return sums
            raise
        if before.uid != commit.uid:
            return sums
        observations = scorable_observations(answers, before, after, commit)
        if not len(observations):
            return sums
        registry = answers.registry
        versions = {AUTO: auto_version(registry)}
        versions.update({name: plugin.record.version for name, plugin in registry.predicting.items()})
        for name, version in versions.items():
            sums[name, version] = self._score(answers, name, before, observations, commit)
            if self._effects is not None and Effects.differ(answers, before.profile_id, name):
                # A profile that is not stored has the lessons that all have in common.
                without = self._score(answers, name, replace(before, profile_id=""), observations, commit)
                self._effects.add(before.profile_id, name, sums[name, version], without)
            if self._stop_event.is_set():
                return None
        return sums

    def _profile(self, commit: UnscoredCommit, revision: int, last: Profile | None) -> Profile:
        """The profile at a revision; what is known of it is not read again."""
        profile = self._store.load(commit.profile_id, last, revision)
        if profile is not last:
            self._profiles.put(profile.uid, profile, profile_bytes(profile))
        return profile

    def _score(
        self, answers: Answers, name: str, before: Profile, observations: Observations, commit: UnscoredCommit
    ) -> ScoreSums:
        """An estimator's score; one that refuses or fails costs only its own, one in a host has that host's budget."""
        about = {"estimator": name, "profile_id": commit.profile_id, "revision": commit.revision}
        try:
            return score_predictions(answers, before, observations, name)
        except NodewiseError as error:
            if error.reason in (Reason.ESTIMATOR_FAILED, Reason.ESTIMATOR_INVALID_RESULT):
                _log.warning("scoring_left_out", reason=str(error.reason), **about)
        except Exception as error:  # noqa: BLE001 - as for a plugin's own
            _log.warning("scoring_left_out", reason=str(Reason.INTERNAL), exc_info=error, **about)
        return ScoreSums(unanswered=len(observations))

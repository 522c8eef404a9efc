"""Scoring while serving, in the background: new observations are compared with predictions of the revision before."""

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
"""Time for which one scorer alone may score a commit: longer than several hosted estimators need that use up their
budgets. Only commits of a killed process wait so long."""
REST: Final = 3.0
"""Seconds of rest per second of work, so that a backlog takes at most a quarter of one core from requests and fits."""
HEAD_START_S: Final = 0.1
"""Seconds that a commit's reply, and the fit that starts with it, are ahead of scoring."""
LOOK_S: Final = 30.0
"""Seconds between checks for commits of other processes that are not scored yet."""
KEPT_BYTES: Final = 16 << 20
"""Bytes of cached profiles, of which only later revisions are read; the same job often commits again soon."""

MOST_NAMESPACES: Final = 20
"""Namespaces that metrics distinguish: each costs Prometheus four series for every estimator."""


class Scoring:
    """Scores commits one after the other, in one thread that rests after each.

    Parameters
    ----------
    answers : Answers
        Predicts as for a question about the revision before; its cached models are not fitted again. :meth:`follow`
        replaces it.
    store : ProfileStore
        Its ledger lists the commits that wait, and stores the scores.
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
        """Scores of this process, by estimator and namespace; namespaces beyond MOST_NAMESPACES count as "other"."""
        self._profiles: LruCache[str, Profile] = LruCache(KEPT_BYTES)
        self._wake_event = threading.Event()
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nodewise-scoring", daemon=True)

    def start(self) -> None:
        """Begin, with the commits that earlier processes did not score."""
        self._thread.start()

    def follow(self, answers: Answers) -> None:
        """Score these answers from the next commit on."""
        self._answers = answers

    def notify(self) -> None:
        """Note that there is a new commit."""
        self._wake_event.set()

    def stop(self) -> None:
        """Begin to stop. The current commit stays in the store, unscored."""
        self._stop_event.set()
        self._wake_event.set()

    def join(self) -> None:
        """Wait until the thread has ended, after ``stop``; it never ends if an estimator never returns."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop_event.is_set():
            self._wake_event.clear()
            start_s = time.monotonic()
            try:
                did_score = self.score_one()
            except NodewiseError as error:  # the store does not answer; it has logged why
                _log.warning("scoring_paused", reason=str(error.reason))
                did_score = False
            except Exception as error:  # noqa: BLE001 - no commit may end the thread
                _log.error("scoring_failed", exc_info=error)
                did_score = False
            if did_score:
                self._stop_event.wait(REST * (time.monotonic() - start_s))
            elif self._wake_event.wait(self._look_s):
                self._stop_event.wait(HEAD_START_S)

    def score_one(self) -> bool:
        """Score the commit that has waited longest; False = no commit waits."""
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
        """Add scores to the metrics."""
        namespaces = {each for _, each in self.sums}
        if namespace not in namespaces and len(namespaces) >= MOST_NAMESPACES:
            namespace = "other"
        for (name, _), more in sums.items():
            self.sums[name, namespace] = self.sums.get((name, namespace), ScoreSums()) + more

    def _sums(self, commit: UnscoredCommit) -> dict[tuple[str, str], ScoreSums] | None:
        """The scores of a commit, by estimator and version; None = the process stops."""
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
                # A profile without an id gets the lessons that all namespaces share.
                without = self._score(answers, name, replace(before, profile_id=""), observations, commit)
                self._effects.add(before.profile_id, name, sums[name, version], without)
            if self._stop_event.is_set():
                return None
        return sums

    def _profile(self, commit: UnscoredCommit, revision: int, last: Profile | None) -> Profile:
        """The profile at a revision; only what follows the last known revision is read."""
        profile = self._store.load(commit.profile_id, last, revision)
        if profile is not last:
            self._profiles.put(profile.uid, profile, profile_bytes(profile))
        return profile

    def _score(
        self, answers: Answers, name: str, before: Profile, observations: Observations, commit: UnscoredCommit
    ) -> ScoreSums:
        """An estimator's score; a refusal or fault affects this estimator alone, and a host limits its time."""
        about = {"estimator": name, "profile_id": commit.profile_id, "revision": commit.revision}
        try:
            return score_predictions(answers, before, observations, name)
        except NodewiseError as error:
            if error.reason in (Reason.ESTIMATOR_FAILED, Reason.ESTIMATOR_INVALID_RESULT):
                _log.warning("scoring_skipped", reason=str(error.reason), **about)
        except Exception as error:  # noqa: BLE001 - as for a plugin's own
            _log.warning("scoring_skipped", reason=str(Reason.INTERNAL), exc_info=error, **about)
        return ScoreSums(unanswered=len(observations))

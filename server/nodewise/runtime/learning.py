"""Learning while serving: from time to time, off every request's path, what the store's profiles teach."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from concurrent.futures import Executor
from itertools import islice
from typing import Final

import structlog

from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.calibrations import calibrations_of
from nodewise.estimation.lessons.priors import learned_from
from nodewise.profiles.store import ProfileStore

__all__ = ["Learning"]

_log = structlog.get_logger(__name__)

LEARNED_PROFILES: Final = 200
"""Profiles that are learned from: more teach little that is new, and every one costs some fits."""


class Learning:
    """Learns anew when the store has changed.

    Parameters
    ----------
    answers : Answers
        Adopts what was learned; others may take its place.
    store : ProfileStore
        Whose profiles teach, the first LEARNED_PROFILES by name.
    executor : Executor
        Where it happens.
    interval_s : float
        Seconds between looks at the store; 0 = never.
    """

    def __init__(self, answers: Answers, store: ProfileStore, executor: Executor, interval_s: float) -> None:
        self._followed: tuple[Answers, ...] = (answers,)
        self._store = store
        self._executor = executor
        self._interval_s = interval_s
        self._learned: Hashable = None

    def follow(self, *answers: Answers) -> None:
        """Let these adopt what is learned from now on; with the next look at the store they do."""
        self._followed, self._learned = answers, None

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while self._interval_s > 0.0:
            try:
                await loop.run_in_executor(self._executor, self.learn)
            except Exception as error:  # noqa: BLE001 - what was learned before still holds
                _log.error("learning_failed", exc_info=error)
            await asyncio.sleep(self._interval_s)

    def learn(self) -> bool:
        """Learn from the store as it is; False = it has not changed since."""
        generation, followed = self._store.generation(), self._followed
        if generation == self._learned:
            return False
        filled = (profile for profile in self._store.profiles() if not profile.is_empty)
        profiles = list(islice(filled, LEARNED_PROFILES))
        for answers in followed:
            self._teach(answers, profiles)
        if followed is self._followed:
            self._learned = generation
        return True

    def _teach(self, answers: Answers, profiles: list[Profile]) -> None:
        learned = learned_from(answers.registry, profiles)
        calibrations = calibrations_of(
            learned.registry, profiles, catalogue=answers.estimators.catalogue, priors=learned.priors
        )
        answers.adopt(learned.priors, calibrations)
        _log.info(
            "learned",
            profiles=len(profiles),
            priors=sorted(prior.prior_id for prior in learned.priors.values()),
            calibrations={name: round(found.factor, 3) for name, found in sorted(calibrations.items())},
        )

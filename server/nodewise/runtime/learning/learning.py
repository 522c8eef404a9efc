"""Learning while serving: from time to time, off every request's path, what the store's profiles teach.

Lessons are a namespace's own. Where an operator shares them, there are lessons together with each group of other owners
too, which move answers within bounds (``estimation.answer.shared``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.domain.namespaces import owner_of
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.calibrations import calibrations_of
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.lessons.physics import trimmed
from nodewise.estimation.lessons.priors import learned_from
from nodewise.estimation.lessons.trials import Trial
from nodewise.ports.cache import LruCache
from nodewise.ports.footprint import footprint
from nodewise.profiles.reader import profile_bytes
from nodewise.profiles.store import ProfileStore
from nodewise.runtime.learning.kept import KeptLessons, Learnt
from nodewise.runtime.learning.sources import Corpora, Groups, Source, Sources

__all__ = ["EVERYONE", "Learning", "Taught"]

_log = structlog.get_logger(__name__)

EVERYONE: Final = "*"
"""Of namespaces that are shared: all of them. Of lessons: those of whoever has none of its own."""
LOOK_S: Final = 1.0
"""Seconds between looks for what other processes pinned: one look asks for the time of one folder."""
WORK_S: Final = 30.0
"""Seconds of learning after which what is known by then is used; the rest is learned soon after."""
REST: Final = 3.0
"""Seconds of rest per second of work where some is left."""
LESSONS_BYTES: Final = 32 << 20
"""Of lessons in memory; namespaces that were asked about least recently go first, and answer as if they had none."""
PROFILE_BYTES: Final = 16 << 20
"""Of profiles that are kept to read only what came after them."""
TRIAL_BYTES: Final = 8 << 20
"""Of trials of estimators on jobs that did not change: most of the work of learning."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Taught:
    """What a namespace learned.

    Attributes
    ----------
    namespace : str
        EVERYONE = whoever has no lessons of its own.
    learnt : Learnt
        What from, and when.
    lessons : mapping of Answers to Lessons
        Of each track that serves.
    profiles : tuple of str
        Ids of the namespace's own jobs that taught.
    jobs, owners : int
        That taught, those of others too.
    trimmed : tuple of (profile id, reason)
        The namespace's own jobs that contradict physics.
    lost : int
        Profiles that it is pinned to and that are no more.
    bytes_held : int
        About what it takes.
    """

    namespace: str
    learnt: Learnt
    lessons: Mapping[Answers, Lessons]
    profiles: tuple[str, ...] = ()
    jobs: int = 0
    owners: int = 0
    trimmed: tuple[tuple[str, str], ...] = ()
    lost: int = 0
    bytes_held: int = 0


class Learning:
    """Learns anew when the store, or what is pinned, has changed.

    Parameters
    ----------
    answers : Answers
        Adopts what was learned; others may take its place.
    store : ProfileStore
        Whose profiles teach.
    executor : Executor or None
        Where it happens; None = nowhere but in :meth:`learn`.
    interval_s : float
        Seconds between looks at the store; 0 = never.
    shared : sequence of str
        Namespaces whose jobs move each other's answers, within bounds; EVERYONE = all, and answers to questions about
        profiles that are not stored too.
    kept : KeptLessons or None
        Pins and lessons of before; None = of this process alone.
    alone : bool
        Whether no other process learns from this store.
    """

    def __init__(
        self,
        answers: Answers,
        store: ProfileStore,
        executor: Executor | None,
        interval_s: float,
        *,
        shared: Sequence[str] = (),
        kept: KeptLessons | None = None,
        alone: bool = True,
    ) -> None:
        self.alone = alone
        self.kept = kept or KeptLessons(None)
        self._followed: tuple[Answers, ...] = (answers,)
        self._store = store
        self._executor = executor
        self._interval_s = interval_s
        self.shared = sorted(set(shared))
        """Namespaces whose jobs move each other's answers."""
        self._sources = Sources(store)
        self._taught: dict[str, Taught] = {}
        # Answers that are retired go at once, whatever was learned for them.
        self._shipped: WeakKeyDictionary[Answers, Lessons] = WeakKeyDictionary()
        self.taught: Sequence[Taught] = ()
        """What was learned, by namespace."""
        self._let_go: set[str] = set()
        self._profiles: LruCache[str, Profile] = LruCache(PROFILE_BYTES)
        self._trials: LruCache[tuple[str, str, str], tuple[Trial, ...]] = LruCache(TRIAL_BYTES)
        self._seen: Hashable = None
        self._due: dict[str, None] = {}
        self._left = False

    def follow(self, *answers: Answers) -> None:
        """Let these adopt what is learned from now on; with the next look at the store they do."""
        self._followed, self._seen = answers, None

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while self._interval_s > 0.0:
            started, pins = time.monotonic(), self.kept.stamp()
            try:
                await loop.run_in_executor(self._executor, self.learn)
            except Exception as error:  # noqa: BLE001 - what was learned before still holds
                _log.error("learning_failed", exc_info=error)
            ended = time.monotonic()
            pause_s = min(self._interval_s, REST * (ended - started)) if self._left else self._interval_s
            await self._pause(ended + pause_s, pins)

    async def _pause(self, ends_s: float, pins: Hashable) -> None:
        """Wait until then, or until something was pinned."""
        while (left_s := ends_s - time.monotonic()) > 0.0:
            await asyncio.sleep(min(LOOK_S, left_s))
            if self.kept.stamp() != pins:
                return

    async def learn_now(self) -> None:
        """Learn what was pinned or let go of, before :meth:`run` looks again."""
        self._seen = None
        await asyncio.get_running_loop().run_in_executor(self._executor, self.learn)

    def learn(self) -> bool:
        """Learn from the store as it is; False = nothing has changed since."""
        generation, followed = self._store.generation(), self._followed
        asked = {name for answers in followed for name in answers.teachings.asked}
        seen = (generation, self.kept.stamp(), followed)
        if seen == self._seen and not self._left and not (asked & self._let_go):
            return False
        for answers in followed:
            if answers not in self._shipped:
                self._shipped[answers] = Lessons(learned_from(answers.registry, ()).priors)
        self._left = not self._look(followed, asked)
        if followed is self._followed:
            self._seen = seen
        self._keep_within(asked)
        self.taught = tuple(self._taught[name] for name in sorted(self._taught))
        for answers in followed:
            self._adopted(answers)
        return True

    def _look(self, followed: tuple[Answers, ...], asked: set[str]) -> bool:
        """Learn what is due; False = there is more to do."""
        changed = self._sources.look()
        pins, wanted = self.kept.pins(), self._wanted()
        for gone in [name for name in self._taught if name not in wanted]:
            del self._taught[gone]
        self._due |= dict.fromkeys(sorted(changed))
        ends_s = time.monotonic() + WORK_S
        known = [*self._due, *(name for name in wanted if name not in self._due)]
        for namespace in sorted(known, key=lambda name: name not in asked):  # stable: who waits longest comes first
            self._due.pop(namespace, None)
            pin = pins.get(namespace)
            corpora = wanted.get(namespace) if pin is None else pin.corpora
            if corpora is None:
                continue
            if not self._is_due(namespace, corpora, followed):
                self._held(namespace, pin)
                continue
            if namespace in self._let_go and namespace not in asked:
                continue
            if time.monotonic() > ends_s:
                return False
            self._learn(namespace, corpora, pin, followed)
        return True

    def _wanted(self) -> dict[str, Corpora]:
        """What each namespace is to learn from, by the store as it is."""
        sources = self._sources
        samples = {namespace: sources.of(namespace) for namespace in sources.namespaces}
        if not self.shared:
            return {namespace: Corpora(own) for namespace, own in samples.items()}
        everyone = EVERYONE in self.shared
        groups = Groups({name: own for name, own in samples.items() if everyone or name in self.shared})
        found = {namespace: Corpora(own, groups.without(namespace)) for namespace, own in samples.items()}
        if everyone:
            found[EVERYONE] = Corpora((), groups.all)
        return found

    def _held(self, namespace: str, pin: Learnt | None) -> None:
        """Lessons stay as they are, and are pinned now, or no more."""
        known = self._taught[namespace]
        pinned_s = 0.0 if pin is None else pin.pinned_unix_s
        if known.learnt.pinned_unix_s != pinned_s:
            self._taught[namespace] = replace(known, learnt=replace(known.learnt, pinned_unix_s=pinned_s))

    def _is_due(self, namespace: str, corpora: Corpora, followed: tuple[Answers, ...]) -> bool:
        known = self._taught.get(namespace)
        return known is None or known.learnt.corpora != corpora or any(each not in known.lessons for each in followed)

    def _learn(self, namespace: str, corpora: Corpora, pin: Learnt | None, followed: tuple[Answers, ...]) -> None:
        """Learn what a namespace is taught by these."""
        started = time.monotonic()
        learnt = pin or Learnt(namespace=namespace, corpora=corpora, learned_unix_s=time.time())
        for before in self.kept.before(namespace):
            if before == learnt and pin is None:
                learnt = before  # another process was first, or this one before its start
        lessons: WeakKeyDictionary[Answers, Lessons] = WeakKeyDictionary()
        told = None
        for answers in followed:
            own, told = self._lessons(answers, corpora.own)
            others = [self._lessons(answers, (*corpora.own, *each))[0] for each in corpora.others]
            lessons[answers] = replace(own, others=tuple(others)) if others else own
        assert told is not None
        self._let_go.discard(namespace)
        teachers = (*corpora.own, *(each for group in corpora.others for each in group))
        self._taught[namespace] = Taught(
            namespace=namespace,
            learnt=learnt,
            lessons=lessons,
            profiles=tuple(sorted(told.taught)),
            jobs=len(told.taught) + sum(len(group) for group in corpora.others),
            owners=len({owner_of(each.profile_id) for each in teachers}),
            trimmed=tuple(sorted(told.trimmed)),
            lost=told.lost,
            bytes_held=sum(footprint(each, tuple(self._shipped.values())) for each in lessons.values()),
        )
        if pin is None:
            self.kept.remember(learnt)
        _log.info(
            "learned",
            namespace=namespace,
            profiles=len(told.taught),
            trimmed=len(told.trimmed),
            groups=len(corpora.others),
            pinned=pin is not None,
            seconds=round(time.monotonic() - started, 3),
        )

    def _lessons(self, answers: Answers, sources: Sequence[Source]) -> tuple[Lessons, _Told]:
        """What profiles teach together, and who of them."""
        told = _Told(set(), [], 0)
        corpus = list(self._corpus(answers, sources, told))
        if not corpus:
            return self._shipped[answers], told
        learned = learned_from(answers.registry, corpus)
        calibrations = calibrations_of(
            learned.registry,
            corpus,
            catalogue=answers.estimators.catalogue,
            priors=learned.priors,
            known=self._trials,
        )
        return Lessons(learned.priors, calibrations), told

    def _corpus(self, answers: Answers, sources: Sequence[Source], told: _Told) -> Iterable[Profile]:
        """Profiles as they teach; what does not is told."""
        for source in sources:
            profile = self._profile(source)
            if profile is None:
                told.lost += 1
                continue
            if profile.is_empty:
                continue
            found = trimmed(profile, answers.estimators.catalogue)
            told.trimmed += [(profile.profile_id, reason) for reason in found.reasons]
            if found.profile is not None:
                told.taught.add(profile.profile_id)
                yield found.profile

    def _profile(self, source: Source) -> Profile | None:
        """A profile at a revision; None = it is no more."""
        try:
            found = self._store.load(source.profile_id, self._profiles.get(source.uid), source.revision)
        except NodewiseError as error:
            if error.reason in ("PROFILE_NOT_FOUND", "REVISION_NOT_FOUND"):
                return None
            raise
        if found.uid != source.uid:
            return None
        self._profiles.put(source.uid, found, profile_bytes(found))
        return found

    def _keep_within(self, asked: set[str]) -> None:
        """Let go of the lessons of namespaces that nobody asked about for longest, where all take too much."""
        for namespace in [name for name in self._taught if name in asked]:
            self._taught[namespace] = self._taught.pop(namespace)
        held = sum(each.bytes_held for each in self._taught.values())
        for namespace in list(self._taught):
            if held <= LESSONS_BYTES:
                return
            if namespace != EVERYONE:
                held -= self._taught.pop(namespace).bytes_held
                self._let_go.add(namespace)

    def _adopted(self, answers: Answers) -> None:
        """Let answers know what holds now, if it is anything new."""
        shipped = self._shipped[answers]
        found = {
            name: each.lessons[answers]
            for name, each in self._taught.items()
            if answers in each.lessons and each.lessons[answers] is not shipped
        }
        common = found.pop(EVERYONE, shipped)
        before = answers.teachings
        if before.common is not common or before.own != found:
            answers.adopt(Teachings(common, found))
        else:
            before.asked.clear()


@dataclass(slots=True)
class _Told:
    """Who taught, who was trimmed and why, and how many are no more."""

    taught: set[str]
    trimmed: list[tuple[str, str]]
    lost: int

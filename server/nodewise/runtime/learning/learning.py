"""Learning from the store's profiles while the server runs: at intervals, in a thread of its own.

Each namespace has its own lessons. If the operator shares namespaces, a namespace also has lessons learned together
with each group of other owners; these change answers within bounds (``estimation.answer.bounded_influence``).
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
from nodewise.estimation.lessons.physics import drop_impossible_runs
from nodewise.estimation.lessons.priors import learned_from
from nodewise.estimation.lessons.trials import Trial
from nodewise.ports.cache import LruCache
from nodewise.ports.footprint import footprint
from nodewise.profiles.reader import profile_bytes
from nodewise.profiles.store import ProfileStore
from nodewise.runtime.learning.saved_lessons import Learnt, SavedLessons
from nodewise.runtime.learning.sources import Corpora, Groups, Source, Sources

__all__ = ["EVERYONE", "Learning", "NamespaceLessons"]

_log = structlog.get_logger(__name__)

EVERYONE: Final = "*"
"""As a shared namespace: all namespaces. As the namespace of lessons: all namespaces without lessons of their own."""
LOOK_S: Final = 1.0
"""Seconds between checks for pins of other processes; one check reads the modification time of one folder."""
WORK_S: Final = 30.0
"""Seconds of learning after which the lessons so far are adopted; the rest is learned soon after."""
REST: Final = 3.0
"""Seconds of pause per second of work, while work is left."""
LESSONS_BYTES: Final = 32 << 20
"""Memory for lessons, in bytes. The lessons of the least recently used namespaces are dropped first; their questions
are then answered as without lessons."""
PROFILE_BYTES: Final = 16 << 20
"""Memory for cached profiles, in bytes: of a cached profile, only later changes are read."""
TRIAL_BYTES: Final = 8 << 20
"""Memory for trials of estimators on unchanged jobs, in bytes. Trials are most of the work of learning."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NamespaceLessons:
    """Lessons of a namespace.

    Attributes
    ----------
    namespace : str
        EVERYONE = all namespaces that have no lessons of their own.
    learnt : Learnt
        The corpora of the lessons, and when they were learned.
    lessons : mapping of Answers to Lessons
        Lessons for each track that serves.
    profiles : tuple of str
        Ids of the namespace's own jobs that were learned from.
    jobs, owners : int
        Numbers of jobs and owners that were learned from, including those of other owners.
    trimmed : tuple of (profile id, reason)
        The namespace's own jobs that contradict physics.
    lost : int
        Number of profiles of the corpora that no longer exist.
    bytes_held : int
        Approximate size in bytes.
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
    """Learns again whenever the store or the pins have changed.

    Parameters
    ----------
    answers : Answers
        Adopts the lessons; :meth:`follow` replaces it.
    store : ProfileStore
        The store with the profiles to learn from.
    executor : Executor or None
        Executor for learning; None = learning happens only in :meth:`learn`.
    interval_s : float
        Seconds between checks of the store; 0 = never.
    shared : sequence of str
        Namespaces whose jobs change each other's answers, within bounds. EVERYONE = all namespaces, and also answers to
        questions about profiles that are not stored.
    saved_lessons : SavedLessons or None
        Pins and earlier lessons; None = those of this process only.
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
        saved_lessons: SavedLessons | None = None,
        alone: bool = True,
    ) -> None:
        self.alone = alone
        self.saved_lessons = saved_lessons or SavedLessons(None)
        self._answers: tuple[Answers, ...] = (answers,)
        self._store = store
        self._executor = executor
        self._interval_s = interval_s
        self.shared = sorted(set(shared))
        """Namespaces whose jobs change each other's answers."""
        self._sources = Sources(store)
        self._lessons_by_namespace: dict[str, NamespaceLessons] = {}
        # Weak keys: the lessons of retired answers are freed with them.
        self._shipped_lessons: WeakKeyDictionary[Answers, Lessons] = WeakKeyDictionary()
        self.namespace_lessons: Sequence[NamespaceLessons] = ()
        """Lessons by namespace, in the order of their names."""
        self._let_go: set[str] = set()
        self._profiles: LruCache[str, Profile] = LruCache(PROFILE_BYTES)
        self._trials: LruCache[tuple[str, str, str], tuple[Trial, ...]] = LruCache(TRIAL_BYTES)
        self._last_look: Hashable = None
        self._due: dict[str, None] = {}
        self._left = False

    def follow(self, *answers: Answers) -> None:
        """Set the answers that adopt lessons from the next check of the store on."""
        self._answers, self._last_look = answers, None

    async def run(self) -> None:
        """Check the store repeatedly, until cancelled."""
        loop = asyncio.get_running_loop()
        while self._interval_s > 0.0:
            start_s, pins = time.monotonic(), self.saved_lessons.stamp()
            try:
                await loop.run_in_executor(self._executor, self.learn)
            except Exception as error:  # noqa: BLE001 - earlier lessons stay valid
                _log.error("learning_failed", exc_info=error)
            end_s = time.monotonic()
            pause_s = min(self._interval_s, REST * (end_s - start_s)) if self._left else self._interval_s
            await self._pause(end_s + pause_s, pins)

    async def _pause(self, ends_s: float, pins: Hashable) -> None:
        """Wait until ``ends_s``, or until the pins change."""
        while (left_s := ends_s - time.monotonic()) > 0.0:
            await asyncio.sleep(min(LOOK_S, left_s))
            if self.saved_lessons.stamp() != pins:
                return

    async def learn_now(self) -> None:
        """Apply pins and unpins before the next check of :meth:`run`."""
        self._last_look = None
        await asyncio.get_running_loop().run_in_executor(self._executor, self.learn)

    def learn(self) -> bool:
        """Learn from the current state of the store; False = nothing has changed since the last call."""
        generation, every_answers = self._store.generation(), self._answers
        estimators = {name for answers in every_answers for name in answers.teachings.asked}
        look = (generation, self.saved_lessons.stamp(), every_answers)
        if look == self._last_look and not self._left and not (estimators & self._let_go):
            return False
        for answers in every_answers:
            if answers not in self._shipped_lessons:
                self._shipped_lessons[answers] = Lessons(learned_from(answers.registry, ()).priors)
        self._left = not self._look(every_answers, estimators)
        if every_answers is self._answers:
            self._last_look = look
        self._keep_within(estimators)
        self.namespace_lessons = tuple(self._lessons_by_namespace[name] for name in sorted(self._lessons_by_namespace))
        for answers in every_answers:
            self._adopt(answers)
        return True

    def _look(self, every_answers: tuple[Answers, ...], estimators: set[str]) -> bool:
        """Learn for the namespaces that are due; False = some are left."""
        changes = self._sources.look()
        pins, corpora_by_namespace = self.saved_lessons.pins(), self._corpora_by_namespace()
        for removed_name in [name for name in self._lessons_by_namespace if name not in corpora_by_namespace]:
            del self._lessons_by_namespace[removed_name]
        self._due |= dict.fromkeys(sorted(changes))
        ends_s = time.monotonic() + WORK_S
        names = [*self._due, *(name for name in corpora_by_namespace if name not in self._due)]
        for namespace in sorted(
            names, key=lambda name: name not in estimators
        ):  # The sort is stable: the namespace that waits longest comes first.
            self._due.pop(namespace, None)
            pin = pins.get(namespace)
            corpora = corpora_by_namespace.get(namespace) if pin is None else pin.corpora
            if corpora is None:
                continue
            if not self._is_due(namespace, corpora, every_answers):
                self._pin(namespace, pin)
                continue
            if namespace in self._let_go and namespace not in estimators:
                continue
            if time.monotonic() > ends_s:
                return False
            self._learn(namespace, corpora, pin, every_answers)
        return True

    def _corpora_by_namespace(self) -> dict[str, Corpora]:
        """Return the corpora of each namespace in the current state of the store."""
        sources = self._sources
        samples = {namespace: sources.of(namespace) for namespace in sources.namespaces}
        if not self.shared:
            return {namespace: Corpora(own) for namespace, own in samples.items()}
        everyone = EVERYONE in self.shared
        groups = Groups({name: own for name, own in samples.items() if everyone or name in self.shared})
        result = {namespace: Corpora(own, groups.without(namespace)) for namespace, own in samples.items()}
        if everyone:
            result[EVERYONE] = Corpora((), groups.all)
        return result

    def _pin(self, namespace: str, pin: Learnt | None) -> None:
        """Pin or unpin lessons without learning them again."""
        before = self._lessons_by_namespace[namespace]
        pinned_s = 0.0 if pin is None else pin.pinned_unix_s
        if before.learnt.pinned_unix_s != pinned_s:
            self._lessons_by_namespace[namespace] = replace(
                before, learnt=replace(before.learnt, pinned_unix_s=pinned_s)
            )

    def _is_due(self, namespace: str, corpora: Corpora, every_answers: tuple[Answers, ...]) -> bool:
        before = self._lessons_by_namespace.get(namespace)
        return (
            before is None
            or before.learnt.corpora != corpora
            or any(each not in before.lessons for each in every_answers)
        )

    def _learn(self, namespace: str, corpora: Corpora, pin: Learnt | None, every_answers: tuple[Answers, ...]) -> None:
        """Learn a namespace's lessons from its corpora."""
        start_s = time.monotonic()
        learnt = pin or Learnt(namespace=namespace, corpora=corpora, learned_unix_s=time.time())
        for before in self.saved_lessons.before(namespace):
            if before == learnt and pin is None:
                learnt = before  # learned before, by another process or before a restart
        lessons: WeakKeyDictionary[Answers, Lessons] = WeakKeyDictionary()
        report = None
        for answers in every_answers:
            own, report = self._lessons(answers, corpora.own)
            others = [self._lessons(answers, (*corpora.own, *each))[0] for each in corpora.others]
            lessons[answers] = replace(own, others=tuple(others)) if others else own
        assert report is not None
        self._let_go.discard(namespace)
        teachers = (*corpora.own, *(each for group in corpora.others for each in group))
        self._lessons_by_namespace[namespace] = NamespaceLessons(
            namespace=namespace,
            learnt=learnt,
            lessons=lessons,
            profiles=tuple(sorted(report.teachers)),
            jobs=len(report.teachers) + sum(len(group) for group in corpora.others),
            owners=len({owner_of(each.profile_id) for each in teachers}),
            trimmed=tuple(sorted(report.trimmed)),
            lost=report.lost,
            bytes_held=sum(footprint(each, tuple(self._shipped_lessons.values())) for each in lessons.values()),
        )
        if pin is None:
            self.saved_lessons.remember(learnt)
        _log.info(
            "learned",
            namespace=namespace,
            profiles=len(report.teachers),
            trimmed=len(report.trimmed),
            groups=len(corpora.others),
            pinned=pin is not None,
            seconds=round(time.monotonic() - start_s, 3),
        )

    def _lessons(self, answers: Answers, sources: Sequence[Source]) -> tuple[Lessons, _CorpusReport]:
        """Return the lessons learned from all sources together, and a report of the profiles that were used."""
        report = _CorpusReport(set(), [], 0)
        corpus = list(self._corpus(answers, sources, report))
        if not corpus:
            return self._shipped_lessons[answers], report
        outcome = learned_from(answers.registry, corpus)
        calibrations = calibrations_of(
            outcome.registry, corpus, catalogue=answers.estimators.catalogue, priors=outcome.priors, known=self._trials
        )
        return Lessons(outcome.priors, calibrations), report

    def _corpus(self, answers: Answers, sources: Sequence[Source], report: _CorpusReport) -> Iterable[Profile]:
        """Yield the profiles to learn from; the report gets the others."""
        for source in sources:
            profile = self._profile(source)
            if profile is None:
                report.lost += 1
                continue
            if profile.is_empty:
                continue
            trimming = drop_impossible_runs(profile, answers.estimators.catalogue)
            report.trimmed += [(profile.profile_id, reason) for reason in trimming.reasons]
            if trimming.profile is not None:
                report.teachers.add(profile.profile_id)
                yield trimming.profile

    def _profile(self, source: Source) -> Profile | None:
        """Return a profile at a revision; None = it no longer exists."""
        try:
            loading = self._store.load(source.profile_id, self._profiles.get(source.uid), source.revision)
        except NodewiseError as error:
            if error.reason in ("PROFILE_NOT_FOUND", "REVISION_NOT_FOUND"):
                return None
            raise
        if loading.uid != source.uid:
            return None
        self._profiles.put(source.uid, loading, profile_bytes(loading))
        return loading

    def _keep_within(self, estimators: set[str]) -> None:
        """Drop the lessons of the least recently used namespaces if all together exceed the memory limit."""
        for namespace in [name for name in self._lessons_by_namespace if name in estimators]:
            self._lessons_by_namespace[namespace] = self._lessons_by_namespace.pop(namespace)
        total_bytes = sum(each.bytes_held for each in self._lessons_by_namespace.values())
        for namespace in list(self._lessons_by_namespace):
            if total_bytes <= LESSONS_BYTES:
                return
            if namespace != EVERYONE:
                total_bytes -= self._lessons_by_namespace.pop(namespace).bytes_held
                self._let_go.add(namespace)

    def _adopt(self, answers: Answers) -> None:
        """Let the answers adopt the lessons if they changed."""
        shipped_lessons = self._shipped_lessons[answers]
        own = {
            name: each.lessons[answers]
            for name, each in self._lessons_by_namespace.items()
            if answers in each.lessons and each.lessons[answers] is not shipped_lessons
        }
        common = own.pop(EVERYONE, shipped_lessons)
        before = answers.teachings
        if before.common is not common or before.own != own:
            answers.adopt(Teachings(common, own))
        else:
            before.asked.clear()


@dataclass(slots=True)
class _CorpusReport:
    """The profiles that were learned from, those that were trimmed with the reasons, and how many are missing."""

    teachers: set[str]
    trimmed: list[tuple[str, str]]
    lost: int

"""Answers: the one way from a question to its answer, for every asker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nodewise.domain.columns import largest
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Fidelity
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.answer.ahead import Ahead
from nodewise.estimation.answer.alone import Alone
from nodewise.estimation.answer.completing import Completing
from nodewise.estimation.answer.kept import Kept
from nodewise.estimation.answer.prepared import Prepared, ReadyRows
from nodewise.estimation.answer.simulations import check_simulated
from nodewise.estimation.choice.chooser import Choice, Chooser
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.fitted import Fitted, misses_a_part, with_digest
from nodewise.estimation.fit.models import Models, evidence_of
from nodewise.estimation.lessons.calibration import Calibration
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.lessons.trials import Predict
from nodewise.estimation.question import Answer, Basis, Freshness, Question
from nodewise.estimation.reach import Reach
from nodewise.estimation.resolution import MAX_WORKERS, Resolution
from nodewise.estimation.weights import (
    BASIS_BYTES,
    CACHE_BYTES,
    ENTRY_BYTES,
    part_of_profile,
    part_of_rows,
    ready_bytes,
)
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue, Prior
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.clock import Clock, SystemClock

__all__ = ["Answers"]

INLINE_ROWS: Final = 4096
INLINE_SCALE: Final = 4096
"""Rows and resolved scale up to which a question may be answered in the caller's thread: exact models are linear in
both, and take tens of milliseconds there, in which an event loop serves nobody else."""


class Answers:
    """Answers questions from an immutable registry: resolves, chooses, fits, predicts, assembles.

    Everything but the fit is pure, and kept by what it depends on. Ask with :meth:`answer`, or in an event loop with
    :meth:`ready` and :meth:`complete`.

    Parameters
    ----------
    registry : Registry
        The estimators.
    priors : mapping of estimator to Prior
        What was learned; empty = nothing.
    calibrations : mapping of estimator to Calibration
        How far off estimators were where it was tried; empty = nowhere.
    space : CacheSpace or None
        Bytes of all that is kept, shared with whoever else keeps something of the same jobs; None = one of its own, of
        CACHE_BYTES. What was used least recently goes first, a model once nothing that is kept was made with it.
    max_workers : int
        Largest number of workers that is asked of a model, stated or resolved from nodes.
    most_cycles : int or None
        Single workers' cycles that the simulations of one question count, all rows together; None = without bound.
    traces : callable
        Reads the traces that a profile names. Absent = none can be read here.
    ahead : callable or None
        Does work that no answer waits for, soon and elsewhere; None = nothing is begun that nobody waits for.
    fallbacks : sequence of str
        Who stands in for an estimator that is named and cannot answer, in this order.
    kept : Kept or None
        Models and trials that others of this process may share; None = nobody does.
    generation, track : str
        Of the plugins, as bases name them; "" = a digest of the registry, and the only track.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        catalogue: Catalogue | None = None,
        priors: Mapping[str, Prior] | None = None,
        calibrations: Mapping[str, Calibration] | None = None,
        space: CacheSpace | None = None,
        max_workers: int = MAX_WORKERS,
        most_cycles: int | None = None,
        clock: Clock | None = None,
        traces: Callable[[Profile], Sequence[Trace]] | None = None,
        ahead: Callable[[Callable[[], None]], None] | None = None,
        fallbacks: Sequence[str] = (),
        kept: Kept | None = None,
        generation: str = "",
        track: str = "",
    ) -> None:
        kept = kept or Kept.of(space or CacheSpace(CACHE_BYTES))
        self.space = space = kept.space
        self.estimators = Estimators(registry, catalogue or Catalogue(), space, kept.built_on)
        self._generation, self._track = generation or registry.generation, track
        self._most_cycles = most_cycles
        self._resolution = Resolution(max_workers, space, self.estimators.catalogue)
        self._models = Models(
            self.estimators,
            self._resolution,
            space=space,
            kept=kept.models,
            clock=clock or SystemClock(),
            traces=traces,
        )
        self._completing = Completing(self.estimators, self._resolution, space)
        self._alone = Alone(self.estimators, self._models, self._resolution)
        self._chooser = Chooser(self.estimators, space, self._alone.asking, fallbacks, kept.trials)
        self._teachings = Teachings(Lessons(dict(priors or {}), dict(calibrations or {})))
        self.adoptions = 0
        """How often something learned was adopted."""
        self._ready: LruCache[tuple[object, ...], ReadyRows] = LruCache(space)
        self._bases: LruCache[tuple[object, ...], Basis] = LruCache(space)
        self._newest: LruCache[str, Profile] = LruCache(space)
        self._stale: LruCache[ReadyRows, ReadyRows] = LruCache(space)
        self._ahead = Ahead(ahead, self.prepared)

    @property
    def registry(self) -> Registry:
        """Who can be asked."""
        return self.estimators.registry

    def answer(self, question: Question, *, keep: bool = True) -> Answer:
        """Answer a question.

        Parameters
        ----------
        keep : bool
            Whether the same question may come again; else what only that would need takes no room. The model is kept.

        Raises
        ------
        NodewiseError
            Whatever stands in the way of every row; single rows are refused in the predictions instead.
        """
        if keep:
            return self.complete(self.prepared(question))
        configurations, fitted, _ = self._fitted(question)
        return self._completing.completed(Prepared(question, ReadyRows(configurations, fitted, fitted.basis)))

    def ready(self, question: Question) -> Prepared | None:
        """The prepared question if nothing is left to do but to complete it here and now, else None.

        That is: the model was fitted before; every estimator concerned runs in the caller's thread; at most INLINE_ROWS
        rows of a resolved scale of at most INLINE_SCALE; no simulation. Without, the question belongs in a thread:
        ``answer``.

        Raises
        ------
        NodewiseError
            Whatever stands in the way of every row and shows before a fit.
        """
        self.estimators.require(question.terms.estimator)
        if question.terms.options.fidelity == Fidelity.SIMULATE:
            return None
        key = self._question_key(question)
        known = self._ready.get(key)
        if known is not None:
            return self._quick(Prepared(question, known, settled=True))
        if not question.profile.digest or len(question.configurations) > INLINE_ROWS or not self._inline(question):
            return None
        # Resolving and assessing are cheap; a fit is what must not happen here.
        configurations = self._completing.rows(question)
        try:
            lessons = self.lessons_for(question)
            choice = self._at_hand(question, configurations, lessons) if _is_small(configurations) else None
            if choice is None:
                return None
            question.terms.look_up()
            fitted = self._model(question, choice, lessons)
            settled = choice.settled and fitted.settled
            return self._settled(key, question, configurations, fitted, settled=settled, small=True)
        except NodewiseError as error:
            self._begin_if_missed(question, error)
            raise

    def prepared(self, question: Question) -> Prepared:
        """All that an answer depends on: what is the same here is answered the same. Fits where it must.

        A question that allows for stale answers, and would have to wait, is that about the newest revision of which
        everything is fitted. Whatever is not waited for is begun.
        """
        key = self._question_key(question)
        known = self._ready.get(key) if question.profile.digest else None
        if known is not None:
            return Prepared(question, known, settled=True)
        older = self._older(question)
        if older is not None:
            self._ahead.begin(question)
            prepared = self.prepared(replace(question, profile=older))
            current = prepared.rows

            def staled() -> ReadyRows:
                """The same model, of which answers say that there is newer evidence."""
                fitted = replace(current.fitted, basis=replace(current.fitted.basis, stale=True))
                return ReadyRows(current.configurations, fitted, self._basis(question, fitted), current.small)

            return replace(prepared, rows=self._stale.kept(current, staled, _stale_bytes, current.held))
        try:
            configurations, fitted, settled = self._fitted(question)
        except NodewiseError as error:
            self._begin_if_missed(question, error)
            raise
        small = _is_small(configurations)
        return self._settled(key, question, configurations, fitted, settled=settled, small=small)

    def _settled(
        self,
        key: tuple[object, ...],
        question: Question,
        configurations: Configurations,
        fitted: Fitted,
        *,
        settled: bool,
        small: bool,
    ) -> Prepared:
        """A question with its model; kept where the same would be prepared again."""
        basis = self._basis(question, fitted)
        simulated = question.terms.options.fidelity == Fidelity.SIMULATE
        settled = settled and not simulated and bool(question.profile.digest) and not misses_a_part(fitted.notices)
        rows = ReadyRows(configurations, fitted, basis, small)
        if settled:
            asked = () if question.configurations is configurations else (part_of_rows(question.configurations),)
            self._ready.put(key, rows, ENTRY_BYTES, (*rows.held, *asked))
        return Prepared(question, rows, settled)

    def complete(self, prepared: Prepared, *, keep: bool = True) -> Answer:
        """The answer to a prepared question; ``keep`` as of :meth:`Completing.complete`."""
        return self._completing.complete(prepared, keep=keep)

    def fit_ahead(self, profile: Profile) -> None:
        """Fit what a question about the profile's own configurations would need."""
        configurations = evidence_of(profile)
        if configurations is not None:
            self.fitted(Question(profile=profile, configurations=configurations))

    def fitted(self, question: Question) -> Fitted:
        """The model that answers a question, or the mixture of several; fitted now unless it is kept."""
        return self._fitted(question)[1]

    def alone(self, name: str) -> Predict:
        """A way of asking one estimator about a profile, whatever else is loaded; nothing of it is kept.

        By the lessons that are common to all.
        """
        return self._alone.asking(name, self._teachings.common)

    def resolve(self, profile: Profile, configurations: Configurations) -> Configurations:
        """The configurations with everything filled in that the profile's evidence tells.

        Raises
        ------
        NodewiseError
            INVALID_FIELD where the evidence does not tell, or for more than ``max_workers`` workers.
        """
        return self._resolution.of(profile, configurations)

    def reach(self, profile: Profile) -> Reach:
        """The largest scale that a profile's runs were measured on."""
        return self._resolution.reach(profile)

    @property
    def teachings(self) -> Teachings:
        """What was learned: another object once something else is adopted."""
        return self._teachings

    def lessons_for(self, question: Question) -> Lessons:
        """What a question is answered with: another object once its namespace learned something else."""
        return self._teachings.of(question.asked_by or question.profile.profile_id)

    def adopt(self, teachings: Teachings) -> None:
        """Answer with what was learned meanwhile. Questions under way end with what they began with."""
        self._teachings = teachings
        self.adoptions += 1  # after what it counts: who reads the new number first answers by the new lessons
        # Models and choices are kept under what they were learned from; what points at them without saying so must go.
        self._ready.clear()
        self._chooser.forget()

    def forget(self) -> None:
        """Let go of what is kept for these answers alone, in a room that others go on sharing."""
        for cache in (self._ready, self._bases, self._newest, self._stale):
            cache.clear()
        self._completing.forget()
        self._chooser.forget()
        self._models.forget()
        self._resolution.forget()
        self.estimators.forget()

    def home(self, question: Question) -> str:
        """The distribution in whose process a question is answered; "" = here, or not in one alone."""
        loaded = self.registry.estimators.get(question.terms.estimator)
        return loaded.distribution if loaded is not None and loaded.mode == "process" else ""

    def _quick(self, prepared: Prepared) -> Prepared | None:
        """A prepared question that can be completed here and now: by models of the caller's thread, or from memory."""
        rows, fitted = prepared.rows, prepared.fitted
        if not rows.small:
            return None
        names = [part.fitted.basis.estimator for part in fitted.parts] or [fitted.basis.estimator]
        if (
            rows.rated is not None
            or self.estimators.all_inline
            or all(self.estimators.named(name).mode == "inline" for name in names)
        ):
            return prepared
        return None

    def _fitted(self, question: Question) -> tuple[Configurations, Fitted, bool]:
        """The rows as resolved, the model that answers, and whether the same would be chosen again."""
        configurations = self._completing.rows(question)
        if question.terms.options.fidelity == Fidelity.SIMULATE and self._most_cycles is not None:
            check_simulated(configurations, question.terms.options, self._most_cycles)
        question.terms.look_up()
        lessons = self.lessons_for(question)
        # A process of its own assesses and predicts in one exchange.
        model = self._models.kept(question, lessons) if self.home(question) else None
        choice = self._chooser.choose(question, configurations, lessons, may_try=True, model=model)
        assert choice is not None
        fitted = self._model(question, choice, lessons)
        return configurations, fitted, choice.settled and fitted.settled

    def _model(self, question: Question, choice: Choice, lessons: Lessons) -> Fitted:
        """What was chosen, fitted; beside others' lessons where these move it."""
        fitted = self._models.fitted(question, choice, lessons)
        if lessons.others:
            fitted = self._models.beside_others(question, choice, lessons, fitted)
        self._note_newest(question.profile)
        return fitted

    def _basis(self, question: Question, fitted: Fitted) -> Basis:
        """What an answer rests on, with the digest of all of it; the same is one object."""
        options = question.terms.options
        key = (fitted, options.seed, options.fidelity, options.simulated_steps, question.terms.coverage)

        def stated() -> Basis:
            return replace(with_digest(fitted, key[1:]), generation=self._generation, track=self._track)

        return self._bases.kept(key, stated, lambda _: BASIS_BYTES + ENTRY_BYTES, fitted.held)

    def _note_newest(self, profile: Profile) -> None:
        """Remember the newest revision that something was fitted for."""
        if profile.profile_id:
            before = self._newest.get(profile.profile_id)
            if before is None or before.uid != profile.uid or before.revision < profile.revision:
                self._newest.put(profile.profile_id, profile, ENTRY_BYTES, (part_of_profile(profile),))

    def _at_hand(self, question: Question, configurations: Configurations, lessons: Lessons) -> Choice | None:
        """Who answers, if nothing would have to be tried or fitted."""
        choice = self._chooser.choose(question, configurations, lessons, may_try=False)
        if choice is None:
            return None
        for each in lessons.all():
            if not self._models.all_kept(question, choice, each):
                return None
        return choice

    def _older(self, question: Question) -> Profile | None:
        """The profile at an older revision of which everything is fitted, where it may answer and the newest cannot."""
        profile = question.profile
        if question.terms.freshness != Freshness.ALLOW_STALE or not profile.profile_id:
            return None
        older = self._newest.get(profile.profile_id)
        if older is None or older.uid != profile.uid or older.revision >= profile.revision:
            return None
        lessons = self.lessons_for(question)
        if self._at_hand(question, self._completing.rows(question), lessons) is not None:
            return None
        before = replace(question, profile=older)
        return None if self._at_hand(before, self._completing.rows(before), lessons) is None else older

    def _begin_if_missed(self, question: Question, error: NodewiseError) -> None:
        if error.reason == Reason.MODEL_NOT_CACHED:
            self._ahead.begin(question)

    def _question_key(self, question: Question) -> tuple[object, ...]:
        """What the preparation of a question depends on; the configurations by identity."""
        profile = question.profile
        return (
            profile.digest,
            profile.revision,
            question.configurations,
            question.terms.estimator,
            question.terms.options,
            question.terms.coverage,
            question.terms.allow_fallback,
            None if question.objective is None else question.objective.batch_bounds,
            self.estimators.epoch,
            self.lessons_for(question),
        )

    def _inline(self, question: Question) -> bool:
        """Whether every estimator that a question may reach runs in the caller's thread."""
        loaded = self.registry.estimators.get(question.terms.estimator)
        return (
            self.estimators.all_inline if loaded is None or question.terms.allow_fallback else loaded.mode == "inline"
        )


def _stale_bytes(rows: ReadyRows) -> int:
    return BASIS_BYTES + ENTRY_BYTES + ready_bytes(len(rows.configurations))


def _is_small(configurations: Configurations) -> bool:
    """Whether rows may be answered in the caller's thread."""
    return (
        len(configurations) <= INLINE_ROWS
        and largest(configurations.workers) <= INLINE_SCALE
        and largest(configurations.nodes) <= INLINE_SCALE
    )

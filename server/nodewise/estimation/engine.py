"""The engine: one way from a question to an answer, for every asker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Fidelity, Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.answers import assembled
from nodewise.estimation.assessing import shown_of
from nodewise.estimation.calibration import UNTRIED, Calibration
from nodewise.estimation.choosing import Choice, Chooser
from nodewise.estimation.covariance import covariance_of
from nodewise.estimation.derived import KEPT_ROWS
from nodewise.estimation.disagreement import disagreement
from nodewise.estimation.models import Fitted, Flights, MixturePart, ModelKey, circle, fitting, mixture_of, stated
from nodewise.estimation.predicting import lost_part, predicted
from nodewise.estimation.question import AUTO, Answer, Basis, Freshness, Question
from nodewise.estimation.resolve import MAX_WORKERS, Defaults, defaults_of, resolved
from nodewise.estimation.suggest import Suggestions, Wish, refusal_of, suggested
from nodewise.estimation.trials import Predict
from nodewise.hosting.calls import ImpossibleAnswerError, call
from nodewise.hosting.registry import Loaded, Registry
from nodewise.plugin import Catalogue, EstimatorRecord, Model, Prior
from nodewise.ports.cache import LruCache
from nodewise.ports.clock import Clock, SystemClock

__all__ = ["Engine", "Fitted", "Lessons", "Prepared"]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question with its configurations resolved and its model fitted."""

    question: Question
    configurations: Configurations
    fitted: Fitted

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys have equal answers. Holds the objects themselves: a model that is fitted anew is another one."""
        question = self.question
        return self.fitted, self.configurations, question.objective, question.options, question.coverage


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """What was learned: priors and calibrations by estimator. Replaced as a whole, so that no answer mixes two."""

    priors: Mapping[str, Prior]
    calibrations: Mapping[str, Calibration]


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """What a fit may use; ``model`` lets one estimator build on another."""

    prior: Prior | None
    catalogue: Catalogue
    seed: int
    profile: Profile
    engine: Engine
    chain: tuple[ModelKey, ...]

    def traces(self) -> Sequence[Trace]:
        """The profile's traces, read."""
        return self.engine.traces_of(self.profile)

    def model(self, estimator: str) -> Model:
        """Another estimator's model of the same profile.

        That estimator is asked about the profile's own evidence, whatever question came first: a fitted model must not
        depend on it.
        """
        self.engine.estimator(estimator)  # a name, not AUTO: what AUTO finds is the choice of a question
        if any(key.estimator == estimator for key in self.chain):
            raise circle(self.chain, estimator)
        configurations = evidence_of(self.profile) or Configurations.of(1, nodes=1, workers=1)
        options = Options(seed=self.seed)
        question = Question(profile=self.profile, configurations=configurations, estimator=estimator, options=options)
        # Set here too: a fit may ask from a thread of its own.
        token = fitting.set(self.chain)
        try:
            return self.engine.fitted(question, self.engine.resolve(self.profile, configurations)).model
        finally:
            fitting.reset(token)


def evidence_of(profile: Profile) -> Configurations | None:
    """The configurations that a profile's timings and observations ran in; None without any."""
    parts = [profile.phase_timings.configurations, profile.observations.configurations]
    kept = [part for part in parts if len(part)]
    return Configurations.concatenated(kept) if kept else None


INLINE_ROWS: Final = 4096
INLINE_SCALE: Final = 4096
"""Rows and resolved scale up to which a question may be answered in the caller's thread: exact models are linear in
both, and take tens of milliseconds there, in which an event loop serves nobody else."""


class Engine:
    """Answers questions from an immutable registry. Fitted models and choices are cached; the rest is pure.

    A fitted model is cached under everything it depends on: the profile's digest, the estimator and its version, the
    prior, the catalogue and the seed.

    Parameters
    ----------
    registry : Registry
        The estimators.
    priors : mapping of estimator to Prior
        What was learned; empty = nothing.
    calibrations : mapping of estimator to Calibration
        How far off estimators were where it was tried; empty = nowhere.
    capacity : int
        Fitted models, choices and profiles' defaults that are kept, least recently used dropped first.
    max_workers : int
        Largest number of workers that is asked of a model, stated or resolved from nodes.
    traces : callable
        Reads the traces that a profile names. Absent = none can be read here.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        catalogue: Catalogue | None = None,
        priors: Mapping[str, Prior] | None = None,
        calibrations: Mapping[str, Calibration] | None = None,
        capacity: int = 8192,
        max_workers: int = MAX_WORKERS,
        clock: Clock | None = None,
        traces: Callable[[Profile], Sequence[Trace]] | None = None,
    ) -> None:
        self.registry = registry
        self._traces = traces
        self._catalogue = catalogue or Catalogue()
        self._lessons = Lessons(dict(priors or {}), dict(calibrations or {}))
        self._chooser = Chooser(registry, self._alone, self._catalogue)
        self._clock = clock or SystemClock()
        self._all_inline = all(loaded.mode == "inline" for loaded in registry.estimators.values())
        self._max_workers = max_workers
        self._flights = Flights()
        self._ready: LruCache[tuple[object, ...], tuple[Configurations, Fitted]] = LruCache(capacity)
        self._models: LruCache[ModelKey, Fitted] = LruCache(capacity)
        self._statements: LruCache[tuple[object, ...], Fitted] = LruCache(capacity)
        self._choices: LruCache[tuple[object, ...], Choice] = LruCache(KEPT_ROWS)
        self._predictions: LruCache[tuple[object, ...], Predictions] = LruCache(KEPT_ROWS)
        self._answers: LruCache[tuple[object, ...], Answer] = LruCache(KEPT_ROWS)
        self._defaults: LruCache[str, Defaults] = LruCache(capacity)

    @property
    def catalogue(self) -> Catalogue:
        """Facts about devices and links."""
        return self._catalogue

    def traces_of(self, profile: Profile) -> Sequence[Trace]:
        """The traces that a profile names, read.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING if it names some and none can be read here; INVALID_FIELD for one that cannot be read.
        """
        if not profile.traces:
            return ()
        if self._traces is None:
            raise NodewiseError(Reason.EVIDENCE_MISSING, "traces cannot be read here: there is no trace store")
        return self._traces(profile)

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
        if question.estimator != AUTO:
            self.estimator(question.estimator)
        if question.options.fidelity == Fidelity.SIMULATE:
            return None
        known = self._ready.get(_question_key(question))
        if known is not None:
            return Prepared(question, *known)
        if not question.profile.digest or len(question.configurations) > INLINE_ROWS or not self._inline(question):
            return None
        # Resolving and assessing are cheap; a fit is what must not happen here.
        configurations = self.resolve(question.profile, question.configurations)
        if _scale(configurations) > INLINE_SCALE:
            return None
        lessons = self._lessons
        choice = self._chosen(question, configurations, lessons, may_try=False)
        if choice is None:
            return None
        keys = (self._model_key(question, share.estimator, lessons) for share in choice.shares)
        if any(self._models.get(key) is None for key in keys):
            return None
        return self.prepared(question)

    def _inline(self, question: Question) -> bool:
        """Whether every estimator that a question may reach runs in the caller's thread."""
        loaded = self.registry.estimators.get(question.estimator)
        return self._all_inline if loaded is None or question.allow_fallback else loaded.mode == "inline"

    def _model_key(self, question: Question, name: str, lessons: Lessons) -> ModelKey:
        version, prior_id = self._version(lessons, name)
        calibration_id = lessons.calibrations.get(name, UNTRIED).calibration_id
        return ModelKey(question.profile.digest, name, version, prior_id, calibration_id, question.options.seed)

    def _remember(self, prepared: Prepared) -> None:
        """Keep what was prepared for ``ready``, if it may be completed in the caller's thread."""
        question, resolved_rows = prepared.question, prepared.configurations
        if not self._inline(question) or not question.profile.digest or len(resolved_rows) > INLINE_ROWS:
            return
        if question.options.fidelity == Fidelity.SIMULATE:
            return
        if _scale(resolved_rows) <= INLINE_SCALE:
            self._ready.put(_question_key(question), (resolved_rows, prepared.fitted))

    def estimator(self, name: str) -> Loaded[EstimatorRecord]:
        """A loaded estimator.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND, with the names that are loaded.
        """
        loaded = self.registry.estimators.get(name)
        if loaded is None:
            available = ", ".join([AUTO, *self.registry.estimators])
            raise NodewiseError(
                Reason.ESTIMATOR_NOT_FOUND,
                f"no estimator is named {name!r}; loaded are: {available}",
                {"estimator": name, "available": available},
            )
        return loaded

    def resolve(self, profile: Profile, configurations: Configurations) -> Configurations:
        """The configurations with everything filled in that the profile's evidence tells.

        Raises
        ------
        NodewiseError
            INVALID_FIELD where the evidence does not tell, or for more than ``max_workers`` workers.
        """
        defaults = self._defaults.get(profile.digest)
        if defaults is None:
            defaults = defaults_of(profile)
            if profile.digest:
                self._defaults.put(profile.digest, defaults)
        return resolved(configurations, defaults, self._max_workers)

    @property
    def lessons(self) -> Lessons:
        """What was learned: another object once something else is adopted."""
        return self._lessons

    def adopt(self, priors: Mapping[str, Prior], calibrations: Mapping[str, Calibration]) -> None:
        """Answer with what was learned meanwhile. Questions under way end with what they began with."""
        self._lessons = Lessons(dict(priors), dict(calibrations))
        # Models and choices are kept under what they were learned from; what points at them without saying so must go.
        self._ready.clear()

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
        configurations = self.resolve(question.profile, question.configurations)
        fitted = self.fitted(question, configurations)
        return assembled(question, configurations, predicted(self.estimator, fitted, configurations, question), fitted)

    def prepared(self, question: Question) -> Prepared:
        """All that an answer depends on: what is the same here is answered the same."""
        configurations = self.resolve(question.profile, question.configurations)
        prepared = Prepared(question, configurations, self.fitted(question, configurations))
        self._remember(prepared)
        return prepared

    def complete(self, prepared: Prepared) -> Answer:
        """The answer to a prepared question; kept for as long as nothing that it depends on changes."""
        key = prepared.key
        known = self._answers.get(key)
        if known is None:
            question, configurations, fitted = prepared.question, prepared.configurations, prepared.fitted
            # A model is pure: another objective or coverage needs no other predictions.
            rows = (fitted, configurations, question.options)
            predictions = self._predictions.get(rows)
            if predictions is None:
                predictions = predicted(self.estimator, fitted, configurations, question)
                self._predictions.put(rows, predictions, len(configurations) or 1)
            known = assembled(question, configurations, predictions, fitted)
            self._answers.put(key, known, len(configurations) or 1)
        return known

    def suggest(self, question: Question, wish: Wish) -> Suggestions:
        """What to measure next. Takes up to seconds: for a thread.

        Raises
        ------
        NodewiseError
            As ``answer``; the first refusal where every row is refused; DEADLINE_EXCEEDED.
        """
        prepared = self.prepared(question)
        if prepared.fitted.parts:
            # How errors hang together is told by one model: the heaviest part of a mixture.
            heaviest = prepared.fitted.parts[0].share.estimator
            prepared = self.prepared(replace(question, estimator=heaviest))
        answer = self.complete(prepared)
        refusal = refusal_of(answer.predictions)
        if refusal is not None:
            raise NodewiseError.refused(refusal)
        loaded = self.estimator(prepared.fitted.basis.estimator)
        shown = shown_of(loaded, question.profile, prepared.configurations)
        covariance = covariance_of(
            loaded, prepared.fitted.model, shown, answer, question.options, prepared.fitted.calibration
        )
        return suggested(question, answer, covariance, wish)

    def fit_ahead(self, profile: Profile) -> None:
        """Fit what a question about the profile's own configurations would need."""
        configurations = evidence_of(profile)
        if configurations is not None:
            question = Question(profile=profile, configurations=configurations)
            self.fitted(question, self.resolve(profile, configurations))

    def fitted(self, question: Question, configurations: Configurations) -> Fitted:
        """The model that answers a question, or the mixture of several; fitted now unless it is cached."""
        lessons = self._lessons
        choice = self._chosen(question, configurations, lessons, may_try=True)
        assert choice is not None
        parts = []
        failures = []
        for share in choice.shares:
            try:
                parts.append(MixturePart(share, self._fitted_alone(question, share.estimator, choice, lessons)))
            except NodewiseError as error:
                # One broken part must not cost the others their answer.
                failures.append((share.estimator, error))
        if not parts:
            raise failures[0][1]
        if len(choice.shares) == 1:
            return parts[0].fitted
        lost = tuple(lost_part(name, error) for name, error in failures)
        if not question.profile.digest:
            return mixture_of(tuple(parts), choice.why, lost)
        statement = (choice, *(part.fitted for part in parts))
        known = self._statements.get(statement)
        if known is None:
            known = mixture_of(tuple(parts), choice.why, lost)
            self._statements.put(statement, known)
        return known

    def _fitted_alone(self, question: Question, name: str, choice: Choice, lessons: Lessons) -> Fitted:
        profile = question.profile
        loaded = self.estimator(name)
        key = self._model_key(question, name, lessons)
        if not profile.digest:
            self._refuse_to_wait(question, name)
            fitted = self._fit(profile, loaded, lessons, key)
            return stated(fitted, choice.why, choice.fallback, profile.revision, choice.evidence)
        # One model serves questions that differ in what their answers say they rest on.
        statement = (key, choice.why, choice.fallback, profile.revision, choice.evidence)
        known = self._statements.get(statement)
        if known is None:
            fitted_before = self._models.get(key)
            if fitted_before is None:
                self._refuse_to_wait(question, name)
                fitted_before = self._flights.joined(key, lambda: self._kept(profile, loaded, lessons, key))
            known = stated(fitted_before, choice.why, choice.fallback, profile.revision, choice.evidence)
            self._statements.put(statement, known)
        return known

    def _kept(self, profile: Profile, loaded: Loaded[EstimatorRecord], lessons: Lessons, key: ModelKey) -> Fitted:
        """A model that is kept from now on; the one that was put there since the caller looked, if there is one."""
        fitted = self._models.get(key)
        if fitted is None:
            fitted = self._fit(profile, loaded, lessons, key)
            self._models.put(key, fitted)
        return fitted

    def _refuse_to_wait(self, question: Question, name: str) -> None:
        if question.freshness == Freshness.CACHED_ONLY:
            raise NodewiseError(
                Reason.MODEL_NOT_CACHED,
                f"no fitted model of {name!r} is cached for this profile; ask with FRESHNESS_WAIT",
                {"estimator": name},
            )

    def _chosen(
        self, question: Question, configurations: Configurations, lessons: Lessons, *, may_try: bool
    ) -> Choice | None:
        """Who answers; None where that takes trials that may not be made here."""
        if question.estimator != AUTO:
            self.estimator(question.estimator)
        key = (
            question.profile.digest,
            question.estimator,
            configurations,
            question.options,
            question.allow_fallback,
            lessons,
        )
        known = self._choices.get(key) if question.profile.digest else None
        if known is None:
            known = self._chooser.choose(
                question, configurations, lessons.calibrations, partial(self._version, lessons), may_try=may_try
            )
            if known is not None and question.profile.digest:
                self._choices.put(key, known, len(configurations) or 1)
        return known

    def _version(self, lessons: Lessons, name: str) -> tuple[str, str]:
        """What predictions of an estimator depend on besides profile, question and calibration."""
        prior = lessons.priors.get(name)
        return self.estimator(name).record.version, prior.prior_id if prior else ""

    def _alone(self, name: str) -> Predict:
        """A way of asking one estimator."""

        def predict(profile: Profile, configurations: Configurations) -> Predictions:
            question = Question(profile=profile, configurations=configurations, estimator=name)
            return self.answer(question).predictions

        return predict

    def _fit(
        self,
        profile: Profile,
        loaded: Loaded[EstimatorRecord],
        lessons: Lessons,
        key: ModelKey,
    ) -> Fitted:
        prior = lessons.priors.get(loaded.record.name)
        chain = (*fitting.get(), key)
        context = _Context(prior, self._catalogue, key.seed, profile, self, chain)
        started = time.perf_counter()
        token = fitting.set(chain)
        try:
            model = call(loaded, loaded.record.estimator, "fit", profile, context, check=_model)
        finally:
            fitting.reset(token)
        basis = Basis(
            estimator=loaded.record.name,
            estimator_version=loaded.record.version,
            choice="",
            profile_revision=profile.revision,
            profile_digest=profile.digest,
            prior_id=prior.prior_id if prior else "",
            catalogue_digest=self._catalogue.digest,
            fit_time_s=self._clock.now_s(),
        )
        fit_s = time.perf_counter() - started
        return Fitted(
            model=model,
            basis=basis,
            fit_s=fit_s,
            notices=disagreement(loaded, model, profile, Options(seed=key.seed), self.resolve),
            calibration=lessons.calibrations.get(loaded.record.name, UNTRIED),
        )


def _model(answer: Any) -> Model:
    """What a fit answered, if it can be asked."""
    if not callable(getattr(answer, "predict", None)):
        raise ImpossibleAnswerError(f"a {type(answer).__name__} has no method predict")
    model: Model = answer
    return model


def _question_key(question: Question) -> tuple[object, ...]:
    """What the preparation of a question depends on; the configurations by identity."""
    profile = question.profile
    return (
        profile.digest,
        profile.revision,
        question.configurations,
        question.estimator,
        question.options,
        question.allow_fallback,
    )


def _scale(configurations: Configurations) -> int:
    """The largest number of nodes or workers."""
    return int(max(configurations.nodes.max(initial=0), configurations.workers.max(initial=0)))

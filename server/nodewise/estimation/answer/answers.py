"""Answers: the only path from a query to its answer, for every caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from nodewise.domain.columns import largest
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Fidelity, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.answer.ahead import Ahead
from nodewise.estimation.answer.answer_cache import AnswerCache
from nodewise.estimation.answer.assembly import judge, rate
from nodewise.estimation.answer.floors import Floors, floors_of, raise_to_floors
from nodewise.estimation.answer.goodput import Candidates, candidates_of
from nodewise.estimation.answer.objectives import Verdict, decide
from nodewise.estimation.answer.predicting import predict_rows
from nodewise.estimation.answer.resolved_query import ResolvedQuery
from nodewise.estimation.choice.chooser import NONE_FAILED, Choice, Chooser
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.fitted_model import FittedModel, basis_of, misses_a_part
from nodewise.estimation.fit.models import Models, evidence_of
from nodewise.estimation.lessons.calibration import Calibration
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.lessons.trials import Predict
from nodewise.estimation.question import AUTO, Answer, Basis, Freshness, Question, Terms
from nodewise.estimation.reach import Reach
from nodewise.estimation.resolution import MAX_WORKERS, Resolution, check_simulated
from nodewise.estimation.weights import BASIS_BYTES, CACHE_BYTES, ENTRY_BYTES, part_of_profile, part_of_rows
from nodewise.hosting.calls import PluginError
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue, Prior
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.clock import Clock, SystemClock

__all__ = ["Answers"]

INLINE_ROWS: Final = 4096
INLINE_SCALE: Final = 4096
"""Largest number of rows and largest resolved scale (workers, nodes) of a query that is answered in the caller's
thread. The time of exact models is linear in both. At these limits it is tens of milliseconds, which block an event
loop."""


class Answers:
    """Answers queries from an immutable registry: resolve, choose, fit, predict, rate, judge.

    Every step except the fit is pure. Results are cached under their inputs. Call :meth:`answer`, or in an event loop
    :meth:`resolve_now` and :meth:`complete`.

    Parameters
    ----------
    registry : Registry
        The estimators.
    priors : mapping of estimator to Prior
        Learned priors; empty = none.
    calibrations : mapping of estimator to Calibration
        Measured errors of estimators in trials; empty = no trials.
    space : CacheSpace or None
        Memory limit of the caches, shared with other caches of the same jobs; None = a new one of CACHE_BYTES. The
        least recently used entry is evicted first. A model is freed when no cached entry refers to it.
    max_workers : int
        Largest number of workers of a row, stated or resolved from nodes.
    most_cycles : int or None
        Largest number of worker cycles that one question may simulate, over all rows; None = no limit.
    traces : callable
        Reads the traces that a profile names; None = this server has no trace store.
    ahead : callable or None
        Runs a function in the background; None = no background fits.
    fallbacks : sequence of str
        Estimators that may replace a named one that cannot answer, in this order.
    cache : AnswerCache or None
        Models and trials, shared with other ``Answers`` of this process; None = not shared.
    generation, track : str
        Generation and track of the plugins, for bases; "" = a digest of the registry, and the only track.
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
        cache: AnswerCache | None = None,
        generation: str = "",
        track: str = "",
    ) -> None:
        cache = cache or AnswerCache.of(space or CacheSpace(CACHE_BYTES))
        self.space = space = cache.space
        self.estimators = Estimators(registry, catalogue or Catalogue(), space, cache.built_on)
        self._generation, self._track = generation or registry.generation, track
        self._most_cycles = most_cycles
        self._resolution = Resolution(max_workers, space, self.estimators.catalogue)
        self._models = Models(
            self.estimators,
            self._resolution,
            space=space,
            kept=cache.models,
            clock=clock or SystemClock(),
            traces=traces,
        )
        self._chooser = Chooser(self.estimators, space, self._asking_alone, fallbacks, cache.trials)
        self._teachings = Teachings(Lessons(dict(priors or {}), dict(calibrations or {})))
        self.adoptions = 0
        """Number of calls of :meth:`adopt`."""
        self._resolved: LruCache[tuple[object, ...], ResolvedQuery] = LruCache(space)
        self._fitted: LruCache[tuple[Choice, int, Terms], tuple[FittedModel, Basis]] = LruCache(space)
        self._newest: LruCache[str, Profile] = LruCache(space)
        self._ahead = Ahead(ahead, self.resolve)

    @property
    def registry(self) -> Registry:
        """The loaded estimators."""
        return self.estimators.registry

    @property
    def state(self) -> tuple[int, int]:
        """A value that changes whenever the answer to a query may change although its profile is the same.

        It counts the adoptions of lessons, and how often estimators were disabled or enabled.
        """
        return self.adoptions, self.estimators.epoch

    def answer(self, question: Question, *, keep: bool = True) -> Answer:
        """Answer a query.

        Parameters
        ----------
        keep : bool
            Whether to cache the resolved query for repeated queries. The model is cached in either case.

        Raises
        ------
        NodewiseError
            An error that concerns every row. Single rows are refused in the predictions instead.
        """
        return self.complete(question, self.resolve(question) if keep else self._resolve(question, None))

    def resolve_now(self, question: Question, *, fitted_only: bool = False) -> ResolvedQuery | None:
        """Return the resolved query if it can be completed at once in the caller's thread, else None.

        This requires that the model is cached, that every estimator involved runs in the caller's thread, that there
        are at most INLINE_ROWS rows with a resolved scale of at most INLINE_SCALE, and that nothing is simulated. On
        None, call :meth:`answer` in a worker thread.

        Parameters
        ----------
        fitted_only : bool
            Whether to return None at once if no model was fitted for the profile, without assessing it.

        Raises
        ------
        NodewiseError
            An error that concerns every row and is found before a fit.
        """
        if question.terms.options.fidelity == Fidelity.SIMULATE:
            return None
        key = self._key(question)
        entry = self._resolved.get(key)
        if entry is not None:
            return entry if self._is_quick(entry) else None
        if not question.profile.digest or len(question.configurations) > INLINE_ROWS or not self._inline(question):
            return None
        if fitted_only and self._newest.get(_name_of(question.profile)) is None:
            return None
        # Resolving and assessing are cheap; only a fit must not run here.
        configurations, candidates = self._rows(question)
        try:
            before = self._fitted_before(question, configurations) if _is_small(configurations) else None
            if before is None:
                return None
            question.terms.look_up()
            choice, fit, basis = before
            self._note_newest(question.profile)
            rows = (configurations, candidates)
            return self._keep(key, question, rows, fit, basis, repeatable=choice.is_settled, is_small=True)
        except NodewiseError as error:
            self._begin_if_missed(question, error)
            raise

    def cached_query(self, question: Question) -> ResolvedQuery | None:
        """Return the resolved query if it is small, and cached with its rows."""
        entry = self._resolved.get(self._key(question))
        return entry if entry is not None and entry.small and entry.rated is not None else None

    def resolve(self, question: Question) -> ResolvedQuery:
        """Return everything that an answer depends on except the objective. Fit models that are not cached.

        If a query allows stale answers and would have to wait for a fit, it is resolved at the newest revision of its
        profile with fitted models. The fit for the current revision is started in the background.
        """
        key = self._key(question)
        entry = self._resolved.get(key) if question.profile.digest else None
        if entry is not None:
            return entry
        older = self._older(question)
        if older is not None:
            self._ahead.begin(question)
            older_question = replace(question, profile=older)
            query, rated = self.rate(older_question, self.resolve(older_question))
            basis = replace(query.basis, stale=True)
            return replace(query, basis=basis, rated=rated, packed=None, compared=None, judged=None, number=0)
        try:
            return self._resolve(question, key)
        except NodewiseError as error:
            self._begin_if_missed(question, error)
            raise

    def complete(self, question: Question, query: ResolvedQuery) -> Answer:
        """Return the answer to a resolved query. If batches may be chosen, each row has the batch of highest goodput.

        The predicted rows are cached in the resolved query, so another objective reuses them.
        """
        objective, before = question.objective, query.judged
        if before is not None and before[0] is objective:
            return before[1]
        return self.judge(question, *self.rate(question, query))

    def judge(self, question: Question, query: ResolvedQuery, rows: Answer) -> Answer:
        """Return the answer to a resolved query from its rated rows; :meth:`rate` returns both."""
        objective, comparison, reach = question.objective, None, self._resolution.reach(question.profile)
        if query.candidates is not None:
            assert objective is not None  # the wire refuses bounds without efficiency
            assert objective.efficiency is not None
            best = query.candidates.best(objective.efficiency, rows.predictions)
            configurations, predictions = rows.configurations.take(best), rows.predictions.take(best)
            floors = self._floors(question.profile, configurations)
            rows = rate(question.terms, configurations, predictions, query.fitted, query.basis, floors)
        elif query.rated is not None:
            comparison = query.compare(objective, reach)
        answer = judge(question, rows, query.basis, reach, comparison)
        if query.rated is not None:
            query.judged = objective, answer
        return answer

    def verdict(self, question: Question, query: ResolvedQuery) -> Verdict | None:
        """Return the verdict if it is all that an answer adds to the rated rows; None = call :meth:`judge`.

        This requires a plain objective (a rule and an extrapolation limit only) and a profile without total work.
        """
        objective, rows, workload = question.objective, query.rated, question.profile.workload
        if objective is None or rows is None:
            return None
        if workload.epochs is not None and workload.samples_per_epoch is not None:
            return None
        comparison = query.compare(objective, self._resolution.reach(question.profile))
        if comparison is None:
            return None
        of_rows = rows.configurations, rows.predictions, rows.samples_per_s
        verdict = decide(objective, comparison, *of_rows, workload)
        return None if verdict.notice is not None else verdict

    def fit_ahead(self, profile: Profile) -> None:
        """Fit the models that a query about the profile's own configurations would need."""
        configurations = evidence_of(profile)
        if configurations is not None:
            self.model_of(Question(profile=profile, configurations=configurations))

    def model_of(self, question: Question) -> FittedModel:
        """Return the model, or the mixture, that answers a query. Fit it if it is not cached."""
        return self._resolve(question, None).fitted

    def alone(self, name: str) -> Predict:
        """Return a function that predicts with one estimator alone, by the lessons common to all owners.

        Its models are not cached.
        """
        return self._asking_alone(name, self._teachings.common)

    def resolve_configurations(self, profile: Profile, configurations: Configurations) -> Configurations:
        """Fill in the fields that the configurations leave open, from the profile's evidence.

        Raises
        ------
        NodewiseError
            INVALID_FIELD if the evidence does not determine a field, or for more than ``max_workers`` workers.
        """
        return self._resolution.of(profile, configurations)

    def reach(self, profile: Profile) -> Reach:
        """Return the largest scale of a profile's measured runs."""
        return self._resolution.reach(profile)

    @property
    def teachings(self) -> Teachings:
        """The lessons in use. :meth:`adopt` replaces this object."""
        return self._teachings

    def lessons_for(self, question: Question) -> Lessons:
        """Return the lessons for a query. The object changes when the lessons of its namespace change."""
        return self._teachings.of(question.asked_by or question.profile.profile_id)

    def adopt(self, teachings: Teachings) -> None:
        """Use new lessons from now on. Queries in progress finish with the lessons that they started with."""
        self._teachings = teachings
        self.adoptions += 1  # after the lessons: a caller that reads the new number gets the new lessons
        # The keys of models and choices hold the lessons. Caches whose entries refer to old models are cleared.
        self._resolved.clear()
        self._fitted.clear()
        self._chooser.forget()

    def forget(self) -> None:
        """Clear the caches of these answers. Caches shared with other ``Answers`` stay."""
        self._resolved.clear()
        self._fitted.clear()
        self._newest.clear()
        self._chooser.forget()
        self._models.forget()
        self._resolution.forget()
        self.estimators.forget()

    def home(self, question: Question) -> str:
        """Return the distribution whose worker process answers a query; "" = this process, or several processes."""
        plugin = self.registry.estimators.get(question.terms.estimator)
        return plugin.distribution if plugin is not None and plugin.mode == "process" else ""

    def _asking_alone(self, name: str, lessons: Lessons) -> Predict:
        """Return a function that predicts with one estimator. Trials need no intervals and no verdict."""
        terms = Terms(estimator=name)

        def predict(profile: Profile, configurations: Configurations) -> Predictions:
            rows = self._resolution.of(profile, configurations)
            assessment = self.estimators.assess(name, profile, rows, terms.options)
            if assessment.refusal is not None:
                raise NodewiseError.refused(assessment.refusal)
            fit = self._models.fit_for_trial(profile, name, terms.options.seed, lessons)
            question = Question(profile=profile, configurations=configurations, terms=terms)
            return predict_rows(self.estimators, fit, rows, question)

        return predict

    # --- resolving

    def _resolve(
        self, question: Question, key: tuple[object, ...] | None, failures: Mapping[str, Refusal] = NONE_FAILED
    ) -> ResolvedQuery:
        """Resolve a query and fit its model. Cache the result under ``key`` unless that is None.

        ``failures`` holds the failures of estimators that must be replaced by others.
        """
        rows = configurations, _ = self._rows(question)
        if question.terms.options.fidelity == Fidelity.SIMULATE and self._most_cycles is not None:
            check_simulated(configurations, question.terms.options, self._most_cycles)
        question.terms.look_up()
        lessons = self.lessons_for(question)
        # A worker process assesses and predicts in one exchange.
        model = self._models.cached_model(question, lessons) if self.home(question) else None
        choice = self._chooser.choose(question, configurations, lessons, may_try=True, model=model, failures=failures)
        assert choice is not None
        try:
            fit = self._model(question, choice, lessons)
        except PluginError as error:
            names = [share.estimator for share in choice.shares.mixture]
            return self._resolve_without(question, names, error, failures)
        return self._keep(key, question, rows, fit, self._basis(fit, question), repeatable=choice.is_settled)

    def _basis(self, fit: FittedModel, question: Question) -> Basis:
        return basis_of(fit, question.terms, self._generation, self._track)

    def _resolve_without(
        self, question: Question, names: Sequence[str], error: PluginError, failures: Mapping[str, Refusal]
    ) -> ResolvedQuery:
        """Resolve a query with other estimators in place of those that failed.

        Raises
        ------
        PluginError
            ``error`` itself, if no other estimator may replace them, or none can.
        """
        terms = question.terms
        if terms.estimator != AUTO and not terms.allow_fallback:
            raise error
        try:
            return self._resolve(question, None, {**failures, **dict.fromkeys(names, error.refusal)})
        except NodewiseError as another:
            if another.reason in (Reason.DEADLINE_EXCEEDED, Reason.MODEL_NOT_CACHED):
                raise
            raise error from None

    def _keep(
        self,
        key: tuple[object, ...] | None,
        question: Question,
        rows: tuple[Configurations, Candidates | None],
        fit: FittedModel,
        basis: Basis,
        *,
        repeatable: bool,
        is_small: bool | None = None,
    ) -> ResolvedQuery:
        """Return the resolved query. Cache it if the same query would resolve to the same result."""
        terms, (configurations, candidates) = question.terms, rows
        query = ResolvedQuery(
            configurations=configurations,
            candidates=candidates,
            fitted=fit,
            basis=basis,
            small=_is_small(configurations) if is_small is None else is_small,
            repeatable=repeatable
            and fit.settled
            and terms.options.fidelity != Fidelity.SIMULATE
            and bool(question.profile.digest)
            and not misses_a_part(fit.notices),
        )
        if key is not None and query.repeatable:
            asked = () if question.configurations is configurations else (part_of_rows(question.configurations),)
            self._resolved.put(key, query, ENTRY_BYTES, (*query.cache_parts, *asked))
        return query

    def _rows(self, question: Question) -> tuple[Configurations, Candidates | None]:
        """Return the resolved rows of a query, repeated with each candidate batch, and the candidates."""
        configurations = self._resolution.of(question.profile, question.configurations)
        bounds = None if question.objective is None else question.objective.batch_bounds
        if bounds is None:
            return configurations, None
        candidates = candidates_of(configurations, bounds)
        return candidates.configurations, candidates

    def _model(self, question: Question, choice: Choice, lessons: Lessons) -> FittedModel:
        """Return the chosen model, fitted, together with models by other owners' lessons if there are any."""
        fit = self._models.fit(question, choice, lessons)
        if lessons.others:
            fit = self._models.beside_others(question, choice, lessons, fit)
        self._note_newest(question.profile)
        return fit

    def _note_newest(self, profile: Profile) -> None:
        """Record the newest revision of a profile with a fitted model."""
        name = _name_of(profile)
        before = self._newest.get(name)
        if before is None or before.uid != profile.uid or before.revision < profile.revision:
            self._newest.put(name, profile, ENTRY_BYTES, (part_of_profile(profile),))

    def _fitted_before(
        self, question: Question, configurations: Configurations
    ) -> tuple[Choice, FittedModel, Basis] | None:
        """Return choice, model and basis if no trial and no fit is needed, else None."""
        lessons = self.lessons_for(question)
        choice = self._chooser.choose(question, configurations, lessons, may_try=False)
        if choice is None:
            return None
        key = (choice, question.profile.revision, question.terms)
        entry = self._fitted.get(key)
        if entry is None:
            fit = self._models.find(question, choice, lessons)
            if fit is None:
                return None
            entry = fit, self._basis(fit, question)
            if choice.is_kept:
                self._fitted.put(key, entry, ENTRY_BYTES + BASIS_BYTES, fit.cache_parts)
        return choice, *entry

    def _older(self, question: Question) -> Profile | None:
        """Return an older revision of the profile with fitted models, if it may answer and the newest has none."""
        profile = question.profile
        if question.terms.freshness != Freshness.ALLOW_STALE or not profile.profile_id:
            return None
        older = self._newest.get(profile.profile_id)
        if older is None or older.uid != profile.uid or older.revision >= profile.revision:
            return None
        if self._fitted_before(question, self._rows(question)[0]) is not None:
            return None
        before = replace(question, profile=older)
        return None if self._fitted_before(before, self._rows(before)[0]) is None else older

    def _begin_if_missed(self, question: Question, error: NodewiseError) -> None:
        if error.reason == Reason.MODEL_NOT_CACHED:
            self._ahead.begin(question)

    def _key(self, question: Question) -> tuple[object, ...]:
        """Return the cache key of a resolved query. Configurations are compared by identity."""
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
        """Return whether every estimator that may answer a query runs in the caller's thread."""
        plugin = self.registry.estimators.get(question.terms.estimator)
        return (
            self.estimators.all_inline if plugin is None or question.terms.allow_fallback else plugin.mode == "inline"
        )

    def _is_quick(self, query: ResolvedQuery) -> bool:
        """Return whether a query can be completed in the caller's thread, by inline models or from its cached rows."""
        if not query.small or query.rated is not None or self.estimators.all_inline:
            return query.small
        fit = query.fitted
        names = [part.fitted.basis.estimator for part in fit.parts] or [fit.basis.estimator]
        return all(self.estimators.by_name(name).mode == "inline" for name in names)

    # --- completing

    def rate(self, question: Question, query: ResolvedQuery) -> tuple[ResolvedQuery, Answer]:
        """Predict and rate the rows. If an estimator fails, resolve the query again with another one."""
        if query.rated is not None:
            return query, query.rated
        failures: dict[str, Refusal] = {}
        while True:
            try:
                return query, self._rate(question, query)
            except PluginError as error:
                names = [part.fitted.basis.estimator for part in query.fitted.parts]
                names = names or [query.fitted.basis.estimator]
                query = self._resolve_without(question, names, error, failures)
                failures |= dict.fromkeys(names, error.refusal)

    def _rate(self, question: Question, query: ResolvedQuery) -> Answer:
        """Predict and rate the rows, and cache them for other objectives: models are pure."""
        configurations, fit = query.configurations, query.fitted
        predictions = predict_rows(self.estimators, fit, configurations, question)
        floors = self._floors(question.profile, configurations)
        if floors is not None and not predictions.simulated and question.profile.workload.transformer is None:
            # The prediction of a named estimator is corrected by facts only, not by runs.
            by_auto = question.terms.estimator == AUTO
            predictions = raise_to_floors(predictions, floors if by_auto else floors.of_facts())
        rows = rate(question.terms, configurations, predictions, fit, query.basis, floors)
        if not misses_a_part(rows.notices):
            query.rated = rows
        return rows

    def _floors(self, profile: Profile, rows: Configurations) -> Floors | None:
        """Return the floors of the step time of each row; None if there are neither facts nor runs."""
        workload = profile.workload
        if not (workload.parameter_bytes or workload.flops_per_sample or len(profile.observations)):
            return None
        ran: Configurations | None = None
        with suppress(NodewiseError):  # runs that cannot be resolved give no floor
            ran = self._resolution.of(profile, profile.observations.configurations)
        return floors_of(profile, ran, rows, self.estimators.catalogue)


def _name_of(profile: Profile) -> str:
    """Return the id that all revisions of a profile share. A profile sent in a question has only its digest."""
    return profile.profile_id or profile.digest


def _is_small(configurations: Configurations) -> bool:
    """Return whether rows are few and small enough to be answered in the caller's thread."""
    return (
        len(configurations.workers) <= INLINE_ROWS
        and largest(configurations.workers) <= INLINE_SCALE
        and largest(configurations.nodes) <= INLINE_SCALE
    )

"""Answers: the one way from a query to its answer, for every caller."""

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
"""Rows and resolved scale up to which a query may be answered in the caller's thread: exact models are linear in
both, and take tens of milliseconds there, in which an event loop serves nobody else."""


class Answers:
    """Answers queries from an immutable registry: resolves, chooses, fits, predicts, rates, judges.

    Everything but the fit is pure, and kept by what it depends on. Ask with :meth:`answer`, or in an event loop with
    :meth:`resolve_now` and :meth:`complete`.

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
    cache : AnswerCache or None
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
        """How often something learned was adopted."""
        self._resolved: LruCache[tuple[object, ...], ResolvedQuery] = LruCache(space)
        self._fitted: LruCache[tuple[Choice, int, Terms], tuple[FittedModel, Basis]] = LruCache(space)
        self._newest: LruCache[str, Profile] = LruCache(space)
        self._ahead = Ahead(ahead, self.resolve)

    @property
    def registry(self) -> Registry:
        """The estimators that can be asked."""
        return self.estimators.registry

    @property
    def state(self) -> tuple[int, int]:
        """Changes whenever a stored query may be answered otherwise though its profile is the same.

        That is: how often something learned was adopted, and how often estimators were put out of use or back in.
        """
        return self.adoptions, self.estimators.epoch

    def answer(self, question: Question, *, keep: bool = True) -> Answer:
        """Answer a query.

        Parameters
        ----------
        keep : bool
            Whether the same query may come again; else what only that would need takes no room. The model is kept.

        Raises
        ------
        NodewiseError
            Whatever stands in the way of every row; single rows are refused in the predictions instead.
        """
        return self.complete(question, self.resolve(question) if keep else self._resolve(question, None))

    def resolve_now(self, question: Question, *, fitted_only: bool = False) -> ResolvedQuery | None:
        """The resolved query if nothing is left to do but to complete it here and now, else None.

        That is: the model was fitted before; every estimator concerned runs in the caller's thread; at most INLINE_ROWS
        rows of a resolved scale of at most INLINE_SCALE; no simulation. Where it is None the query belongs in a thread:
        ``answer``.

        Parameters
        ----------
        fitted_only : bool
            Whether to look no further where nothing was fitted for the profile: assessing it is work as well.

        Raises
        ------
        NodewiseError
            Whatever stands in the way of every row and shows before a fit.
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
        # Resolving and assessing are cheap; a fit is what must not happen here.
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

    def resolve(self, question: Question) -> ResolvedQuery:
        """All that an answer depends on: what is the same here is answered the same. Fits where it must.

        A query that allows stale answers, and would have to wait, is resolved at the newest revision of its profile of
        which everything is fitted. Whatever it does not wait for is begun.
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
        """The answer to a resolved query, of each row at the batch of best goodput.

        Predicted rows stay with the resolved query for as long as nothing that they depend on changes.
        """
        objective, before = question.objective, query.judged
        if before is not None and before[0] is objective:
            return before[1]
        return self.judge(question, *self.rate(question, query))

    def judge(self, question: Question, query: ResolvedQuery, rows: Answer) -> Answer:
        """The answer to a resolved query of which the rows are rated, as :meth:`rate` returns both."""
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
        """The verdict on rated rows, where an answer tells no more besides them; None = ask :meth:`judge`.

        That is: the objective says nothing of its own about the rows, and no work is known that would take time.
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
        """Fit what a query about the profile's own configurations would need."""
        configurations = evidence_of(profile)
        if configurations is not None:
            self.model_of(Question(profile=profile, configurations=configurations))

    def model_of(self, question: Question) -> FittedModel:
        """The model that answers a query, or the mixture of several; fitted now unless it is kept."""
        return self._resolve(question, None).fitted

    def alone(self, name: str) -> Predict:
        """A way of asking one estimator about a profile, whatever else is loaded; nothing of it is kept.

        By the lessons that are common to all.
        """
        return self._asking_alone(name, self._teachings.common)

    def resolve_configurations(self, profile: Profile, configurations: Configurations) -> Configurations:
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
        """What a query is answered with: another object once its namespace learned something else."""
        return self._teachings.of(question.asked_by or question.profile.profile_id)

    def adopt(self, teachings: Teachings) -> None:
        """Answer with what was learned meanwhile. Queries under way end with what they began with."""
        self._teachings = teachings
        self.adoptions += 1  # after what it counts: a caller that reads the new number first gets the new lessons
        # Models and choices are kept under what they were learned from; what points at them without saying so must go.
        self._resolved.clear()
        self._fitted.clear()
        self._chooser.forget()

    def forget(self) -> None:
        """Let go of what is kept for these answers alone, in a room that others go on sharing."""
        self._resolved.clear()
        self._fitted.clear()
        self._newest.clear()
        self._chooser.forget()
        self._models.forget()
        self._resolution.forget()
        self.estimators.forget()

    def home(self, question: Question) -> str:
        """The distribution in whose process a query is answered; "" = here, or not in one alone."""
        plugin = self.registry.estimators.get(question.terms.estimator)
        return plugin.distribution if plugin is not None and plugin.mode == "process" else ""

    def _asking_alone(self, name: str, lessons: Lessons) -> Predict:
        """A way of asking one estimator about a profile: trials need predictions alone, no intervals or verdict."""
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
        """The query resolved now, with its model fitted; kept under a key unless that is None.

        ``failures`` are those of estimators that others stand in for.
        """
        rows = configurations, _ = self._rows(question)
        if question.terms.options.fidelity == Fidelity.SIMULATE and self._most_cycles is not None:
            check_simulated(configurations, question.terms.options, self._most_cycles)
        question.terms.look_up()
        lessons = self.lessons_for(question)
        # A process of its own assesses and predicts in one exchange.
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
        """The query resolved with others in the place of estimators that failed.

        Raises
        ------
        PluginError
            That failure, where nobody may stand in for them, or nobody can.
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
        """A query with its model; kept where the same would be resolved again."""
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
        """The rows of a query as resolved, with every batch that may be chosen, and which these are."""
        configurations = self._resolution.of(question.profile, question.configurations)
        bounds = None if question.objective is None else question.objective.batch_bounds
        if bounds is None:
            return configurations, None
        candidates = candidates_of(configurations, bounds)
        return candidates.configurations, candidates

    def _model(self, question: Question, choice: Choice, lessons: Lessons) -> FittedModel:
        """The chosen model, fitted; beside others' lessons where these move it."""
        fit = self._models.fit(question, choice, lessons)
        if lessons.others:
            fit = self._models.beside_others(question, choice, lessons, fit)
        self._note_newest(question.profile)
        return fit

    def _note_newest(self, profile: Profile) -> None:
        """Remember the newest revision that something was fitted for."""
        name = _name_of(profile)
        before = self._newest.get(name)
        if before is None or before.uid != profile.uid or before.revision < profile.revision:
            self._newest.put(name, profile, ENTRY_BYTES, (part_of_profile(profile),))

    def _fitted_before(
        self, question: Question, configurations: Configurations
    ) -> tuple[Choice, FittedModel, Basis] | None:
        """The choice of an estimator, its model and what answers rest on, if nothing has to be tried or fitted."""
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
        """The profile at an older revision of which everything is fitted, where it may answer and the newest cannot."""
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
        """What resolving a query depends on; the configurations by identity."""
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
        """Whether every estimator that a query may reach runs in the caller's thread."""
        plugin = self.registry.estimators.get(question.terms.estimator)
        return (
            self.estimators.all_inline if plugin is None or question.terms.allow_fallback else plugin.mode == "inline"
        )

    def _is_quick(self, query: ResolvedQuery) -> bool:
        """Whether it can be completed here and now: by models of the caller's thread, or from memory."""
        if not query.small or query.rated is not None or self.estimators.all_inline:
            return query.small
        fit = query.fitted
        names = [part.fitted.basis.estimator for part in fit.parts] or [fit.basis.estimator]
        return all(self.estimators.by_name(name).mode == "inline" for name in names)

    # --- completing

    def rate(self, question: Question, query: ResolvedQuery) -> tuple[ResolvedQuery, Answer]:
        """The rows predicted and rated; where an estimator fails, another one is resolved in its place."""
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
        """The rows predicted and rated: a model is pure, so that another objective needs the same rows."""
        configurations, fit = query.configurations, query.fitted
        predictions = predict_rows(self.estimators, fit, configurations, question)
        floors = self._floors(question.profile, configurations)
        if floors is not None and not predictions.simulated and question.profile.workload.transformer is None:
            # An estimator that is asked for by name is shown as it is: only facts correct it.
            by_auto = question.terms.estimator == AUTO
            predictions = raise_to_floors(predictions, floors if by_auto else floors.of_facts())
        rows = rate(question.terms, configurations, predictions, fit, query.basis, floors)
        if not misses_a_part(rows.notices):
            query.rated = rows
        return rows

    def _floors(self, profile: Profile, rows: Configurations) -> Floors | None:
        """The least that a step of each row can take; None = neither facts nor runs say anything of it."""
        workload = profile.workload
        if not (workload.parameter_bytes or workload.flops_per_sample or len(profile.observations)):
            return None
        ran: Configurations | None = None
        with suppress(NodewiseError):  # runs of which something is open bound nothing
            ran = self._resolution.of(profile, profile.observations.configurations)
        return floors_of(profile, ran, rows, self.estimators.catalogue)


def _name_of(profile: Profile) -> str:
    """What a profile's revisions have in common; one in a question has its digest alone."""
    return profile.profile_id or profile.digest


def _is_small(configurations: Configurations) -> bool:
    """Whether rows may be answered in the caller's thread."""
    return (
        len(configurations.workers) <= INLINE_ROWS
        and largest(configurations.workers) <= INLINE_SCALE
        and largest(configurations.nodes) <= INLINE_SCALE
    )

"""Models: fits each estimator to each profile once and caches the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Notice, Options
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.choice.chooser import Choice
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.agreement import disagreement
from nodewise.estimation.fit.fitted_model import FittedModel, MixturePart, ModelKey, lost_part, mixture_of, relabel
from nodewise.estimation.fit.flights import Flights, circle, fitting
from nodewise.estimation.lessons.lessons import Lessons
from nodewise.estimation.plausibility import doubts
from nodewise.estimation.question import Basis, Freshness, Question
from nodewise.estimation.resolution import Resolution
from nodewise.estimation.weights import BASIS_BYTES, ENTRY_BYTES, HOSTED_MODEL_BYTES, part_of_profile
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, UnavailableError, call, make_renewable, soon
from nodewise.plugin import Catalogue, Model, Prior
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.clock import Clock
from nodewise.ports.footprint import footprint
from nodewise.profiles.reader import profile_bytes

__all__ = ["Models", "evidence_of"]

MOVED: Final = "jobs of other owners, each of which moves it by a few per cent at most"
"""Evidence text of an answer that also depends on lessons from other owners."""
FAILED_KEPT_S: Final = 60.0
"""Seconds before a failed fit is tried again. Fits are deterministic, but a fit can fail for lack of memory or time."""


def evidence_of(profile: Profile) -> Configurations | None:
    """Return the configurations of a profile's phase timings and observations; None if there are none."""
    parts = [profile.phase_timings.configurations, profile.observations.configurations]
    kept = [part for part in parts if len(part)]
    return Configurations.concatenated(kept) if kept else None


class Models:
    """Fitted models, each cached under a key of everything that it depends on.

    The key holds the profile's digest, the estimator, its version, the origin of its code, its prior, its calibration
    and the seed. A profile without a digest is fitted again for every question.

    Parameters
    ----------
    estimators : Estimators
    resolution : Resolution
        Resolves the configurations of the evidence.
    space : CacheSpace
        Limits the memory of the cached failures.
    kept : LruCache
        Cache of the models. Other generations of the same estimators may share it.
    traces : callable or None
        Reads the traces that a profile names; None = this server has no trace store.
    """

    def __init__(
        self,
        estimators: Estimators,
        resolution: Resolution,
        *,
        space: CacheSpace,
        kept: LruCache[ModelKey, FittedModel],
        clock: Clock,
        traces: Callable[[Profile], Sequence[Trace]] | None,
    ) -> None:
        self.estimators = estimators
        self._resolution = resolution
        self._clock = clock
        self._traces = traces
        self._flights = Flights()
        self._kept = kept
        self._failed: LruCache[ModelKey, tuple[PluginError, float]] = LruCache(space)

    def forget(self) -> None:
        """Clear the caches that this object does not share."""
        self._failed.clear()

    def fit(self, question: Question, choice: Choice, lessons: Lessons) -> FittedModel:
        """Return the model, or the mixture, that answers a question. Fit each part that is not cached.

        Raises
        ------
        NodewiseError
            MODEL_NOT_CACHED if a fit is needed and the question does not wait for one; the error of the part with the
            largest weight if all parts fail; DEADLINE_EXCEEDED if the caller's deadline passes before a part is fitted.
        """
        parts = []
        failures = []
        shares = choice.shares
        for share, weights, errors in zip(shares.mixture, shares.weights, shares.errors, strict=True):
            question.terms.look_up()
            try:
                fit_result = self._part(question, share.estimator, choice, lessons)
                parts.append(MixturePart(share, fit_result, weights, errors))
            except NodewiseError as error:
                # The other parts can answer without this one.
                failures.append((share.estimator, error))
        late = any(isinstance(error, UnavailableError) for _, error in failures)
        if not parts and late:
            return self._alone(question, choice.shares.mixture[0].estimator, choice, lessons)  # no other part: wait
        if not parts:
            raise failures[0][1]
        if len(choice.shares.mixture) == 1:
            return parts[0].fitted
        lost_parts = tuple(lost_part(name, error) for name, error in failures)
        return mixture_of(tuple(parts), choice.why, lost_parts, settled=not late)

    def beside_others(self, question: Question, choice: Choice, lessons: Lessons, own: FittedModel) -> FittedModel:
        """Return ``own`` together with a model for each group of lessons that includes jobs of other owners.

        If the model of a group cannot be fitted, ``own`` takes its place, which does not move the answer.

        Raises
        ------
        NodewiseError
            MODEL_NOT_CACHED if a fit is needed and the question does not wait for one; DEADLINE_EXCEEDED.
        """
        others, is_settled = [], own.settled
        for each in lessons.others:
            try:
                others.append(self.fit(question, choice, each))
            except NodewiseError as error:
                if error.reason in (Reason.MODEL_NOT_CACHED, Reason.DEADLINE_EXCEEDED):
                    raise
                others.append(own)
                is_settled = is_settled and not isinstance(error, UnavailableError)
        if all(other is own for other in others):
            return replace(own, settled=is_settled) if is_settled != own.settled else own
        return _with_others(own, others, is_settled=is_settled)

    def find(self, question: Question, choice: Choice, lessons: Lessons) -> FittedModel | None:
        """Return what :meth:`fit` and :meth:`beside_others` return, from the cache only; None if a model is missing."""
        profile, seed = question.profile, question.terms.options.seed
        parts, shares = [], choice.shares
        for share, weights, errors in zip(shares.mixture, shares.weights, shares.errors, strict=True):
            kept = self._kept.get(self._key(profile, share.estimator, seed, lessons))
            if kept is None:
                return None
            own_model = replace(kept, basis=relabel(kept.basis, profile, choice))
            parts.append(MixturePart(share, own_model, weights, errors))
        own = parts[0].fitted if len(parts) == 1 else mixture_of(tuple(parts), choice.why)
        others = [self.find(question, choice, each) for each in lessons.others]
        result = [other for other in others if other is not None]
        if len(result) < len(others):
            return None
        return _with_others(own, result, is_settled=own.settled) if result else own

    def cached_model(self, question: Question, lessons: Lessons) -> Model | None:
        """Return the cached model of the estimator that the question names; None if there is none."""
        terms, profile = question.terms, question.profile
        if not profile.digest:
            return None
        result = self._kept.get(self._key(profile, terms.estimator, terms.options.seed, lessons))
        return None if result is None else result.model

    def fit_for_trial(self, profile: Profile, estimator: str, seed: int, lessons: Lessons) -> FittedModel:
        """Fit a model for one trial. The model is neither cached nor compared with its own evidence."""
        return self._fit(profile, self._key(profile, estimator, seed, lessons), lessons, compares=False)

    def beside(self, profile: Profile, estimator: str, seed: int, lessons: Lessons) -> Model:
        """Return the model of an estimator that the fit of another estimator builds on.

        The estimator is assessed on the profile's own evidence, so that no model depends on the first question.
        """
        chain = fitting.get()
        self.estimators.by_name(estimator)  # a name, not AUTO: AUTO is chosen for each question
        if any(key.estimator == estimator for key in chain):
            raise circle(chain, estimator)
        evidence = evidence_of(profile) or Configurations.of(1, nodes=1, workers=1)
        configurations = self._resolution.of(profile, evidence)
        assessment = self.estimators.assess(estimator, profile, configurations, Options(seed=seed))
        if assessment.refusal is not None:
            raise NodewiseError.refused(assessment.refusal)
        model = self._model(profile, self._key(profile, estimator, seed, lessons), lessons).model
        for key in chain:
            self.estimators.provenance.builds(key.estimator, estimator)
        return model

    def traces_of(self, profile: Profile) -> Sequence[Trace]:
        """Read the traces that a profile names.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING if there are traces but no trace store; INVALID_FIELD for a trace that cannot be read.
        """
        if not profile.traces:
            return ()
        if self._traces is None:
            raise NodewiseError(Reason.EVIDENCE_MISSING, "traces cannot be read here: there is no trace store")
        return self._traces(profile)

    def _part(self, question: Question, name: str, choice: Choice, lessons: Lessons) -> FittedModel:
        """Return one estimator's model. A mixture does not wait for a slow part, since the other parts can answer."""
        if len(choice.shares.mixture) == 1 or not question.profile.digest:
            return self._alone(question, name, choice, lessons)
        key = ("fit", self._key(question.profile, name, question.terms.options.seed, lessons), choice)
        # A new model is compared with its own evidence, which takes predictions.
        methods = ("fit", "predict")
        return soon(self.estimators.by_name(name), methods, key, lambda: self._alone(question, name, choice, lessons))

    def _alone(self, question: Question, name: str, choice: Choice, lessons: Lessons) -> FittedModel:
        """Return one estimator's model, with its basis set for this question."""
        profile = question.profile
        key = self._key(profile, name, question.terms.options.seed, lessons)
        waits = question.terms.freshness != Freshness.CACHED_ONLY
        if not waits and (not profile.digest or self._kept.get(key) is None):
            raise NodewiseError(
                Reason.MODEL_NOT_CACHED,
                f"no fitted model of {name!r} is cached for this profile; ask with FRESHNESS_WAIT",
                {"estimator": name},
            )
        fit_result = self._model(profile, key, lessons)
        # Queries that share a model differ in profile revision and choice, which the basis of their answers states.
        return replace(fit_result, basis=relabel(fit_result.basis, profile, choice))

    def _key(self, profile: Profile, name: str, seed: int, lessons: Lessons) -> ModelKey:
        version, prior_id = lessons.version(self.estimators.by_name(name))
        calibration_id = lessons.calibration(name).calibration_id
        provenance = self.estimators.provenance.of(name)
        return ModelKey(profile.digest, name, version, prior_id, calibration_id, seed, provenance)

    def _model(self, profile: Profile, key: ModelKey, lessons: Lessons) -> FittedModel:
        """Return a model; cache it if its profile has a digest."""
        if not profile.digest:
            return self._fit(profile, key, lessons)

        def fit() -> FittedModel:
            # Another thread may have cached it since the check below.
            result = self._kept.get(key)
            if result is None:
                result = self._fit(profile, key, lessons)
                # The other models that a model builds on are known only after its fit.
                stated_key = replace(key, provenance=self.estimators.provenance.of(key.estimator))
                self._kept.put(stated_key, result, BASIS_BYTES + ENTRY_BYTES, result.cache_parts)
            return result

        entry = self._kept.get(key)
        if entry is not None:
            return entry
        failure = self._failed.get(key)
        if failure is not None and self._clock.now_s() - failure[1] < FAILED_KEPT_S:
            # Without the old traceback: each raise of the same error would lengthen it.
            raise failure[0].with_traceback(None)
        try:
            return self._flights.join(key, fit)
        except UnavailableError:
            raise  # the estimator was not called, so nothing is known about this profile
        except PluginError as error:
            # The traceback of the error keeps the profile in memory.
            weight = BASIS_BYTES + ENTRY_BYTES
            self._failed.put(key, (error, self._clock.now_s()), weight, (part_of_profile(profile),))
            raise

    def _fit(self, profile: Profile, key: ModelKey, lessons: Lessons, *, compares: bool = True) -> FittedModel:
        plugin = self.estimators.by_name(key.estimator)
        prior = lessons.priors.get(key.estimator)
        chain = (*fitting.get(), key)
        context = _Context(prior, key.seed, profile, self, lessons, chain)
        start_s = time.perf_counter()

        def fit() -> Model:
            token = fitting.set(chain)
            try:
                return call(plugin, plugin.record.estimator, "fit", profile, context, check=_check)
            finally:
                fitting.reset(token)

        model = make_renewable(fit)
        basis = Basis(
            estimator=key.estimator,
            estimator_version=plugin.record.version,
            choice="",
            profile_revision=profile.revision,
            profile_digest=profile.digest,
            prior_id=key.prior_id,
            catalogue_digest=self.estimators.catalogue.digest,
            fit_time_s=self._clock.now_s(),
        )
        return FittedModel(
            model=model,
            basis=basis,
            fit_s=time.perf_counter() - start_s,
            notices=self._notices(key, model, profile) if compares else (),
            calibration=lessons.calibration(key.estimator),
            # The model of a trial is not cached.
            model_bytes=self._bytes_of(model, profile, key, lessons) if compares else 0,
        )

    def _notices(self, key: ModelKey, model: Model, profile: Profile) -> tuple[Notice, ...]:
        """Return notices about implausible evidence and about evidence that the model does not reproduce."""
        beside = disagreement(self.estimators, key, model, profile, self._resolution)
        return (*doubts(profile, self.estimators.catalogue), *beside)

    def _bytes_of(self, model: Model, profile: Profile, key: ModelKey, lessons: Lessons) -> int:
        """Return the approximate size of a model in bytes of memory."""
        if self.estimators.by_name(key.estimator).mode == "process":
            # This process holds a handle, and the profile to fit the model again if the worker process is replaced.
            return HOSTED_MODEL_BYTES + profile_bytes(profile)
        # Priors, lessons and the catalogue are shared, so they do not count.
        return footprint(model, (lessons.priors.get(key.estimator), self.estimators.catalogue, lessons))


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """The context passed to a fit. ``model`` lets one estimator build on another."""

    prior: Prior | None
    seed: int
    profile: Profile
    models: Models
    lessons: Lessons
    chain: tuple[ModelKey, ...]

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        return self.models.estimators.catalogue

    def traces(self) -> Sequence[Trace]:
        """Read the profile's traces."""
        return self.models.traces_of(self.profile)

    def model(self, estimator: str) -> Model:
        """Return another estimator's model of the same profile."""
        # Set here again, because a fit may call this from its own thread.
        token = fitting.set(self.chain)
        try:
            return self.models.beside(self.profile, estimator, self.seed, self.lessons)
        finally:
            fitting.reset(token)


def _with_others(own: FittedModel, others: Sequence[FittedModel], *, is_settled: bool) -> FittedModel:
    """Return a model together with the models that include jobs of other owners."""
    basis = replace(own.basis, evidence=(*own.basis.evidence, MOVED))
    return replace(own, others=tuple(others), settled=is_settled, basis=basis)


def _check(answer: Any) -> Model:
    """Return the result of a fit if it has a method ``predict``."""
    if not callable(getattr(answer, "predict", None)):
        raise ImpossibleAnswerError(f"a {type(answer).__name__} has no method predict")
    model: Model = answer
    return model

"""Choose the estimators of a question. If several can answer, trials on the job's runs and on similar jobs decide."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.choice.shares import (
    ABOUT_AS_GOOD,
    Candidate,
    RowKinds,
    Shares,
    expected_log_errors,
    shares_of,
    why,
)
from nodewise.estimation.estimators.estimators import Estimators, joint_refusal
from nodewise.estimation.lessons.lessons import Lessons
from nodewise.estimation.lessons.trials import HeldBack, Predict, Trial, left_out
from nodewise.estimation.question import AUTO, Freshness, Question
from nodewise.estimation.weights import BASIS_BYTES, ENTRY_BYTES
from nodewise.hosting.calls import PluginError, UnavailableError, soon
from nodewise.plugin import Assessment, Model
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.footprint import footprint

__all__ = ["Choice", "Chooser"]

NONE_FAILED: Final[Mapping[str, Refusal]] = MappingProxyType({})
QUICK: Final = "quick"
"""Capability of an estimator whose fits take almost no time. Such estimators are tried before the others."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Choice:
    """The estimators that answer a question, and why.

    Attributes
    ----------
    shares : Shares
        The estimators, largest weight first, and the weight of each in each row. Several form a mixture.
    why : str
        Explanation for people.
    fallback : bool
        Whether the estimators replace another one that the question names.
    evidence : tuple of str
        The evidence that the answer is based on, as text.
    is_settled : bool
        Whether the same query would get the same choice: no estimator was left out only because it was busy.
    is_kept : bool
        Whether this object is cached: it also serves other rows until the lessons change.
    """

    shares: Shares
    why: str
    fallback: bool
    evidence: tuple[str, ...]
    is_settled: bool = True
    is_kept: bool = False


class Chooser:
    """Chooses the estimators of a question.

    Parameters
    ----------
    estimators : Estimators
    space : CacheSpace
        Limits the memory of the cached choices and trials.
    predict : callable
        Takes an estimator's name and the lessons; returns a function that predicts with this estimator alone. Its
        results are validated.
    fallbacks : sequence of str
        Estimators that may replace a named one that cannot answer, if the question allows it. The first that can
        answer does; those that are not loaded are skipped. If none can answer, the choice is made as for AUTO.
    trials : LruCache or None
        Cache of the estimators' trials on jobs. Other generations of the same estimators may share it.
    """

    def __init__(
        self,
        estimators: Estimators,
        space: CacheSpace,
        predict: Callable[[str, Lessons], Predict],
        fallbacks: Sequence[str] = (),
        trials: LruCache[tuple[object, ...], tuple[Trial, ...]] | None = None,
    ) -> None:
        self._fallbacks = fallbacks
        self._estimators = estimators
        self._predict = predict
        self._among: LruCache[tuple[object, ...], Choice] = LruCache(space)
        self._trials = LruCache(space) if trials is None else trials

    def forget(self) -> None:
        """Clear the cached choices: they were made with older lessons and keep these in memory."""
        self._among.clear()

    def choose(
        self,
        question: Question,
        configurations: Configurations,
        lessons: Lessons,
        *,
        may_try: bool,
        model: Model | None = None,
        failures: Mapping[str, Refusal] = NONE_FAILED,
    ) -> Choice | None:
        """Return the choice for a question; None if it takes trials and ``may_try`` is False. Choices are cached.

        Parameters
        ----------
        configurations : Configurations
            As resolved.
        lessons : Lessons
            Trials on the jobs of the store, and the priors that predictions depend on.
        model : Model or None
            The model of the estimator that the question names, if it is fitted already.
        failures : mapping of str to Refusal
            Estimators that were chosen for this question and failed, with their failures. Other estimators replace
            them, and such a choice is not cached.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND; a joint refusal if no estimator can answer; MODEL_NOT_CACHED if trials are needed and
            the question does not wait.
        """
        self._estimators.require(question.terms.estimator)
        if failures:
            instead = self._choose(question, configurations, lessons, may_try=may_try, model=model, failures=failures)
            if instead is None:
                return None
            names = ", ".join(f"{name} failed ({refusal.reason})" for name, refusal in failures.items())
            return replace(instead, why=f"{names}; {instead.why}", is_settled=False, is_kept=False)
        return self._choose(question, configurations, lessons, may_try=may_try, model=model)

    def _choose(
        self,
        question: Question,
        configurations: Configurations,
        lessons: Lessons,
        *,
        may_try: bool,
        model: Model | None,
        failures: Mapping[str, Refusal] = NONE_FAILED,
    ) -> Choice | None:
        refusal: Refusal | None = None
        if question.terms.estimator != AUTO:
            failure = failures.get(question.terms.estimator)
            assessment = (
                self._assess(question, configurations, model) if failure is None else Assessment(refusal=failure)
            )
            if assessment.refusal is None:
                shares = Shares.alone(question.terms.estimator)
                return Choice(shares=shares, why="asked for by name", fallback=False, evidence=assessment.evidence)
            if not question.terms.allow_fallback:
                raise NodewiseError.refused(assessment.refusal)
            refusal = assessment.refusal
            for name in (name for name in self._fallbacks if name not in failures):
                standing_in = self._standing_in(name, question, configurations, refusal)
                if standing_in is not None:
                    return standing_in
        able, is_settled = self._able(question, configurations, refusal, failures)
        kinds = RowKinds.of(configurations)
        # Rows with equal assessments get the same choice, so the key holds only their sync modes and devices.
        key = (
            question.profile.digest,
            tuple((name, _statement(assessment)) for name, assessment in able.items()),
            refusal,
            question.terms.estimator,
            question.terms.options,
            kinds.key,
            lessons,
        )
        choice = self._among.get(key) if is_settled and question.profile.digest else None
        if choice is None:
            choice = self._weigh(question, able, refusal, kinds, lessons, may_try=may_try)
            if choice is None:
                return None
            is_settled = is_settled and choice.is_settled
            choice = replace(choice, is_settled=is_settled, is_kept=is_settled and bool(question.profile.digest))
            if choice.is_kept:
                self._among.put(key, choice, ENTRY_BYTES + BASIS_BYTES)
        return choice

    def _weigh(
        self,
        question: Question,
        able: Mapping[str, Assessment],
        refusal: Refusal | None,
        kinds: RowKinds,
        lessons: Lessons,
        *,
        may_try: bool,
    ) -> Choice | None:
        """Choose among the estimators that can answer; None as in :meth:`choose`."""
        is_settled = True
        candidates = [
            Candidate(
                estimator=name,
                assessment=assessment,
                similar=lessons.calibration(name).trials,
                quick=QUICK in self._estimators.by_name(name).record.capabilities,
            )
            for name, assessment in able.items()
        ]
        errors = expected_log_errors(candidates, kinds)
        for quick in (True, False) if len(able) > 1 else ():
            # Trials of estimators other than rules need fits, which take most of the time of a first answer.
            is_decided = None if quick else _decide(candidates, errors)
            if is_decided is not None and is_decided.all():
                break
            names = tuple(candidate.estimator for candidate in candidates if candidate.quick == quick)
            own_trials = self._own_trials(question, names, kinds.modes, lessons, may_try=may_try)
            if own_trials is None:
                return None
            own, all_made = own_trials
            is_settled = is_settled and all_made
            candidates = [replace(each, own=own.get(each.estimator, each.own)) for each in candidates]
            after = expected_log_errors(candidates, kinds)
            errors = after if is_decided is None else np.where(is_decided, errors, after)
        # A simulation has an interval of its own kind, so it is not mixed with other estimators.
        shares = shares_of(candidates, errors, mixed=question.terms.options.fidelity != Fidelity.SIMULATE)
        text = why(shares.mixture, candidates, errors, kinds)
        if refusal is not None:
            text = f"{question.terms.estimator} refused ({refusal.reason}); {text}"
        evidence = dict.fromkeys(line for share in shares.mixture for line in able[share.estimator].evidence)
        fallback = refusal is not None
        return Choice(shares=shares, why=text, fallback=fallback, evidence=tuple(evidence), is_settled=is_settled)

    def _assess(self, question: Question, configurations: Configurations, model: Model | None) -> Assessment:
        """Assess the named estimator. Its failure counts as a refusal if another estimator may answer."""
        terms = question.terms
        try:
            return self._estimators.assess(terms.estimator, question.profile, configurations, terms.options, model)
        except PluginError as error:
            if not terms.allow_fallback:
                raise
            return Assessment(refusal=error.refusal)

    def _standing_in(
        self, name: str, question: Question, configurations: Configurations, refusal: Refusal
    ) -> Choice | None:
        """Return the choice of fallback ``name`` in place of the named estimator; None if it cannot answer."""
        asked_name = question.terms.estimator
        if name == asked_name or name not in self._estimators.predicting:
            return None
        try:
            assessment = self._estimators.assess(name, question.profile, configurations, question.terms.options)
        except NodewiseError:
            return None
        if assessment.refusal is not None:
            return None
        text = f"{asked_name} refused ({refusal.reason}); {name} is the next in the configured order that can answer"
        # The next query tries the named estimator again: it may have recovered.
        is_settled = (
            not self._estimators.is_left_alone(asked_name) and refusal.reason is not Reason.ESTIMATOR_UNAVAILABLE
        )
        return Choice(
            shares=Shares.alone(name), why=text, fallback=True, evidence=assessment.evidence, is_settled=is_settled
        )

    def _able(
        self,
        question: Question,
        configurations: Configurations,
        refusal: Refusal | None,
        failures: Mapping[str, Refusal],
    ) -> tuple[dict[str, Assessment], bool]:
        """Return the assessments of the estimators that can answer, by name, and whether all could be assessed."""
        others = {question.terms.estimator, *failures}
        names = [name for name in self._estimators.asked_by_auto if name not in others]
        silent = self._estimators.silent(question.profile)
        able, refusals, is_settled = self._ask(question, configurations, [name for name in names if name not in silent])
        if not able and refusal is None and silent:
            # Also assess the estimators that refuse every question about the profile: the error quotes their reasons.
            able, refusals, is_settled = self._ask(question, configurations, names)
        if not able:
            raise NodewiseError.refused(refusal or joint_refusal(refusals))
        return able, is_settled

    def _ask(
        self, question: Question, configurations: Configurations, names: Sequence[str]
    ) -> tuple[dict[str, Assessment], list[tuple[str, Refusal]], bool]:
        """Return the assessments of those that can answer, refusals of the others, and whether all were reached."""
        is_settled = True
        able: dict[str, Assessment] = {}
        refusals: list[tuple[str, Refusal]] = []
        late: list[str] = []
        for name in names:
            try:
                assessment = self._estimators.assess_soon(name, question, configurations)
            except NodewiseError as error:
                # The other estimators can answer without this one.
                busy = isinstance(error, UnavailableError) and not self._estimators.is_left_alone(name)
                is_settled = is_settled and not busy
                late += [name] if busy else []
                assessment = Assessment(refusal=Refusal(error.reason, error.message))
            if assessment.refusal is None:
                able[name] = assessment
            else:
                refusals.append((name, assessment.refusal))
        for name in late if not able else ():
            # No other estimator can answer, so wait for the busy ones.
            with suppress(NodewiseError):
                assessment = self._estimators.assess(name, question.profile, configurations, question.terms.options)
                able |= {name: assessment} if assessment.refusal is None else {}
        return able, refusals, is_settled

    def _own_trials(
        self,
        question: Question,
        names: tuple[str, ...],
        modes: tuple[SyncMode, ...],
        lessons: Lessons,
        *,
        may_try: bool,
    ) -> tuple[dict[str, tuple[Trial, ...]], bool] | None:
        """Return trials on the job's runs by estimator, and whether all were made; None if they may not be made."""
        trials_by_name: dict[str, tuple[Trial, ...]] = dict.fromkeys(names, ())
        is_settled = True
        profile = question.profile
        for mode in modes:
            held_back = left_out(profile, mode)
            if not held_back:
                continue
            for name in names:
                about = (profile.digest, mode, name, lessons.version(self._estimators.by_name(name)))
                provenance = self._estimators.provenance
                trials = self._trials.get((*about, provenance.of(name))) if profile.digest else None
                if trials is None:
                    if question.terms.freshness == Freshness.CACHED_ONLY:
                        raise NodewiseError(
                            Reason.MODEL_NOT_CACHED,
                            f"{name!r} was not tried on this profile yet; ask with FRESHNESS_WAIT",
                            {"estimator": name},
                        )
                    if not may_try:
                        return None
                    try:
                        trials = self._try(name, lessons, held_back, about if profile.digest else object())
                    except UnavailableError:
                        is_settled = False
                        continue
                    if profile.digest:
                        self._trials.put((*about, provenance.of(name)), trials, ENTRY_BYTES + footprint(trials))
                trials_by_name[name] += trials
        return trials_by_name, is_settled

    def _try(self, name: str, lessons: Lessons, held_back: Sequence[HeldBack], about: Hashable) -> tuple[Trial, ...]:
        """Return trials on the held-back runs; raise UnavailableError if they take longer than the caller waits."""

        def trials() -> tuple[Trial, ...]:
            predict = self._predict(name, lessons)
            outcomes = (each.predict_with(predict) for each in held_back)
            return tuple(trial for trial in outcomes if trial is not None)

        return soon(self._estimators.by_name(name), ("assess", "fit", "predict"), ("trials", about), trials)


def _statement(assessment: Assessment) -> tuple[object, ...]:
    """Return the content of an assessment, for a cache key."""
    claim = assessment.expected_log_error
    return assessment.evidence, assessment.strength, claim.tobytes() if isinstance(claim, np.ndarray) else claim


def _decide(candidates: Sequence[Candidate], errors: Floats) -> NDArray[np.bool_]:
    """Return the rows that the only estimator without trials is expected to answer alone, so that it needs no trial.

    ``errors`` are the expected errors after the trials of the rules and before the trials of the other estimators.
    """
    rules = np.array([candidate.quick for candidate in candidates])
    if rules.all() or not rules.any():
        return np.full(errors.shape[1], bool(rules.all()))
    others = errors[~rules]
    only = np.isfinite(others).sum(axis=0) == 1
    return np.asarray(only & (ABOUT_AS_GOOD * others.min(axis=0) < errors[rules].min(axis=0)))

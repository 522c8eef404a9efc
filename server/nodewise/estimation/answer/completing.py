"""Completing prepared questions: rows are predicted once, rated once, and judged once for each objective."""

from __future__ import annotations

from contextlib import suppress

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.objective import Objective
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.assembly import Rated, assembled, rated
from nodewise.estimation.answer.floors import Floors, floors_of, raised
from nodewise.estimation.answer.goodput import Candidates, candidates_of
from nodewise.estimation.answer.prediction import predicted
from nodewise.estimation.answer.prepared import Prepared, ReadyRows
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.fitted import misses_a_part
from nodewise.estimation.question import AUTO, Answer, Question
from nodewise.estimation.resolution import Resolution
from nodewise.estimation.weights import ENTRY_BYTES, answer_bytes, part_of_rows
from nodewise.ports.cache import CacheSpace, LruCache

__all__ = ["Completing"]


class Completing:
    """From a question's rows and model to its answer. Everything is kept by what it depends on.

    Parameters
    ----------
    estimators : Estimators
        Whose models are asked.
    resolution : Resolution
        Of the configurations of questions.
    space : CacheSpace
        For what is kept.
    """

    def __init__(self, estimators: Estimators, resolution: Resolution, space: CacheSpace) -> None:
        self._estimators = estimators
        self._resolution = resolution
        self._answers: LruCache[tuple[ReadyRows, Objective | None], Answer] = LruCache(space)
        self._candidates: LruCache[tuple[object, ...], Candidates] = LruCache(space)

    def forget(self) -> None:
        """Let go of what is kept."""
        for cache in (self._answers, self._candidates):
            cache.clear()

    def rows(self, question: Question) -> Configurations:
        """The rows of a question as resolved, with every batch that may be chosen."""
        configurations = self._resolution.of(question.profile, question.configurations)
        candidates = self._candidates_of(question, configurations)
        return configurations if candidates is None else candidates.configurations

    def complete(self, prepared: Prepared, *, keep: bool = True) -> Answer:
        """The answer to a prepared question; its rows are kept for as long as nothing that they depend on changes.

        ``keep``: whether the answer is, too; who keeps the reply that tells it does not need it.
        """
        rows = prepared.rows
        key = (rows, prepared.question.objective)
        known = None if rows.rated is None else self._answers.get(key)
        if known is None:
            rated_rows = self._rated(prepared)
            known = self._judged(prepared, rated_rows)
            if keep and rows.rated is not None:
                self._answers.put(key, known, ENTRY_BYTES + answer_bytes(len(rows.configurations)), rows.held)
        return known

    def completed(self, prepared: Prepared) -> Answer:
        """The same, of which nothing is kept."""
        return self._judged(prepared, self._predicted(prepared))

    def _rated(self, prepared: Prepared) -> Rated:
        """A model is pure: another objective needs the same rows."""
        rows = prepared.rows
        if rows.rated is not None:
            return rows.rated
        found = self._predicted(prepared)
        if not misses_a_part(found.notices):
            rows.rated = found
        return found

    def _predicted(self, prepared: Prepared) -> Rated:
        question, configurations, fitted = prepared.question, prepared.configurations, prepared.fitted
        predictions = predicted(self._estimators, fitted, configurations, question)
        floors = self._floors(question.profile, configurations)
        if not predictions.simulated and question.profile.workload.transformer is None:
            # An estimator that is asked for by name is shown as it is: only facts correct it.
            chosen = question.terms.estimator == AUTO
            predictions = raised(predictions, floors if chosen else floors.of_facts())
        return rated(question.terms, configurations, predictions, fitted, floors.step_s)

    def _floors(self, profile: Profile, rows: Configurations) -> Floors:
        """The least that a step of each row can take."""
        ran: Configurations | None = None
        with suppress(NodewiseError):  # runs of which something is open bound nothing
            ran = self._resolution.of(profile, profile.observations.configurations)
        return floors_of(profile, ran, rows, self._estimators.catalogue)

    def _judged(self, prepared: Prepared, rows: Rated) -> Answer:
        """The answer, of each row at the batch of best goodput."""
        question = prepared.question
        objective = question.objective
        if objective is not None and objective.batch_bounds is not None:
            assert objective.efficiency is not None  # the wire refuses bounds without
            asked = self._resolution.of(question.profile, question.configurations)
            candidates = self._candidates_of(question, asked)
            assert candidates is not None
            best = candidates.best(objective.efficiency, rows.predictions)
            configurations, predictions = candidates.configurations.take(best), rows.predictions.take(best)
            floor_s = self._floors(question.profile, configurations).step_s
            rows = rated(question.terms, configurations, predictions, prepared.fitted, floor_s)
        return assembled(question, rows, prepared.basis, self._resolution.reach(question.profile))

    def _candidates_of(self, question: Question, configurations: Configurations) -> Candidates | None:
        bounds = None if question.objective is None else question.objective.batch_bounds
        if bounds is None:
            return None
        key = (configurations, bounds)
        found = self._candidates.get(key)
        if found is None:
            found = candidates_of(configurations, bounds)
            self._candidates.put(
                key, found, ENTRY_BYTES, (part_of_rows(configurations), part_of_rows(found.configurations))
            )
        return found

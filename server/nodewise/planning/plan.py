"""Plan: search, answer the winners densely, say why."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.domain.columns import Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer
from nodewise.planning.checked_model import Values
from nodewise.planning.explain import explain_plan
from nodewise.planning.frontier import Frontier
from nodewise.planning.planner import Planner, planner_of
from nodewise.planning.reasons import rejections_of
from nodewise.planning.results import PlanQuestion, PlanResult, rejection
from nodewise.planning.search import How, Progress, search_space

__all__ = ["make_plan"]

AGREEMENT: Final = 1e-9
"""Relative difference allowed between what a model evaluates and what it predicts: they are the same equations."""


def make_plan(
    answers: Answers, question: PlanQuestion, progress: Callable[[Progress], None] | None = None
) -> PlanResult:
    """Search for the best configuration. Takes up to minutes: for a thread.

    Parameters
    ----------
    progress : callable or None
        Told of the best so far; what it raises ends the search.

    Raises
    ------
    NodewiseError
        What stands in the way of a search. That nothing is feasible is an answer, with its reasons.
    """
    planner = planner_of(answers, question)
    goal = planner.goal()
    started = time.perf_counter()
    space = planner.space()
    budget = question.terms.options.budget
    how = How(frontier=question.frontier_points > 0, prune=not question.exhaustive, budget=budget)
    found = search_space(space, goal, how, progress)
    search_s = time.perf_counter() - started
    answer = recommendation = None
    frontier_rows: tuple[int, ...] = ()
    if len(found.winners):
        winners = planner.predict(found.winners, question.objective)
        _same(planner, winners, found.values)
        recommendation = winners.recommendation
    chosen = 0 if recommendation is None else recommendation.row
    rows = found.winners.take(np.array([chosen])) if len(found.winners) else found.winners
    points = _thin(found.frontier, question.frontier_points)
    if found.frontier is not None and len(points):
        rows = Configurations.concatenated([rows, found.frontier.rows.take(points)])
        frontier_rows = tuple(range(len(rows) - len(points), len(rows)))
    if len(rows):
        answer = planner.predict(rows, question.objective)
    if recommendation is not None:
        recommendation = replace(recommendation, row=0)
    explanation = None
    if question.explain and recommendation is not None and found.complete:
        winner = np.array([chosen])
        explanation = explain_plan(planner, space, found.winners.take(winner), found.values.take(winner))
    return PlanResult(
        answer=answer,
        recommendation=recommendation,
        frontier_rows=frontier_rows,
        frontier_count=0 if found.frontier is None else len(found.frontier),
        space=found.space,
        evaluated=found.evaluated,
        pruned=found.pruned_count,
        feasible=found.feasible,
        search_s=search_s,
        complete=found.complete,
        estimator=planner.basis.estimator,
        estimator_version=planner.basis.estimator_version,
        rejections=tuple(map(rejection, rejections_of(planner, space, found))),
        explanation=explanation,
    )


def _same(planner: Planner, answer: Answer, values: Values) -> None:
    """Refuse a model whose two ways of saying the same differ."""
    step_s = answer.predictions.step_s
    if (np.abs(step_s - values.step_s) > AGREEMENT * values.step_s).any():
        problem = "what it evaluates is not what it predicts"
        raise NodewiseError(
            Reason.ESTIMATOR_INVALID_RESULT,
            f"estimator {planner.model.name!r} cannot be searched: {problem}",
            {"estimator": planner.model.name, "problem": problem},
        )


def _thin(frontier: Frontier | None, most: int) -> Ints:
    """Points to answer with: all, or evenly spaced ones; by devices and time, the fastest of each count first."""
    if frontier is None:
        return np.zeros(0, dtype=np.int64)
    rows = np.arange(len(frontier))
    if len(rows) <= most:
        return rows
    # The fastest on each number of devices comes first, whatever else is left out.
    fastest = np.flatnonzero(np.concatenate(([True], np.diff(frontier.points.devices) != 0)))[:most]
    others = np.setdiff1d(rows, fastest)
    left = most - len(fastest)
    return np.sort(np.concatenate((fastest, others[np.linspace(0, len(others) - 1, left).astype(np.int64)])))

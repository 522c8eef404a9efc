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
        Called with the best so far; an exception that it raises ends the search.

    Raises
    ------
    NodewiseError
        The reason why the space cannot be searched. If nothing is feasible, the result says why.
    """
    planner = planner_of(answers, question)
    goal = planner.goal()
    start_s = time.perf_counter()
    space = planner.space()
    budget = question.terms.options.budget
    how = How(frontier=question.frontier_points > 0, prune=not question.exhaustive, budget=budget)
    result = search_space(space, goal, how, progress)
    search_s = time.perf_counter() - start_s
    answer = recommendation = None
    frontier_rows: tuple[int, ...] = ()
    if len(result.winners):
        winners = planner.predict(result.winners, question.objective)
        _same(planner, winners, result.values)
        recommendation = winners.recommendation
    best_row = 0 if recommendation is None else recommendation.row
    rows = result.winners.take(np.array([best_row])) if len(result.winners) else result.winners
    points = _thin(result.frontier, question.frontier_points)
    if result.frontier is not None and len(points):
        rows = Configurations.concatenated([rows, result.frontier.rows.take(points)])
        frontier_rows = tuple(range(len(rows) - len(points), len(rows)))
    if len(rows):
        answer = planner.predict(rows, question.objective)
    if recommendation is not None:
        recommendation = replace(recommendation, row=0)
    explanation = None
    if question.explain and recommendation is not None and result.complete:
        winner = np.array([best_row])
        explanation = explain_plan(planner, space, result.winners.take(winner), result.values.take(winner))
    return PlanResult(
        answer=answer,
        recommendation=recommendation,
        frontier_rows=frontier_rows,
        frontier_count=0 if result.frontier is None else len(result.frontier),
        space=result.space,
        evaluated=result.evaluated,
        pruned=result.pruned_count,
        feasible=result.feasible,
        search_s=search_s,
        complete=result.complete,
        estimator=planner.basis.estimator,
        estimator_version=planner.basis.estimator_version,
        rejections=tuple(map(rejection, rejections_of(planner, space, result))),
        explanation=explanation,
    )


def _same(planner: Planner, answer: Answer, values: Values) -> None:
    """Refuse a model whose evaluated step times differ from its predictions."""
    step_s = answer.predictions.step_s
    if (np.abs(step_s - values.step_s) > AGREEMENT * values.step_s).any():
        problem = "the step times that it evaluates differ from those that it predicts"
        raise NodewiseError(
            Reason.ESTIMATOR_INVALID_RESULT,
            f"estimator {planner.model.name!r} cannot be used for plans: {problem}",
            {"estimator": planner.model.name, "problem": problem},
        )


def _thin(frontier: Frontier | None, most: int) -> Ints:
    """Rows of the frontier to return, by devices and time: all, or the fastest of each count and evenly spaced ones."""
    if frontier is None:
        return np.zeros(0, dtype=np.int64)
    rows = np.arange(len(frontier))
    if len(rows) <= most:
        return rows
    # The fastest on each number of devices is included first.
    fastest = np.flatnonzero(np.concatenate(([True], np.diff(frontier.points.devices) != 0)))[:most]
    others = np.setdiff1d(rows, fastest)
    left = most - len(fastest)
    return np.sort(np.concatenate((fastest, others[np.linspace(0, len(others) - 1, left).astype(np.int64)])))

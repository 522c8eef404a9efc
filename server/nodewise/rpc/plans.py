"""PlanService: searches, in a thread, with the best so far as progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Final

from nodewise.domain.errors import invalid_field
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO
from nodewise.planning.plan import planned
from nodewise.planning.results import PlanQuestion
from nodewise.planning.search import Progress
from nodewise.ports.limits import Limits
from nodewise.rpc.budgets import CallBudget
from nodewise.rpc.calls import Call
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_plans import read_plan, write_plan, write_progress
from nodewise.rpc.wire_predictions import ReadOptions, read_options
from nodewise_protos.v1 import plan_service_pb2 as pb

__all__ = ["Plans"]

PROGRESS_EVERY_S: Final = 0.1
"""Least time between two messages about progress."""
AT_ONCE: Final = 2
"""Searches that run at the same time; more wait, so that they leave the threads to simulations."""


class Plans:
    """Behaviours of PlanService.

    Parameters
    ----------
    engine : Answers
        Answers.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    executor : Executor
        Threads that searches run in.
    """

    def __init__(self, engine: Answers, sources: ProfileSources, limits: Limits, executor: Executor) -> None:
        self._engine = engine
        self._sources = sources
        self._limits = limits
        self._executor = executor
        self._free = asyncio.Semaphore(AT_ONCE)

    async def plan(self, request: pb.PlanRequest, call: Call) -> AsyncIterator[pb.PlanResponse]:
        """Progress, at least once, then the result. A search whose caller has gone ends after its chunk."""
        options = read_options(request.options)
        _require_search(options)
        if options.estimator != AUTO:
            self._engine.estimators.named(options.estimator)
        plan = read_plan(request, self._limits)
        profile = await self._sources.profile(request.profile)
        budget = CallBudget(call)
        budget.shorten(plan.budget_s)
        question = PlanQuestion(
            profile=profile,
            constraints=plan.constraints,
            objective=plan.objective,
            estimator=options.estimator,
            options=replace(options.options, budget=budget),
            coverage=options.coverage,
            freshness=options.freshness,
            exhaustive=request.exhaustive,
            frontier_points=plan.frontier_points,
            explain=not request.skip_explanation,
        )
        async with self._free:
            run = _Run()
            work = asyncio.get_running_loop().run_in_executor(
                self._executor, planned, self._engine, question, run.advanced
            )
            try:
                told: Progress | None = None
                while not work.done():
                    await asyncio.wait((work,), timeout=PROGRESS_EVERY_S)
                    if run.progress is not None and run.progress is not told and not work.done():
                        told = run.progress
                        yield pb.PlanResponse(progress=write_progress(told))
                result = work.result()
                if run.progress is not None and run.progress is not told:
                    yield pb.PlanResponse(progress=write_progress(run.progress))
                yield pb.PlanResponse(result=write_plan(result, options.columns))
            finally:
                budget.end()
                work.cancel()


def _require_search(options: ReadOptions) -> None:
    if options.options.fidelity == Fidelity.SIMULATE:
        raise invalid_field("options.fidelity", "must be FIDELITY_MODEL: a search evaluates a model")
    if options.allow_fallback:
        raise invalid_field("options.allow_fallback", "must be false: another estimator has another space")


class _Run:
    """What the thread tells the event loop."""

    def __init__(self) -> None:
        self.progress: Progress | None = None

    def advanced(self, progress: Progress) -> None:
        """How far the search is."""
        self.progress = progress

"""Simulate of ScheduleService: in a thread, with progress; columns in chunks; a caller that goes ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor
from typing import Final

from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Answer, Question
from nodewise.hosting.registry import Loaded
from nodewise.plugin import PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.budgets import CallBudget
from nodewise.rpc.calls import Call
from nodewise.rpc.policies import policy_named
from nodewise.rpc.simulation_requests import ReadSimulation, read_simulation
from nodewise.rpc.sources import ProfileSources, prefixed
from nodewise.rpc.wire_predictions import ReadOptions, read_options, too_long
from nodewise.rpc.wire_simulated_jobs import check_sizes
from nodewise.rpc.wire_simulations import write_progress, write_result, write_rows
from nodewise.scheduling.simulating import Repetition, simulated_repeatedly
from nodewise.scheduling.simulation.core import Progress
from nodewise_protos.v1 import schedule_service_pb2 as pb

__all__ = ["SIMULATIONS_AT_ONCE", "Simulations"]

PROGRESS_EVERY_S: Final = 0.1
"""Least time between two messages about progress."""
SIMULATIONS_AT_ONCE: Final = 2
"""Simulations that run at the same time; more wait. They share one interpreter: more at once would end no sooner, and a
short one should not wait for a long one."""


class Simulations:
    """The behaviour of Simulate.

    Parameters
    ----------
    engine : Answers
        Predicts curves, and knows the policies.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    executor : Executor
        Threads that simulations run in.
    default_policy : str
        Used when a request names none.
    """

    def __init__(
        self, engine: Answers, sources: ProfileSources, limits: Limits, executor: Executor, default_policy: str
    ) -> None:
        self._engine = engine
        self._sources = sources
        self._limits = limits
        self._executor = executor
        self._default_policy = default_policy
        self._free = asyncio.Semaphore(SIMULATIONS_AT_ONCE)

    async def simulate(self, request: pb.SimulateRequest, call: Call) -> AsyncIterator[pb.SimulateResponse]:
        """Progress, then columns, then the result. A simulation whose caller has gone ends within its next events."""
        policy = policy_named(self._engine.registry, request.policy or self._default_policy)
        options = read_options(request.options)
        if options.estimator != AUTO:
            self._engine.estimators.named(options.estimator)
        check_sizes(request.jobs, request.curves, self._limits)
        profiles: dict[int, Profile | NodewiseError] = {}
        for number, curve in enumerate(request.curves):
            if curve.HasField("profile"):
                try:
                    profiles[number] = await self._sources.profile(curve.profile)
                except NodewiseError as error:
                    raise prefixed(error, f"curves[{number}].") from None
        budget = CallBudget(call)
        async with self._free:
            run = _Run(self._engine, self._limits, policy, request, options, profiles, budget)
            work = asyncio.get_running_loop().run_in_executor(self._executor, run.result)
            try:
                told: pb.SimulateResponse | None = None
                while not work.done():
                    await asyncio.wait((work,), timeout=PROGRESS_EVERY_S)
                    if run.progress is not None and run.progress is not told and not work.done():
                        told = run.progress
                        yield told
                for message in work.result():
                    yield message
            finally:
                budget.end()
                work.cancel()


class _Run:
    """One simulation: ``result`` runs in a thread, the rest is for the event loop."""

    def __init__(
        self,
        engine: Answers,
        limits: Limits,
        policy: Loaded[PolicyRecord],
        request: pb.SimulateRequest,
        options: ReadOptions,
        profiles: dict[int, Profile | NodewiseError],
        budget: CallBudget,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._policy = policy
        self._request = request
        self._options = options
        self._profiles = profiles
        self._budget = budget
        self.progress: pb.SimulateResponse | None = None
        """How far it is; None = the request is being read."""

    def result(self) -> Iterator[pb.SimulateResponse]:
        """Read, predict, simulate; the messages that tell of it are made as they are sent."""
        request = self._request
        read = read_simulation(
            request, self._policy.record, self._options, self._profiles, self._answer, self._budget, self._limits
        )
        question = read.question
        jobs = len(question.jobs)

        def advanced(done: int, found: Progress) -> None:
            self.progress = write_progress(done, question.repetitions, jobs, found)

        return self._messages(read, simulated_repeatedly(question, self._policy, self._budget, advanced))

    def _messages(self, read: ReadSimulation, found: tuple[Repetition, ...]) -> Iterator[pb.SimulateResponse]:
        request, question, last = self._request, read.question, found[-1].result
        end = Progress(
            now_s=last.last_completion_s,
            arrived=last.jobs,
            finished=last.finished,
            active=last.jobs - last.finished,
            decisions=last.decisions,
        )
        done = sum(each.result.complete for each in found)
        yield write_progress(done, question.repetitions, len(question.jobs), end)
        yield from write_rows(found, jobs=request.include_jobs)
        yield pb.SimulateResponse(result=write_result(found, question.repetitions, self._policy.record, read.bases))

    def _answer(self, question: Question) -> Answer:
        refused = too_long(len(question.configurations), question.options, self._limits)
        if refused is not None:
            raise refused
        return self._engine.answer(question)

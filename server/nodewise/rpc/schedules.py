"""ScheduleService: thin behaviours over the scheduling room."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from typing import Final

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import page
from nodewise.rpc.policies import policy_named
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_plugins import write_problem
from nodewise.rpc.wire_predictions import read_options, too_long
from nodewise.rpc.wire_schedules import read_job, read_pools, read_quotas, read_time, write_decision
from nodewise.scheduling.decide import decide
from nodewise.scheduling.decision import Decision
from nodewise.scheduling.request import JobQuestion, ScheduleLimits, ScheduleQuestion
from nodewise_protos.v1 import schedule_service_pb2 as pb

__all__ = ["Schedules"]

REPLY_SHARE: Final = 0.9
"""Share of a call's time that deciding may take; the rest is for the reply and its way back."""


class Schedules:
    """Behaviours of ScheduleService.

    Parameters
    ----------
    default_policy : str
        Used when a request names none.
    """

    def __init__(
        self, answers: Answers, sources: ProfileSources, limits: Limits, executor: Executor, default_policy: str
    ) -> None:
        self._answers = answers
        self._sources = sources
        self._limits = limits
        self._executor = executor
        self._default_policy = default_policy

    async def schedule(self, request: pb.ScheduleRequest, call: Call) -> pb.ScheduleResponse:
        """Who gets what. Deciding happens in a thread: it may take as long as the call has."""
        started = time.perf_counter()
        loaded = policy_named(self._answers.registry, request.policy or self._default_policy)
        options = read_options(request.options)
        self._answers.estimators.require(options.terms.estimator)
        if not request.HasField("now"):
            raise invalid_field("now", "must be given: submit times and deadlines are counted from it")
        if len(request.jobs) > self._limits.jobs_per_call:
            raise NodewiseError(
                Reason.LIMIT_EXCEEDED,
                f"{len(request.jobs)} jobs, a call takes jobs_per_call = {self._limits.jobs_per_call}",
                {
                    "limit": "jobs_per_call",
                    "value": str(self._limits.jobs_per_call),
                    "found": str(len(request.jobs)),
                },
            )
        jobs: list[JobQuestion] = []
        for number, message in enumerate(request.jobs):
            profile: Profile | NodewiseError
            try:
                profile = await self._sources.profile(message.profile)
            except NodewiseError as error:
                profile = error
            jobs.append(read_job(message, profile, f"jobs[{number}]", self._limits))
        budget = Budget(call.remaining_s() * REPLY_SHARE)
        question = ScheduleQuestion(
            now_s=read_time(request.now),
            pools=read_pools(request.cluster.pools),
            jobs=tuple(jobs),
            parameters=dict(request.policy_parameters),
            memory=request.policy_state,
            quotas=read_quotas(request.quotas),
            terms=options.terms.within(budget),
        )
        caps = ScheduleLimits(jobs=self._limits.jobs_per_call)
        try:
            decision: Decision = await run_in(self._executor, decide, question, loaded, self._answer, budget, caps)
        finally:
            budget.end()
        return write_decision(decision, time.perf_counter() - started)

    def _answer(self, question: Question) -> Answer:
        refused = too_long(len(question.configurations), question.terms.options, self._limits)
        if refused is not None:
            raise refused
        return self._answers.answer(question)

    async def list_policies(self, request: pb.ListPoliciesRequest, call: Call) -> pb.ListPoliciesResponse:
        """What can be asked."""
        registry = self._answers.registry
        names, next_token = page(sorted(registry.policies), request.page_size, request.page_token)
        response = pb.ListPoliciesResponse(next_page_token=next_token)
        for name in names:
            loaded = registry.policies[name]
            policy = response.policies.add(
                name=name,
                version=loaded.record.version,
                description=loaded.record.description,
                distribution=loaded.distribution,
                mode=loaded.mode,
            )
            for parameter in loaded.record.parameters:
                policy.parameters.add(
                    name=parameter.name,
                    description=parameter.description,
                    default_value=parameter.default,
                    minimum=parameter.minimum,
                    maximum=parameter.maximum,
                )
        response.problems.extend(
            write_problem(problem) for problem in registry.problems if problem.kind in ("policy", "plugin")
        )
        return response

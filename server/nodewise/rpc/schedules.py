"""ScheduleService: thin behaviours over the scheduling room."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, cast

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import Loaded
from nodewise.mapper.mapping import read_time
from nodewise.mapper.reading import Reader
from nodewise.plugin import PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.caps import above_cap, answered_within, schedule_limits
from nodewise.rpc.errors import prefixed
from nodewise.rpc.options import read_model_options
from nodewise.rpc.paging import page
from nodewise.rpc.policies import policy_named
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_plugins import write_plugin
from nodewise.rpc.wire_schedules import read_job, read_pools, read_quotas, read_shared_pairs, write_decision
from nodewise.rpc.yielding import Stint
from nodewise.scheduling.curves import Predict
from nodewise.scheduling.decide import decide
from nodewise.scheduling.request import JobQuestion, ScheduleLimits, ScheduleQuestion
from nodewise_protos.v1 import schedule_service_pb2 as pb

__all__ = ["Schedules"]

WAIT_SHARE: Final = 0.5
"""Share of a call's time that revisions of profiles are waited for; the rest is for those that need no waiting."""
REPLY_SHARE: Final = 0.9
"""Share of a call's time that deciding may take; the rest is for the reply and its way back."""


@dataclass(slots=True, eq=False)
class Schedules:
    """Behaviours of ScheduleService.

    Attributes
    ----------
    default_policy : str
        Used when a request names none.
    homes : mapping of distribution to Executor
        Threads for decisions of policies that live in one plugin host, as for questions.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    executor: Executor
    default_policy: str
    homes: Mapping[str, Executor] = field(default_factory=dict)

    async def schedule(self, request: pb.ScheduleRequest, call: Call) -> pb.ScheduleResponse:
        """Who gets what. Deciding happens in a thread: it may take as long as the call has."""
        started = time.perf_counter()
        loaded = policy_named(self.answers.registry, request.policy or self.default_policy)
        options = read_model_options(request.options).required_of(self.answers)
        if not request.HasField("now"):
            raise invalid_field("now", "must be given: submit times and deadlines are counted from it")
        if len(request.jobs) > self.limits.jobs_per_call:
            raise above_cap("jobs", "jobs_per_call", self.limits.jobs_per_call, len(request.jobs))
        reader = Reader()
        pools = read_pools(request.cluster.pools, reader)
        named = {pool.name: pool for pool in pools}
        waiting = options.waiting(
            replace(call, deadline_monotonic_s=time.monotonic() + call.remaining_s() * WAIT_SHARE)
        )
        jobs, stint = list[JobQuestion](), Stint(call)
        for number, message in enumerate(request.jobs):
            path = f"jobs[{number}]"
            profile: Profile | NodewiseError
            try:
                profile = await self.sources.profile(message.profile, waiting)
            except NodewiseError as error:
                profile = prefixed(error, f"{path}.")
            jobs.append(read_job(message, profile, path, named, reader))
            await stint.over(f"{len(jobs)} of {len(request.jobs)} jobs were read in time")
        reader.finish()
        budget = Budget(call.remaining_s() * REPLY_SHARE)
        question = ScheduleQuestion(
            now_s=read_time(request.now),
            pools=pools,
            jobs=tuple(jobs),
            parameters=dict(request.policy_parameters),
            memory=request.policy_state,
            quotas=read_quotas(request.quotas),
            shared_pairs=read_shared_pairs(request.shared_pairs),
            terms=options.terms.within(budget),
        )
        caps = schedule_limits(self.limits, self.limits.jobs_per_call)
        try:
            predict = partial(answered_within, self.limits, self.answers)
            executor = self.homes.get(loaded.distribution, self.executor)
            call.step_aside()
            decided = await run_in(executor, _decided, question, loaded, predict, budget, caps, started)
        finally:
            budget.end()
        return cast("pb.ScheduleResponse", decided)

    async def list_policies(self, request: pb.ListPoliciesRequest, call: Call) -> pb.ListPoliciesResponse:
        """What can be asked."""
        policies = self.answers.registry.policies
        names, next_token = page(sorted(policies), request)
        return pb.ListPoliciesResponse(
            policies=[write_plugin(policies[name], "policy") for name in names],
            next_page_token=next_token,
        )


def _decided(
    question: ScheduleQuestion,
    policy: Loaded[PolicyRecord],
    predict: Predict,
    budget: Budget,
    caps: ScheduleLimits,
    started_s: float,
) -> pb.ScheduleResponse:
    """Decide, and write what was decided: of thousands of jobs that takes the event loop's time too long."""
    decision = decide(question, policy, predict, budget, caps)
    budget.look_up()
    return write_decision(decision, question, time.perf_counter() - started_s)

"""ScheduleService: reads cluster and jobs, decides, and writes allocations."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import NodePool
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.mapper.configurations import read_settings
from nodewise.mapper.mapping import from_message, read_time, to_message
from nodewise.mapper.reading import Reader, TrustingReader, quote
from nodewise.plugin import PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, Stint, run_in
from nodewise.rpc.caps import answered_within, schedule_limits
from nodewise.rpc.errors import with_prefix, write_problem, write_refusal
from nodewise.rpc.listing import write_plugin
from nodewise.rpc.options import read_model_options
from nodewise.rpc.paging import page
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_predictions import write_basis
from nodewise.scheduling.curves import Predict
from nodewise.scheduling.decide import decide
from nodewise.scheduling.decision import Decision, JobDecision
from nodewise.scheduling.request import (
    CurrentDevices,
    JobQuestion,
    PairQuestion,
    QueueQuota,
    ScheduleLimits,
    ScheduleQuestion,
)
from nodewise_protos.v1 import problem_pb2, schedule_pb2
from nodewise_protos.v1 import schedule_service_pb2 as pb
from nodewise_protos.v1beta1 import simulation_pb2

__all__ = ["Schedules", "policy_named", "read_job", "read_pools", "read_quotas", "read_unscaled", "write_decision"]

_UNKNOWN_NODE: Final = -1
"""Index of a node whose statement is invalid, which the reader has reported."""


def read_pools(messages: Sequence[schedule_pb2.NodePool], reader: Reader) -> tuple[NodePool, ...]:
    """Pools as stated; ``scheduling.checks`` checks how fields go together."""
    return tuple(from_message(pool, NodePool, f"cluster.pools[{n}].", reader) for n, pool in enumerate(messages))


def read_quotas(messages: Sequence[schedule_pb2.QueueQuota]) -> tuple[QueueQuota, ...]:
    """Quotas as stated."""
    return tuple(from_message(quota, QueueQuota) for quota in messages)


def read_shared_pairs(messages: Sequence[schedule_pb2.SharedPair]) -> tuple[PairQuestion, ...]:
    """Pairs as stated; ``scheduling.pair_checks`` checks them."""
    return tuple(from_message(pair, PairQuestion, "", TrustingReader()) for pair in messages)


def read_unscaled(
    message: schedule_pb2.ScheduleJob | simulation_pb2.SimulationProfileCurve, path: str, reader: Reader
) -> Configurations | None:
    """How a job runs, without nodes, workers and devices, which the policy chooses; None = as in its evidence."""
    if not message.HasField("settings"):
        return None
    settings = message.settings
    if settings.device_name:
        reader.wrong(f"{path}.settings.device_name", "must be empty: the policy chooses the device")
    if settings.offer_name:
        reader.wrong(f"{path}.settings.offer_name", "must be empty: pools of the cluster state their prices")
    return read_settings(settings, f"{path}.settings", reader)


def read_job(
    message: schedule_pb2.ScheduleJob,
    profile: Profile | NodewiseError,
    path: str,
    pools: Mapping[str, NodePool],
    reader: Reader,
) -> JobQuestion:
    """A job as stated; ``scheduling.checks`` checks how fields go together.

    Parameters
    ----------
    pools : mapping of str to NodePool
        By name.
    """
    current, efficiency = None, {}
    if message.HasField("current_allocation"):
        current = _current_devices(message.current_allocation, f"{path}.current_allocation", pools, reader)
    if message.HasField("efficiency"):
        efficiency = reader.read_scalars(message.efficiency, f"{path}.efficiency.")
    # Without from_message, for speed: a call has thousands of jobs, and most state little.
    return JobQuestion(
        job_id=message.job_id,
        profile=profile,
        remaining_samples=message.remaining_samples,
        submit_time_s=read_time(message.submit_time),
        allowed_devices=tuple(message.allowed_devices),
        allowed_pools=tuple(message.allowed_pools),
        server_devices=message.server_devices,
        attained_service_device_s=message.attained_service_device_seconds,
        current=current,
        restart_cost_s=message.restart_cost_seconds,
        queue=message.queue,
        deadline_s=read_time(message.deadline) if message.HasField("deadline") else None,
        settings=read_unscaled(message, path, reader),
        minimum_run_s=message.minimum_run_seconds,
        restarts=message.restarts_count,
        preemptible=message.preemptible if message.HasField("preemptible") else True,
        **reader.read_scalars(message, f"{path}."),
        **efficiency,
    )


def _current_devices(
    message: schedule_pb2.CurrentAllocation, path: str, pools: Mapping[str, NodePool], reader: Reader
) -> CurrentDevices:
    pool = pools.get(message.pool)
    placement = tuple(
        (_node(node, f"{path}.placement[{number}]", pool, reader), node.devices_count)
        for number, node in enumerate(message.placement)
    )
    return CurrentDevices(
        pool=message.pool, placement=placement, age_s=message.age_seconds, shares_with=message.shares_with_job_id
    )


def _node(message: schedule_pb2.NodeDevices, path: str, pool: NodePool | None, reader: Reader) -> int:
    """A node's index; the message may state its name instead."""
    if pool is None:
        return _UNKNOWN_NODE
    if not message.node_name:
        if not message.HasField("node_index"):
            reader.wrong(f"{path}.node_index", "must be given unless node_name is given")
            return _UNKNOWN_NODE
        return message.node_index
    index = pool.node_indexes.get(message.node_name)
    if index is None:
        reader.wrong(f"{path}.node_name", f"must name a node of pool {pool.name!r}, found {quote(message.node_name)}")
        return _UNKNOWN_NODE
    if message.HasField("node_index") and message.node_index != index:
        reader.contradicts(
            f"{path}.node_index", f"must be {index}, that of {quote(message.node_name)}, found {message.node_index}"
        )
    return index


def write_decision(decision: Decision, question: ScheduleQuestion, seconds: float) -> pb.ScheduleResponse:
    """The allocations, in the request's order."""
    response = to_message(
        decision,
        pb.ScheduleResponse,
        allocations=(),
        decision_seconds=seconds,
        policy_state=decision.memory,
        bases=(),
        pool_demands=decision.demands,
    )
    places: dict[int, int] = {}
    names = {pool.name: pool.node_names for pool in question.pools}
    for job, question_of_job in zip(decision.jobs, question.jobs, strict=True):
        place = None
        if job.basis is not None:
            place = places.setdefault(id(job.basis), len(places))
            if place == len(response.bases):
                response.bases.append(write_basis(job.basis))
        pool_of_job = names.get(job.pool)
        response.allocations.add(
            job_id=job.job_id,
            action=int(job.action),  # the same numbers, tested
            pool=job.pool,
            devices_count=job.devices,
            nodes_count=job.nodes,
            placement=[
                schedule_pb2.NodeDevices(
                    node_index=node, devices_count=count, node_name=pool_of_job[node] if pool_of_job else ""
                )
                for node, count in job.placement
            ],
            samples_per_second=job.samples_per_s,
            finish_seconds=job.finish_s,
            marginal_samples_per_second=job.marginal_samples_per_s,
            reason=str(job.reason),
            why=job.why,
            basis_index=place,
            problem=_problem(job, question_of_job),
            shares_with_job_id=job.shares_with,
            solo_speed_ratio=job.solo_speed,
            useful_ratio=job.useful,
            goodput_samples_per_second=job.goodput_samples_per_s,
        )
    return response


def _problem(job: JobDecision, question: JobQuestion) -> problem_pb2.Problem | None:
    if isinstance(question.profile, NodewiseError):
        return write_problem(question.profile)
    return None if job.refusal is None else write_refusal(job.refusal)


def policy_named(registry: Registry, name: str) -> LoadedPlugin[PolicyRecord]:
    """A loaded policy.

    Raises
    ------
    NodewiseError
        POLICY_NOT_FOUND.
    """
    policy = registry.policies.get(name)
    if policy is None:
        available = ", ".join(registry.policies)
        raise NodewiseError(
            Reason.POLICY_NOT_FOUND,
            f"policy {name!r} is not loaded; loaded are: {available}",
            {"policy": name, "available": available},
        )
    return policy


WAIT_SHARE: Final = 0.5
"""Share of a call's time that it may wait for revisions of profiles; the rest is for the decision."""
REPLY_SHARE: Final = 0.9
"""Share of a call's time that the decision may take; the rest is for the reply."""


@dataclass(slots=True, eq=False)
class Schedules:
    """Behaviours of ScheduleService.

    Attributes
    ----------
    default_policy : str
        Used when a request names none.
    homes : mapping of distribution to Executor
        Threads for decisions of policies in one plugin host, as for questions.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    executor: Executor
    default_policy: str
    homes: Mapping[str, Executor] = field(default_factory=dict)

    async def schedule(self, request: pb.ScheduleRequest, call: Call) -> bytes:
        """Decide which job gets which devices, in a thread, since that may take the whole time of the call.

        Returns the serialised reply.
        """
        start_s = time.perf_counter()
        policy = policy_named(self.answers.registry, request.policy or self.default_policy)
        options = read_model_options(request.options).required_of(self.answers)
        if not request.HasField("now"):
            raise invalid_field("now", "must be given: submit times and deadlines are relative to it")
        reader = Reader()
        pools = read_pools(request.cluster.pools, reader)
        pools_by_name = {pool.name: pool for pool in pools}
        waiting = options.waiting(
            replace(call, deadline_monotonic_s=time.monotonic() + call.remaining_s() * WAIT_SHARE)
        )
        jobs, stint = list[JobQuestion](), Stint(call)
        generation: Hashable = None
        for number, message in enumerate(request.jobs):
            path = f"jobs[{number}]"
            profile: Profile | NodewiseError | None
            try:
                generation = self.sources.generation() if generation is None else generation
                profile = self.sources.at_hand(message.profile, generation)
                if profile is None:
                    profile = await self.sources.profile(message.profile, waiting)
            except NodewiseError as error:
                profile = with_prefix(error, f"{path}.")
            jobs.append(read_job(message, profile, path, pools_by_name, reader))
            if await stint.over(f"{len(jobs)} of {len(request.jobs)} jobs were read in time"):
                generation = None
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
            executor = self.homes.get(policy.distribution, self.executor)
            call.step_aside()
            reply: bytes = await run_in(executor, _decide, question, policy, predict, budget, caps, start_s)
        finally:
            budget.end()
        return reply

    async def list_policies(self, request: pb.ListPoliciesRequest, call: Call) -> pb.ListPoliciesResponse:
        """All policies."""
        policies = self.answers.registry.policies
        names, next_token = page(sorted(policies), request)
        return pb.ListPoliciesResponse(
            policies=[write_plugin(policies[name], "policy") for name in names], next_page_token=next_token
        )


def _decide(
    question: ScheduleQuestion,
    policy: LoadedPlugin[PolicyRecord],
    predict: Predict,
    budget: Budget,
    caps: ScheduleLimits,
    started_s: float,
) -> bytes:
    """Decide, and serialise the reply, which for thousands of jobs would take too long in the event loop."""
    decision = decide(question, policy, predict, budget, caps)
    budget.look_up()
    return write_decision(decision, question, time.perf_counter() - started_s).SerializeToString()

"""PlanService: searches, with the best so far as progress."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from nodewise.domain.configurations import Recomputation, SyncMode
from nodewise.domain.objective import HighestThroughput, Objective
from nodewise.domain.planning import PlanConstraints, PlanPool
from nodewise.domain.profile import Profile
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader
from nodewise.planning.plan import make_plan
from nodewise.planning.results import PlanQuestion, PlanResult
from nodewise.planning.search import Progress
from nodewise.ports.compute import LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call
from nodewise.rpc.candidates import read_counts
from nodewise.rpc.long_call import JobService, LongCall, Workshop, stream_result
from nodewise.rpc.options import ALL_COLUMNS, ReadOptions, read_model_options
from nodewise.rpc.wire_objectives import read_objective, write_recommendation
from nodewise.rpc.wire_predictions import write_basis, write_predictions
from nodewise_protos.v1beta1 import plan_service_pb2 as pb

__all__ = ["Plans", "read_plan", "write_plan", "write_progress"]


class Plans(JobService):
    """Behaviours of PlanService."""

    __slots__ = ()

    @stream_result
    async def plan(self, request: pb.PlanRequest, call: Call) -> LongCall:
        """Sends progress, at least once, then the result: the best so far if the time was over first."""
        options = read_model_options(request.options).required_of(self.answers)
        question, budget_s = read_plan(request, options, self.limits)
        profile = await self.sources.profile(request.profile, options.waiting(call))
        return LongCall(_plan, replace(question, profile=profile), budget_s)


def _plan(workshop: Workshop, question: PlanQuestion, run: LongRun) -> Iterator[bytes]:
    def report(progress: Progress) -> None:
        run.tell(lambda: pb.PlanResponse(progress=write_progress(progress)).SerializeToString())

    timed_question = replace(question, terms=question.terms.within(run.budget))
    yield pb.PlanResponse(result=write_plan(make_plan(workshop.answers, timed_question, report))).SerializeToString()


MOST_POOLS: Final = 64
MOST_VALUES: Final = 1 << 12
"""Most values of one dimension, and most numbers of nodes of all pools; more is a mistake, such as a range of bytes."""
MOST_SAMPLES: Final = 2**31 - 1
MOST_DEGREE: Final = 1 << 20
SEARCHED_MODES: Final = (SyncMode.ASYNC, SyncMode.SYNC, SyncMode.ALLREDUCE)
"""Modes that a search may choose. A hybrid mixes two modes in any proportion, so there is no finite choice."""
_SETS_OF_NUMBERS: Final = {
    "micro_batch_samples": "micro_batches",
    "tensor_parallel_degrees": "tensor_parallel",
    "pipeline_parallel_degrees": "pipeline_parallel",
    "data_parallel_degrees": "data_parallel",
    "context_parallel_degrees": "context_parallel",
    "expert_parallel_degrees": "expert_parallel",
    "interleave_degrees": "interleave",
    "parameter_servers": "parameter_servers",
}
"""Sets of numbers and their names in the domain; an empty set allows every valid number."""


def read_plan(message: pb.PlanRequest, options: ReadOptions, limits: Limits) -> tuple[PlanQuestion, float]:
    """The question, without its profile, and the most seconds that the search may take.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; CONTRADICTORY_FACTS for pools or offers that do not go together.
    """
    reader = Reader()
    constraints = _constraints(message.constraints, "constraints", reader, limits)
    scalars = reader.read_scalars(message, "")
    budget_s = scalars.pop("budget_s", math.inf)
    if options.terms.allow_fallback:
        reader.wrong("options.allow_fallback", "must be false: a plan has the space of one estimator")
    reader.finish()
    question = PlanQuestion(
        profile=Profile(),
        constraints=constraints,
        objective=_objective(message),
        terms=options.terms,
        exhaustive=message.exhaustive,
        explain=not message.skip_explanation,
        **scalars,
    )
    return question, budget_s


def _objective(message: pb.PlanRequest) -> Objective:
    """The objective over all devices of the pools, however few of them were measured."""
    result = read_objective(message.objective, message.work, message.offers, usual=HighestThroughput())
    return replace(result, most_extrapolation=0.0)


def _constraints(message: pb.PlanConstraints, path: str, reader: Reader, limits: Limits) -> PlanConstraints:
    def read_list(name: str, least: int, most: int) -> tuple[int, ...] | None:
        values = map(int, getattr(message, name))
        values_of_list = {
            reader.whole(value, f"{path}.{name}[{n}]", least=least, most=most) for n, value in enumerate(values)
        }
        return tuple(sorted(values_of_list)) or None

    counts: dict[str, Any] = {
        limits_of_field: _counts(
            getattr(message, name), f"{path}.{name}", MOST_SAMPLES if "samples" in name else MOST_DEGREE, reader
        )
        for name, limits_of_field in _SETS_OF_NUMBERS.items()
    }
    batches = _counts(message.global_batch_samples, f"{path}.global_batch_samples", MOST_SAMPLES, reader)
    if batches is None and counts["micro_batches"] is None:
        text = "must hold at least one value unless micro_batch_samples, the batch of each replica, does"
        reader.wrong(f"{path}.global_batch_samples", text)
    for number, name in enumerate(message.precisions):
        reader.text(name, f"{path}.precisions[{number}]", 16)
    return from_message(
        message,
        PlanConstraints,
        f"{path}.",
        reader,
        pools=_pools(message.pools, f"{path}.pools", reader, limits),
        global_batches=batches or (),
        recomputations=read_list("recomputations", 1, int(max(Recomputation))),
        zero_stages=read_list("zero_stages", 0, 3),
        sequence_parallel=read_list("sequence_parallel", 0, 1),
        precisions=tuple(dict.fromkeys(message.precisions)) or ("",),
        sync_modes=_sync_modes(message.sync_modes, f"{path}.sync_modes", reader),
        upper_memory=not message.HasField("memory_headroom_bytes"),
        **counts,
    )


def _sync_modes(values: Iterable[int], path: str, reader: Reader) -> tuple[int, ...] | None:
    modes = tuple(values)
    for number, value in enumerate(modes):
        if value not in SEARCHED_MODES:
            names = ", ".join(f"SYNC_MODE_{mode.name}" for mode in SEARCHED_MODES)
            reader.wrong(f"{path}[{number}]", f"must be one of {names}")
    return tuple(sorted(set(modes))) or None


def _pools(messages: Iterable[pb.PlanPool], path: str, reader: Reader, limits: Limits) -> tuple[PlanPool, ...]:
    pools: dict[tuple[str, int], PlanPool] = {}
    for number, message in enumerate(messages):
        place = f"{path}[{number}]"
        if number >= MOST_POOLS:
            reader.wrong(path, f"must hold at most {MOST_POOLS} pools")
            break
        if not message.device_name:
            reader.wrong(f"{place}.device_name", "must name an accelerator")
        nodes = _counts(message.nodes, f"{place}.nodes", limits.max_nodes, reader)
        if nodes is None:
            reader.wrong(f"{place}.nodes", "must hold at least one number of nodes")
        pool = from_message(message, PlanPool, f"{place}.", reader, nodes=nodes or (1,))
        per_node = pool.workers_per_node
        if nodes is not None and max(nodes) * per_node > limits.max_workers:
            text = f"must give at most {limits.max_workers} workers, found {max(nodes) * per_node}"
            reader.wrong(f"{place}.nodes", text)
        if pools.setdefault((pool.device, per_node), pool) is not pool:
            reader.contradicts(place, f"must be unique, found {pool.device} with {per_node} devices a node twice")
    if not pools:
        reader.wrong(path, "must hold at least one pool")
    counts = sum(len(pool.nodes) for pool in pools.values())
    if counts > MOST_VALUES:
        reader.wrong(path, f"must hold at most {MOST_VALUES} numbers of nodes together, found {counts}")
    return tuple(pools.values())


def _counts(message: pb.CountSet, path: str, most: int, reader: Reader) -> tuple[int, ...] | None:
    """The values in order, each once; None = not stated. Invalid values, which the reader has reported, count as 1."""
    counts: set[int] = set()
    for number, value in enumerate(message.values):
        counts.add(reader.whole(value, f"{path}.values[{number}]", least=1, most=most))
    for number, each in enumerate(message.ranges):
        values = read_counts(each, f"{path}.ranges[{number}]", most, reader)
        counts.update(values[: MOST_VALUES + 1])
    if len(counts) > MOST_VALUES:
        reader.wrong(path, f"must hold at most {MOST_VALUES} values, found {len(counts)}")
    if not message.values and not message.ranges:
        return None
    return tuple(sorted(counts)) or (1,)


def write_progress(progress: Progress) -> pb.PlanProgress:
    """The progress of a search."""
    has_best = len(progress.best) > 0
    return to_message(
        progress,
        pb.PlanProgress,
        best=progress.best if has_best else None,
        best_step_seconds=float(progress.best_step_s[0]) if has_best else None,
    )


def write_plan(result: PlanResult) -> pb.PlanResult:
    """The result, with every column."""
    answer = result.answer
    message = to_message(
        result,
        pb.PlanResult,
        configurations=None if answer is None else answer.configurations,
        predictions=None,
        basis=None if answer is None else write_basis(answer.basis),
        recommendation=write_recommendation(result.recommendation),
    )
    if answer is not None:
        write_predictions(message.predictions, [answer], ALL_COLUMNS)
    return message

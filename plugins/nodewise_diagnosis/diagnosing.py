"""Traces and a question in, a diagnosis out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nodewise.plugin import (
    DiagnoserContext,
    Diagnosis,
    DiagnosisQuestion,
    NodewiseError,
    Profile,
    Reason,
    ReplayedCollective,
    Trace,
)
from nodewise_diagnosis.accounting import account_steps
from nodewise_diagnosis.bottlenecks import UNKNOWN_PERSISTENCE, rank_candidates
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.lanes import lanes
from nodewise_diagnosis.likeness import likeness_of
from nodewise_diagnosis.recurring import exchanges_of
from nodewise_diagnosis.roles import roles_of
from nodewise_diagnosis.shares import rank_shares
from nodewise_diagnosis.stopwatch import NS, Stopwatch, persistence_ns, wanted_steps
from nodewise_diagnosis.stragglers import late_ranks, stragglers
from nodewise_diagnosis.strategies import search_strategies
from nodewise_diagnosis.verdict import NOTHING, bound_by, claims, verdict
from nodewise_replay.alignment.clocks import Clocks, align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import NO_NODE, Graph
from nodewise_replay.replaying.arrivals import replayed_collectives
from nodewise_replay.replaying.measures import odd_steps
from nodewise_replay.replaying.replayer import edge_counts

__all__ = ["diagnose_traces"]


def diagnose_traces(
    traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, context: DiagnoserContext
) -> Diagnosis:
    """Diagnose steps of a job. Raises as ``Diagnoser.diagnose``."""
    traces_by_rank = sorted(traces, key=lambda trace: trace.rank)
    if not traces_by_rank:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "traces: none; record at least one step of one rank")
    context.advanced("graph", 0, 1)
    clocks = align_clocks(traces_by_rank)
    graph = build_graph(traces_by_rank, clocks)
    context.advanced("graph", 1, 1)
    steps = wanted_steps(graph, question.steps)
    if not len(steps):
        raise NodewiseError(Reason.EVIDENCE_MISSING, "traces: no step has an end; record at least one whole step")
    by_rank = {trace.rank: trace for trace in traces_by_rank}
    has_steps = not graph.timed or any(len(trace.steps) for trace in traces_by_rank)
    watch = Stopwatch(graph, steps)
    roles = roles_of(graph, traces_by_rank, clocks)
    case = Case(
        watch=watch,
        roles=roles,
        likeness=likeness_of(watch, roles),
        exchanges=exchanges_of(watch, roles, by_rank),
        traces=by_rank,
        clocks=clocks,
        base_ns=watch.step_ns(),
        profile=profile,
        question=question,
        context=context,
    )
    collectives = replayed_collectives(
        graph, by_rank, graph.end_ns - graph.duration_ns, graph.end_ns, steps.tolist(), clocks.uncertainty_ns
    )
    by_node = _by_node(graph, steps, collectives)
    accounting = account_steps(case, by_node)
    shares = rank_shares(case, accounting)
    last = stragglers(case.exchanges, by_node)
    late = late_ranks(case, by_node, last)
    ranking, noise, complete = rank_candidates(case, accounting)
    step_claims = claims(case, shares)
    unknown = _unknown(case)
    bound = NOTHING if unknown else bound_by(step_claims, noise)
    bottlenecks = tuple(one.bottleneck for one in ranking[: question.bottlenecks])
    strategies, searched_all = search_strategies(case, accounting, ranking, noise)
    return Diagnosis(
        bottlenecks=bottlenecks,
        strategies=strategies,
        stragglers=last,
        bound_by=bound,
        verdict=verdict(
            bound,
            step_claims,
            shares,
            late,
            bottlenecks,
            noise,
            limits=_limits(case),
            unit="step" if has_steps else "window",
            unknown=unknown,
            stands_out=bool(unknown) or any(one.candidate.stands_out and one.bottleneck.matters for one in ranking),
        ),
        step_s=case.base_ns * NS,
        persistence_s=persistence_ns(watch.lengths_ns()) * NS,
        exposed_communication_s=float(np.mean([one.exposed_communication_s for one in shares])),
        ranks=shares,
        collectives=collectives,
        edges=edge_counts(graph),
        warnings=_warnings(graph, clocks, len(steps), noise),
        complete=complete and searched_all,
        timeline=lanes(case, accounting) if question.timeline else None,
    )


def _by_node(
    graph: Graph, steps: np.ndarray, collectives: Sequence[ReplayedCollective]
) -> dict[int, ReplayedCollective]:
    """Collectives by their transfer node: both are in the order of the transfers' begins."""
    nodes = np.unique(graph.collectives.transfer)
    nodes = nodes[np.isin(graph.step[nodes], steps)]
    nodes = nodes[np.argsort((graph.end_ns - graph.duration_ns)[nodes], kind="stable")]
    return dict(zip(nodes.tolist(), collectives, strict=True))


def _unknown(case: Case) -> str:
    """Why the bottleneck cannot be determined; empty = it can."""
    if not case.base_ns:
        return "the traces state no durations"
    if all(trace.report.counts.get("exchanges_alone") for trace in case.traces.values()):
        return "only exchanges were recorded, not the work of devices and hosts between them"
    alone = case.roles.launched_alone
    return f"{alone} calls launch kernels, but the trace holds no kernels" if alone else ""


def _limits(case: Case) -> list[str]:
    """What the traces cannot tell, or tell with doubt, each with why."""
    graph, traces = case.graph, case.traces.values()
    limits = [
        f"the trace of rank {trace.rank} is truncated" for trace in traces if trace.report.counts.get("truncated")
    ]
    if not case.whole:
        limits.append(f"only {len(graph.ranks)} of {graph.world_size} ranks were recorded")
    if graph.timed and not any(len(trace.steps) for trace in traces):
        limits.append(
            "no steps are marked, so the whole recording counts as one window; call profiler.step() to mark steps"
        )
    if graph.world_size > 1 and not case.exchanges:
        limits.append(
            f"no exchange between the {graph.world_size} ranks was recognised, so exchanges count as computation"
        )
    if any(trace.report.counts.get("hosts_unrecorded") for trace in traces):
        limits.append("no host activity was recorded, so it is unknown what an idle device waits for")
    other = sum(trace.report.counts.get("work_of_other_categories", 0) for trace in traces)
    if other:
        limits.append(f"{other} events have unknown categories and count as device work")
    total = sum(trace.report.counts.get("device_events", 0) for trace in traces)
    unlinked = sum(trace.report.counts.get("device_events_unlinked", 0) for trace in traces)
    if unlinked > _FEW_UNLINKED * total:
        limits.append(f"for {unlinked} of {total} device events no launch was recorded: gains follow from replay alone")
    return limits


_FEW_UNLINKED: Final = 0.1
"""Work that was launched before the recording has no launch in it: a part of one step of ten."""


def _warnings(graph: Graph, clocks: Clocks, steps: int, noise_s: float) -> tuple[str, ...]:
    warnings = [*clocks.warnings, *graph.warnings]
    if not graph.timed:
        warnings.append("the traces hold durations without times: the replayed times are diagnosed")
    if steps == 1:
        warnings.append(
            f"only one step was recorded, so the variation between steps is unknown; {UNKNOWN_PERSISTENCE:.0%} of the "
            f"step ({noise_s * 1e3:.3f} ms) is assumed"
        )
    if len(graph.ranks) < graph.world_size:
        warnings.append(
            f"only {len(graph.ranks)} of {graph.world_size} ranks were recorded: their waiting is estimated from the "
            "shortest transfer of each exchange"
        )
    odd = odd_steps(graph, np.flatnonzero((graph.steps.last_node != NO_NODE).all(axis=1)))
    if len(odd) and graph.timed:
        numbers = ", ".join(map(str, graph.steps.number[odd].tolist()))
        warnings.append(
            f"steps {numbers} do less than half or more than twice the work of the others, and are analysed apart"
        )
    begins = graph.steps.begin_ns[0]
    spread = float(begins.max() - begins.min()) * NS
    if len(graph.ranks) > 1 and steps == 1 and spread > noise_s:
        warnings.append(f"the ranks begin the step {spread * 1e3:.3f} ms apart; the cause was not recorded")
    return tuple(warnings)

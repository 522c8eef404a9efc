"""A diagnoser of busy time: a complete Nodewise plugin.

It predicts a step as the mean of the steps it learns from, and says which work the time of a step goes to. It does not
execute anything: what a change would do it refuses to say.
"""

from collections.abc import Sequence

import numpy as np

from nodewise.plugin import (
    Bottleneck,
    DiagnoserContext,
    DiagnoserRecord,
    Diagnosis,
    DiagnosisQuestion,
    Ints,
    NodewiseError,
    Profile,
    RankShares,
    Reason,
    Replay,
    ReplayedStep,
    ReplayQuestion,
    Strategy,
    Trace,
    as_floats,
    hookimpl,
)

NS = 1e-9


class BusyTime:
    """Pure: the same traces, the same answer."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, context: DiagnoserContext) -> Replay:
        """Each step as the mean of the others: the least that a replay must be better than."""
        if question.changes:
            raise NodewiseError(Reason.NOT_IMPLEMENTED, "busy time is measured, not executed: it cannot be changed")
        length = step_seconds(traces)
        every = range(1, length.shape[1] + 1)
        steps = []
        for done, step in enumerate(question.test_steps or every):
            context.advanced("steps", done, length.shape[1])
            others = [other for other in question.fit_steps or every if other != step or question.in_sample] or [step]
            ranks = length[:, [other - 1 for other in others]].mean(axis=1)
            steps.append(
                ReplayedStep(
                    step=step,
                    measured_host_s=float(length[:, step - 1].max()),
                    predicted_host_s=float(ranks.max()),
                    measured_device_s=0.0,
                    predicted_device_s=0.0,
                    rank_measured_host_s=tuple(length[:, step - 1].tolist()),
                    rank_predicted_host_s=tuple(ranks.tolist()),
                )
            )
        errors = [abs(step.predicted_host_s / step.measured_host_s - 1.0) for step in steps]
        return Replay(
            steps=tuple(steps),
            host_error=float(np.mean(errors)),
            device_error=None,
            persistence_error=None,
            kernel_start_p50_error_s=None,
            kernel_start_p95_error_s=None,
            in_sample=question.in_sample,
            events=sum(trace.recorded_events for trace in traces),
            nodes=0,
            ranks=tuple(trace.rank for trace in traces),
            world_size=traces[0].world_size,
            edges={},
            clock_offset_s=as_floats([0.0] * len(traces)),
            clock_uncertainty_s=as_floats([-1.0 if len(traces) > 1 else 0.0] * len(traces)),
            collectives=(),
            build_s=0.0,
            replay_s=0.0,
        )

    def diagnose(
        self,
        traces: Sequence[Trace],
        profile: Profile,  # noqa: ARG002  # the protocol's
        question: DiagnosisQuestion,
        context: DiagnoserContext,
    ) -> Diagnosis:
        """The work that a step goes to, longest first."""
        length = step_seconds(traces)
        shares, found = [], []
        for done, (trace, own) in enumerate(zip(traces, length, strict=True)):
            context.advanced("ranks", done, len(traces))
            exchange = np.isin(np.arange(len(trace)), trace.collectives.event)
            compute, busy = union_s(trace, ~exchange), union_s(trace, np.ones(len(trace), dtype=bool))
            steps = len(own)
            shares.append(
                RankShares(
                    rank=trace.rank,
                    step_s=float(own.mean()),
                    compute_s=compute / steps,
                    communication_s=union_s(trace, exchange) / steps,
                    exposed_communication_s=(busy - compute) / steps,
                    waiting_s=0.0,
                    idle_s=max(float(own.mean()) - busy / steps, 0.0),
                    host_bound_s=0.0,
                )
            )
            spent = np.bincount(trace.name, weights=trace.duration_ns * NS, minlength=len(trace.names)) / steps
            for name, seconds in zip(trace.names, spent.tolist(), strict=True):
                gain = min(seconds, float(own.mean()))
                found.append(
                    Bottleneck(
                        kind="work",
                        what=name,
                        rank=trace.rank,
                        seconds=seconds,
                        gain_if_removed_s=gain,
                        why="as long as it was busy",
                    )
                )
        found.sort(key=lambda each: (-each.gain_if_removed_s, each.rank, each.what))
        step_s, slowest = float(length.mean(axis=1).max()), max(shares, key=lambda each: each.compute_s)
        bound_by = "host" if slowest.compute_s >= step_s / 2 else "network"
        quicker = step_s - slowest.exposed_communication_s
        strategy = Strategy(
            name="hide all communication",
            predicted_step_s=quicker,
            speedup=step_s / quicker,
            rests_on="busy time",
            effort="unknown",
        )
        return Diagnosis(
            bottlenecks=tuple(found[: question.bottlenecks]),
            strategies=(strategy,)[: question.strategies] if quicker > 0.0 else (),
            stragglers=(),
            bound_by=bound_by,
            verdict=f"rank {slowest.rank} computes for {slowest.compute_s / step_s:.0%} of its step",
            step_s=step_s,
            persistence_s=float(np.abs(length - length.mean(axis=1, keepdims=True)).mean()),
            exposed_communication_s=float(np.mean([each.exposed_communication_s for each in shares])),
            ranks=tuple(shares),
        )


def step_seconds(traces: Sequence[Trace]) -> np.ndarray:
    """(ranks, steps) seconds from a step's begin to its end; steps that every rank has."""
    steps = min(len(trace.steps) for trace in traces)
    if steps == 0:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "the traces mark no steps", {"missing_fields": "traces.steps"})
    return np.array([(trace.steps.end_ns - trace.steps.begin_ns)[:steps] * NS for trace in traces])


def union_s(trace: Trace, chosen: np.ndarray) -> float:
    """Seconds within steps in which some of the chosen events run."""
    total = 0
    for begin, end in zip(trace.steps.begin_ns.tolist(), trace.steps.end_ns.tolist(), strict=True):
        starts: Ints = np.clip(trace.begin_ns[chosen], begin, end)
        ends = np.maximum.accumulate(np.clip(trace.end_ns[chosen], begin, end)) if chosen.any() else starts
        reached = np.concatenate(([begin], ends[:-1]))
        total += int(np.maximum(ends - np.maximum(starts, reached), 0).sum())
    return total * NS


@hookimpl
def nodewise_diagnosers() -> list[DiagnoserRecord]:
    """Register; hooks never compute."""
    record = DiagnoserRecord(
        name="busy", version="1.0.0", description="Where steps are busy, without executing them", diagnoser=BusyTime()
    )
    return [record]

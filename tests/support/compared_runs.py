"""Diagnoses as the command line receives them, without a socket between, and comparisons of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recorded_traces import NobodyWaits

from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.mapper.mapping import to_message
from nodewise.rpc.diagnoses import write_timeline
from nodewise_cli.comparison import Comparison, Run, compare_runs
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, RankShares, ReadTrace, Strategy
from nodewise_client._timelines import gather_timelines
from nodewise_diagnosis.diagnosing import diagnose_traces
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb
from nodewise_values.wire import from_own_message


def answer_of(traces: Sequence[Trace], **question: Any) -> DiagnosisAnswer:
    """The diagnosis of traces, as a client has it."""
    asked = DiagnosisQuestion(**({"strategies": 0, "bottlenecks": 0, "timeline": True} | question))
    return answered(diagnose_traces(traces, Profile(), asked, NobodyWaits()), traces)


def answered(found: Diagnosis, traces: Sequence[Trace]) -> DiagnosisAnswer:
    pieces = []
    if found.timeline is not None:
        pieces = [pb.DiagnoseResponse(timeline=each) for each in write_timeline(found.timeline, recorded=False)]
    return DiagnosisAnswer(
        verdict=found.verdict,
        bound_by=found.bound_by,
        step_seconds=found.step_s,
        persistence_seconds=found.persistence_s,
        complete=found.complete,
        rank_shares=tuple(from_own_message(to_message(one, pb.RankShares), RankShares) for one in found.ranks),
        strategies=tuple(from_own_message(to_message(one, pb.Strategy), Strategy) for one in found.strategies),
        basis=DiagnosisBasis(
            diagnoser="replay",
            traces=tuple(ReadTrace(rank=trace.rank, steps_count=len(trace.steps)) for trace in traces),
            world_size=traces[0].world_size,
        ),
        **gather_timelines(pieces),
    )


def comparison_of(before: Sequence[Trace], after: Sequence[Trace]) -> Comparison:
    """Two jobs compared."""
    return compare_runs(Run(name="before", answer=answer_of(before)), Run(name="after", answer=answer_of(after)))

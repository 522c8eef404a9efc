"""Replays and diagnoses off the wire, with the path of whatever is wrong; what was found onto it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_traces import TinyDiagnoser, exchange, trace_of

from nodewise.diagnosis.results import DiagnosisResult, Evidence, ReplayResult
from nodewise.domain.columns import as_floats
from nodewise.domain.diagnosis import Bottleneck, DiagnosisQuestion
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Change, ChangeKind, ReplayQuestion
from nodewise.profiles.reading import LoadedTrace
from nodewise.rpc.diagnoses import write_collectives
from nodewise.rpc.wire_diagnoses import (
    read_diagnosis,
    read_replay,
    read_trace_question,
    write_diagnosis,
    write_replay,
)
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

RANKS = (0, 1)


def evidence(world_size: int = 2, name: str = "warned") -> Evidence:
    loaded = tuple(
        LoadedTrace(
            trace=trace_of(rank, world_size, 3, 4, name), content_sha256="ab" * 32, reader="tiny", reader_version="1.0"
        )
        for rank in RANKS
    )
    return Evidence(loaded=loaded, load_s=0.5)


def replayed(question: ReplayQuestion | None = None, profile: Profile | None = None, **wrong: Any) -> pb.ReplayResult:
    context: Any = SimpleNamespace(catalogue=None, advanced=lambda *_: None)
    found = evidence()
    answer = TinyDiagnoser(**wrong).replay(found.traces, question or ReplayQuestion(), context)
    return write_replay(
        ReplayResult(
            profile=profile or Profile(),
            replay=answer,
            evidence=found,
            diagnoser="tiny",
            diagnoser_version="1.0",
        )
    )


def diagnosed(world_size: int = 2, **wrong: Any) -> pb.DiagnosisResult:
    context: Any = SimpleNamespace(catalogue=None, advanced=lambda *_: None)
    found = evidence(world_size)
    answer = TinyDiagnoser(**wrong).diagnose(found.traces, Profile(), DiagnosisQuestion(), context)
    return write_diagnosis(
        DiagnosisResult(profile=Profile(), diagnosis=answer, evidence=found, diagnoser="tiny", diagnoser_version="1.0")
    )


def test_what_is_absent_is_as_the_contract_says() -> None:
    asked, budget_s = read_trace_question(pb.DiagnoseRequest())
    assert (asked.traces, asked.diagnoser, asked.mapping, budget_s) == ((), "", (), math.inf)
    assert read_diagnosis(pb.DiagnoseRequest()) == DiagnosisQuestion()
    assert read_replay(pb.ReplayRequest()) == ReplayQuestion()


def test_a_stated_0_is_none() -> None:
    found = read_diagnosis(pb.DiagnoseRequest(max_bottlenecks=0, max_strategies=0, largest_batch_ratio=4.0))
    assert (found.bottlenecks, found.strategies, found.largest_batch_factor) == (0, 0, 4.0)
    assert read_trace_question(pb.ReplayRequest(budget_seconds=2.5))[1] == 2.5


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"max_bottlenecks": -1}, "max_bottlenecks"),
        ({"max_strategies": 1001}, "max_strategies"),
        ({"largest_batch_ratio": 0.0}, "largest_batch_ratio"),
        ({"largest_batch_ratio": math.nan}, "largest_batch_ratio"),
        ({"steps": [0]}, "steps[0]"),
        ({"budget_seconds": 0.0}, "budget_seconds"),
        ({"budget_seconds": math.inf}, "budget_seconds"),
        ({"diagnoser": "x" * 64}, "diagnoser"),
    ],
)
def test_what_is_wrong_is_named(stated: dict[str, Any], field: str) -> None:
    message = pb.DiagnoseRequest(**stated)
    with pytest.raises(NodewiseError) as caught:
        _ = read_diagnosis(message), read_trace_question(message)
    assert caught.value.reason == Reason.INVALID_FIELD
    assert [violation.field for violation in caught.value.violations] == [field]


def test_every_kind_of_change_is_read_and_written() -> None:
    kinds = [f"REPLAY_CHANGE_KIND_{kind.name}" for kind in ChangeKind]
    message = pb.ReplayRequest(
        changes=[pb.ReplayChange(kind=kind, value=2.0, ranks=[1, 0], event_kinds=["gap"]) for kind in kinds]
    )
    found = read_replay(message).changes
    assert [change.kind for change in found] == list(ChangeKind)
    assert found[0] == Change(kind=ChangeKind.SCALE, value=2.0, ranks=(0, 1), event_kinds=("gap",))
    with pytest.raises(NodewiseError) as caught:
        read_replay(
            pb.ReplayRequest(
                changes=[pb.ReplayChange(value=1.0), pb.ReplayChange(kind="REPLAY_CHANGE_KIND_DELAY", value=-1.0)]
            )
        )
    assert [each.field for each in caught.value.violations] == ["changes[0].kind", "changes[1].value"]


def test_a_replay_is_written_with_absence_for_what_is_not_known() -> None:
    found = replayed()
    step = found.steps[0]
    assert (step.step_ordinal, step.measured_host_seconds, step.predicted_host_seconds) == (1, 0.001, 0.00101)
    assert not step.HasField("lower_host_seconds")
    assert list(step.rank_measured_host_seconds) == [0.001, 0.001]
    assert (found.host_error_ratio, found.persistence_error_ratio, found.nodes_count) == (0.01, 0.02, 48)
    (edges,) = found.edges
    assert (edges.kind, edges.found_count, edges.inferred_count, edges.missing_count) == ("launch", 3, 2, 1)
    assert [(each.reason, each.message) for each in found.warnings] == [
        ("DIAGNOSER_WARNING", "a warning of the diagnoser")
    ]
    assert (list(found.clock_uncertainty_seconds), list(found.clock_tied)) == ([1e-6, 1e-6], [])
    assert dict(found.counts) == {"matched": 3}
    changed = replayed(ReplayQuestion(changes=(Change(kind=ChangeKind.SCALE, value=0.5),)))
    assert not changed.HasField("host_error_ratio")
    assert not changed.steps[0].HasField("measured_host_seconds")
    assert (changed.steps[0].lower_host_seconds, changed.steps[0].upper_host_seconds) == (0.0009, 0.0011)


def test_an_error_of_0_is_stated() -> None:
    assert replayed(host_error=0.0).HasField("host_error_ratio")


def test_clocks_that_nothing_ties_are_masked() -> None:
    found = replayed(clock_uncertainty_s=as_floats([0.0, -1.0]))
    assert (list(found.clock_uncertainty_seconds), list(found.clock_tied)) == ([0.0, 0.0], [True, False])


def test_a_basis_says_whose_revision_and_which_traces() -> None:
    stated = replayed(profile=Profile(profile_id="job", revision=3)).basis
    assert (stated.profile_id, stated.profile_revision, stated.world_size) == ("job", 3, 2)
    assert (list(stated.ranks), stated.events_count, stated.load_seconds) == ([0, 1], 24, 0.5)
    assert stated.peak_memory_bytes > 1 << 20
    trace = stated.traces[1]
    assert (trace.rank, trace.world_size, trace.reader, trace.events_count, trace.steps_count) == (1, 2, "tiny", 12, 3)
    assert [(each.reason, each.message) for each in trace.warnings] == [("READER_WARNING", "a warning of the reader")]
    unknown = diagnosed(world_size=0).basis
    assert not unknown.HasField("profile_revision")
    assert not unknown.HasField("world_size")
    assert not unknown.traces[0].HasField("world_size")


def test_a_diagnosis_is_written_with_absence_for_what_is_not_known() -> None:
    one = Bottleneck(kind="rank", what="slow", rank=0, seconds=0.5, gain_if_removed_s=-0.1, matters=False, why="so")
    everyone = Bottleneck(kind="kernel", what="gemm", rank=-1, seconds=0.5, gain_if_removed_s=0.4)
    found = diagnosed(bottlenecks=(one, everyone))
    first, second = found.bottlenecks
    assert first.HasField("rank")
    assert (first.rank, first.gain_if_removed_seconds, first.matters, first.why) == (0, -0.1, False, "so")
    assert not second.HasField("rank")
    assert (found.bound_by, found.verdict, found.step_seconds) == (
        pb.STEP_BOUND_SKEW,
        "Ranks wait for each other.",
        0.001,
    )
    (strategy,) = found.strategies
    assert (strategy.speedup_ratio, list(strategy.parts)) == (1.11, ["a", "b"])
    assert not strategy.HasField("lower_step_seconds")
    shares = found.rank_shares
    assert [each.HasField("memory_high_water_bytes") for each in shares] == [False, True]
    assert (shares[1].memory_high_water_bytes, shares[1].exposed_communication_seconds) == (float(1 << 30), 0.0002)
    (straggler,) = found.stragglers
    assert (list(straggler.ranks), straggler.margin_seconds) == ([0, 1], 9e-6)
    assert found.complete


@pytest.mark.parametrize("bound", ["host", "device", "network", "skew", "loading"])
def test_every_bound_has_its_number(bound: str) -> None:
    assert diagnosed(bound_by=bound).bound_by == pb.StepBound.Value(f"STEP_BOUND_{bound.upper()}")


def test_bytes_that_are_not_known_are_0() -> None:
    (piece,) = write_collectives([exchange(step, RANKS) for step in (1, 2, 3)])
    assert list(piece.bytes) == [4096.0, 0.0, 4096.0]
    assert list(piece.rank_offsets) == [0, 2, 4, 6]

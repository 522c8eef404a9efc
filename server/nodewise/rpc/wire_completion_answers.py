"""Answers about completion on the wire."""

from __future__ import annotations

from nodewise.completion.questions import CompletionResult, HybridResult, OfferResult
from nodewise.domain.lifetimes import LifetimeBasis
from nodewise.domain.transitions import HybridOutcome
from nodewise.mapper.mapping import timestamp, to_message
from nodewise.rpc.errors import write_notice, write_problem
from nodewise.rpc.wire_predictions import write_basis
from nodewise_protos.v1beta1 import completion_pb2
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["write_completion"]


def write_completion(result: CompletionResult) -> pb.EstimateCompletionResponse:
    """The reply."""
    choice = result.choice
    return pb.EstimateCompletionResponse(
        rows=[_row(row) for row in result.rows],
        frontier_rows=result.frontier_rows,
        choice=None if choice is None else _choice(choice.row, choice.rule, choice.why),
        no_choice_why=result.no_choice_why,
        estimator=result.estimator,
        estimator_version=result.estimator_version,
        on_demand=None if result.on_demand is None else to_message(result.on_demand, completion_pb2.OnDemandAnswer),
        hybrid=None if result.hybrid is None else _hybrid(result.hybrid),
    )


def _choice(row: int, rule: str, why: str) -> completion_pb2.CompletionChoice:
    return completion_pb2.CompletionChoice(row=row, rule=f"OBJECTIVE_RULE_{rule.upper()}", why=why)


def _row(row: OfferResult) -> completion_pb2.CompletionRow:
    found, offer = row.completion, row.offer
    if found is None or offer is None:
        problem = None if row.error is None else write_problem(row.error)
        return completion_pb2.CompletionRow(name=row.name, status="ROW_STATUS_REFUSED", problem=problem)
    return to_message(
        found,
        completion_pb2.CompletionRow,
        name=row.name,
        status="ROW_STATUS_ANSWERED",
        problem=None,
        samples_per_second=row.samples_per_s,
        lifetimes=[_lifetime(each) for each in found.lifetimes],
        warnings=[write_notice(each) for each in row.warnings],
        basis=None if row.basis is None else write_basis(row.basis),
        nodes=offer.nodes,
        workers=offer.workers,
        device_names=dict.fromkeys(group.device for group in offer.groups if group.device and group.nodes),
        speed_log_spread=row.log_spread or None,
    )


def _lifetime(found: LifetimeBasis) -> completion_pb2.LifetimeBasis:
    return to_message(found, completion_pb2.LifetimeBasis, measured_time=timestamp(found.measured_time))


def _hybrid(result: HybridResult) -> completion_pb2.HybridAnswer:
    if result.error is not None:
        return completion_pb2.HybridAnswer(problem=write_problem(result.error))
    assert isinstance(result.outcome, HybridOutcome)
    return to_message(
        result.outcome,
        completion_pb2.HybridAnswer,
        problem=None,
        bases=[write_basis(each) for each in result.bases],
        warnings=[write_notice(each) for each in result.warnings],
    )

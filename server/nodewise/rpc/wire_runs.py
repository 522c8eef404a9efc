"""EstimateRun on the wire: a run as asked, and its card."""

from __future__ import annotations

from nodewise.completion.run_estimate import RunEstimate, RunFailures, RunPower, RunQuestion
from nodewise.domain.completion_offers import CompletionCheckpoints
from nodewise.domain.errors import invalid_field
from nodewise.domain.objective import LeastTime
from nodewise.domain.profile import Profile
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.rpc.candidates import read_candidates
from nodewise.rpc.options import ALL_COLUMNS, ReadOptions
from nodewise.rpc.wire_completions import CHECKS, read_checkpoints, write_row
from nodewise.rpc.wire_objectives import read_objective
from nodewise.rpc.wire_predictions import write_predictions
from nodewise_protos.v1beta1 import completion_service_pb2 as pb

__all__ = ["read_run", "write_run"]


def read_run(message: pb.EstimateRunRequest, profile: Profile, options: ReadOptions, limits: Limits) -> RunQuestion:
    """The run of a request.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS.
    """
    rows = read_candidates(message.configurations, message.ranges, limits)
    if len(rows) != 1:
        raise invalid_field("configurations", f"must hold one row, found {len(rows)}: a card is of one configuration")
    reader = Reader(CHECKS, {CompletionCheckpoints: read_checkpoints})
    scalars = reader.read_scalars(message, "")
    failures = from_message(message.failures, RunFailures, "failures.", reader)
    power = from_message(message.power, RunPower, "power.", reader)
    objective = read_objective(None, message.work if message.HasField("work") else None, usual=LeastTime())
    reader.finish()
    return RunQuestion(
        question=options.question(profile, rows),
        objective=objective,
        failures=failures,
        power=power,
        price_per_h=scalars.get("price_per_h"),
        deadline_s=scalars.get("deadline_seconds"),
        runs=scalars.get("runs_count", 10_000),
    )


def write_run(result: RunEstimate, run: RunQuestion) -> pb.EstimateRunResponse:
    """The reply."""
    rows, completion = result.answer.configurations, write_row(result.completion)
    if result.completion.completion is not None:  # what was lost as one is many nodes
        completion.nodes, completion.workers = int(rows.nodes[0]), int(rows.workers[0])
        completion.device_names[:] = [rows.devices[rows.device_index[0]]]
        del completion.lifetimes[:]
        if run.price_per_h is None:
            completion.ClearField("cost")
    message = to_message(result, pb.EstimateRunResponse, predictions=None, completion=completion)
    write_predictions(message.predictions, [result.answer], ALL_COLUMNS)
    return message

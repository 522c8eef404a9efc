"""Questions about the next measurement, and their answers, on the wire."""

from __future__ import annotations

from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.predictions import Fidelity
from nodewise.estimation.suggestion.search import MOST_ROWS, MOST_SUGGESTIONS, Suggestions, Wish
from nodewise.ports.limits import Limits
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_candidates
from nodewise.rpc.wire_predictions import ReadOptions, write_basis
from nodewise_protos.v1 import prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["read_runnable", "read_wish", "require_model", "write_suggestions"]

RUN_STEPS: Final = 100
"""Steps of a run that does not say."""
LONGEST_START_S: Final = 1e7
"""Longest start of a run that is taken for a time in seconds and not for a slip of unit."""


def read_wish(request: pb.SuggestMeasurementsRequest) -> Wish:
    """How many measurements are wanted, and how one is made.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    count = reader.whole(request.suggestions_count, "suggestions_count", most=MOST_SUGGESTIONS)
    start_up_s = reader.number(request.start_up_seconds, "start_up_seconds", most=LONGEST_START_S)
    run_steps = reader.whole(request.run_steps_count, "run_steps_count", most=2**31 - 1)
    reader.finish()
    return Wish(count=count or 1, start_up_s=start_up_s, run_steps=run_steps or RUN_STEPS)


def require_model(options: ReadOptions) -> None:
    """Refuse a simulation.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    if options.terms.options.fidelity == Fidelity.SIMULATE:
        description = (
            "must be FIDELITY_MODEL: the spread of a simulation is its own, and says nothing of what a measurement "
            "would find"
        )
        raise invalid_field("options.fidelity", description)


def read_runnable(request: pb.SuggestMeasurementsRequest, limits: Limits) -> Configurations:
    """What may be run, as Predict reads what it is asked about.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    found = read_candidates(request.configurations, request.ranges, limits)
    if len(found) > MOST_ROWS:
        raise NodewiseError(
            Reason.LIMIT_EXCEEDED,
            f"configurations: {len(found)} rows, a call takes rows_per_suggestion = {MOST_ROWS}: every row is weighed "
            "against every other; ask for fewer counts, such as powers of two",
            {"limit": "rows_per_suggestion", "value": str(MOST_ROWS), "found": str(len(found))},
        )
    return found


def write_suggestions(found: Suggestions) -> pb.SuggestMeasurementsResponse:
    """The measurements, best first, and what they rest on."""
    return pb.SuggestMeasurementsResponse(
        suggestions=[
            pb.MeasurementSuggestion(
                row=each.row,
                cost_node_seconds=each.cost_node_s,
                expected_regret_fall=each.expected_regret_fall,
                expected_width_fall=each.expected_width_fall,
                why=each.why,
                nodes=each.nodes,
                workers=each.workers,
            )
            for each in found.suggestions
        ],
        basis=write_basis(found.basis),
        expected_regret=found.expected_regret,
        warnings=[
            prediction_pb2.Notice(reason=str(notice.reason), message=notice.message, rows=notice.rows)
            for notice in found.notices
        ],
    )

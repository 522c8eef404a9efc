"""Questions about the next measurement, and their answers, on the wire."""

from __future__ import annotations

from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.suggestion.search import MOST_ROWS, Suggestions, Wish
from nodewise.ports.limits import Limits
from nodewise.rpc.errors import write_notice
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_candidates
from nodewise.rpc.wire_predictions import write_basis
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.facts import SUGGEST_MEASUREMENTS_REQUEST
from nodewise_values.wire import to_message

__all__ = ["read_runnable", "read_wish", "write_suggestions"]

RUN_STEPS: Final = 100
"""Steps of a run that does not say."""


def read_wish(request: pb.SuggestMeasurementsRequest) -> Wish:
    """How many measurements are wanted, and how one is made.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    stated = reader.stated(request, SUGGEST_MEASUREMENTS_REQUEST, "")
    reader.finish()
    return Wish(
        count=stated.get("max_suggestions", 1),
        start_up_s=stated["start_up_seconds"],
        run_steps=stated.get("run_steps_count", RUN_STEPS),
    )


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
        suggestions=map(to_message, found.suggestions),
        basis=write_basis(found.basis),
        expected_regret=found.expected_regret,
        warnings=[write_notice(notice) for notice in found.notices],
    )

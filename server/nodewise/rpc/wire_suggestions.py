"""Questions about the next measurement, and their answers, on the wire."""

from __future__ import annotations

from nodewise.domain.configurations import Configurations
from nodewise.estimation.suggestion.search import MOST_ROWS, Suggestions, Wish
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits, too_much
from nodewise.rpc.candidates import read_candidates
from nodewise.rpc.errors import write_notice
from nodewise.rpc.wire_predictions import write_basis
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["read_runnable", "read_wish", "write_suggestions"]


def read_wish(request: pb.SuggestMeasurementsRequest) -> Wish:
    """How many measurements are wanted, and how one is made.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    wish = from_message(request, Wish, "", reader)
    reader.finish()
    return wish


def read_runnable(request: pb.SuggestMeasurementsRequest, limits: Limits) -> Configurations:
    """What may be run, as Predict reads what it is asked about.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    found = read_candidates(request.configurations, request.ranges, limits)
    if len(found) > MOST_ROWS:
        text = (
            f"configurations: {len(found)} rows, a call takes rows_per_suggestion = {MOST_ROWS}: every row is weighed "
            "against every other; ask for fewer counts, such as powers of two"
        )
        raise too_much(text, "rows_per_suggestion", MOST_ROWS, len(found))
    return found


def write_suggestions(found: Suggestions) -> pb.SuggestMeasurementsResponse:
    """The measurements, best first, and what they rest on."""
    return to_message(
        found,
        pb.SuggestMeasurementsResponse,
        basis=write_basis(found.basis),
        warnings=[write_notice(notice) for notice in found.notices],
    )

"""A question about rows as read: its configurations, and what best means among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import invalid_field
from nodewise.domain.objective import Objective
from nodewise.ports.limits import Limits
from nodewise.rpc.candidates import read_parts
from nodewise.rpc.caps import too_many
from nodewise.rpc.wire_objectives import read_objective, read_offers_of_rows
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Job", "objective_of", "says_more"]

_OWN_PARTS: Final = ("current", "efficiency", "batch_bounds")
"""What an objective is judged by that is one job's own."""

_Question = pb.PredictRequest | pb.BatchJob | pb.SuggestMeasurementsRequest
_AboutRows = _Question | pb.BatchPredictRequest


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One question as read: of a batch all but what it shares with the others."""

    configurations: Configurations
    objective: Objective


def objective_of(
    request: _Question,
    configurations: Configurations,
    limits: Limits,
    shared: pb.BatchPredictRequest | None = None,
) -> Objective:
    """What best means in a question of so many rows, with all that it is computed from."""
    best, offers = request.objective, request.offers
    rows_of: _AboutRows = request
    if shared is not None:
        best = best if request.HasField("objective") else shared.objective
        offers = offers or shared.offers
        rows_of = request if request.HasField("configurations") or request.ranges else shared
    own = () if isinstance(request, pb.SuggestMeasurementsRequest) else _OWN_PARTS
    judged: dict[str, Any] = {name: getattr(request, name) for name in own if request.HasField(name)}
    found = read_objective(best, request.work if request.HasField("work") else None, offers, **judged)
    rows = len(configurations.workers)
    if found.current is not None and found.current.row >= rows:
        raise invalid_field("current.row", f"must be a row of the question, 0 to {rows - 1}")
    if found.batch_bounds is not None:
        _check_candidates(found, configurations, limits)
    configured, ranges = rows_of.configurations, rows_of.ranges
    if not configured.offer_names and not ranges:
        return found
    parts = ((path, len(part)) for path, part in read_parts(configured, ranges, limits))
    named = read_offers_of_rows(configured, ranges, parts, found.offers)
    return found if named is None else _with_named(found, named)


def says_more(request: pb.PredictRequest | pb.BatchJob) -> bool:
    """Whether a question asks for more than its rows: most do not, and are answered often."""
    return bool(
        request.HasField("objective")
        or request.HasField("work")
        or request.offers
        or request.HasField("current")
        or request.HasField("efficiency")
        or request.HasField("batch_bounds")
    )


def _check_candidates(objective: Objective, configurations: Configurations, limits: Limits) -> None:
    assert objective.batch_bounds is not None
    open_rows = int((configurations.global_batch == 0).sum())
    count = len(configurations) + open_rows * (len(objective.batch_bounds.candidates) - 1)
    if count > limits.rows_per_call:
        what = "rows, each with every batch that may be chosen"
        raise too_many(what, "rows_per_call", limits.rows_per_call, count)


@lru_cache(maxsize=1024)
def _with_named(objective: Objective, offers_of_rows: tuple[int, ...]) -> Objective:
    """The objective with the offers that rows name; the same ones give one object."""
    return replace(objective, offers_of_rows=offers_of_rows)

"""Questions about rows as read: configurations and objective."""

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
"""Fields of an objective that each job has for itself."""

_Question = pb.PredictRequest | pb.BatchJob | pb.SuggestMeasurementsRequest
_AboutRows = _Question | pb.BatchPredictRequest


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One question as read; of a batch, without the parts that all jobs share."""

    configurations: Configurations
    objective: Objective


def objective_of(
    request: _Question, configurations: Configurations, limits: Limits, shared: pb.BatchPredictRequest | None = None
) -> Objective:
    """The objective of a question, with everything that it is computed from."""
    best, offers = request.objective, request.offers
    rows_of: _AboutRows = request
    if shared is not None:
        best = best if request.HasField("objective") else shared.objective
        offers = offers or shared.offers
        rows_of = request if request.HasField("configurations") or request.ranges else shared
    own = () if isinstance(request, pb.SuggestMeasurementsRequest) else _OWN_PARTS
    own_parts: dict[str, Any] = {name: getattr(request, name) for name in own if request.HasField(name)}
    objective = read_objective(best, request.work if request.HasField("work") else None, offers, **own_parts)
    rows = len(configurations.workers)
    if objective.current is not None and objective.current.row >= rows:
        raise invalid_field("current.row", f"must be a row of the question, 0 to {rows - 1}")
    if objective.batch_bounds is not None:
        _check_candidates(objective, configurations, limits)
    explicit, ranges = rows_of.configurations, rows_of.ranges
    if not explicit.offer_names and not ranges:
        return objective
    parts = ((path, len(part)) for path, part in read_parts(explicit, ranges, limits))
    offers_of_rows = read_offers_of_rows(explicit, ranges, parts, objective.offers)
    return objective if offers_of_rows is None else _with_named(objective, offers_of_rows)


def says_more(request: pb.PredictRequest | pb.BatchJob) -> bool:
    """Whether a question states more than its rows; most do not."""
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
        what = "rows, counted once for each batch of batch_bounds,"
        raise too_many(what, "rows_per_call", limits.rows_per_call, count)


@lru_cache(maxsize=1024)
def _with_named(objective: Objective, offers_of_rows: tuple[int, ...]) -> Objective:
    """The objective with the offers that rows name; equal arguments give one object."""
    return replace(objective, offers_of_rows=offers_of_rows)

"""Shadowing: the requests that were answered last, asked of another generation, and how its answers differ."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.estimation.question import AUTO
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.serving_state import ServingState
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1beta1 import admin_service_pb2 as admin

__all__ = ["compared"]

ASKED_S: Final = 10.0
"""Patience with one request."""


@dataclass(slots=True)
class _Comparison:
    """Of the requests to one estimator."""

    found: admin.EstimatorDifference
    log_ratios: list[float] = field(default_factory=list)
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def add(self, before: pb.PredictResponse | NodewiseError, after: pb.PredictResponse | NodewiseError) -> None:
        """Replies, or refusals, of both to one request."""
        found = self.found
        if _is_fault(after) and not _is_fault(before):
            found.failures_count += 1
        elif isinstance(before, NodewiseError) or isinstance(after, NodewiseError):
            found.changed_refusals_count += getattr(before, "reason", None) != getattr(after, "reason", None)
        else:
            found.version_before, found.version_after = (each.basis.estimator_version for each in (before, after))
            for one, other in zip(before.predictions.steps_per_second, after.predictions.steps_per_second):
                if one > 0.0 and other > 0.0:
                    self.log_ratios.append(abs(math.log(other / one)))
                else:
                    found.changed_refusals_count += (one > 0.0) != (other > 0.0)

    def difference(self) -> admin.EstimatorDifference:
        """In numbers."""
        found, ratios = self.found, self.log_ratios
        found.requests_count, found.rows_count = len(self.seconds[0]), len(ratios)
        found.median_log_ratio, found.largest_log_ratio = median(ratios or [0.0]), max(ratios, default=0.0)
        found.median_seconds_before, found.median_seconds_after = map(median, self.seconds)
        return found


async def compared(
    before: ServingState, after: ServingState, most: int, seconds: float
) -> list[admin.EstimatorDifference]:
    """Ask both, the newest requests first, one at a time; simulations are left out for what they cost."""
    ends_s = time.monotonic() + seconds
    comparisons: dict[str, _Comparison] = {}
    for data in before.predictions.recent(most):
        if time.monotonic() > ends_s:
            break
        request = pb.PredictRequest.FromString(data)
        if request.options.fidelity == options_pb2.FIDELITY_SIMULATE:
            continue
        name = request.options.model.estimator or AUTO
        comparison = comparisons.setdefault(name, _Comparison(admin.EstimatorDifference(estimator=name)))
        replies = [await _asked(*each, request) for each in zip((before, after), comparison.seconds)]
        comparison.add(*replies)
        await asyncio.sleep(0)  # calls go first
    return [comparisons[name].difference() for name in sorted(comparisons)]


async def _asked(
    serving_state: ServingState, seconds: list[float], request: pb.PredictRequest
) -> pb.PredictResponse | NodewiseError:
    started_s = time.perf_counter()
    try:
        data: Any = await serving_state.predictions.predict(request, Call("shadow", time.monotonic() + ASKED_S))
        return pb.PredictResponse.FromString(data)
    except NodewiseError as error:
        return error
    finally:
        seconds.append(time.perf_counter() - started_s)


def _is_fault(reply: pb.PredictResponse | NodewiseError) -> bool:
    """Whether the server or a plugin is at fault."""
    return isinstance(reply, NodewiseError) and reply.kind in (Kind.INTERNAL, Kind.UNAVAILABLE)

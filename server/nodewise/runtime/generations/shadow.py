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

__all__ = ["Difference", "compared"]

ASKED_S: Final = 10.0
"""Patience with one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How two generations answer the same requests to one estimator; as EstimatorDifference of the contract."""

    estimator: str
    version_before: str
    version_after: str
    requests_count: int
    rows_count: int
    median_log_ratio: float
    largest_log_ratio: float
    changed_refusals_count: int
    failures_count: int
    median_seconds_before: float
    median_seconds_after: float


@dataclass(slots=True)
class _Comparison:
    """Of the requests to one estimator."""

    versions: tuple[str, str] = ("", "")
    log_ratios: list[float] = field(default_factory=list)
    changed: int = 0
    failures: int = 0
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def add(self, before: pb.PredictResponse | NodewiseError, after: pb.PredictResponse | NodewiseError) -> None:
        """Replies, or refusals, of both to one request."""
        if _is_fault(after) and not _is_fault(before):
            self.failures += 1
        elif isinstance(before, NodewiseError) or isinstance(after, NodewiseError):
            self.changed += getattr(before, "reason", None) != getattr(after, "reason", None)
        else:
            self.versions = (before.basis.estimator_version, after.basis.estimator_version)
            for one, other in zip(before.predictions.steps_per_second, after.predictions.steps_per_second):
                if one > 0.0 and other > 0.0:
                    self.log_ratios.append(abs(math.log(other / one)))
                else:
                    self.changed += (one > 0.0) != (other > 0.0)

    def difference(self, estimator: str) -> Difference:
        """In numbers."""
        return Difference(
            estimator=estimator,
            version_before=self.versions[0],
            version_after=self.versions[1],
            requests_count=len(self.seconds[0]),
            rows_count=len(self.log_ratios),
            median_log_ratio=median(self.log_ratios) if self.log_ratios else 0.0,
            largest_log_ratio=max(self.log_ratios, default=0.0),
            changed_refusals_count=self.changed,
            failures_count=self.failures,
            median_seconds_before=median(self.seconds[0]),
            median_seconds_after=median(self.seconds[1]),
        )


async def compared(before: ServingState, after: ServingState, most: int, seconds: float) -> list[Difference]:
    """Ask both, the newest requests first, one at a time; simulations are left out for what they cost."""
    ends_s = time.monotonic() + seconds
    comparisons: dict[str, _Comparison] = {}
    for data in before.predictions.recent(most):
        if time.monotonic() > ends_s:
            break
        request = pb.PredictRequest.FromString(data)
        if request.options.fidelity == options_pb2.FIDELITY_SIMULATE:
            continue
        comparison = comparisons.setdefault(request.options.model.estimator or AUTO, _Comparison())
        replies = [await _asked(*each, request) for each in zip((before, after), comparison.seconds)]
        comparison.add(*replies)
        await asyncio.sleep(0)  # calls go first
    return [comparison.difference(name) for name, comparison in sorted(comparisons.items())]


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

"""Shadowing: the requests that were answered last, asked of another generation, and how its answers differ."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.estimation.question import AUTO
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.rooms import Rooms
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["Difference", "compared", "differences_of", "log_ratios"]

_FAULTS: Final = (Kind.INTERNAL, Kind.UNAVAILABLE)
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
class _Found:
    """What was found of one estimator."""

    versions: tuple[str, str] = ("", "")
    log_ratios: list[float] = field(default_factory=list)
    changed: int = 0
    failures: int = 0
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))


@dataclass(frozen=True, slots=True)
class _Told:
    """A reply, or why there is none."""

    reply: pb.PredictResponse | None
    error: NodewiseError | None
    seconds: float

    @property
    def faulty(self) -> bool:
        """Whether the server or a plugin is at fault."""
        return self.error is not None and self.error.kind in _FAULTS


async def compared(before: Rooms, after: Rooms, most: int, seconds: float) -> list[Difference]:
    """Ask both, the newest requests first, one at a time; simulations are left out for what they cost."""
    ends_s = time.monotonic() + seconds
    found: dict[str, _Found] = {}
    for data in before.predictions.recent(most):
        if time.monotonic() > ends_s:
            break
        request = pb.PredictRequest.FromString(data)
        if request.options.fidelity == options_pb2.FIDELITY_SIMULATE:
            continue
        told = [await _asked(rooms, request) for rooms in (before, after)]
        _add(found.setdefault(request.options.model.estimator or AUTO, _Found()), *told)
        await asyncio.sleep(0)  # calls go first
    return differences_of(found)


def differences_of(found: dict[str, _Found]) -> list[Difference]:
    """In numbers, by estimator."""
    return [
        Difference(
            estimator=name,
            version_before=each.versions[0],
            version_after=each.versions[1],
            requests_count=len(each.seconds[0]),
            rows_count=len(each.log_ratios),
            median_log_ratio=median(each.log_ratios) if each.log_ratios else 0.0,
            largest_log_ratio=max(each.log_ratios, default=0.0),
            changed_refusals_count=each.changed,
            failures_count=each.failures,
            median_seconds_before=median(each.seconds[0]),
            median_seconds_after=median(each.seconds[1]),
        )
        for name, each in sorted(found.items())
    ]


def log_ratios(before: pb.PredictResponse, after: pb.PredictResponse) -> tuple[list[float], int]:
    """|ln(throughput after / before)| of the rows that both answered, and how many only one did."""
    ratios, changed = [], 0
    pairs: Sequence[tuple[float, float]] = list(
        zip(before.predictions.steps_per_second, after.predictions.steps_per_second)
    )
    for one, other in pairs:
        if one > 0.0 and other > 0.0:
            ratios.append(abs(math.log(other / one)))
        else:
            changed += (one > 0.0) != (other > 0.0)
    return ratios, changed


async def _asked(rooms: Rooms, request: pb.PredictRequest) -> _Told:
    started = time.perf_counter()
    reply, refusal = None, None
    try:
        data: Any = await rooms.predictions.predict(request, Call("shadow", time.monotonic() + ASKED_S))
        reply = pb.PredictResponse.FromString(data)
    except NodewiseError as error:
        refusal = error
    return _Told(reply, refusal, time.perf_counter() - started)


def _add(found: _Found, before: _Told, after: _Told) -> None:
    for seconds, told in zip(found.seconds, (before, after)):
        seconds.append(told.seconds)
    if after.faulty and not before.faulty:
        found.failures += 1
    elif before.reply is None or after.reply is None:
        reasons = [None if told.error is None else told.error.reason for told in (before, after)]
        found.changed += reasons[0] != reasons[1]
    else:
        ratios, changed = log_ratios(before.reply, after.reply)
        found.log_ratios += ratios
        found.changed += changed
        found.versions = (before.reply.basis.estimator_version, after.reply.basis.estimator_version)

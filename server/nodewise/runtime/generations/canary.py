"""A canary's rule: what its calls, beside the stable track's, say of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import Any, Final

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.manifest import Rule
from nodewise.runtime.generations.rooms import Rooms
from nodewise.runtime.generations.shadow import log_ratios
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["CanaryWatch", "Seen", "Verdict", "verdict_of"]

KEPT: Final = 1024
"""Newest times and ratios of a track that are kept for medians."""
SHADOWED_SHARE: Final = 8
"""Of so many answers of the canary, one question is asked of the stable track too."""
WAITING: Final = 64
"""Questions that wait to be asked of the stable track; more are left out."""
_FAULTS: Final = frozenset({Kind.INTERNAL, Kind.UNAVAILABLE, Kind.DEADLINE})


class Verdict(Enum):
    """What a rule says."""

    WAIT = "wait"
    PROMOTE = "promote"
    ROLL_BACK = "roll back"


@dataclass(slots=True)
class Seen:
    """Calls of one track."""

    calls: int = 0
    failures: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))


def verdict_of(rule: Rule, stable: Seen, canary: Seen, ratios: deque[float]) -> tuple[Verdict, str]:
    """The verdict, and why, for people.

    Parameters
    ----------
    ratios : deque of float
        |ln(throughput of the canary / of the stable track)| of rows that both were asked.
    """
    if canary.calls < rule.calls:
        return Verdict.WAIT, f"{canary.calls} of {rule.calls} calls"
    failing = canary.failures / canary.calls - (stable.failures / stable.calls if stable.calls else 0.0)
    if failing > rule.most_failures:
        return Verdict.ROLL_BACK, f"{failing:.1%} more of its calls fail, at most {rule.most_failures:.1%} may"
    if canary.seconds and stable.seconds:
        slower = median(canary.seconds) / max(median(stable.seconds), 1e-9)
        if slower > rule.most_latency_ratio:
            return Verdict.ROLL_BACK, f"its calls take {slower:.2f} times as long, at most {rule.most_latency_ratio:g}"
    if ratios and median(ratios) > rule.most_log_ratio:
        return Verdict.ROLL_BACK, f"its answers differ by {median(ratios):.3f} in ln, at most {rule.most_log_ratio:g}"
    return (Verdict.PROMOTE if rule.promotes else Verdict.WAIT), "within all bounds"


class CanaryWatch:
    """Implements Outcomes: hears of both tracks' calls, and asks some of the canary's questions of the stable track.

    Parameters
    ----------
    rule : Rule
    stable : Rooms
        Asked off the way of requests.
    decided : callable
        Told a verdict other than to wait, once.
    """

    def __init__(self, rule: Rule, stable: Rooms, decided: Callable[[Verdict, str], None]) -> None:
        self.rule = rule
        self._stable = stable
        self._decided = decided
        self._seen = {False: Seen(), True: Seen()}
        self._ratios: deque[float] = deque(maxlen=KEPT)
        self._answers = 0
        self._waiting: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue(WAITING)
        self._over = False

    def heard(self, method: str, *, canary: bool, seconds: float, error: BaseException | None) -> None:
        """As the protocol says; one method alone is timed, so that medians compare like with like."""
        seen = self._seen[canary]
        seen.calls += 1
        seen.failures += error is not None and _is_fault(error)
        if method == "predict" and error is None:
            seen.seconds.append(seconds)
        if canary:
            self._judge()

    def answered(self, request: Any, reply: bytes, *, canary: bool) -> None:
        """As the protocol says."""
        if not canary:
            return
        self._answers += 1
        if self._answers % SHADOWED_SHARE == 0 and not self._waiting.full():
            self._waiting.put_nowait((request.SerializeToString(), reply))

    async def run(self) -> None:
        """Compare, until cancelled."""
        while True:
            asked, answered = await self._waiting.get()
            try:
                call = Call("canary", None)
                data = await self._stable.predictions.predict(pb.PredictRequest.FromString(asked), call)
            except NodewiseError:
                continue
            stable, canary = pb.PredictResponse.FromString(data), pb.PredictResponse.FromString(answered)
            self._ratios.extend(log_ratios(stable, canary)[0])
            self._judge()

    def _judge(self) -> None:
        if self._over:
            return
        verdict, why = verdict_of(self.rule, self._seen[False], self._seen[True], self._ratios)
        if verdict is not Verdict.WAIT:
            self._over = True
            self._decided(verdict, why)


def _is_fault(error: BaseException) -> bool:
    """Whether a call ended by a fault of the server or a plugin, rather than by its caller's."""
    if isinstance(error, NodewiseError):
        return error.kind in _FAULTS
    return not isinstance(error, asyncio.CancelledError)

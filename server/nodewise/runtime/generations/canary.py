"""A canary's rule: what its calls, beside the stable track's, say of it; those of all workers together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.rpc.calls import Call
from nodewise.runtime.generations.histogram import Histogram
from nodewise.runtime.generations.manifest import Canary, Rule
from nodewise.runtime.generations.rooms import Rooms
from nodewise.runtime.generations.shadow import log_ratios
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["CanaryWatch", "Compared", "Seen", "Verdict", "verdict_of"]

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
    """Calls of one track; ``seconds`` those of Predicts that were answered."""

    calls: int = 0
    failures: int = 0
    seconds: Histogram = field(default_factory=Histogram)


@dataclass(slots=True)
class Compared:
    """What was seen of both tracks since the canary was set.

    Attributes
    ----------
    ratios : Histogram
        |ln(throughput of the canary / of the stable track)| of rows that both were asked.
    """

    stable: Seen = field(default_factory=Seen)
    canary: Seen = field(default_factory=Seen)
    ratios: Histogram = field(default_factory=Histogram)

    def plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        tracks = {
            name: {"calls": seen.calls, "failures": seen.failures, "seconds": _plain(seen.seconds)}
            for name, seen in (("stable", self.stable), ("canary", self.canary))
        }
        return {**tracks, "ratios": _plain(self.ratios)}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Compared:
        """From what :meth:`plain` returned."""
        stable, canary = (
            Seen(each["calls"], each["failures"], _read(each["seconds"])) for each in (plain["stable"], plain["canary"])
        )
        return cls(stable, canary, _read(plain["ratios"]))

    @classmethod
    def together(cls, parts: Iterable[Compared]) -> Compared:
        """What several processes saw."""
        found = list(parts)

        def seen(tracks: list[Seen]) -> Seen:
            seconds = Histogram.together(each.seconds for each in tracks)
            return Seen(sum(each.calls for each in tracks), sum(each.failures for each in tracks), seconds)

        return cls(
            seen([each.stable for each in found]),
            seen([each.canary for each in found]),
            Histogram.together(each.ratios for each in found),
        )


def verdict_of(rule: Rule, compared: Compared) -> tuple[Verdict, str]:
    """The verdict, and why, for people."""
    stable, canary, ratios = compared.stable, compared.canary, compared.ratios
    if canary.calls < rule.calls:
        return Verdict.WAIT, f"{canary.calls} of {rule.calls} calls"
    failing = canary.failures / canary.calls - (stable.failures / stable.calls if stable.calls else 0.0)
    if failing > rule.most_failures:
        return Verdict.ROLL_BACK, f"{failing:.1%} more of its calls fail, at most {rule.most_failures:.1%} may"
    if canary.seconds.total and stable.seconds.total:
        slower = canary.seconds.median / stable.seconds.median
        if slower > rule.most_latency_ratio:
            return Verdict.ROLL_BACK, f"its calls take {slower:.2f} times as long, at most {rule.most_latency_ratio:g}"
    if ratios.median > rule.most_log_ratio:
        return Verdict.ROLL_BACK, f"its answers differ by {ratios.median:.3f} in ln, at most {rule.most_log_ratio:g}"
    return (Verdict.PROMOTE if rule.promotes else Verdict.WAIT), "within all bounds"


class CanaryWatch:
    """Implements Outcomes: hears of both tracks' calls, and asks some of the canary's questions of the stable track.

    Parameters
    ----------
    canary : Canary
        As it was set; one that is set again is watched anew.
    stable : Rooms
        Asked off the way of requests.

    Attributes
    ----------
    seen : Compared
        By this process.
    """

    def __init__(self, canary: Canary, stable: Rooms) -> None:
        self.canary = canary
        self.stable = stable
        self.seen = Compared()
        self._answers = 0
        self._waiting: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue(WAITING)

    def heard(self, method: str, *, canary: bool, seconds: float, error: BaseException | None) -> None:
        """As the protocol says; one method alone is timed, so that medians compare like with like."""
        seen = self.seen.canary if canary else self.seen.stable
        seen.calls += 1
        seen.failures += error is not None and _is_fault(error)
        if method == "predict" and error is None:
            seen.seconds.add(seconds)

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
                data = await self.stable.predictions.predict(pb.PredictRequest.FromString(asked), call)
            except NodewiseError:
                continue
            stable, canary = pb.PredictResponse.FromString(data), pb.PredictResponse.FromString(answered)
            for ratio in log_ratios(stable, canary)[0]:
                self.seen.ratios.add(ratio)


def _plain(histogram: Histogram) -> dict[str, int]:
    return {str(place): count for place, count in histogram.counts.items()}


def _read(plain: Mapping[str, int]) -> Histogram:
    return Histogram({int(place): count for place, count in plain.items()})


def _is_fault(error: BaseException) -> bool:
    """Whether a call ended by a fault of the server or a plugin, rather than by its caller's."""
    if isinstance(error, NodewiseError):
        return error.kind in _FAULTS
    return not isinstance(error, asyncio.CancelledError)

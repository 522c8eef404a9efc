"""Refusals of calls that would wait too long: statuses, cached by delay, and one log line a second."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any, ClassVar, Final, NoReturn

import grpc
import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.admission import OverloadedError
from nodewise.rpc.errors import status_of

__all__ = ["LONGEST_DELAY_S", "Refusals", "overload_error", "pushback"]

_log = structlog.get_logger("nodewise.rpc")

LONGEST_DELAY_S: Final = 10.0
"""Longest delay of a retry that a status suggests."""
_LOG_EVERY_S: Final = 1.0
"""Seconds between two log lines; a line for each refusal would cost more than the refusal."""

Trailers = tuple[tuple[str, str | bytes], ...]


class Refusals:
    """Ends calls as OVERLOADED, with the delay of a retry."""

    _DELAYS_S: ClassVar = (*(0.05 * 1.5**step for step in range(13)), LONGEST_DELAY_S)

    def __init__(self) -> None:
        self._statuses: dict[float, tuple[str, Trailers]] = {}
        self._calls: Counter[str] = Counter()
        self._logging: asyncio.TimerHandle | None = None

    async def refuse(self, context: Any, method: str, request_id: str, error: OverloadedError) -> NoReturn:
        """End a call that is not admitted."""
        self._calls[method] += 1
        if self._logging is None:
            self._logging = asyncio.get_running_loop().call_later(_LOG_EVERY_S, self._log)
        text, trailers = self._status(error.wait_s)
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text, (*trailers, ("x-request-id", request_id)))
        raise AssertionError("abort always raises")

    def _status(self, wait_s: float) -> tuple[str, Trailers]:
        """Text and trailers. The delay is one to two expected waits, so that callers refused together retry apart."""
        wanted_s = wait_s * (1.0 + random.random())  # noqa: S311  # jitter, no secret
        delay_s = next((each for each in self._DELAYS_S if each >= wanted_s), LONGEST_DELAY_S)
        if delay_s not in self._statuses:
            status = status_of(overload_error(delay_s))
            details = ("grpc-status-details-bin", status.SerializeToString())
            self._statuses[delay_s] = (status.message, (details, pushback(delay_s)))
        return self._statuses[delay_s]

    def _log(self) -> None:
        self._logging = None
        _log.warning("calls_refused", reason=str(Reason.OVERLOADED), calls=dict(self._calls))
        self._calls.clear()


def pushback(delay_s: float | None) -> tuple[str, str]:
    """The trailer that states the delay for gRPC's own retries; None = no retry."""
    return "grpc-retry-pushback-ms", "-1" if delay_s is None else str(int(delay_s * 1e3))


def overload_error(delay_s: float) -> NodewiseError:
    """The error of a call that would wait too long."""
    return NodewiseError(
        Reason.OVERLOADED,
        "the server is overloaded and cannot answer in time; retry after the delay",
        retry_after_s=delay_s,
    )

"""Quotas of callers: limits of each caller's concurrent calls in a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["NO_QUOTAS", "CallerQuotas"]


@dataclass(frozen=True, kw_only=True)
class CallerQuotas:
    """Limits of a caller's concurrent calls; 0 = no limit.

    Attributes
    ----------
    streams_per_caller : int
        Streams of questions, of ingest and watches that a caller (a token, else an address) has open in a worker.
    long_calls_per_caller : int
        Simulate, Plan, Replay, Diagnose, Backtest, EstimateCompletion and EstimateRun that a caller has at work or
        waiting in a worker.
    """

    streams_per_caller: int = 8192
    long_calls_per_caller: int = 32


NO_QUOTAS: Final = CallerQuotas(streams_per_caller=0, long_calls_per_caller=0)

"""Quotas of callers: most that each may have open at once in a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["NO_QUOTAS", "CallerQuotas"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerQuotas:
    """Most that a caller may have open at once; 0 = no limit."""

    streams_per_caller: int = 8192
    long_calls_per_caller: int = 32


NO_QUOTAS: Final = CallerQuotas(streams_per_caller=0, long_calls_per_caller=0)

"""Pairs of jobs of a cluster that may share a device, and their shares of solo speed."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.columns import Floats, Ints

__all__ = ["SharedPairs"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedPairs:
    """Shares of solo speed of two jobs on one device, by kinds of jobs.

    Attributes
    ----------
    kinds : (jobs,) int
        Kind of each job; -1 = the job shares no device.
    shares : tuple of (kinds, kinds) float, one per pool
        Share of a job of the row's kind beside one of the column's; 0 = these two do not share.
    """

    kinds: Ints
    shares: tuple[Floats, ...]

    def of(self, pool: int, job: int, other: int) -> tuple[float, float] | None:
        """Shares of two jobs of a pool, the first one's first; None = they do not share."""
        kind, beside = int(self.kinds[job]), int(self.kinds[other])
        if job == other or min(kind, beside) < 0:
            return None
        table = self.shares[pool]
        pair = float(table[kind, beside]), float(table[beside, kind])
        return pair if min(pair) > 0.0 else None

"""Policies: who gets which part of a cluster."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from nodewise.domain.budget import Budget
from nodewise.domain.schedule import Allocation, ClusterState, Curves, Shares

__all__ = ["Policy"]


@runtime_checkable
class Policy(Protocol):
    """Shares a cluster among jobs."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation | Shares:
        """Decide. Pure and deterministic; keeps nothing between calls but ``memory``.

        When the budget has nothing left: return the best feasible decision so far.
        """
        ...

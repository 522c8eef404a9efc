"""Policies: they share a cluster among jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from nodewise.domain.budget import Budget
    from nodewise.domain.schedule import Allocation, ClusterState, Curves, Shares

__all__ = ["Policy"]


@runtime_checkable
class Policy(Protocol):
    """Shares a cluster among jobs."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation | Shares:
        """Decide. Pure and deterministic; nothing but ``memory`` is kept between calls.

        When the budget is over, return the best feasible decision so far.
        """
        ...

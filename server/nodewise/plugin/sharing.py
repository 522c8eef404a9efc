"""Sharing models: they predict the speed of jobs that share a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nodewise.domain.budget import Budget

if TYPE_CHECKING:
    from nodewise.domain.sharing import DeviceShares, SharingQuestion

__all__ = ["SharingModel"]


@runtime_checkable
class SharingModel(Protocol):
    """Predicts shares of solo speed. Pure and deterministic; keeps nothing between calls."""

    def predict_shares(self, question: SharingQuestion, budget: Budget) -> Sequence[DeviceShares]:
        """One answer for each set of the question, in order.

        Shares depend neither on the order of the jobs within a set nor on other sets of the question. A measured pair
        has its measured shares. A set contains each copy of a job.

        Raises
        ------
        NodewiseError
            NOT_IMPLEMENTED for a mode that it does not know; DEADLINE_EXCEEDED when the budget is over.
        """
        ...

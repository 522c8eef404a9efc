"""Sharing models: what jobs keep of their solo speed where several share a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from nodewise.domain.budget import Budget
from nodewise.domain.sharing import DeviceShares, SharingQuestion

__all__ = ["SharingModel"]


@runtime_checkable
class SharingModel(Protocol):
    """Predicts shares. Pure and deterministic; keeps nothing between calls."""

    def predict_shares(self, question: SharingQuestion, budget: Budget) -> Sequence[DeviceShares]:
        """One answer for each set of the question, in order.

        Shares do not depend on the order of the jobs within a set, nor on which other sets are asked about. A pair that
        was measured is told as measured. Copies of one job stand in a set as often as there are.

        Raises
        ------
        NodewiseError
            NOT_IMPLEMENTED for a mode that it does not know; DEADLINE_EXCEEDED when the budget has nothing left.
        """
        ...

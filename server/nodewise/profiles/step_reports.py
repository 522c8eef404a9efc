"""What a store keeps of the times of steps that running jobs report: beside profiles, and not for long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from nodewise.domain.step_times import StepTimes

__all__ = ["HOURS_KEPT_S", "WINDOWS_KEPT_S", "StepLedger"]

WINDOWS_KEPT_S: Final = 4 * 3600.0
"""How long windows are kept."""
HOURS_KEPT_S: Final = 28 * 86_400.0
"""How long hours are kept: four weeks tell what recurs by day and by week."""


class StepLedger(Protocol):
    """Windows of steps of running jobs, and the mean of each hour. Safe from many threads and processes; may block.

    They go with their profile. Every method raises NodewiseError PROFILE_NOT_FOUND, or STORE_UNAVAILABLE.
    """

    def add(self, profile_id: str, times: StepTimes) -> Mapping[str, str]:
        """Store windows of one rank, at least one; the same again changes nothing. Returns the profile's labels."""

    def since(self, profile_id: str, begin_s: float) -> StepTimes:
        """Windows of reports that began at some time or later, of all ranks."""

    def hours(self, profile_id: str) -> StepTimes:
        """The mean step of each hour, over windows and ranks; rank 0 stands for all."""

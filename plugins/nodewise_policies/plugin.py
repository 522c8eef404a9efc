"""The policies that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import PolicyParameter, PolicyRecord, hookimpl
from nodewise_policies.efficiency import EfficiencySrpt
from nodewise_policies.equal_share import EqualShare
from nodewise_policies.fifo import Fifo

__all__ = ["nodewise_policies"]

VERSION: Final = "1.0"
"""Of the rules: another version may decide otherwise for the same state."""


@hookimpl
def nodewise_policies() -> list[PolicyRecord]:
    """First come, equal shares, and least remaining time over efficiency with and without filling."""
    return [
        PolicyRecord(
            name="fifo",
            version=VERSION,
            description="By submission, each job with the devices it requested; the first that does not fit blocks.",
            policy=Fifo(),
            parameters=(
                PolicyParameter(
                    name="backfill",
                    description="1 = a job that does not fit is skipped; 0 = it blocks all after it (dimensionless)",
                    default=0.0,
                    minimum=0.0,
                    maximum=1.0,
                ),
            ),
        ),
        PolicyRecord(
            name="equal-share",
            version=VERSION,
            description="Round-robin by submission to the next allowed count; no reshuffle while shares are even.",
            policy=EqualShare(),
        ),
        PolicyRecord(
            name="efficiency-srpt",
            version=VERSION,
            description="Least remaining time over efficiency first, at the count where that is least; no fill.",
            policy=EfficiencySrpt(fill=False),
        ),
        PolicyRecord(
            name="efficiency-srpt-fill",
            version=VERSION,
            description="As efficiency-srpt; then devices left over go where the fewest of them help.",
            policy=EfficiencySrpt(fill=True),
        ),
    ]

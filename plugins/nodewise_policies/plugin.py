"""The policies that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import PolicyParameter, PolicyRecord, hookimpl
from nodewise_policies.capped import CappedEfficiency
from nodewise_policies.efficiency import EfficiencySrpt
from nodewise_policies.equal_share import EqualShare
from nodewise_policies.fifo import Fifo
from nodewise_policies.marginal_gain import MarginalGain
from nodewise_policies.shortest import Srpt

__all__ = ["nodewise_policies"]

VERSION: Final = "1.0"
"""Of the rules: another version may decide otherwise for the same state."""

AS_PUBLISHED: Final = 0.0
"""Published rules know no restart cost."""
CAP_FACTOR: Final = 2.0
"""Of the fair share. One share leaves devices idle that fewer jobs would use, four let single jobs crowd out the rest;
the mean response time on the published workloads is flat between (docs/scheduling.md)."""
AGE_WEIGHT: Final = 0.1
"""A job that has waited ten times its least remaining time counts as half as long. It costs below one per cent of the
mean response time and shortens the 99th percentile (docs/scheduling.md)."""


def _count_restarts(default: float) -> PolicyParameter:
    return PolicyParameter(
        name="count_restarts",
        description="1 = remaining time includes the restart that a change costs; 0 = it does not (dimensionless)",
        default=default,
        minimum=0.0,
        maximum=1.0,
    )


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
            parameters=(_count_restarts(AS_PUBLISHED),),
        ),
        PolicyRecord(
            name="efficiency-srpt-fill",
            version=VERSION,
            description="As efficiency-srpt; then devices left over go where the fewest of them help.",
            policy=EfficiencySrpt(fill=True),
            parameters=(_count_restarts(AS_PUBLISHED),),
        ),
        PolicyRecord(
            name="efficiency-capped",
            version=VERSION,
            description="As efficiency-srpt within twice the fair share, ageing; then proportional fairness of rates.",
            policy=CappedEfficiency(),
            parameters=(
                PolicyParameter(
                    name="cap_factor",
                    description="most devices before the fill, in fair shares (dimensionless)",
                    default=CAP_FACTOR,
                    minimum=0.0,
                    maximum=1e6,
                ),
                PolicyParameter(
                    name="age_weight",
                    description="how much waiting counts, per least remaining time waited (dimensionless)",
                    default=AGE_WEIGHT,
                    minimum=0.0,
                    maximum=1e6,
                ),
                _count_restarts(1.0),
            ),
        ),
        PolicyRecord(
            name="srpt",
            version=VERSION,
            description="Least remaining time first, at the count where it is least.",
            policy=Srpt(),
            parameters=(_count_restarts(AS_PUBLISHED),),
        ),
        PolicyRecord(
            name="marginal-gain",
            version=VERSION,
            description="Everyone's smallest count, then the step that shortens remaining time most per device.",
            policy=MarginalGain(),
            parameters=(
                PolicyParameter(
                    name="look_ahead",
                    description="1 = a step may cross a dip of the curve; 0 = only to the next count (dimensionless)",
                    default=1.0,
                    minimum=0.0,
                    maximum=1.0,
                ),
                _count_restarts(AS_PUBLISHED),
            ),
        ),
    ]

"""The policies that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import PolicyParameter, PolicyRecord, hookimpl
from nodewise_policies.attained_service import LeastAttainedService
from nodewise_policies.capped import CappedEfficiency
from nodewise_policies.deadlines import DeadlineAware
from nodewise_policies.efficiency import EfficiencySrpt
from nodewise_policies.equal_share import EqualShare
from nodewise_policies.fifo import Fifo
from nodewise_policies.goodput import Goodput
from nodewise_policies.marginal_gain import MarginalGain
from nodewise_policies.shortest import Srpt
from nodewise_policies.time_sharing import MaxMinFairness, MinMakespan

__all__ = ["nodewise_policies"]

VERSION: Final = "1.0"
"""Of the rules: another version may decide otherwise for the same state."""

AS_PUBLISHED: Final = 0.0
"""Published rules know no restart cost."""
CAP_FACTOR: Final = 2.0
"""Of the fair share. One share leaves devices idle that fewer jobs would use, four let single jobs crowd out the rest;
the mean response time on the published workloads is flat between (docs/reference/scheduling.md)."""
AGE_WEIGHT: Final = 0.1
"""A job that has waited ten times its least remaining time counts as half as long. It costs below one per cent of the
mean response time and shortens the 99th percentile (docs/reference/scheduling.md)."""


def _count_restarts(default: float) -> PolicyParameter:
    return PolicyParameter(
        name="count_restarts",
        description="1 = remaining time includes the restart that a change costs; 0 = it does not (dimensionless)",
        default=default,
        minimum=0.0,
        maximum=1.0,
    )


def _seed(of: str) -> PolicyParameter:
    return PolicyParameter(
        name="seed",
        description=f"of the draw of the {of} (dimensionless)",
        default=0.0,
        minimum=0.0,
        maximum=1e9,
    )


CAPPED: Final = (
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
)


def _service_limit(name: str, default: float) -> PolicyParameter:
    return PolicyParameter(
        name=name,
        description="attained service from which a job is in the next queue, device-seconds",
        default=default,
        minimum=0.0,
        maximum=1e18,
    )


ROUNDS: Final = (
    PolicyParameter(
        name="round_s",
        description="length of a round, seconds",
        default=360.0,
        minimum=1.0,
        maximum=1e9,
    ),
    PolicyParameter(
        name="hold_s",
        description="least time for which shares hold while jobs come and go, seconds",
        default=1920.0,
        minimum=0.0,
        maximum=1e9,
    ),
)
"""Defaults are those of Gavel's program."""


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
                PolicyParameter(
                    name="over_commit",
                    description="1 = as Gavel's program, which books more jobs on a pool than fit (dimensionless)",
                    default=0.0,
                    minimum=0.0,
                    maximum=1.0,
                ),
                _seed("types that over_commit draws"),
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
                *CAPPED,
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
        PolicyRecord(
            name="max-min-fairness",
            version=VERSION,
            description="Max-min fair shares of time on the requested devices, whatever the throughputs.",
            policy=MaxMinFairness(aware=False),
            parameters=(
                *ROUNDS,
                _seed("order in which pools are served, round by round"),
            ),
        ),
        PolicyRecord(
            name="max-min-fairness-aware",
            version=VERSION,
            description="Shares of time by which everyone gains as much as possible over equal shares of the pools.",
            policy=MaxMinFairness(aware=True),
            parameters=ROUNDS,
        ),
        PolicyRecord(
            name="min-makespan-aware",
            version=VERSION,
            description="Shares of time by which all jobs are done as early as possible.",
            policy=MinMakespan(),
            parameters=ROUNDS,
        ),
        PolicyRecord(
            name="las",
            version=VERSION,
            description="By attained service in three queues, then by submission, with backfill; sizes are not used.",
            policy=LeastAttainedService(),
            parameters=(
                # Those of Tiresias' simulator.
                _service_limit("first_limit_device_s", 3250.0),
                _service_limit("second_limit_device_s", 7200.0),
                PolicyParameter(
                    name="promotion_ratio",
                    description="waiting per running time that lifts a job to queue 0; 0 = never (dimensionless)",
                    default=0.0,
                    minimum=0.0,
                    maximum=1e6,
                ),
            ),
        ),
        PolicyRecord(
            name="goodput",
            version=VERSION,
            description="Greatest power mean of speed-ups in goodput: throughput times statistical efficiency.",
            policy=Goodput(),
        ),
        PolicyRecord(
            name="deadline-aware",
            version=VERSION,
            description="Cheapest count that meets each deadline, with admission; the rest as efficiency-capped.",
            policy=DeadlineAware(),
            parameters=(
                *CAPPED,
                PolicyParameter(
                    name="slack",
                    description="part of the remaining time that a plan keeps in hand (dimensionless)",
                    default=0.0,
                    minimum=0.0,
                    maximum=1e3,
                ),
            ),
        ),
    ]

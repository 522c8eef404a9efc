"""The policies that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import PolicyParameter, PolicyRecord, hookimpl, lazy_object

__all__ = ["nodewise_policies"]

VERSION: Final = "1.0"
"""Of the rules: another version may decide otherwise for the same state."""

AS_PUBLISHED: Final = 0.0
"""Published rules do not count the cost of restarts."""
CAP_FACTOR: Final = 2.0
"""Of the fair share. One share leaves devices idle that fewer jobs would use, four let single jobs crowd out the rest;
the mean response time on the published workloads is flat between (docs/reference/scheduling.md)."""
AGE_WEIGHT: Final = 0.1
"""A job that has waited ten times its least remaining time counts as half as long. It costs below one per cent of the
mean response time and shortens the 99th percentile (docs/reference/scheduling.md)."""


def _parameter(name: str, description: str, default: float, most: float, least: float = 0.0) -> PolicyParameter:
    return PolicyParameter(name=name, description=description, default=default, minimum=least, maximum=most)


def _switch(name: str, description: str, default: float) -> PolicyParameter:
    return _parameter(name, f"{description} (dimensionless)", default, 1.0)


def _count_restarts(default: float) -> PolicyParameter:
    text = "1 = remaining time includes the restart that a change costs; 0 = it does not"
    return _switch("count_restarts", text, default)


def _seed(of: str) -> PolicyParameter:
    return _parameter("seed", f"of the draw of the {of} (dimensionless)", 0.0, 1e9)


def _service_limit(name: str, default: float) -> PolicyParameter:
    return _parameter(name, "attained service from which a job is in the next queue, device-seconds", default, 1e18)


CAPPED: Final = (
    _parameter("cap_factor", "most devices before the fill, in fair shares (dimensionless)", CAP_FACTOR, 1e6),
    _parameter(
        "age_weight", "how much waiting counts, per least remaining time waited (dimensionless)", AGE_WEIGHT, 1e6
    ),
)
ROUNDS: Final = (
    _parameter("round_s", "length of a round, seconds", 360.0, 1e9, least=1.0),
    _parameter("hold_s", "least time for which shares hold while jobs come and go, seconds", 1920.0, 1e9),
)
"""Defaults are those of Gavel's program."""


def _record(name: str, description: str, place: str, *parameters: PolicyParameter, **settings: bool) -> PolicyRecord:
    policy = lazy_object(f"nodewise_policies.{place}", "decide", settings=settings)
    return PolicyRecord(name=name, version=VERSION, description=description, policy=policy, parameters=parameters)


@hookimpl
def nodewise_policies() -> list[PolicyRecord]:
    """First come, equal shares, and least remaining time over efficiency with and without filling."""
    return [
        _record(
            "fifo",
            "By submission, each job with the devices it requested; the first that does not fit blocks.",
            "fifo:Fifo",
            _switch("backfill", "1 = a job that does not fit is skipped; 0 = it blocks all after it", 0.0),
            _switch("over_commit", "1 = as Gavel's program, which books more jobs on a pool than fit", 0.0),
            _seed("types that over_commit draws"),
        ),
        _record(
            "equal-share",
            "Round-robin by submission to the next allowed count; no reshuffle while shares are even.",
            "equal_share:EqualShare",
        ),
        _record(
            "efficiency-srpt",
            "Least remaining time over efficiency first, at the count where that is least; no fill.",
            "efficiency:EfficiencySrpt",
            _count_restarts(AS_PUBLISHED),
            fill=False,
        ),
        _record(
            "efficiency-srpt-fill",
            "As efficiency-srpt; then devices left over go where the fewest of them help.",
            "efficiency:EfficiencySrpt",
            _count_restarts(AS_PUBLISHED),
            fill=True,
        ),
        _record(
            "efficiency-capped",
            "As efficiency-srpt within twice the fair share, ageing; then proportional fairness of rates.",
            "capped_efficiency:CappedEfficiency",
            *CAPPED,
            _count_restarts(1.0),
        ),
        _record(
            "srpt",
            "Least remaining time first, at the count where it is least.",
            "shortest:Srpt",
            _count_restarts(AS_PUBLISHED),
        ),
        _record(
            "marginal-gain",
            "The smallest count of every job, then the step that shortens remaining time most per device.",
            "marginal_gain:MarginalGain",
            _switch("look_ahead", "1 = a step may cross a dip of the curve; 0 = only to the next count", 1.0),
            _count_restarts(AS_PUBLISHED),
        ),
        _record(
            "max-min-fairness",
            "Max-min fair shares of time on the requested devices; ignores throughputs.",
            "time_sharing:MaxMinFairness",
            *ROUNDS,
            _seed("order in which pools are served, round by round"),
            aware=False,
        ),
        _record(
            "max-min-fairness-aware",
            "Shares of time by which every job gains as much as possible over equal shares of the pools.",
            "time_sharing:MaxMinFairness",
            *ROUNDS,
            aware=True,
        ),
        _record(
            "min-makespan-aware",
            "Shares of time by which all jobs are done as early as possible.",
            "time_sharing:MinMakespan",
            *ROUNDS,
        ),
        _record(
            "las",
            "By attained service in three queues, then by submission, with backfill; sizes are not used.",
            "attained_service:LeastAttainedService",
            # Those of Tiresias' simulator.
            _service_limit("first_limit_device_s", 3250.0),
            _service_limit("second_limit_device_s", 7200.0),
            _parameter(
                "promotion_ratio",
                "waiting per running time that lifts a job to queue 0; 0 = never (dimensionless)",
                0.0,
                1e6,
            ),
        ),
        _record(
            "goodput",
            "Greatest power mean of speed-ups in goodput: throughput times statistical efficiency.",
            "goodput:Goodput",
        ),
        _record(
            "packing",
            (
                "By submission with backfill, without preemption; a job that finds no free device shares one where "
                "that pays."
            ),
            "packing:Packing",
            _switch("pack", "1 = jobs may share a device; 0 = none does, to compare with", 1.0),
            _parameter("least_total", "total of shares that a pair must exceed (dimensionless)", 1.0, 2.0),
            _parameter(
                "least_share", "share of solo speed that each of a pair keeps at least (dimensionless)", 0.0, 1.0
            ),
        ),
        _record(
            "deadline-aware",
            "Cheapest count that meets each deadline, with admission; the rest as efficiency-capped.",
            "deadlines:DeadlineAware",
            *CAPPED,
            _parameter("slack", "part of the remaining time that a plan keeps in hand (dimensionless)", 0.0, 1e3),
        ),
    ]

"""The estimator that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import BASIC_COLUMNS, EstimatorRecord, hookimpl, lazy_object
from nodewise_scaling.points import SPLITTING

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.4"
"""Of the form, its constants and the shipped prior: another version may predict otherwise from the same profile."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Scaling of all-reduce jobs from observed runs."""
    return [
        EstimatorRecord(
            name="scaling",
            version=VERSION,
            description=(
                "Data-parallel all-reduce jobs from observed runs: compute, exchange inside and across nodes, and a "
                "prior over jobs and clusters (ALLREDUCE)."
            ),
            estimator=lazy_object("nodewise_scaling.estimator:ScalingEstimator", "learn", "assess", "fit"),
            columns=BASIC_COLUMNS | {*SPLITTING, "data_parallel"},
            capabilities=frozenset({"sync-mode:allreduce"}),
        )
    ]

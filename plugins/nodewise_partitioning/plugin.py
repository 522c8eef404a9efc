"""The estimator that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import BASIC_COLUMNS, DEGREES, EstimatorRecord, hookimpl, lazy_object
from nodewise_partitioning.refusals import refuse

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.5"
"""Of the equations and constants: another version may predict otherwise from the same profile."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Step time and memory of partitioned transformers and layered networks."""
    return [
        EstimatorRecord(
            name="partitioning",
            version=VERSION,
            description=(
                "Transformers over tensor, pipeline, data, expert and context parallelism: step time and memory from "
                "dimensions, devices and links, with efficiencies that a few runs correct (ALLREDUCE); layered "
                "networks with parameter servers or all-reduce from facts alone (ASYNC, SYNC, ALLREDUCE)."
            ),
            estimator=lazy_object(
                "nodewise_partitioning.estimator:PartitioningEstimator", "learn", "assess", "fit", refuse=refuse
            ),
            capabilities=frozenset({"plan", "sync-mode:allreduce", "sync-mode:async", "sync-mode:sync"}),
            columns=BASIC_COLUMNS | frozenset(DEGREES) | {"precision"},
        )
    ]

"""The estimator that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import BASIC_COLUMNS, EstimatorRecord, hookimpl, lazy_object
from nodewise_unseen.refusals import refuse

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.0"
"""Of the law, its constants and the table that ships: another version may predict otherwise from the same profile."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Models that never ran, from facts only."""
    modes = ("allreduce", "async", "sync", "hybrid")
    return [
        EstimatorRecord(
            name="unseen",
            version=VERSION,
            description=(
                "One worker's step of a model that never ran, from its FLOPs and family and from steps of other models"
            ),
            estimator=lazy_object("nodewise_unseen.estimator:UnseenEstimator", "learn", "assess", "fit", refuse=refuse),
            capabilities=frozenset({"architectures", *(f"sync-mode:{mode}" for mode in modes)}),
            columns=BASIC_COLUMNS | {"precision"},
        )
    ]

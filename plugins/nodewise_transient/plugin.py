"""The estimator that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import EstimatorRecord, hookimpl, lazy_object

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.0"
"""Of the mathematics and its constants: another version may tell otherwise of the same offers."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Completion on machines that can be taken away."""
    return [
        EstimatorRecord(
            name="transient",
            version=VERSION,
            description="Time, cost and risk of completion on revocable machines, for any throughput",
            estimator=lazy_object(
                "nodewise_transient.estimator:TransientEstimator", "assess", "fit", "complete", "play", "switch"
            ),
            capabilities=frozenset({"completion"}),
            predicts=False,
        )
    ]

"""The estimator that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import BASIC_COLUMNS, EstimatorRecord, hookimpl, lazy_object

__all__ = ["nodewise_estimators"]

VERSION: Final = "2.1"
"""Of the laws and constants: another version may predict otherwise from the same profile."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Closed queueing networks for parameter servers."""
    return [
        EstimatorRecord(
            name="queueing",
            version=VERSION,
            description=(
                "Parameter-server training as a closed queueing network: exact mean value analysis (ASYNC), a barrier "
                "with queued uploads (SYNC), one after the other (HYBRID); or by simulation."
            ),
            estimator=lazy_object("nodewise_queueing.estimator:QueueingEstimator", "assess", "fit"),
            capabilities=frozenset(
                {"sync-mode:async", "sync-mode:sync", "sync-mode:hybrid", "fidelity:model", "fidelity:simulate"}
            ),
            columns=BASIC_COLUMNS | {"backup_workers", "groups", "hybrid_sync_fraction", "hybrid_switch_s"},
        )
    ]

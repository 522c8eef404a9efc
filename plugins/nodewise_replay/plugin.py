"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import EstimatorRecord, hookimpl, lazy_object
from nodewise_replay.refusals import refuse

__all__ = ["nodewise_estimators"]

VERSION: Final = "1.0"
"""Of the rules of graph and replay: another version may predict something else from the same traces."""


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Step times of other worlds and links, from the traces of one."""
    return [
        EstimatorRecord(
            name="replay",
            version=VERSION,
            description="Recorded steps, replayed with another number of ranks or over other links.",
            estimator=lazy_object("nodewise_replay.estimator:ReplayEstimator", "assess", "fit", refuse=refuse),
            capabilities=frozenset({"traces"}),
        )
    ]

"""Models that answer many architectures at once, as a search over them asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from nodewise.domain.architectures import Architectures
from nodewise.domain.columns import Floats
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Options, Predictions
from nodewise.plugin.estimators import Model

__all__ = ["ArchitecturePredictions", "ArchitecturesModel"]


@dataclass(frozen=True, slots=True, eq=False)
class ArchitecturePredictions:
    """What a model answers of architectures on configurations, and how the errors of its answers hang together.

    Row ``a * configurations + c`` is of architecture a on configuration c. The error of ln(step time) of a row is its
    row of ``shared_log_errors`` times standard normal variables that all rows of its configuration share, plus one of
    its own: what moves two rows alike does not change which of them is faster.

    Attributes
    ----------
    predictions : Predictions
        One row each.
    shared_log_errors : (rows, variables) float
        Deviations of ln(step time) by shared variable; rows that are not answered hold 0. May have no variables.
    own_log_errors : (rows,) float
        Deviation of ln(step time) that a row shares with no other; 0 in rows that are not answered.
    """

    predictions: Predictions
    shared_log_errors: Floats
    own_log_errors: Floats


@runtime_checkable
class ArchitecturesModel(Model, Protocol):
    """Optional: a model that answers about other workloads than its profile's in one call. Pure, as ``predict``.

    Without it the service asks about one architecture after the other, each as a profile of its own.
    """

    def predict_architectures(
        self, architectures: Architectures, configurations: Configurations, options: Options
    ) -> ArchitecturePredictions:
        """Predict each architecture on each configuration.

        Each row equals what ``predict`` of a model answers that is fitted to the same profile, which holds facts alone,
        with the architecture's in place of its workload's. An architecture of which too little is known is refused row
        by row.
        """
        ...

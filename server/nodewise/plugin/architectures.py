"""Models that predict many architectures in one call, for searches over architectures."""

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
    """Predictions of architectures on configurations, and how their errors correlate.

    Row ``a * configurations + c`` is of architecture a on configuration c. The error of ln(step time) of a row is its
    row of ``shared_log_errors`` times standard normal variables that all rows of its configuration share, plus an error
    of its own. A shared error changes two rows alike, and so does not change which of them is faster.

    Attributes
    ----------
    predictions : Predictions
        One row for each architecture and configuration.
    shared_log_errors : (rows, variables) float
        Standard deviations of ln(step time) by shared variable; 0 in refused rows. May have no variables.
    own_log_errors : (rows,) float
        Standard deviation of ln(step time) of a row's own error; 0 in refused rows.
    """

    predictions: Predictions
    shared_log_errors: Floats
    own_log_errors: Floats


@runtime_checkable
class ArchitecturesModel(Model, Protocol):
    """Optional: a model that predicts other workloads than its profile's in one call. Pure, like ``predict``.

    For models without it the service predicts one architecture after the other, each as a profile of its own.
    """

    def predict_architectures(
        self, architectures: Architectures, configurations: Configurations, options: Options
    ) -> ArchitecturePredictions:
        """Predict each architecture on each configuration.

        The profile of the model has facts alone. Each row equals the prediction of a model that is fitted to the same
        profile with the architecture's facts in place of its workload's. Rows of an architecture with too few facts are
        refused.
        """
        ...

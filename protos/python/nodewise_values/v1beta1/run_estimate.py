"""The card of a run before its start: whether it fits, and its time, cost, energy and emissions, with failures.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1beta1.completion_offer import CompletionCheckpoints
from nodewise_values.value import Value, Word

__all__ = [
    "MemoryFit",
    "RunAssumption",
    "RunDoubt",
    "RunEnergy",
    "RunFailures",
    "RunMemory",
    "RunPower",
    "RunQuantity",
]


class MemoryFit(Word):
    """Whether a run fits into the memory of its devices."""

    FITS = "fits"
    """The upper bound of the memory fits, or the estimator states no bounds."""
    UNSURE = "unsure"
    """The predicted memory fits, but its upper bound does not."""
    EXCEEDED = "exceeded"
    """The predicted memory does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunFailures(Value):
    """Failures of a run, and how it recovers.

    Failures of a run, and how it recovers: it restarts from the last checkpoint, or in asynchronous training continues
    without the lost node until that is replaced.
    """

    device_hours_between_failures: float | None = None
    """Mean hours of one device between failures that stop the job or the device's node.

    The job's own mean is this divided by its devices. Absent = 50,000.
    """
    restart_seconds: float | None = None
    """Seconds from a failure until the job runs again. Absent = 600."""
    checkpoints: CompletionCheckpoints | None = None
    """How the job saves checkpoints.

    Absent = each node writes the weights and the optimizer's state of its devices at 1 GB/s, at the best interval.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunPower(Value):
    """Power of the machines, and emissions of the grid."""

    idle_watts: float | None = None
    """Power of a device of the job while it waits, W.

    Absent = that of the catalog, else a share of the device's limit.
    """
    training_watts: float | None = None
    """Power of a device of this job while it computes, W, e.g. measured in a short run.

    Absent = a share of the limit of the device.
    """
    host_power_ratio: float | None = None
    """Power of whole nodes divided by that of their devices. Absent = 1.4."""
    power_usage_effectiveness: float | None = None
    """Power of the facility divided by that of its nodes (PUE). Absent = 1: cooling is not counted."""
    grid_grams_per_kilowatt_hour: float | None = None
    """Emissions of the grid, grams of CO2 equivalent for each kWh. Absent = emissions are not estimated."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunMemory(Value):
    """Memory of each device."""

    fit: MemoryFit | None = None
    """Whether the run fits."""
    bytes: float = 0.0
    """Predicted bytes."""
    lower_bytes: float | None = None
    """Lower bound of the bytes. Absent = the estimator states none."""
    upper_bytes: float | None = None
    """Upper bound of the bytes. Absent = the estimator states none."""
    capacity_bytes: float | None = None
    """Bytes that the device has. Absent = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunQuantity(Value):
    """A quantity with its 90 % interval."""

    value: float = 0.0
    """Mean."""
    lower: float = 0.0
    """Lower bound."""
    upper: float = 0.0
    """Upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunEnergy(Value):
    """Energy of a run."""

    compute_ratio: float = 0.0
    """Share of a step for which a device computes."""
    device_watts: RunQuantity | None = None
    """Power of one device, W."""
    joules: RunQuantity | None = None
    """Energy of the whole run: devices, their nodes and the facility, with failures, J."""
    device_joules_per_sample: RunQuantity | None = None
    """Energy of the devices alone for each sample, without failures, J."""
    co2_grams: RunQuantity | None = None
    """Emissions of the whole run, grams of CO2 equivalent. Absent = the emissions of the grid are not stated."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunAssumption(Value):
    """A value that the request does not state."""

    field: str = ""
    """Field of the request that states it, e.g. "failures.restart_seconds"."""
    value: float = 0.0
    """Assumed value, in the unit of the field."""
    why: str = ""
    """Where the value comes from, and what is known to differ."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunDoubt(Value):
    """What is unsure about a figure."""

    figure: str = ""
    """Figure: "memory", "time", "cost", "deadline", "energy" or "co2"."""
    why: str = ""
    """What is unsure, in one sentence with its numbers."""

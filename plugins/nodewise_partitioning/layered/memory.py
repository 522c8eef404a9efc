"""Memory of a machine or device that trains its part of a network."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import Floats

__all__ = ["OPTIMIZER_STATES", "device_bytes", "machine_bytes", "optimizer_states"]

OPTIMIZER_STATES: Final = {"sgd": 0.0, "momentum": 1.0, "adagrad": 1.0, "rmsprop": 1.0, "adam": 2.0, "adamw": 2.0}
"""Values that an optimizer keeps for each parameter, of the parameters' size."""
UNKNOWN_OPTIMIZER_STATES: Final = 1.0
"""Of one that is not stated: momentum, the usual one of such networks."""


def optimizer_states(optimizer: str | None) -> float:
    """Return the number of values that the optimizer keeps for each parameter."""
    return OPTIMIZER_STATES.get((optimizer or "").casefold(), UNKNOWN_OPTIMIZER_STATES)


def machine_bytes(parameter_bytes: Floats, activation_bytes: Floats, samples_in_flight: int) -> Floats:
    """Return (W,) bytes on each machine of a replica: weights and local updates, activations and their gradients.

    The optimizer's state is on the parameter servers.
    """
    return 2.0 * parameter_bytes + samples_in_flight * 2.0 * activation_bytes


def device_bytes(parameter_bytes: float, activation_bytes_per_sample: float, batch: Floats, states: float) -> Floats:
    """Return the bytes on a device with the whole network: weights, gradients, optimizer state and activations.

    Gradients of activations need no further memory: they replace activations that the backward pass has used.
    """
    return (2.0 + states) * parameter_bytes + batch * activation_bytes_per_sample

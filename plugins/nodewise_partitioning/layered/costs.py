"""What each layer of a network computes, holds and sends: columns over layers, all per sample but the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Layer, as_floats, freeze

__all__ = ["LayerCosts"]

RECURRENT: Final = "recurrent"
"""The kind of layers whose parts read each other's outputs, one step of the sequence after the other."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LayerCosts:
    """Layers in order of the forward pass; every column has one entry per layer.

    Attributes
    ----------
    forward_flops, error_flops, update_flops : float
        Forward pass; errors of its input, none for the first layer; gradient of its weights, none where it has no
        parameters.
    parameter_bytes, activation_bytes, input_bytes, halo_bytes : float
        Parameters; output; output of the layer before (0 for the first: every machine reads samples from its own disk);
        input read beyond each edge of a strip.
    strips : bool
        Whether its parts are strips that hold all of its parameters each; else each has its share of the outputs and of
        the parameters.
    recurrent : bool
        Whether its parts read each other's outputs.
    """

    forward_flops: Floats
    error_flops: Floats
    update_flops: Floats
    parameter_bytes: Floats
    activation_bytes: Floats
    input_bytes: Floats
    halo_bytes: Floats
    strips: NDArray[np.bool_]
    recurrent: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.forward_flops)

    @property
    def flops(self) -> Floats:
        """Forward and backward pass of each layer."""
        return self.forward_flops + self.error_flops + self.update_flops

    def scale(self, samples: float) -> LayerCosts:
        """Of so many samples that go through the network together."""
        return replace(
            self,
            forward_flops=self.forward_flops * samples,
            error_flops=self.error_flops * samples,
            update_flops=self.update_flops * samples,
            activation_bytes=self.activation_bytes * samples,
            input_bytes=self.input_bytes * samples,
            halo_bytes=self.halo_bytes * samples,
        )

    @staticmethod
    def of(layers: Sequence[Layer], flops_per_sample: float | None = None) -> LayerCosts:
        """From a workload's layers.

        A backward pass costs the forward pass once for errors and once for weights, unless ``flops_per_sample``, that
        of both passes together, says otherwise.
        """
        forward = as_floats([layer.forward_flops_per_sample for layer in layers])
        parameters = as_floats([float(layer.parameter_bytes) for layer in layers])
        activations = as_floats([layer.activation_bytes_per_sample for layer in layers])
        halo = as_floats([layer.halo_bytes_per_sample or 0.0 for layer in layers])
        error = forward.copy()
        error[:1] = 0.0
        update = np.where(parameters > 0.0, forward, 0.0)
        backward = float(error.sum() + update.sum())
        if flops_per_sample is not None and backward > 0.0:
            # A total below the forward pass contradicts the layers: their own count stands.
            scale = (flops_per_sample - float(forward.sum())) / backward
            if scale > 0.0:
                error, update = error * scale, update * scale
        return LayerCosts(
            forward_flops=forward,
            error_flops=freeze(error),
            update_flops=freeze(update),
            parameter_bytes=parameters,
            activation_bytes=activations,
            input_bytes=freeze(np.concatenate(([0.0], activations[:-1]))),
            halo_bytes=halo,
            strips=freeze(np.array([layer.halo_bytes_per_sample is not None for layer in layers], dtype=np.bool_)),
            recurrent=freeze(np.array([layer.kind == RECURRENT for layer in layers], dtype=np.bool_)),
        )

"""Computation, memory and traffic of each layer of a network, as columns over layers: per sample, except parameters."""

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
    """Layers in the order of the forward pass. Each column has one entry per layer.

    Attributes
    ----------
    forward_flops, error_flops, update_flops : float
        FLOPs of the forward pass; of the gradient of its input (0 for the first layer); of the gradient of its weights
        (0 without parameters).
    parameter_bytes, activation_bytes, input_bytes, halo_bytes : float
        Bytes of the parameters; of the output; of the input (0 for the first layer: each machine reads samples from its
        own disk); of the input that a strip reads beyond each of its edges.
    strips : bool
        Whether the layer is split into strips, each with all of its parameters. Otherwise each part has a share of the
        outputs and of the parameters.
    recurrent : bool
        Whether the parts of the layer read each other's outputs.
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
        """FLOPs of the forward and backward pass of each layer."""
        return self.forward_flops + self.error_flops + self.update_flops

    def scale(self, samples: float) -> LayerCosts:
        """Return the costs of so many samples that go through the network together."""
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
        """Return the costs of a workload's layers.

        The backward pass costs two forward passes, one for the gradients of inputs and one for those of weights, unless
        ``flops_per_sample`` (both passes together) states another ratio.
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

"""How a model is trained beside its dimensions and software: what is frozen, kept elsewhere, reduced and recomputed.

Sources: E. Hu et al., "LoRA", ICLR 2022, and T. Dettmers et al., "QLoRA", NeurIPS 2023 (frozen weights have neither
gradients nor optimizer states, and are held in few bits); J. Ren et al., "ZeRO-Offload", USENIX ATC 2021; Y. Zhao et
al., "PyTorch FSDP", VLDB 2023 (hybrid sharding, formats of reductions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Workload

__all__ = ["ALL_TRAINED", "Training"]

MOST_FROZEN: Final = 1.0 - 1e-6
"""Something is trained, however little: exchanges of nothing have no time."""

FOUR_BITS: Final = 0.5
SCALE_BYTES: Final = 4.0 / 64.0
"""Of a weight of four bits: 64 share a scale of 32 bits (QLoRA, section 3; without its double quantisation, which is an
option of bitsandbytes that is off by default)."""

_BYTES: Final = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Facts of a job; the defaults change nothing.

    Attributes
    ----------
    frozen : float
        Share of the weights that are not trained, in every layer alike.
    frozen_bytes : float
        Held for each of them; 0 = as the others.
    dropout : bool or None
        Whether there are masks to keep; None = as the stack tells.
    offloads_optimizer, offloads_parameters : bool
        The optimizer's states, and with them its step, are the host's; so are parameters and gradients.
    reduced_bytes : float
        Of a gradient on its way between replicas; 0 = as the stack has it.
    sharding_devices : float
        Devices that a ZeRO stage splits over; 0 = all data-parallel ranks.
    recomputed : float
        Share of the layers that full recomputation computes again.
    """

    frozen: float = 0.0
    frozen_bytes: float = 0.0
    dropout: bool | None = None
    offloads_optimizer: bool = False
    offloads_parameters: bool = False
    reduced_bytes: float = 0.0
    sharding_devices: float = 0.0
    recomputed: float = 1.0

    @staticmethod
    def of(workload: Workload) -> Training:
        """From a workload's facts."""
        return Training(
            frozen=min(workload.frozen_weights_share or 0.0, MOST_FROZEN),
            frozen_bytes=(workload.frozen_weight_bits or 0.0) / 8.0,
            dropout=workload.dropout,
            offloads_optimizer=workload.offload in ("optimizer", "parameters"),
            offloads_parameters=workload.offload == "parameters",
            reduced_bytes=_BYTES.get(workload.reduction_precision or "", 0.0),
            sharding_devices=float(workload.sharding_devices or 0),
            recomputed=workload.recomputed_share or 1.0,
        )

    @property
    def trained(self) -> float:
        """Share of the weights that have gradients, optimizer states and an exchange."""
        return 1.0 - self.frozen

    @property
    def packed_bytes(self) -> float:
        """Of a frozen weight with its share of a scale, where it has one; 0 = as the others."""
        return self.frozen_bytes + (SCALE_BYTES if 0.0 < self.frozen_bytes <= FOUR_BITS else 0.0)

    def weight_bytes(self, usual: float) -> float:
        """Of the average weight of a layer, where one that is trained has the usual."""
        return usual + self.frozen * ((self.packed_bytes or usual) - usual)

    def unquantised_bytes(self, usual: float) -> float:
        """What a weight of embedding and output layer has beyond one of a layer: they are not packed."""
        return max(usual - self.weight_bytes(usual), 0.0)

    def unpacked_bytes(self, usual: float) -> float:
        """Read and written of the average weight before each use, where frozen ones are held in fewer bits."""
        return self.frozen * (self.frozen_bytes + usual) if 0.0 < self.frozen_bytes < usual else 0.0

    def exchanged_bytes(self, usual: float) -> float:
        """Of a gradient on its way between replicas."""
        return self.reduced_bytes or usual

    def shards(self, replicas: Floats) -> Floats:
        """Devices that a ZeRO stage splits over."""
        return np.minimum(replicas, self.sharding_devices) if self.sharding_devices else replicas


ALL_TRAINED: Final = Training()

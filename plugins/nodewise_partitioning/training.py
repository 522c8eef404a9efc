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

MOMENTS: Final = {
    "adafactor": 0.0,
    "momentum": 1.0,
    "nesterov": 1.0,
    "sgd": 0.0,
    "lion": 1.0,
    "muon": 1.0,
    "adagrad": 1.0,
}
"""Values of state per parameter by what an optimizer's name holds: Adam and its like have two, plain descent none (as
`torch.optim.SGD` by default); Adafactor keeps sums of rows and columns in their place (N. Shazeer and M. Stern, 2018);
X. Chen et al., "Lion", 2023; K. Jordan et al., "Muon", 2024."""

LEAST_UPDATE_BYTES: Final = 6.0
"""A 16-bit gradient that is read, a weight that is read and written."""

_BYTES: Final = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Facts of a job; the defaults change nothing.

    Attributes
    ----------
    frozen_share : float
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
    recomputed_share : float
        Share of the layers that full recomputation computes again.
    master_weights : bool or None
        Whether there are 32-bit copies of 16-bit weights; None = as the stack has it.
    moments, moment_bytes : float
        Values of the optimizer's state per parameter; bytes of each, 0 = as the stack has it.
    fused_loss : bool or None
        Whether logits are never held as a whole; None = as the stack tells.
    document_tokens : float
        Mean tokens that attend to each other in a packed sequence; 0 = all of it.
    busiest_expert_share, expert_capacity : float
        Share of all routed tokens that the busiest expert gets; most tokens of an expert by its balanced share. 0 = not
        stated.
    adapter_rank : float
        Of the adapters on all matrices of a layer; 0 = not stated.
    scaled_adapters : bool
        Adapters have a magnitude beside (DoRA): norms of whole matrices in every pass.
    """

    frozen_share: float = 0.0
    frozen_bytes: float = 0.0
    dropout: bool | None = None
    offloads_optimizer: bool = False
    offloads_parameters: bool = False
    reduced_bytes: float = 0.0
    sharding_devices: float = 0.0
    recomputed_share: float = 1.0
    master_weights: bool | None = None
    moments: float = 2.0
    moment_bytes: float = 0.0
    fused_loss: bool | None = None
    document_tokens: float = 0.0
    busiest_expert_share: float = 0.0
    expert_capacity: float = 0.0
    adapter_rank: float = 0.0
    scaled_adapters: bool = False

    @staticmethod
    def of(workload: Workload) -> Training:
        """From a workload's facts."""
        return Training(
            frozen_share=min(workload.frozen_weights_share or 0.0, MOST_FROZEN),
            frozen_bytes=(workload.frozen_weight_bits or 0.0) / 8.0,
            dropout=workload.dropout,
            offloads_optimizer=workload.offload in ("optimizer", "parameters"),
            offloads_parameters=workload.offload == "parameters",
            reduced_bytes=_BYTES.get(workload.reduction_precision or "", 0.0),
            sharding_devices=float(workload.sharding_devices or 0),
            recomputed_share=workload.recomputed_share or 1.0,
            master_weights=workload.master_weights,
            moments=_moments(workload.optimizer or ""),
            moment_bytes=_moment_bits(workload) / 8.0,
            fused_loss=workload.fused_loss,
            document_tokens=workload.document_tokens or 0.0,
            busiest_expert_share=workload.busiest_expert_share or 0.0,
            expert_capacity=workload.expert_capacity or 0.0,
            adapter_rank=float(workload.adapter_rank or 0),
            scaled_adapters=workload.adapter == "dora",
        )

    @property
    def trained_share(self) -> float:
        """Share of the weights that have gradients, optimizer states and an exchange."""
        return 1.0 - self.frozen_share

    @property
    def packed_bytes(self) -> float:
        """Of a frozen weight with its share of a scale, where it has one; 0 = as the others."""
        return self.frozen_bytes + (SCALE_BYTES if 0.0 < self.frozen_bytes <= FOUR_BITS else 0.0)

    def weight_bytes(self, usual: float) -> float:
        """Of the average weight of a layer, where one that is trained has the usual."""
        return usual + self.frozen_share * ((self.packed_bytes or usual) - usual)

    def unquantised_bytes(self, usual: float) -> float:
        """What a weight of embedding and output layer has beyond one of a layer: they are not packed."""
        return max(usual - self.weight_bytes(usual), 0.0)

    def unpacked_bytes(self, usual: float) -> float:
        """Read and written of the average weight before each use, where frozen ones are held in fewer bits."""
        return self.frozen_share * (self.frozen_bytes + usual) if 0.0 < self.frozen_bytes < usual else 0.0

    def exchanged_bytes(self, usual: float) -> float:
        """Of a gradient on its way between replicas."""
        return self.reduced_bytes or usual

    def update_bytes(self, usual: float) -> float:
        """Moved per parameter by the optimizer's step, where Adam with 32-bit states moves the usual.

        Every value of state, and every 32-bit weight, is read and written.
        """
        states = self.moments * (self.moment_bytes or 4.0) - 8.0 - (4.0 if self.master_weights is False else 0.0)
        return max(usual + 2.0 * states, LEAST_UPDATE_BYTES)

    def shards(self, replicas: Floats) -> Floats:
        """Devices that a ZeRO stage splits over."""
        return np.minimum(replicas, self.sharding_devices) if self.sharding_devices else replicas


def _letters(word: str) -> str:
    return "".join(each for each in word.casefold() if each.isalnum())


def _moments(optimizer: str) -> float:
    name = _letters(optimizer)
    return next((count for word, count in MOMENTS.items() if word in name), 2.0)


def _moment_bits(workload: Workload) -> float:
    """The stated value, else that of the optimizer with this name."""
    return workload.optimizer_state_bits or (8.0 if "8bit" in _letters(workload.optimizer or "") else 0.0)


ALL_TRAINED: Final = Training()

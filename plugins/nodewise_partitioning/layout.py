"""Layouts of a model over devices, as columns of floats: one row per configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np

from nodewise.plugin import Floats, Ints, Recomputation

__all__ = ["FULL", "NONE", "SELECTIVE", "UNSTATED", "Columns", "Layout"]

UNSTATED, NONE, SELECTIVE, FULL = (
    float(each) for each in (Recomputation.UNSPECIFIED, Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL)
)
"""Values of the column of recomputation: numbers, which are compared five times as fast as members."""

LEAST_ALIKE: Final = 64
"""Rows from which grouping by kind saves time."""
LARGEST_EXACT: Final = 2.0**53
"""Whole numbers up to it are exact as floats."""


class Columns:
    """A dataclass of columns only."""

    __slots__: tuple[str, ...] = ()

    def take(self, rows: Ints | slice) -> Self:
        """Some rows, in the given order; those of a slice without a copy."""
        return type(self)(**{each: getattr(self, each)[rows] for each in type(self).__slots__})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout(Columns):
    """Degrees, batches and places of each row; all at least 1 but the three switches.

    Ranks are in Megatron's order: tensor parallel ones are neighbours, then context, data, and pipeline parallel ones.

    Attributes
    ----------
    expert, expert_fold : float
        Groups of data and context parallel ranks that hold different experts; tensor parallel ranks that do as well,
        instead of slices of the same: expert parallelism is their product.
    sequence_parallel : float
        1 = activations between the tensor-parallel parts are split as well.
    zero_stage : float
        0 nothing, 1 optimizer, 2 gradients, 3 parameters split over data-parallel ranks.
    recomputation : float
        Values of ``Recomputation``.
    micro_batch, micro_batches : float
        Samples of a replica that pass the pipeline together; how many such in a step.
    narrow_states : float
        1 = weights, gradients and optimizer states are held in the 16-bit format that is trained in, without 32-bit
        master weights (``memory.settled_states``).
    narrow_loss : float
        1 = logits and their gradient are held in 16 bits only.
    devices_per_node, devices : float
        Devices on the fullest node; in total.
    node_link_bytes_per_s : float
        All adapters of one node together, in one direction.
    """

    tensor: Floats
    pipeline: Floats
    data: Floats
    context: Floats
    expert: Floats
    expert_fold: Floats
    sequence_parallel: Floats
    interleave: Floats
    zero_stage: Floats
    recomputation: Floats
    micro_batch: Floats
    micro_batches: Floats
    devices_per_node: Floats
    devices: Floats
    node_link_bytes_per_s: Floats
    narrow_states: Floats
    narrow_loss: Floats

    def __len__(self) -> int:
        return len(self.tensor)

    def alike(self, *, beyond_nodes: bool = False) -> tuple[Ints, Ints] | None:
        """Kinds of rows whose layers and ends cost the same: one index for each kind, and the kind of each row.

        They do for equal splits of a layer and equal micro-batches, whatever the pipeline and the replicas; also the
        number of devices gives how many the link joins of devices whose link goes on ``beyond_nodes``. None where
        numbers are too large to tell them apart cheaply, or too few rows to be worth it.
        """
        if len(self) < LEAST_ALIKE or np.any(self.node_link_bytes_per_s != self.node_link_bytes_per_s[0]):
            return None
        code = np.zeros(len(self))
        room = 1.0
        for column in (
            self.tensor,
            self.context,
            self.expert,
            self.expert_fold,
            self.devices_per_node,
            self.micro_batch,
            self.recomputation,
            self.sequence_parallel,
            *((self.devices,) if beyond_nodes else ()),
        ):
            width = float(np.max(column)) + 1.0
            room *= width
            code = code * width + column
        if room > LARGEST_EXACT:
            return None
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
        return first, kind

    @staticmethod
    def concatenate(several: Sequence[Layout]) -> Layout:
        """The rows of at least one, one after the other."""
        if len(several) == 1:
            return several[0]
        return Layout(**{name: np.concatenate([getattr(each, name) for each in several]) for name in Layout.__slots__})

    @staticmethod
    def of(rows: int, **columns: Floats | float) -> Layout:
        """Columns by the differences to one device with the whole model: one micro-batch of one sample, recomputed."""
        plain = {field.name: 1.0 for field in fields(Layout)}
        plain |= {"sequence_parallel": 0.0, "zero_stage": 0.0, "recomputation": 3.0, "devices_per_node": 8.0}
        plain |= {"narrow_states": 0.0, "narrow_loss": 0.0}
        filled = {
            name: np.broadcast_to(np.asarray(columns.get(name, plain[name]), dtype=float), rows) for name in plain
        }
        return Layout(**filled)

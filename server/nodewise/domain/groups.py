"""Groups of workers that differ: in their device, or in their speed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, freeze
from nodewise.domain.ragged_workers import RaggedWorkers, offsets_of

__all__ = ["WorkerGroup", "WorkerGroups"]


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """Workers of a row that are alike.

    Attributes
    ----------
    device : str
        Their accelerator.
    workers : int
        How many there are.
    compute_factor : float
        Their compute time relative to what the evidence says of the device; above 1 = slower.
    """

    device: str
    workers: int
    compute_factor: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class WorkerGroups(RaggedWorkers):
    """Groups of each row; an empty range means that all workers of the row are alike.

    Attributes
    ----------
    workers : int
        Workers of each group.
    device_index : int
        Entry of each group in ``Configurations.devices``.
    compute_factor : float
        Compute time of each group's workers relative to what the evidence says of their device.
    """

    device_index: Ints
    compute_factor: Floats

    def row(self, row: int, devices: Sequence[str]) -> tuple[WorkerGroup, ...]:
        """The groups of one row; empty means that its workers are alike."""
        part = slice(self.offsets[row], self.offsets[row + 1])
        entries = zip(
            self.device_index[part].tolist(),
            self.workers[part].tolist(),
            self.compute_factor[part].tolist(),
            strict=True,
        )
        return tuple(WorkerGroup(devices[index], workers, factor) for index, workers, factor in entries)

    def row_of_group(self) -> Ints:
        """The row that each group belongs to."""
        return freeze(np.repeat(np.arange(len(self.offsets) - 1), self.counts()))

    def recode(self, codes: Ints) -> WorkerGroups:
        """The same groups with other indexes of their devices: ``codes`` maps old to new."""
        return WorkerGroups(self.offsets, self.workers, freeze(codes[self.device_index]), self.compute_factor)

    @staticmethod
    def of(rows: Iterable[Sequence[WorkerGroup]], devices: Sequence[str]) -> WorkerGroups:
        """Groups from one sequence per row, and the dictionary of their devices."""
        groups_of_rows = [tuple(row) for row in rows]
        groups = [group for row in groups_of_rows for group in row]
        return WorkerGroups(
            offsets_of(map(len, groups_of_rows)),
            as_ints([group.workers for group in groups]),
            as_ints([devices.index(group.device) for group in groups]),
            as_floats([group.compute_factor for group in groups]),
        )

"""Groups of workers that are not alike: other devices, or slower ones of the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, freeze

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
class WorkerGroups:
    """Groups of each row in compressed sparse rows; an empty range means that all workers of the row are alike.

    Attributes
    ----------
    offsets : (rows + 1,) int
        Row r uses entries ``offsets[r]`` to ``offsets[r + 1]`` of the other columns.
    workers : int
        Workers of each group.
    device_index : int
        Entry of each group in ``Configurations.devices``.
    compute_factor : float
        Compute time of each group's workers relative to what the evidence says of their device.
    """

    offsets: Ints
    workers: Ints
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

    def counts(self) -> Ints:
        """Groups of each row."""
        return freeze(np.diff(self.offsets))

    def row_workers(self) -> Ints:
        """Workers that the groups of each row hold; 0 where it has none."""
        up_to = np.concatenate(([0], np.cumsum(self.workers, dtype=np.int64)))
        return freeze(up_to[self.offsets[1:]] - up_to[self.offsets[:-1]])

    def row_of_group(self) -> Ints:
        """The row that each group belongs to."""
        return freeze(np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets)))

    def take(self, rows: Ints) -> WorkerGroups:
        """The groups of some rows, in their order."""
        parts = [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows.tolist()]
        entries = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        return WorkerGroups(
            _offsets(len(part) for part in parts),
            freeze(self.workers[entries]),
            freeze(self.device_index[entries]),
            freeze(self.compute_factor[entries]),
        )

    def recoded(self, codes: Ints) -> WorkerGroups:
        """The same groups with other numbers for their devices: ``codes`` maps the old to the new."""
        return WorkerGroups(self.offsets, self.workers, freeze(codes[self.device_index]), self.compute_factor)

    @staticmethod
    def none(rows: int) -> WorkerGroups:
        """Rows without groups."""
        return WorkerGroups(as_ints(np.zeros(rows + 1, dtype=np.int64)), as_ints([]), as_ints([]), as_floats([]))

    @staticmethod
    def concatenated(parts: Sequence[WorkerGroups]) -> WorkerGroups:
        """The rows of all parts, one after the other; their devices are numbered alike."""
        return WorkerGroups(
            _offsets(count for part in parts for count in np.diff(part.offsets).tolist()),
            freeze(np.concatenate([part.workers for part in parts])),
            freeze(np.concatenate([part.device_index for part in parts])),
            freeze(np.concatenate([part.compute_factor for part in parts])),
        )

    @staticmethod
    def of(rows: Iterable[Sequence[WorkerGroup]], devices: Sequence[str]) -> WorkerGroups:
        """From one sequence of groups per row, and the dictionary that holds their devices."""
        listed = [tuple(row) for row in rows]
        groups = [group for row in listed for group in row]
        return WorkerGroups(
            _offsets(len(row) for row in listed),
            as_ints([group.workers for group in groups]),
            as_ints([devices.index(group.device) for group in groups]),
            as_floats([group.compute_factor for group in groups]),
        )


def _offsets(counts: Iterable[int]) -> Ints:
    return as_ints(np.concatenate(([0], np.cumsum(list(counts), dtype=np.int64))))

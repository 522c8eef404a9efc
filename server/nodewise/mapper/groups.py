"""Groups of workers that are not alike, as columns of a message."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, constant_ints, freeze
from nodewise.domain.configurations import Configurations, WorkerGroups
from nodewise.mapper.reading import Reader
from nodewise_protos.v1 import configuration_pb2 as pb

__all__ = ["grouped_workers", "read_groups", "write_groups"]

MOST_GROUPS: Final = 64
"""Groups of one row: workers that are alike belong into one, and models are costly in their number."""
LARGEST_FACTOR: Final = 1e6
"""Largest factor between the compute times of workers, either way, that is taken for one."""


def read_groups(message: pb.Configurations, path: str, rows: int, reader: Reader) -> dict[str, object]:
    """The columns that follow from the groups: themselves, and the rows' devices where only they say these."""
    offsets = _offsets(message, path, rows, reader)
    count = len(message.group_workers)
    if offsets is None or not count:
        for name in ("group_device_indexes", "group_compute_factors"):
            if getattr(message, name) and reader.clean:
                reader.wrong(f"{path}.{name}", "must be empty without group_workers and group_offsets")
        return {}
    workers = reader.ints(message.group_workers, f"{path}.group_workers", count, default=0, least=1)
    factors = reader.floats(
        message.group_compute_factors,
        f"{path}.group_compute_factors",
        count,
        default=1.0,
        least=1.0 / LARGEST_FACTOR,
        most=LARGEST_FACTOR,
    )
    if message.group_device_indexes:
        return _on_devices(message, path, reader, WorkerGroups(offsets, workers, constant_ints(count, 0), factors))
    # Without devices of their own groups run on those of their rows.
    of_rows = np.zeros(rows, dtype=np.int64)
    if len(message.device_indexes) in (1, rows):
        of_rows[:] = message.device_indexes
    return {"worker_groups": WorkerGroups(offsets, workers, _per_group(of_rows, offsets), factors)}


def _offsets(message: pb.Configurations, path: str, rows: int, reader: Reader) -> Ints | None:
    count = len(message.group_workers)
    if not message.group_offsets and not count:
        return None
    offsets = reader.offsets(message.group_offsets, f"{path}.group_offsets", rows, count, "group_workers")
    if offsets is None:
        return None
    counts = np.diff(offsets)
    if rows and counts.max() > MOST_GROUPS:
        row = int(counts.argmax())
        reader.wrong(
            f"{path}.group_offsets", f"must give a row at most {MOST_GROUPS} groups, found {counts[row]} in row {row}"
        )
        return None
    return offsets


def _on_devices(message: pb.Configurations, path: str, reader: Reader, groups: WorkerGroups) -> dict[str, object]:
    """The groups with their devices, and the rows' devices: where no row states one, that of its first group."""
    field = f"{path}.group_device_indexes"
    count, names = len(groups.workers), len(message.device_names)
    if not names:
        reader.wrong(field, "must be empty without device_names")
        return {}
    if len(message.group_device_indexes) != count:
        entries = len(message.group_device_indexes)
        reader.wrong(field, f"must be empty, or have one entry for each of {count} group_workers; found {entries}")
        return {}
    index = reader.ints(message.group_device_indexes, field, count, default=0, most=names - 1)
    found = WorkerGroups(groups.offsets, groups.workers, index, groups.compute_factor)
    if message.device_indexes or names == 1:
        return {"worker_groups": found}
    alike = found.counts() == 0
    if alike.any():
        row = int(alike.argmax())
        reader.wrong(f"{path}.device_indexes", f"must be given: row {row} has no group that says its device")
        return {}
    return {"worker_groups": found, "device_index": freeze(index[found.offsets[:-1]])}


def _per_group(of_rows: Ints, offsets: Ints) -> Ints:
    return freeze(np.repeat(of_rows, np.diff(offsets)))


def grouped_workers(workers: Ints, groups: WorkerGroups, path: str, reader: Reader) -> Ints:
    """Workers of each row as stated, else as its groups hold; 0 where neither says."""
    held = groups.row_workers()
    apart = (held > 0) & (workers > 0) & (held != workers)
    if apart.any():
        row = int(apart.argmax())
        text = f"row {row} has {held[row]} workers in groups, but workers says {workers[row]}"
        reader.contradicts(f"{path}.group_workers", text)
    return freeze(np.where(workers == 0, held, workers))


def write_groups(configurations: Configurations, message: pb.Configurations) -> None:
    """The columns of the groups, if any row has some."""
    groups = configurations.worker_groups
    if groups is None or not len(groups.workers):
        return
    message.group_offsets.extend(groups.offsets.tolist())
    message.group_workers.extend(groups.workers.tolist())
    if configurations.devices != ("",):
        message.group_device_indexes.extend(groups.device_index.tolist())
    factors: Floats = groups.compute_factor
    if (factors != 1.0).any():
        message.group_compute_factors.extend(factors.tolist())

"""Configurations: made of rows or columns, and read row by row. On the wire they are columns, some of them packed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final

from nodewise_client._columns import as_tuple, broadcast, write_columns
from nodewise_values import Configurations
from nodewise_values.facts import CONFIGURATIONS

_PACKED_PREFIXES: Final = ("device_", "offer_", "placement_", "group_")
PLAIN_COLUMNS: Final = tuple(each.name for each in fields(Configurations) if not each.name.startswith(_PACKED_PREFIXES))
"""Columns with an entry per row. The others are packed; row by row they are `ROW_COLUMNS`."""
ROW_COLUMNS: Final = ("devices", "offers", "placements", "groups")

Columns = dict[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """Workers of a configuration that are alike: `WorkerGroup(workers=2, compute_factor=1.5)` are two stragglers."""

    workers: int
    device_name: str | None = None
    """Their accelerator; None = the row's. Either every group of some configurations names one, or none does."""
    compute_factor: float = 1.0
    """Their compute time relative to what the evidence says of their device; above 1 = slower."""


def configurations(
    *,
    devices: str | Iterable[str | None] | None = (),
    offers: str | Iterable[str | None] | None = (),
    placements: Iterable[Sequence[int] | None] = (),
    groups: Iterable[Sequence[WorkerGroup] | None] = (),
    **columns: Any,
) -> Configurations:
    """Configurations by columns: `configurations(nodes=[1, 2, 4], devices="V100", sync_modes="async")`.

    A column is a value for all rows, one value per row, or absent, and then what the job's evidence says holds. The
    longest column sets the number of rows.

    Args:
        devices: accelerators, e.g. "V100".
        offers: names of the question's offers.
        placements: workers on each node of a row, e.g. (4, 4); an empty one or None = packed.
        groups: workers that are not alike, one sequence of groups per row; an empty one or None = all are alike.
        columns: every other column of `Configurations`, by its name; None in a row = as where the column is absent.

    Raises
    ------
        TypeError: for a column that there is not.
        ValueError: where some groups name their device and others do not.
    """
    return Configurations(
        **write_columns(Configurations, CONFIGURATIONS, columns),
        **_devices_and_groups(_names(devices), groups),
        **_index_names("offer", _names(offers)),
        **_pack_rows("placement", [tuple(row or ()) for row in placements], "workers"),
    )


def configurations_of_rows(rows: Iterable[Mapping[str, Any]]) -> Configurations:
    """Configurations by rows, as `configuration_rows` gives them: every row states the same columns."""
    all_rows = list(rows)
    for number, row in enumerate(all_rows):
        if row.keys() != all_rows[0].keys():
            odd = ", ".join(sorted(row.keys() ^ all_rows[0].keys()))
            raise ValueError(f"row {number} and the rows before it state different settings: {odd}")
    return configurations(**{name: [row[name] for row in all_rows] for name in (all_rows[0] if all_rows else ())})


def configuration_rows(columns_of_rows: Configurations) -> tuple[dict[str, Any], ...]:
    """Each row with the columns that are stated, by the names that `configurations` takes."""
    columns = stated_columns(columns_of_rows)
    columns = row_columns(columns, count_rows(columns))
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def stated_columns(columns_of_rows: Configurations) -> Columns:
    """The columns that are stated, for all rows or one entry per row, by the names that `configurations` takes."""
    columns = {name: tuple(column) for name in PLAIN_COLUMNS if len(column := getattr(columns_of_rows, name))}
    packed_columns = {
        "devices": _devices(columns_of_rows),
        "offers": _offers(columns_of_rows),
        "placements": tuple(
            tuple(columns_of_rows.placement_workers[begin:end])
            for begin, end in pairwise(columns_of_rows.placement_offsets)
        ),
        "groups": _groups(columns_of_rows),
    }
    return columns | {name: column for name, column in packed_columns.items() if column}


def row_columns(columns: Columns, rows: int) -> Columns:
    """The same columns, each with one entry per row."""
    return {name: broadcast(column, rows, name) for name, column in columns.items()}


def count_rows(columns: Columns) -> int:
    """How many rows there are."""
    return max(map(len, columns.values()), default=0)


def _names(values_of_rows: Any) -> tuple[str, ...]:
    """Names row by row; None is the empty one, which names nothing."""
    return tuple(name or "" for name in as_tuple(values_of_rows))


def _index_names(name: str, rows: Sequence[str]) -> dict[str, Any]:
    """Names of rows, as a dictionary and indexes into it; one name for all rows needs no index."""
    names = tuple(dict.fromkeys(rows))
    if not any(names):
        return {}
    indexes = {f"{name}_indexes": tuple(map(names.index, rows))} if len(rows) > 1 else {}
    return {f"{name}_names": names, **indexes}


def _devices_and_groups(devices: tuple[str, ...], rows: Iterable[Sequence[WorkerGroup] | None]) -> dict[str, Any]:
    by_row = [tuple(row or ()) for row in rows]
    groups = [group for row in by_row for group in row]
    of_groups = [group.device_name for group in groups if group.device_name is not None]
    if of_groups and len(of_groups) < len(groups):
        raise ValueError("either every group names its device, or none does")
    names = {name: index for index, name in enumerate(dict.fromkeys((*devices, *of_groups)))}
    columns: dict[str, Any] = {"device_names": tuple(names)} if any(names) else {}
    if any(names) and (len(devices) > 1 or (devices and of_groups)):
        columns["device_indexes"] = tuple(names[name] for name in devices)
    if not groups:
        return columns
    columns |= _pack_rows("group", by_row, "workers", lambda group: group.workers)
    if of_groups:
        columns["group_device_indexes"] = tuple(names[name] for name in of_groups)
    if any(group.compute_factor != 1 for group in groups):
        columns["group_compute_factors"] = tuple(group.compute_factor for group in groups)
    return columns


def _pack_rows(
    name: str, rows: Sequence[Sequence[Any]], entries: str, entry: Any = lambda value: value
) -> dict[str, Any]:
    """Rows of several entries each, in compressed sparse rows."""
    if not rows:
        return {}
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return {
        f"{name}_offsets": tuple(offsets),
        f"{name}_{entries}": tuple(entry(value) for row in rows for value in row),
    }


def _devices(columns: Configurations) -> tuple[str, ...]:
    names = tuple(columns.device_names)
    if columns.device_indexes:
        return tuple(names[index] for index in columns.device_indexes)
    return () if columns.group_device_indexes else names[:1]


def _offers(columns: Configurations) -> tuple[str, ...]:
    names = tuple(columns.offer_names)
    return tuple(names[index] for index in columns.offer_indexes) or names[:1]


def _groups(columns: Configurations) -> tuple[tuple[WorkerGroup, ...], ...]:
    factors, devices = columns.group_compute_factors, columns.group_device_indexes
    groups = tuple(
        WorkerGroup(
            workers=workers,
            device_name=columns.device_names[devices[at]] if devices else None,
            compute_factor=(factors[at] if len(factors) > 1 else factors[0]) if factors else 1.0,
        )
        for at, workers in enumerate(columns.group_workers)
    )
    return tuple(groups[begin:end] for begin, end in pairwise(columns.group_offsets))

"""Configurations as messages and back, by hand: most calls bring some, and most of their columns are empty."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_ints, constant_floats, constant_ints, freeze, shared_value
from nodewise.domain.configurations import (
    UNSTATED,
    Configurations,
    Placement,
    SyncMode,
    WorkerGroups,
)
from nodewise.domain.facts import NUMBER_COLUMNS, default_of
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits, too_much
from nodewise_protos.v1 import configuration_pb2 as pb
from nodewise_values.facts import CONFIGURATIONS, OFFER

__all__ = ["read_configurations", "read_evidence", "read_offer_indexes", "read_settings", "write_configurations"]

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
    groups_on_devices = WorkerGroups(groups.offsets, groups.workers, index, groups.compute_factor)
    if message.device_indexes or names == 1:
        return {"worker_groups": groups_on_devices}
    alike = groups_on_devices.counts() == 0
    if alike.any():
        row = int(alike.argmax())
        reader.wrong(f"{path}.device_indexes", f"must be given: row {row} has no group that says its device")
        return {}
    return {"worker_groups": groups_on_devices, "device_index": freeze(index[groups_on_devices.offsets[:-1]])}


def _per_group(of_rows: Ints, offsets: Ints) -> Ints:
    return freeze(np.repeat(of_rows, np.diff(offsets)))


def grouped_workers(workers: Ints, groups: WorkerGroups, path: str, reader: Reader) -> Ints:
    """Workers of each row as stated, else as its groups hold; 0 where neither says."""
    row_workers = groups.row_workers()
    apart = (row_workers > 0) & (workers > 0) & (row_workers != workers)
    if apart.any():
        row = int(apart.argmax())
        text = f"row {row} has {row_workers[row]} workers in groups, but workers says {workers[row]}"
        reader.contradicts(f"{path}.group_workers", text)
    return freeze(np.where(workers == 0, row_workers, workers))


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


_NUMBERS: Final = frozenset(fact.field for fact in NUMBER_COLUMNS)
_COLUMNS: Final = _NUMBERS | {"placement_offsets", "device_indexes", "precisions", "group_offsets", "offer_indexes"}
_SCALE: Final = frozenset({"nodes", "workers"})
"""Columns whose greatest values are the server's limits."""
_OFFSETS: Final = frozenset({"placement_offsets", "group_offsets"})
"""Columns with one entry more than there are rows."""
_DICTIONARIES: Final = MappingProxyType({"device": "devices", "precision": "precisions"})
"""What a row says by name, and the dictionary that holds it."""


def read_configurations(message: pb.Configurations, path: str, reader: Reader, limits: Limits) -> Configurations:
    """Configurations as columns; what is wrong goes to the reader (the result is then of no use)."""
    # Most of some forty columns are empty: only those that are not are looked at.
    values_by_name: dict[str, Any] = {field.name: values for field, values in message.ListFields()}
    rows = max((len(values_by_name[name]) - (name in _OFFSETS) for name in values_by_name.keys() & _COLUMNS), default=0)
    if rows > limits.rows_per_call and rows > limits.rows_per_batch and rows > limits.backtest_rows:
        text = f"{path}: {rows} rows, more than any call takes"
        raise too_much(text, "rows_per_call", limits.rows_per_call, rows)
    columns: dict[str, object] = {
        "nodes": reader.ints(message.nodes, f"{path}.nodes", rows, default=0, most=limits.max_nodes),
        "workers": reader.ints(message.workers, f"{path}.workers", rows, default=0, most=limits.max_workers),
    }
    for name, values in values_by_name.items():
        if name in _NUMBERS and name not in _SCALE:
            fact = CONFIGURATIONS[name]
            columns[fact.row] = reader.column(values, f"{path}.{name}", rows, fact)
    if values_by_name.keys() - _NUMBERS:
        columns.update(_dictionaries(message, path, rows, reader))
    configurations = Configurations.defaults(rows).replaced(**columns)
    if reader.clean:
        _consistent(configurations, path, reader)
    return configurations


def _dictionaries(message: pb.Configurations, path: str, rows: int, reader: Reader) -> dict[str, object]:
    """Columns that are more than numbers: devices, precisions and placement."""
    columns: dict[str, object] = {}
    if message.device_names or message.device_indexes:
        columns.update(_devices(message, path, rows, reader))
    if message.offer_names or message.offer_indexes:
        read_offer_indexes(message, path, rows, reader)
    if message.precisions:
        columns.update(_precisions(message, path, rows, reader))
    if message.placement_workers or message.placement_offsets:
        columns["placement"] = _placement(message, path, rows, reader)
    if message.group_offsets or message.group_workers or message.group_device_indexes or message.group_compute_factors:
        columns.update(read_groups(message, path, rows, reader))
    return columns


def _devices(message: pb.Configurations, path: str, rows: int, reader: Reader) -> dict[str, object]:
    has_groups = bool(message.group_device_indexes)
    index = reader.entries(message, path, rows, "device", CONFIGURATIONS["device_names"], elsewhere=has_groups)
    return {"devices": tuple(message.device_names), "device_index": index}


def read_offer_indexes(message: pb.Configurations, path: str, rows: int, reader: Reader) -> Ints:
    """Row to entry of offer_names, -1 where there is none. What these are worth is for the objective to say."""
    return reader.entries(message, path, rows, "offer", OFFER["name"], nothing=-1)


def _precisions(message: pb.Configurations, path: str, rows: int, reader: Reader) -> dict[str, object]:
    values = list(message.precisions)
    if len(values) not in (1, rows):
        reader.wrong(f"{path}.precisions", f"must have one entry, or one for each of {rows} rows; found {len(values)}")
        values = values[:1]
    for number, name in enumerate(values):
        reader.text(name, f"{path}.precisions[{number}]", 16)
    dictionary = tuple(dict.fromkeys(values))
    codes = [dictionary.index(name) for name in values]
    return {
        "precisions": dictionary,
        "precision_index": constant_ints(rows, 0) if len(codes) != rows else as_ints(codes),
    }


def _placement(message: pb.Configurations, path: str, rows: int, reader: Reader) -> Placement | None:
    workers, field = list(message.placement_workers), f"{path}.placement_offsets"
    offsets = reader.offsets(message.placement_offsets, field, rows, len(workers), "placement_workers")
    if offsets is None:
        return None
    if any(count < 1 for count in workers):
        reader.wrong(f"{path}.placement_workers", "must be at least 1 on every node")
        return None
    return Placement(offsets, as_ints(workers))


def _consistent(configurations: Configurations, path: str, reader: Reader) -> None:
    """Columns that are right one by one must agree with each other."""
    everyone = configurations.workers
    if configurations.worker_groups is not None:
        everyone = grouped_workers(everyone, configurations.worker_groups, path, reader)
    none = constant_ints(len(everyone), 0)
    laid_out = (
        configurations.nodes is not none
        or configurations.placement is not None
        or configurations.worker_groups is not None
    )
    if not laid_out and (configurations.global_batch is none or configurations.batch_per_worker is none):
        return
    both = (configurations.nodes > 0) & (everyone > 0)
    short = both & (everyone < configurations.nodes)
    if short.any():
        row = int(short.argmax())
        reader.contradicts(
            f"{path}.workers[{row}]",
            f"{everyone[row]} workers cannot fill {configurations.nodes[row]} nodes: every node runs at least one",
        )
    if configurations.placement is not None:
        for row in range(len(configurations)):
            layout = configurations.placement.row(row)
            if not layout:
                continue
            nodes, workers = int(configurations.nodes[row]), int(everyone[row])
            if (workers and sum(layout) != workers) or (nodes and len(layout) != nodes):
                reader.contradicts(
                    f"{path}.placement_workers",
                    f"row {row} places {sum(layout)} workers on {len(layout)} nodes, "
                    f"but the row says {workers} workers on {nodes} nodes",
                )
    has_batches = (
        (configurations.global_batch > 0) & (configurations.batch_per_worker > 0) & (configurations.workers > 0)
    )
    if has_batches.any():
        replicas = configurations.replicas()
        product = replicas.astype(np.float64) * configurations.batch_per_worker * configurations.accumulation
        # A pipeline's micro-batches are accumulation steps that need not be stated.
        wrong = has_batches & (product != configurations.global_batch) & (configurations.accumulation > 1)
        wrong |= has_batches & (product > configurations.global_batch + replicas * configurations.accumulation)
        if wrong.any():
            row = int(wrong.argmax())
            reader.contradicts(
                f"{path}.global_batch_samples[{row}]",
                f"is {configurations.global_batch[row]}, but {replicas[row]} replicas "
                f"x {configurations.batch_per_worker[row]} samples "
                f"x {configurations.accumulation[row]} accumulation steps are {product[row]:.0f}",
            )


def read_evidence(message: pb.Configurations, path: str, reader: Reader, limits: Limits) -> Configurations:
    """Configurations that really ran: nodes, workers and synchronisation must be stated."""
    configurations = read_configurations(message, path, reader, limits)
    if message.offer_names or message.offer_indexes:
        reader.wrong(f"{path}.offer_names", "must be empty: evidence says what ran, not what can be had")
    if not len(configurations):
        return configurations
    if configurations.worker_groups is not None:
        configurations = configurations.replaced(
            workers=grouped_workers(configurations.workers, configurations.worker_groups, path, reader)
        )
    for name, column in (("nodes", configurations.nodes), ("workers", configurations.workers)):
        if (column == 0).any():
            reader.wrong(f"{path}.{name}", "must be given: evidence says what really ran")
    if (configurations.sync_mode == SyncMode.UNSPECIFIED).any():
        reader.wrong(f"{path}.sync_modes", "must be given: evidence says what really ran")
    servers = configurations.parameter_servers
    if (servers == UNSTATED).any():
        default_servers = np.where(configurations.sync_mode == SyncMode.ALLREDUCE, 0, 1)
        configurations = configurations.replaced(
            parameter_servers=freeze(np.where(servers == UNSTATED, default_servers, servers))
        )
    return configurations


def read_settings(message: pb.ConfigurationSettings, path: str, reader: Reader) -> Configurations:
    """One row that says how a job runs, without its scale. The offer that it may name is not part of it."""
    scalars = reader.read_scalars(message, f"{path}.", but=("offer_name",))
    columns: dict[str, object] = {}
    for name, value in scalars.items():
        if name in _DICTIONARIES:
            columns[_DICTIONARIES[name]] = (value,)
        else:
            columns[name] = constant_floats(1, value) if isinstance(value, float) else constant_ints(1, int(value))
    reader.text(message.offer_name, f"{path}.offer_name", 64)
    configuration = Configurations.of(1)
    return configuration.replaced(**columns) if columns else configuration


def write_configurations(configurations: Configurations, *, in_short: bool = False) -> pb.Configurations:
    """All columns that are not defaults throughout; ``in_short``: a column that is known to be one number as that."""
    message = pb.Configurations(nodes=configurations.nodes.tolist(), workers=configurations.workers.tolist())
    for fact in NUMBER_COLUMNS:
        column, default = getattr(configurations, fact.row), default_of(fact)
        common = shared_value(column)
        if fact.row not in _SCALE and common != default and (column != default).any():
            getattr(message, fact.field).extend([common] if in_short and common is not None else column.tolist())
    if configurations.worker_groups is not None:
        write_groups(configurations, message)
    if configurations.devices != ("",):
        message.device_names.extend(configurations.devices)
        message.device_indexes.extend(configurations.device_index.tolist())
    if configurations.precisions != ("",):
        message.precisions.extend(configurations.precisions[code] for code in configurations.precision_index.tolist())
    if configurations.placement is not None:
        message.placement_offsets.extend(configurations.placement.offsets.tolist())
        message.placement_workers.extend(configurations.placement.workers.tolist())
    return message

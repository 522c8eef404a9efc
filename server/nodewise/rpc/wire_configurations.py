"""Configurations on the wire: columns and ranges in, columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import as_ints, constant_floats, constant_ints, freeze, holds
from nodewise.domain.configurations import (
    UNSTATED,
    Configurations,
    Placement,
    PlacementRule,
    SyncMode,
    packed_nodes,
)
from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.facts import NUMBER_COLUMNS, unstated
from nodewise.estimation.weights import ENTRY_BYTES, part_of_rows
from nodewise.ports.cache import LruCache
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import too_much
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_groups import grouped_workers, read_groups, write_groups
from nodewise.rpc.wire_offers import read_offer_indexes
from nodewise_protos.v1 import configuration_pb2 as pb

__all__ = [
    "read_candidates",
    "read_configurations",
    "read_counts",
    "read_evidence",
    "read_parts",
    "read_settings",
    "write_configurations",
]

KEPT_BYTES: Final = 16 << 20
"""Configurations of questions that are remembered as they were read, with the bytes that they were read from."""

_NUMBERS: Final = frozenset(fact.field for fact in NUMBER_COLUMNS)
_COLUMNS: Final = _NUMBERS | {"placement_offsets", "device_indexes", "precisions", "group_offsets", "offer_indexes"}
_SCALE: Final = frozenset({"nodes", "workers"})
"""Columns whose greatest values are the server's limits."""
_OFFSETS: Final = frozenset({"placement_offsets", "group_offsets"})
"""Columns with one entry more than there are rows."""
_DICTIONARIES: Final = MappingProxyType({"device": "devices", "precision": "precisions"})
"""What a row says by name, and the dictionary that holds it."""


def read_candidates(
    configurations: pb.Configurations,
    ranges: Sequence[pb.ConfigurationRange],
    limits: Limits,
    path: str = "",
) -> Configurations:
    """What a question asks about: explicit rows first, then the ranges' rows in order.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    explicit = b"" if ranges else configurations.SerializeToString()
    if explicit:
        parts = [_remembered(_explicit, configurations, explicit, f"{path}configurations", limits)]
    else:
        parts = [found for _, found in read_parts(configurations, ranges, limits, path)]
    total = sum(map(len, parts))
    if total > limits.rows_per_call:
        raise _too_many_rows(f"{path}configurations", total, limits)
    if not total:
        raise invalid_field(f"{path}configurations", "must hold at least one row, or ranges at least one range")
    return Configurations.concatenated(parts)


def read_parts(
    configurations: pb.Configurations, ranges: Sequence[pb.ConfigurationRange], limits: Limits, path: str = ""
) -> Iterator[tuple[str, Configurations]]:
    """The explicit rows, if there are any, and those of each range, with their paths; ends early beyond a call's cap.

    Raises
    ------
    NodewiseError
        As :func:`read_candidates`.
    """
    total = 0
    explicit = configurations.SerializeToString()
    if explicit:
        field = f"{path}configurations"
        found = _remembered(_explicit, configurations, explicit, field, limits)
        total = len(found)
        yield field, found
    for number, message in enumerate(ranges):
        if total > limits.rows_per_call:
            return
        field = f"{path}ranges[{number}]"
        found = _remembered(_range, message, message.SerializeToString(), field, limits)
        total += len(found)
        yield field, found


def _too_many_rows(path: str, rows: int, limits: Limits) -> NodewiseError:
    most = limits.rows_per_call
    text = f"{path}: {rows} rows or more, a call takes rows_per_call = {most}; split the question, or send the parts "
    return too_much(f"{text}over StreamPredict", "rows_per_call", most, rows, "StreamPredict")


_kept: LruCache[tuple[str, bytes, str, Limits], Configurations] = LruCache(KEPT_BYTES)


def _remembered(
    read: Callable[[Any, str, Limits], Configurations], message: Any, data: bytes, path: str, limits: Limits
) -> Configurations:
    """What was read from the same bytes before: schedulers ask about the same few configurations again and again."""
    key = (read.__name__, data, path, limits)
    known = _kept.get(key)
    if known is None:
        known = read(message, path, limits)
        _kept.put(key, known, len(data) + ENTRY_BYTES + part_of_rows(known)[1])
    return known


def _explicit(message: pb.Configurations, path: str, limits: Limits) -> Configurations:
    reader = Reader()
    found = read_configurations(message, path, reader, limits)
    if reader.clean and holds(found.workers, 0):
        _check_scale(found, path, reader)
    reader.finish()
    return found


def _check_scale(found: Configurations, path: str, reader: Reader) -> None:
    """Every row says in one way or another how large it is."""
    stated = found.nodes + found.workers > 0
    if found.placement is not None:
        stated |= np.diff(found.placement.offsets) > 0
    if found.worker_groups is not None:
        stated |= found.worker_groups.counts() > 0
    if not stated.all():
        reader.wrong(f"{path}.workers[{int(stated.argmin())}]", "must be given unless nodes, a placement or groups are")


def read_configurations(message: pb.Configurations, path: str, reader: Reader, limits: Limits) -> Configurations:
    """Configurations as columns; what is wrong goes to the reader (the result is then of no use)."""
    # Most of some forty columns are empty: only those that are not are looked at.
    given: dict[str, Any] = {field.name: values for field, values in message.ListFields()}
    rows = max((len(given[name]) - (name in _OFFSETS) for name in given.keys() & _COLUMNS), default=0)
    if rows > limits.rows_per_call and rows > limits.rows_per_batch and rows > limits.backtest_rows:
        text = f"{path}: {rows} rows, more than any call takes"
        raise too_much(text, "rows_per_call", limits.rows_per_call, rows)
    columns: dict[str, object] = {
        "nodes": reader.ints(message.nodes, f"{path}.nodes", rows, default=0, most=limits.max_nodes),
        "workers": reader.ints(message.workers, f"{path}.workers", rows, default=0, most=limits.max_workers),
    }
    for fact in NUMBER_COLUMNS:
        if fact.field in given and fact.row not in _SCALE:
            columns[fact.row] = reader.column(given[fact.field], f"{path}.{fact.field}", rows, fact)
    if given.keys() - _NUMBERS:
        columns.update(_dictionaries(message, path, rows, reader))
    found = Configurations.unstated(rows).replaced(**columns)
    if reader.clean:
        _consistent(found, path, reader)
    return found


def _dictionaries(message: pb.Configurations, path: str, rows: int, reader: Reader) -> dict[str, object]:
    """Columns that are more than numbers: devices, precisions and placement."""
    columns: dict[str, object] = {}
    if message.device_names:
        columns.update(_devices(message, path, rows, reader))
    elif message.device_indexes:
        reader.wrong(f"{path}.device_indexes", "must be empty without device_names")
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
    for number, name in enumerate(message.device_names):
        reader.text(name, f"{path}.device_names[{number}]", 64)
    most = len(message.device_names) - 1
    index = reader.ints(message.device_indexes, f"{path}.device_indexes", rows, default=0, most=most)
    if len(message.device_names) > 1 and not message.device_indexes and not message.group_device_indexes:
        reader.wrong(f"{path}.device_indexes", "must be given when there is more than one device name")
    return {"devices": tuple(message.device_names), "device_index": index}


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


def _consistent(found: Configurations, path: str, reader: Reader) -> None:
    """Columns that are right one by one must agree with each other."""
    everyone = found.workers
    if found.worker_groups is not None:
        everyone = grouped_workers(everyone, found.worker_groups, path, reader)
    none = constant_ints(len(found), 0)
    laid_out = found.nodes is not none or found.placement is not None or found.worker_groups is not None
    if not laid_out and (found.global_batch is none or found.batch_per_worker is none):
        return
    both = (found.nodes > 0) & (everyone > 0)
    short = both & (everyone < found.nodes)
    if short.any():
        row = int(short.argmax())
        reader.contradicts(
            f"{path}.workers[{row}]",
            f"{everyone[row]} workers cannot fill {found.nodes[row]} nodes: every node runs at least one",
        )
    if found.placement is not None:
        for row in range(len(found)):
            layout = found.placement.row(row)
            if not layout:
                continue
            nodes, workers = int(found.nodes[row]), int(everyone[row])
            if (workers and sum(layout) != workers) or (nodes and len(layout) != nodes):
                reader.contradicts(
                    f"{path}.placement_workers",
                    f"row {row} places {sum(layout)} workers on {len(layout)} nodes, "
                    f"but the row says {workers} workers on {nodes} nodes",
                )
    given = (found.global_batch > 0) & (found.batch_per_worker > 0) & (found.workers > 0)
    if given.any():
        replicas = found.replicas()
        product = replicas.astype(np.float64) * found.batch_per_worker * found.accumulation
        # A pipeline's micro-batches are accumulation steps that need not be stated.
        wrong = given & (product != found.global_batch) & (found.accumulation > 1)
        wrong |= given & (product > found.global_batch + replicas * found.accumulation)
        if wrong.any():
            row = int(wrong.argmax())
            reader.contradicts(
                f"{path}.global_batch_samples[{row}]",
                f"is {found.global_batch[row]}, but {replicas[row]} replicas x {found.batch_per_worker[row]} samples x "
                f"{found.accumulation[row]} accumulation steps are {product[row]:.0f}",
            )


def read_evidence(message: pb.Configurations, path: str, reader: Reader, limits: Limits) -> Configurations:
    """Configurations that really ran: nodes, workers and synchronisation must be stated."""
    found = read_configurations(message, path, reader, limits)
    if message.offer_names or message.offer_indexes:
        reader.wrong(f"{path}.offer_names", "must be empty: evidence says what ran, not what can be had")
    if not len(found):
        return found
    if found.worker_groups is not None:
        found = found.replaced(workers=grouped_workers(found.workers, found.worker_groups, path, reader))
    for name, column in (("nodes", found.nodes), ("workers", found.workers)):
        if (column == 0).any():
            reader.wrong(f"{path}.{name}", "must be given: evidence says what really ran")
    if (found.sync_mode == SyncMode.UNSPECIFIED).any():
        reader.wrong(f"{path}.sync_modes", "must be given: evidence says what really ran")
    servers = found.parameter_servers
    if (servers == UNSTATED).any():
        implied = np.where(found.sync_mode == SyncMode.ALLREDUCE, 0, 1)
        found = found.replaced(parameter_servers=freeze(np.where(servers == UNSTATED, implied, servers)))
    return found


def read_settings(message: pb.ConfigurationSettings, path: str, reader: Reader) -> Configurations:
    """One row that says how a job runs, without its scale. The offer that it may name is not part of it."""
    stated = reader.stated(message, f"{path}.", but=("offer_name",))
    columns: dict[str, object] = {}
    for name, value in stated.items():
        if name in _DICTIONARIES:
            columns[_DICTIONARIES[name]] = (value,)
        else:
            columns[name] = constant_floats(1, value) if isinstance(value, float) else constant_ints(1, int(value))
    reader.text(message.offer_name, f"{path}.offer_name", 64)
    found = Configurations.of(1)
    return found.replaced(**columns) if columns else found


def _range(message: pb.ConfigurationRange, path: str, limits: Limits) -> Configurations:
    reader = Reader()
    axis = message.WhichOneof("axis")
    if axis is None:
        reader.wrong(path, "must count nodes or workers")
        reader.finish()
    by_nodes = axis == "nodes"
    most = limits.max_nodes if by_nodes else limits.max_workers
    counts = read_counts(message.nodes if by_nodes else message.workers, f"{path}.{axis}", most, reader)
    per_node = reader.stated(message, f"{path}.").get("workers_per_node", 0)
    settings = read_settings(message.settings, f"{path}.settings", reader)
    spread = int(message.placement_rule) == PlacementRule.SPREAD
    reader.finish()
    rows = len(counts)
    if rows > limits.rows_per_call:
        raise _too_many_rows(f"{path}.{axis}", rows, limits)
    nodes = workers = as_ints(counts)
    if by_nodes:
        workers = nodes * per_node
    elif not spread:
        nodes = as_ints([packed_nodes(count, per_node) if per_node else 0 for count in counts])
    return settings.take(constant_ints(rows, 0)).replaced(nodes=nodes, workers=freeze(workers))


def read_counts(message: pb.CountRange, path: str, most: int, reader: Reader) -> range | tuple[int, ...]:
    """The numbers of a range; what is wrong goes to the reader."""
    first = reader.whole(message.first, f"{path}.first", least=1, most=most)
    last = reader.whole(message.last, f"{path}.last", least=1, most=most)
    step = reader.whole(message.step, f"{path}.step", least=1, most=most) if message.HasField("step") else 1
    if reader.clean and last < first:
        reader.wrong(f"{path}.last", f"must be at least first ({first}), found {last}")
    if message.powers_of_two and message.HasField("step"):
        reader.wrong(f"{path}.step", "must be absent with powers_of_two")
    if not reader.clean:
        return ()
    if message.powers_of_two:
        powers = tuple(1 << exponent for exponent in range(32) if first <= 1 << exponent <= last)
        if not powers:
            reader.wrong(path, f"holds no power of two between {first} and {last}")
        return powers
    return range(first, last + 1, step)


def write_configurations(configurations: Configurations) -> pb.Configurations:
    """All columns that are not defaults throughout."""
    message = pb.Configurations(nodes=configurations.nodes.tolist(), workers=configurations.workers.tolist())
    for fact in NUMBER_COLUMNS:
        column = getattr(configurations, fact.row)
        if fact.row not in _SCALE and (column != unstated(fact)).any():
            getattr(message, fact.field).extend(column.tolist())
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

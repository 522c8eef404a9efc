"""Rows by device, number format and software stack, with open settings assumed there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nodewise.plugin import Configurations, Ints, Refusal, RowRefusal, as_ints
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.knowledge import Knowledge
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import board_of, settled_states
from nodewise_partitioning.rows import QueryRows, query_rows_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.unsaid import OPEN, by_stack, formats_of, kinds_of, settle_open_rows

__all__ = ["Group", "group_rows", "refusals_of", "rows_asked", "settled_in"]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows on a device in a number format, the name of the stack assumed for them, and the corrected stack."""

    device: Device
    rows: Ints
    stack: str
    software: Software


def rows_asked(
    knowledge: Knowledge, configurations: Configurations
) -> tuple[QueryRows, list[Group], tuple[RowRefusal, ...]]:
    """Rows that can be answered, by device, and the reasons against the others; groups index into these rows."""
    query = _query_rows(knowledge, configurations)
    groups, unknown = group_rows(knowledge, configurations, query.rows, query.layout)
    if unknown:
        unknown_rows = np.concatenate([np.array(refusal.rows) for refusal in unknown])
        remaining = np.flatnonzero(~np.isin(query.rows, unknown_rows))
        place = np.full(len(query.rows), -1)
        place[remaining] = np.arange(len(remaining))
        groups = [replace(group, rows=as_ints(place[group.rows])) for group in groups]
        assumed = as_ints(np.setdiff1d(query.assumed_link, unknown_rows))
        query = QueryRows(
            as_ints(query.rows[remaining]), query.layout.take(as_ints(remaining)), assumed, query.refusals
        )
    query = replace(query, layout=settled_in(knowledge, query.layout, groups))
    refusals = tuple(sorted((*query.refusals, *unknown), key=lambda each: each.rows))
    return query, groups, refusals


def settled_in(knowledge: Knowledge, layout: Layout, groups: list[Group]) -> Layout:
    """The layouts with open settings assumed on their devices."""
    master_weights = knowledge.dimensions.training.master_weights
    open_states = master_weights is False or any(group.software.eager_memory for group in groups)
    if (layout.recomputation > 0.0).all() and not open_states:
        return layout
    columns = {name: getattr(layout, name).copy() for name in OPEN}
    for group in groups:
        rows = layout.take(group.rows)
        own = settle_open_rows(
            rows,
            knowledge.dimensions,
            group.device,
            group.software,
            declared=knowledge.framework,
            preferred=float(knowledge.recomputation),
            ran=knowledge.ran,
        )
        own = settled_states(own, knowledge.dimensions, group.device, group.software)
        for name, column in columns.items():
            column[group.rows] = getattr(own, name)
    return replace(layout, **columns)


def group_rows(
    knowledge: Knowledge, configurations: Configurations, rows: Ints, layout: Layout | None = None
) -> tuple[list[Group], list[RowRefusal]]:
    """Groups of some rows, with indexes among these, and rows whose device or number format is not known.

    Parameters
    ----------
    layout : Layout or None
        Of these rows, as they are stated. None = prefixes of a space, which hold for all stages of ZeRO.
    """
    groups: list[Group] = []
    unknown: list[RowRefusal] = []
    kinds = kinds_of(configurations)[rows]
    for device, members in _devices(knowledge, configurations, rows):
        if isinstance(device, Refusal):
            unknown.append(RowRefusal(tuple(rows[members].tolist()), device))
        else:
            stacks = by_stack(knowledge.framework, knowledge.dimensions, device, members, kinds, layout)
            for stack, part in stacks:
                software = knowledge.software(stack, device)
                groups.append(Group(board_of(device, software), part, stack, software))
    return groups, unknown


def refusals_of(knowledge: Knowledge, configurations: Configurations) -> tuple[RowRefusal, ...]:
    """Rows that are not answered, with their reasons."""
    query = _query_rows(knowledge, configurations)
    devices = _devices(knowledge, configurations, query.rows)
    unknown = [
        RowRefusal(tuple(query.rows[members].tolist()), device)
        for device, members in devices
        if isinstance(device, Refusal)
    ]
    return tuple(sorted((*query.refusals, *unknown), key=lambda each: each.rows))


def _query_rows(knowledge: Knowledge, configurations: Configurations) -> QueryRows:
    return query_rows_of(
        configurations,
        knowledge.dimensions,
        knowledge.network,
        knowledge.catalogue,
        zero_bubble=knowledge.zero_bubble,
    )


def _devices(
    knowledge: Knowledge, configurations: Configurations, rows: Ints
) -> Iterator[tuple[Device | Refusal, Ints]]:
    """Devices in the number formats of some rows, or why they are unknown, and indexes of these among them."""
    width = len(configurations.precisions)
    codes = configurations.device_index[rows] * width + configurations.precision_index[rows]
    different = sorted(set(codes.tolist()))
    for code in different:
        members = np.arange(len(rows)) if len(different) == 1 else np.flatnonzero(codes == code)
        name = configurations.devices[code // width]
        number_format = configurations.precisions[code % width] or knowledge.number_format
        number_format = number_format or formats_of(knowledge.catalogue, name)[0]
        yield device_of(knowledge.catalogue, name, number_format), as_ints(members)

"""Checks of a trace reader's result before anything uses it, as indexes out of bounds crash compiled code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.trace import CollectiveKind, EventKind, Lane, ProcessGroup, SyncKind, Trace
from nodewise.profiles.artefacts import columns_of

__all__ = ["wrong_with"]

_DTYPES: Final = {
    "name": np.int32,
    "lane": np.int32,
    "kind": np.int8,
    "forward_lane": np.int32,
    "collectives.kind": np.int8,
    "syncs.kind": np.int8,
}
"""Types of columns that are not int64."""
LARGEST: Final = 1 << 63
LONGEST_NS: Final = 1 << 62
"""Times and durations that can be added without overflow: 146 years."""


def wrong_with(traces: Any) -> str | None:
    """Why a reader's traces cannot be used, else None."""
    if not isinstance(traces, Sequence) or not traces:
        return "it is not a sequence of at least one Trace"
    for trace in traces:
        if not isinstance(trace, Trace):
            return f"it holds a {type(trace).__name__} instead of a Trace"
        try:
            problem = _wrong_columns(trace) or _wrong_values(trace) or _wrong_words(trace)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            return f"its columns cannot be read ({type(error).__name__})"
        if problem:
            return problem
    ranks = [trace.rank for trace in traces]
    return "it holds a rank twice" if len(set(ranks)) < len(ranks) else None


def _wrong_columns(trace: Trace) -> str | None:
    rows = {"": len(trace.begin_ns)}
    column: Any  # any value of a plugin
    for path, column in columns_of(trace).items():
        table = path.rpartition(".")[0]
        if not isinstance(column, np.ndarray) or column.dtype != _DTYPES.get(path, np.int64):
            return f"{path} is not a column of {np.dtype(_DTYPES.get(path, np.int64))}"
        shape = (len(column), 2) if path == "dependencies" else (rows.setdefault(table, len(column)),)
        if column.shape != shape:
            return f"{path} has shape {column.shape} instead of {shape}"
    return None


def _wrong_values(trace: Trace) -> str | None:
    events, groups = len(trace), len(trace.collectives.groups)
    bounds: list[tuple[str, NDArray[Any], int, int]] = [
        ("name", trace.name, 0, len(trace.names) - 1),
        ("lane", trace.lane, 0, len(trace.lanes) - 1),
        ("kind", trace.kind, 0, max(EventKind)),
        ("duration_ns", trace.duration_ns, 0, LONGEST_NS),
        ("begin_ns", trace.begin_ns, -LONGEST_NS, LONGEST_NS),
        ("forward_lane", trace.forward_lane, -1, len(trace.lanes) - 1),
        ("dependencies", trace.dependencies, 0, events - 1),
        ("steps.begin_ns", trace.steps.begin_ns, -LONGEST_NS, LONGEST_NS),
        ("steps.end_ns", trace.steps.end_ns, -LONGEST_NS, LONGEST_NS),
        ("collectives.event", trace.collectives.event, 0, events - 1),
        ("collectives.call", trace.collectives.call, -1, events - 1),
        ("collectives.kind", trace.collectives.kind, 0, max(CollectiveKind)),
        ("collectives.group", trace.collectives.group, -1, groups - 1),
        ("syncs.kind", trace.syncs.kind, 0, max(SyncKind)),
        ("syncs.lane", trace.syncs.lane, -1, len(trace.lanes) - 1),
        ("frames.name", trace.frames.name, 0, len(trace.names) - 1),
        ("frames.lane", trace.frames.lane, 0, len(trace.lanes) - 1),
        ("frames.begin_ns", trace.frames.begin_ns, -LONGEST_NS, LONGEST_NS),
        ("frames.duration_ns", trace.frames.duration_ns, 0, LONGEST_NS),
        ("syncs.awaited_lane", trace.syncs.awaited_lane, -1, len(trace.lanes) - 1),
    ]
    for path, column, least, most in bounds:
        if column.size and (column.min() < least or column.max() > most):
            return f"{path} holds a value outside {least} to {most}"
    if not 0 <= trace.rank < (trace.world_size or 1 << 31) or trace.world_size < 0:
        return f"rank {trace.rank} is outside the world_size {trace.world_size}"
    if (trace.steps.end_ns < trace.steps.begin_ns).any():
        return "a step ends before it begins"
    begins = trace.begin_ns
    return "its events are not in order of begin" if trace.timed and (begins[1:] < begins[:-1]).any() else None


def _wrong_words(trace: Trace) -> str | None:
    groups = trace.collectives.groups
    if not all(isinstance(lane, Lane) for lane in trace.lanes):
        return "lanes holds a value that is not a Lane"
    if not all(isinstance(group, ProcessGroup) for group in groups):
        return "collectives.groups holds a value that is not a ProcessGroup"
    numbers: list[Any] = [trace.rank, trace.world_size, *trace.report.counts.values()]
    numbers += [number for lane in trace.lanes for number in (lane.device, lane.number)]
    numbers += [number for group in groups for number in (group.size, *group.ranks)]
    if not all(isinstance(number, int | np.integer) and -LARGEST <= number < LARGEST for number in numbers):
        return "a count, a rank, or a number of a lane or a group is not a 64-bit integer"
    words: list[tuple[str, Iterable[str]]] = [
        ("names", trace.names),
        ("lanes", [lane.name for lane in trace.lanes]),
        ("devices", trace.devices),
        ("groups", [group.name for group in groups]),
        ("warnings", trace.report.warnings),
        ("counts", trace.report.counts),
    ]
    for what, texts in words:
        for text in texts:
            text.encode()  # raises ValueError for lone surrogates
        if isinstance(texts, str):
            return f"{what} is a string instead of several"
    return None

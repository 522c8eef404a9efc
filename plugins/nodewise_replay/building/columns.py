"""Columns of nodes while the graph is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Lane
from nodewise_replay.building.rank import RankPart

__all__ = ["NodeColumns", "job_columns", "job_lanes"]

_OF_PARTS: Final = ("kind", "step", "event", "duration_ns", "begin_ns", "end_ns", "release_ns", "key")
"""Columns that the ranks' parts have already."""


@dataclass(slots=True, eq=False, kw_only=True)
class NodeColumns:
    """As in ``Graph``."""

    kind: NDArray[np.int8]
    rank: NDArray[np.int32]
    lane: NDArray[np.int32]
    step: NDArray[np.int32]
    event: Ints
    name: NDArray[np.int32]
    duration_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    release_ns: Ints
    key: Ints

    def __len__(self) -> int:
        return len(self.kind)

    def by_name(self) -> dict[str, Any]:
        """The columns."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def followed_by(self, other: NodeColumns) -> NodeColumns:
        """These nodes, then others."""
        return NodeColumns(
            **{
                name: np.concatenate((own, getattr(other, name))).astype(own.dtype)
                for name, own in self.by_name().items()
            }
        )

    def kept(self, which: NDArray[np.bool_]) -> NodeColumns:
        """Some of the nodes."""
        return NodeColumns(**{name: own[which] for name, own in self.by_name().items()})


def job_lanes(parts: Sequence[RankPart]) -> tuple[tuple[tuple[int, Lane], ...], Ints]:
    """Lanes of all ranks one after the other, and the number of every rank's first."""
    lanes = tuple((part.trace.rank, lane) for part in parts for lane in part.trace.lanes)
    return lanes, np.concatenate(([0], np.cumsum([len(part.trace.lanes) for part in parts])))


def job_columns(parts: Sequence[RankPart], first_lane: Ints) -> tuple[tuple[str, ...], NodeColumns]:
    """One dictionary of names, in which host time outside all events is ``(gap)``, and the nodes of all ranks."""
    numbers: dict[str, int] = {"(gap)": 0}
    names, lanes = [], []
    for part, lane in zip(parts, first_lane, strict=False):
        table = np.array([numbers.setdefault(name, len(numbers)) for name in part.trace.names], dtype=np.int32)
        of_event = table[part.trace.name] if len(table) else np.zeros(0, dtype=np.int32)
        names.append(np.where(part.event >= 0, of_event[np.maximum(part.event, 0)], 0))
        lanes.append(part.lane + np.int32(lane))
    own: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _OF_PARTS}
    return tuple(numbers), NodeColumns(
        rank=np.concatenate([np.full(len(part.kind), part.trace.rank, dtype=np.int32) for part in parts]),
        lane=np.concatenate(lanes),
        name=np.concatenate(names).astype(np.int32),
        **own,
    )

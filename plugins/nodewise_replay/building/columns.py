"""Columns of nodes while the graph is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Lane
from nodewise_replay.building.rank import RankPart

__all__ = ["HELD_BY_NOTHING", "NodeColumns", "job_columns", "job_lanes"]

HELD_BY_NOTHING = np.iinfo(np.int64).min // 4
"""A release that never matters, far enough from the least number that sums with it do not overflow."""


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

    def followed_by(self, other: NodeColumns) -> NodeColumns:
        """These nodes, then others."""
        return NodeColumns(
            **{
                one.name: np.concatenate((getattr(self, one.name), getattr(other, one.name))).astype(
                    getattr(self, one.name).dtype
                )
                for one in fields(self)
            }
        )

    def kept(self, which: NDArray[np.bool_]) -> NodeColumns:
        """Some of the nodes."""
        return NodeColumns(**{one.name: getattr(self, one.name)[which] for one in fields(self)})


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
    return tuple(numbers), NodeColumns(
        kind=np.concatenate([part.kind for part in parts]),
        rank=np.concatenate([np.full(len(part.kind), part.trace.rank, dtype=np.int32) for part in parts]),
        lane=np.concatenate(lanes),
        step=np.concatenate([part.step for part in parts]),
        event=np.concatenate([part.event for part in parts]),
        name=np.concatenate(names).astype(np.int32),
        duration_ns=np.concatenate([part.duration_ns for part in parts]),
        begin_ns=np.concatenate([part.begin_ns for part in parts]),
        end_ns=np.concatenate([part.end_ns for part in parts]),
        release_ns=np.concatenate([part.release_ns for part in parts]),
        key=np.concatenate([part.key for part in parts]),
    )

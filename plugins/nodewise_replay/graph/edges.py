"""Lists of edges while they are gathered."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import EdgeKind, Origin

__all__ = ["EdgeList"]


class EdgeList:
    """Edges as growing columns."""

    def __init__(self) -> None:
        self._source: list[Ints] = []
        self._target: list[Ints] = []
        self._lag: list[Ints] = []
        self._explained: list[Ints] = []
        self._kind: list[NDArray[np.int8]] = []
        self._origin: list[NDArray[np.int8]] = []
        self._binding: list[NDArray[np.bool_]] = []

    def add(
        self,
        source: Ints,
        target: Ints,
        lag_ns: Ints | int,
        kind: EdgeKind,
        origin: Origin = Origin.FOUND,
    ) -> None:
        """Append edges of one kind and origin, with lags that are exact."""
        count = len(source)
        self._source.append(np.asarray(source, dtype=np.int64))
        self._target.append(np.asarray(target, dtype=np.int64))
        self._lag.append(np.broadcast_to(np.asarray(lag_ns, dtype=np.int64), (count,)))
        self._explained.append(self._lag[-1])
        self._kind.append(np.full(count, int(kind), dtype=np.int8))
        self._origin.append(np.full(count, int(origin), dtype=np.int8))
        self._binding.append(np.ones(count, dtype=np.bool_))

    def add_columns(
        self,
        source: Ints,
        target: Ints,
        lag_ns: Ints,
        explained_lag_ns: Ints,
        kind: NDArray[np.int8],
        origin: NDArray[np.int8],
        binding: NDArray[np.bool_],
    ) -> None:
        """Append edges of several kinds."""
        self._source.append(source)
        self._target.append(target)
        self._lag.append(lag_ns)
        self._explained.append(explained_lag_ns)
        self._kind.append(kind)
        self._origin.append(origin)
        self._binding.append(binding)

    def extend(self, other: EdgeList, shift: int = 0) -> None:
        """Append another list's edges, their nodes' numbers raised by ``shift``."""
        source, target, lag, explained, kind, origin, binding = other.columns()
        self.add_columns(source + shift, target + shift, lag, explained, kind, origin, binding)

    def columns(
        self,
    ) -> tuple[Ints, Ints, Ints, Ints, NDArray[np.int8], NDArray[np.int8], NDArray[np.bool_]]:
        """Source, target, lag_ns, explained_lag_ns, kind, origin, binding."""
        return (
            _joined(self._source, np.int64),
            _joined(self._target, np.int64),
            _joined(self._lag, np.int64),
            _joined(self._explained, np.int64),
            _joined(self._kind, np.int8),
            _joined(self._origin, np.int8),
            _joined(self._binding, np.bool_),
        )


def _joined(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)

"""Lists of edges while they are gathered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import EdgeKind, Origin

__all__ = ["EdgeColumns", "EdgeList"]

EdgeColumns = tuple[Ints, Ints, Ints, Ints, NDArray[np.int8], NDArray[np.int8], NDArray[np.bool_]]
"""Source, target, lag_ns, explained_lag_ns, kind, origin, binding."""

_NONE = np.zeros(0, dtype=np.int64)
_NO_CODES = np.zeros(0, dtype=np.int8)


class EdgeList:
    """Edges as growing columns."""

    def __init__(self) -> None:
        no_flags = np.zeros(0, dtype=np.bool_)
        self._parts: list[EdgeColumns] = [(_NONE, _NONE, _NONE, _NONE, _NO_CODES, _NO_CODES, no_flags)]

    def add(
        self, source: Ints, target: Ints, lag_ns: Ints | int, kind: EdgeKind, origin: Origin = Origin.FOUND
    ) -> None:
        """Append edges of one kind and origin, with lags that are exact."""
        count = len(source)
        lag = np.broadcast_to(np.asarray(lag_ns, dtype=np.int64), (count,))
        kinds, origins = (np.full(count, int(code), dtype=np.int8) for code in (kind, origin))
        self.add_columns((source, target, lag, lag, kinds, origins, np.ones(count, dtype=np.bool_)))

    def add_columns(self, columns: EdgeColumns) -> None:
        """Append edges of several kinds."""
        self._parts.append(columns)

    def extend(self, other: EdgeList, shift: int = 0) -> None:
        """Append another list's edges, their nodes' numbers raised by ``shift``."""
        columns = other.columns()
        self.add_columns((columns[0] + shift, columns[1] + shift, *columns[2:]))

    def columns(self) -> EdgeColumns:
        """All edges."""
        source, target, lag, explained, kind, origin, binding = zip(*self._parts, strict=True)
        return (
            np.concatenate(source),
            np.concatenate(target),
            np.concatenate(lag),
            np.concatenate(explained),
            np.concatenate(kind),
            np.concatenate(origin),
            np.concatenate(binding),
        )

"""Which collectives of different ranks are one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.graph.rank import RankPart

__all__ = ["matched_collectives"]


def matched_collectives(parts: Sequence[RankPart]) -> tuple[Ints, Ints, Ints]:
    """Number the job's collectives.

    Returns
    -------
    (member, part, row)
        One entry per collective and rank: number of the collective, index of the part, row of its collectives.
    """
    member, who, row = [], [], []
    for which, part in enumerate(parts):
        for one in range(len(part.row)):
            member.append(one)
            who.append(which)
            row.append(one)
    order = np.argsort(np.array(member, dtype=np.int64), kind="stable")
    return (
        np.array(member, dtype=np.int64)[order],
        np.array(who, dtype=np.int64)[order],
        np.array(row, dtype=np.int64)[order],
    )

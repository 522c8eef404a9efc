"""Which event of a host thread encloses which."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import NO_EVENT, Ints
from nodewise_laws.object_code import object_code

__all__ = ["parents"]


def parents(lane: Ints, begin_ns: Ints, end_ns: Ints, lanes: int) -> Ints:
    """The event directly around each, on the same lane; -1 = none.

    Parameters
    ----------
    lane, begin_ns, end_ns : (events,) int64
        In order of begin, longer ones first.
    lanes : int
        How many lanes there are.

    Returns
    -------
    (events,) int64
        An event that outlasts the one it began in (whole microseconds are rounded) is still inside it.
    """
    parent_of = np.full(len(lane), NO_EVENT, dtype=np.int64)
    _fill_parents(lane, begin_ns, end_ns, np.full(lanes, NO_EVENT, dtype=np.int64), parent_of)
    return parent_of


@object_code
def _fill_parents(lane: Ints, begin_ns: Ints, end_ns: Ints, innermost: Ints, parent_of: Ints) -> None:
    """Walk once: what ended before an event began encloses nothing any more."""
    for event in range(len(lane)):
        around = innermost[lane[event]]
        while around >= 0 and end_ns[around] <= begin_ns[event] and begin_ns[around] < begin_ns[event]:
            around = parent_of[around]
        parent_of[event] = around
        innermost[lane[event]] = event

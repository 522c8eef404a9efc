"""Changes of every kind, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from nodewise.plugin import Change, ChangeKind
from nodewise_replay.changes.buckets import in_other_buckets
from nodewise_replay.changes.durations import with_other_durations
from nodewise_replay.changes.links import over_another_link
from nodewise_replay.changes.refusing import invalid
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.changes.worlds import in_another_world

__all__ = ["apply_changes"]


_APPLIERS: Final[Mapping[ChangeKind, Callable[[Scenario, Change], Scenario]]] = {
    ChangeKind.SCALE: with_other_durations,
    ChangeKind.DELAY: with_other_durations,
    ChangeKind.LINK_BANDWIDTH: over_another_link,
    ChangeKind.LINK_LATENCY: over_another_link,
    ChangeKind.WORLD_SIZE: in_another_world,
    ChangeKind.BUCKET_BYTES: in_other_buckets,
}
"""What applies each kind of change."""


def apply_changes(scenario: Scenario, changes: Sequence[Change]) -> Scenario:
    """Apply changes in the order given.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for values out of range, EVIDENCE_MISSING for a change that the traces do not support, with what
        is missing.
    """
    for change in changes:
        if not np.isfinite(change.value):
            raise invalid("value", "must be a finite number")
        scenario = _APPLIERS[ChangeKind(change.kind)](scenario, change)
    return scenario

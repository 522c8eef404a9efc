"""Links between events: from a device's work to the call that launched it, from backward to forward operators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, EventKind, Ints

_LAUNCHES: Final = re.compile(r"launch|memcpy|memset|enqueue|runFunction", re.IGNORECASE)
"""Calls that give a device work; an operator makes others too."""

__all__ = ["forward_lanes", "launches", "with_external"]


def with_external(
    names: Sequence[str], name: NDArray[np.int32], kind: NDArray[np.int8], correlation: Ints, external: Ints
) -> Ints:
    """Correlations, also of work and calls that have none but state the same operator (``External id``).

    The n-th work of an operator was launched by its n-th call that launches anything.
    """
    work = (kind == EventKind.KERNEL) | (kind == EventKind.COPY) | (kind == EventKind.FILL)
    # Some recorders number nothing and write 0.
    none = correlation <= 0 if not (correlation[work] > 0).any() else correlation < 0
    alone = (external >= 0) & none
    if not (alone & work).any():
        return correlation
    launching = np.fromiter((bool(_LAUNCHES.search(text)) for text in names), np.bool_, len(names))[name]
    correlation, first = correlation.copy(), int(correlation.max(initial=0)) + 1
    by_operator: dict[int, list[int]] = {}
    for call in np.flatnonzero(alone & (kind == EventKind.CALL) & launching).tolist():
        by_operator.setdefault(int(external[call]), []).append(call)
    for number, event in enumerate(np.flatnonzero(alone & work).tolist(), start=first):
        calls = by_operator.get(int(external[event]))
        if calls:
            correlation[event] = correlation[calls.pop(0)] = number
    return correlation


def launches(kind: NDArray[np.int8], correlation: Ints, counts: Counter[str], warnings: list[str]) -> Ints:
    """The call that launched each event of a device; -1 = it was not recorded. Events are in order of begin."""
    calls = np.flatnonzero((kind == EventKind.CALL) & (correlation >= 0))
    work = np.flatnonzero((kind == EventKind.KERNEL) | (kind == EventKind.COPY) | (kind == EventKind.FILL))
    launch_of = np.full(len(kind), NO_EVENT, dtype=np.int64)
    calls = calls[np.argsort(correlation[calls], kind="stable")]
    numbers = correlation[calls]
    repeated_count = int(np.count_nonzero(np.diff(numbers) == 0))
    first = np.searchsorted(numbers, correlation[work], side="left")
    last = np.searchsorted(numbers, correlation[work], side="right")
    has_call = last > first
    launch_of[work[has_call]] = calls[first[has_call]]
    # A number that was used again belongs to the last call that began before the work did.
    for place in np.flatnonzero(last > first + 1).tolist():
        mine = calls[first[place] : last[place]]
        launch_of[work[place]] = mine[max(int(np.searchsorted(mine, work[place])) - 1, 0)]
    linked_count = int(np.count_nonzero(has_call))
    counts["device_events"] = len(work)
    counts["device_events_linked"] = linked_count
    counts["device_events_unlinked"] = len(work) - linked_count
    counts["duplicate_correlations"] = repeated_count
    if linked_count < len(work):
        warnings.append(
            f"for {len(work) - linked_count} of {len(work)} device events the launching call was not recorded"
        )
    if repeated_count:
        warnings.append(
            f"{repeated_count} calls repeat a correlation id: device events are linked to the last call before them"
        )
    return launch_of


def forward_lanes(thread: Ints, sequence: Ints, lane: NDArray[np.int32], counts: Counter[str]) -> NDArray[np.int32]:
    """Where the forward operator of each backward one ran; -1 = none.

    Parameters
    ----------
    thread : (events,) int64
        The framework's own number of the forward thread, above 0 for backward operators. The lane it represents is the
        one that ran most of the forward operators with these sequence numbers.
    """
    lanes = np.full(len(lane), NO_EVENT, dtype=np.int32)
    backward = np.flatnonzero((thread > 0) & (sequence >= 0))
    forward = np.flatnonzero((thread <= 0) & (sequence >= 0))
    counts["backward_operators"] = len(backward)
    if len(forward) and len(backward):
        forward = forward[np.argsort(sequence[forward], kind="stable")]
        sorted_sequence = sequence[forward]
        place = np.minimum(np.searchsorted(sorted_sequence, sequence[backward]), len(sorted_sequence) - 1)
        has_match = sorted_sequence[place] == sequence[backward]
        for number in np.unique(thread[backward]):
            mine = has_match & (thread[backward] == number)
            if mine.any():
                lanes[backward[mine]] = np.bincount(lane[forward[place[mine]]]).argmax()
    counts["forward_backward_found"] = int(np.count_nonzero(lanes >= 0))
    return lanes

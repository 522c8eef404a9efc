"""Matches collectives of different ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import NO_EVENT, CollectiveKind, Floats, Ints, Trace
from nodewise_laws.object_code import object_code
from nodewise_replay.alignment.messages import completions, known_peers

__all__ = ["MatchedCollectives", "matched_collectives"]

_SAME_SIZE: Final = frozenset(
    {
        CollectiveKind.ALL_REDUCE,
        CollectiveKind.REDUCE,
        CollectiveKind.ALL_GATHER,
        CollectiveKind.GATHER,
        CollectiveKind.BROADCAST,
        CollectiveKind.REDUCE_SCATTER,
    }
)
"""Kinds to which every rank brings as many bytes, so that sizes tell collectives apart."""

_POINT_TO_POINT: Final = {
    CollectiveKind.SEND: 0,
    CollectiveKind.RECEIVE: 1,
    CollectiveKind.PUSH: 0,
    CollectiveKind.PULL: 1,
}
"""Kinds between two ranks: 0 = from this one to the peer, 1 = the other way."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MatchedCollectives:
    """Collectives of the job as columns, one row per collective and rank, by collective, then by rank.

    Attributes
    ----------
    member : int
        Number of the collective, from 0.
    who, row : int
        Index of the trace, and of the row in its collectives.
    alone : int
        Collectives on one rank only although other ranks of its group have traces.
    """

    member: Ints
    who: Ints
    row: Ints
    alone: int
    warnings: tuple[str, ...] = ()


def matched_collectives(traces: Sequence[Trace]) -> MatchedCollectives:
    """Number the job's collectives.

    Within a group of ranks: by the recorder's sequence number, messages of a graph by their tag; without either by
    order, kind and size within the step. Where ranks recorded different collectives, their orders are aligned by kind,
    size and the times of the ends, so that one lost collective does not shift those after it.
    """
    if len(traces) == 1:
        rows = np.flatnonzero(np.asarray(traces[0].collectives.event) >= 0)
        return MatchedCollectives(
            member=np.arange(len(rows)), who=np.zeros(len(rows), dtype=np.int64), row=rows, alone=0
        )
    peers = known_peers(traces)
    classes: dict[object, list[tuple[int, int]]] = {}
    for who, trace in enumerate(traces):
        for row, identity in _identities(trace, peers[who]):
            classes.setdefault(identity, []).append((who, row))
    sequences = {identity: _by_rank(entries) for identity, entries in classes.items()}
    tokens = [_tokens(trace) for trace in traces]
    ends = [completions(trace) for trace in traces]
    doubtful = [i for i, ranks in sequences.items() if not _agree(ranks, tokens)]
    offsets = _rough_offsets(traces, [r for i, r in sequences.items() if i not in set(doubtful)], ends)
    matches: list[list[tuple[int, int]]] = []
    misfits = 0
    for ranks in sequences.values():
        if _agree(ranks, tokens):
            matches.extend([list(zip(ranks, rows, strict=True)) for rows in zip(*ranks.values(), strict=True)])
        else:
            misfits += 1
            matches.extend(_align_orders(ranks, tokens, ends, offsets))
    partners = {identity: len(ranks) for identity, ranks in sequences.items()}
    alone = sum(len(collective) == 1 for collective in matches) if max(partners.values(), default=0) > 1 else 0
    warnings = []
    if misfits:
        warnings.append(
            f"ranks recorded different collectives in {misfits} of {len(sequences)} groups and steps; "
            "they were aligned by kind, size and time"
        )
    table = [(number, who, row) for number, collective in enumerate(matches) for who, row in collective]
    columns = np.array(table, dtype=np.int64).reshape(-1, 3)
    return MatchedCollectives(
        member=columns[:, 0], who=columns[:, 1], row=columns[:, 2], alone=alone, warnings=tuple(warnings)
    )


def _identities(trace: Trace, peers: Ints) -> list[tuple[int, object]]:
    """Rows, each with the key that it shares with other rows of one collective, except for its place in order."""
    table, steps = trace.collectives, trace.steps
    group_keys = [(group.name, group.ranks) for group in table.groups]
    event = np.asarray(table.event)
    began = trace.begin_ns[np.where(table.call >= 0, table.call, np.maximum(event, 0))] if len(table) else event
    step = np.searchsorted(steps.begin_ns, began, "right") - 1
    identities: list[tuple[int, object]] = []
    for row in range(len(table)):
        if event[row] < 0:
            continue
        number = int(steps.number[step[row]]) if step[row] >= 0 else -1
        group = group_keys[int(table.group[row])] if table.group[row] >= 0 else ("", ())
        direction = _POINT_TO_POINT.get(CollectiveKind(int(table.kind[row])))
        sequence = int(table.sequence[row])
        if direction is not None:
            ends = (trace.rank, int(peers[row]))
            tag = NO_EVENT if trace.timed else sequence  # a graph states tags; recorders count, each for itself
            identities.append((row, ("pair", group, ends[::-1] if direction else ends, number, tag)))
        elif sequence != NO_EVENT:
            identities.append((row, ("sequence", group, int(table.kind[row]), sequence)))
        else:
            identities.append((row, ("order", group, number)))
    return identities


def _by_rank(entries: list[tuple[int, int]]) -> dict[int, list[int]]:
    ranks: dict[int, list[int]] = {}
    for who, row in entries:
        ranks.setdefault(who, []).append(row)
    return ranks


def _tokens(trace: Trace) -> Ints:
    """What must be equal on all ranks of a collective: its kind, and its size where all ranks bring the same."""
    table = trace.collectives
    kind = np.asarray(table.kind, dtype=np.int64)
    sized = np.isin(kind, [int(one) for one in _SAME_SIZE])
    paired = np.isin(kind, [int(one) for one in _POINT_TO_POINT])
    size = np.where(sized, table.in_bytes, np.where(paired, np.maximum(table.in_bytes, table.out_bytes), 0))
    tokens: Ints = np.where(paired, -1, kind) + 64 * (size + 1)
    return tokens


def _agree(ranks: dict[int, list[int]], tokens: Sequence[Ints]) -> bool:
    """Whether all ranks recorded the same kinds and sizes."""
    first, *others = [tokens[who][rows].tolist() for who, rows in ranks.items()]
    return all(other == first for other in others)


def _rough_offsets(traces: Sequence[Trace], agreed: Sequence[dict[int, list[int]]], ends: Sequence[Ints]) -> Ints:
    """Every clock's difference to the first, from unambiguous collectives; 0 where there is none."""
    differences: list[list[int]] = [[] for _ in traces]
    for ranks in agreed:
        if 0 not in ranks:
            continue
        for who, rows in ranks.items():
            differences[who].extend((ends[who][rows] - ends[0][ranks[0]]).tolist())
    return np.array([int(np.median(one)) if one else 0 for one in differences], dtype=np.int64)


def _align_orders(
    ranks: dict[int, list[int]], tokens: Sequence[Ints], ends: Sequence[Ints], offsets: Ints
) -> list[list[tuple[int, int]]]:
    """Align every rank's order with that of the rank that recorded most."""
    leader = max(ranks, key=lambda who: len(ranks[who]))
    leader_rows = ranks[leader]
    match_by_row = {row: [(leader, row)] for row in leader_rows}
    rest: list[list[tuple[int, int]]] = []
    for who, rows in ranks.items():
        if who == leader:
            continue
        offset = int(offsets[who] - offsets[leader])
        pairs: list[tuple[int, int]] = []
        for _ in range(2):
            pairs = _best_alignment(
                tokens[leader][leader_rows], ends[leader][leader_rows] + offset, tokens[who][rows], ends[who][rows]
            )
            if pairs:
                # The second round knows the clocks from the first.
                offset += int(np.median([ends[who][rows[b]] - ends[leader][leader_rows[a]] - offset for a, b in pairs]))
        paired_rows = {b for _, b in pairs}
        for a, b in pairs:
            match_by_row[leader_rows[a]].append((who, rows[b]))
        rest.extend([[(who, row)] for place, row in enumerate(rows) if place not in paired_rows])
    return [sorted(collective) for collective in match_by_row.values()] + rest


def _best_alignment(left: Ints, left_ns: Ints, right: Ints, right_ns: Ints) -> list[tuple[int, int]]:
    """Pair as many equal tokens as possible in order; among equally many pairs, those with the closest ends."""
    span = max(float(np.ptp(np.concatenate((left_ns, right_ns)))), 1.0) if len(left) and len(right) else 1.0
    gain = np.zeros((len(left) + 1, len(right) + 1))
    pairs = np.empty((min(len(left), len(right)), 2), dtype=np.int64)
    count = _align(
        np.ascontiguousarray(left),
        np.ascontiguousarray(left_ns),
        np.ascontiguousarray(right),
        np.ascontiguousarray(right_ns),
        span * (min(len(left), len(right)) + 1),
        gain,
        pairs,
    )
    return [(int(a), int(b)) for a, b in pairs[:count][::-1]]


@object_code
def _align(left: Ints, left_ns: Ints, right: Ints, right_ns: Ints, scale: float, gain: Floats, pairs: Ints) -> int:
    """Needleman and Wunsch (1970): a pair gains 1 less its share of the time apart; returns the number of pairs."""
    for a in range(1, len(left) + 1):
        for b in range(1, len(right) + 1):
            best = max(gain[a - 1, b], gain[a, b - 1])
            if left[a - 1] == right[b - 1]:
                apart = min(abs(left_ns[a - 1] - right_ns[b - 1]) / scale, 0.5)
                best = max(best, gain[a - 1, b - 1] + 1.0 - apart)
            gain[a, b] = best
    a, b, count = len(left), len(right), 0
    while a > 0 and b > 0:
        if gain[a, b] == gain[a - 1, b]:
            a -= 1
        elif gain[a, b] == gain[a, b - 1]:
            b -= 1
        else:
            a -= 1
            b -= 1
            pairs[count, 0], pairs[count, 1] = a, b
            count += 1
    return count

"""Collectives by identity: which recur in every step, how long each takes, and what its size explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import CollectiveKind, Floats, Ints, Trace
from nodewise_diagnosis.roles import Roles
from nodewise_diagnosis.stopwatch import Stopwatch
from nodewise_replay.alignment.messages import is_pair

__all__ = ["Exchange", "exchanges_of", "explained_ns"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """One collective of the program, with its nodes in all steps of interest.

    Attributes
    ----------
    label : str
        Its name, which of the step's it is, its size.
    nodes : (n,) int
        Its transfers, departures, and what hosts do as part of it.
    transfers : (steps,) int
        Its transfer nodes.
    took_ns : (steps,) float
        Per transfer: the transfer itself and the longest that a host takes as part of it.
    family : tuple
        Exchanges of one family take times that their sizes explain.
    bytes : int
        -1 = not known.
    """

    label: str
    name: str
    nodes: Ints
    transfers: Ints
    took_ns: Floats
    family: tuple[object, ...]
    bytes: int

    @property
    def usual_ns(self) -> float:
        """Its time in the median step."""
        return float(np.median(self.took_ns))


def exchanges_of(watch: Stopwatch, roles: Roles, traces: Mapping[int, Trace]) -> list[Exchange]:
    """Collectives of the steps of interest, in the order of their first begins."""
    graph = watch.graph
    rows = graph.collectives
    nodes_in_steps = np.flatnonzero((roles.exchange >= 0) & np.isin(graph.step, watch.steps))
    if not len(nodes_in_steps):
        return []
    transfers = np.unique(roles.exchange[nodes_in_steps])
    transfers = transfers[np.isin(graph.step[transfers], watch.steps)]
    members: dict[int, list[int]] = {}
    for row, node in enumerate(rows.transfer.tolist()):
        members.setdefault(node, []).append(row)
    descriptions = {node: _describe(watch, traces, members[node]) for node in transfers.tolist()}
    by_identity = _identify(watch, transfers, descriptions, members)
    took = _took(watch, roles, nodes_in_steps)
    sorted_by = nodes_in_steps[np.argsort(roles.exchange[nodes_in_steps], kind="stable")]
    of = roles.exchange[sorted_by]
    exchanges = []
    names: dict[str, int] = {}
    for nodes in by_identity:
        family, size = descriptions[nodes[0]]
        name = graph.names[graph.name[nodes[0]]]
        names[name] = names.get(name, 0) + 1
        pieces = np.concatenate(
            [sorted_by[np.searchsorted(of, n, "left") : np.searchsorted(of, n, "right")] for n in nodes]
        )
        exchanges.append(
            Exchange(
                label=_label(name, names[name], size, pieces, watch),
                name=name,
                nodes=pieces,
                transfers=np.array(nodes, dtype=np.int64),
                took_ns=np.array([took[n] for n in nodes]),
                family=family,
                bytes=size,
            )
        )
    return exchanges


def _describe(watch: Stopwatch, traces: Mapping[int, Trace], members: Sequence[int]) -> tuple[tuple[object, ...], int]:
    """Family and bytes of a transfer, from what its first rank recorded."""
    rows = watch.graph.collectives
    table, place = traces[int(rows.rank[members[0]])].collectives, int(rows.row[members[0]])
    kind = CollectiveKind(int(table.kind[place]))
    group = int(table.group[place])
    size = int(max(table.in_bytes[place], table.out_bytes[place]))
    if is_pair(kind):
        return ("message",), size
    return (kind, table.groups[group].name if group >= 0 else "", len(members)), size


def _identify(
    watch: Stopwatch,
    transfers: Ints,
    descriptions: Mapping[int, tuple[tuple[object, ...], int]],
    members: Mapping[int, Sequence[int]],
) -> list[list[int]]:
    """Transfers of different steps that are the same collective: the n-th of its kind, ranks and size in its step.

    Counted in the order in which the first rank issued them, which is the same in every step.
    """
    graph, rows = watch.graph, watch.graph.collectives
    nodes_by_identity: dict[tuple[object, ...], list[int]] = {}
    count_by_identity: dict[tuple[object, ...], int] = {}
    order = sorted(transfers.tolist(), key=lambda node: (int(graph.step[node]), int(rows.row[members[node][0]])))
    for node in order:
        ranks = tuple(int(rows.rank[row]) for row in members[node])
        like = (*descriptions[node], ranks, graph.names[graph.name[node]])
        in_step = (int(graph.step[node]), *like)
        count_by_identity[in_step] = count_by_identity.get(in_step, 0) + 1
        nodes_by_identity.setdefault((count_by_identity[in_step], *like), []).append(node)
    return sorted(
        nodes_by_identity.values(), key=lambda nodes: (int(graph.step[nodes[0]]), int(graph.begin_ns[nodes[0]]))
    )


def _label(name: str, which: int, size: int, pieces: Ints, watch: Stopwatch) -> str:
    """What people can find in the trace: with the span that takes most of it, where that is another one."""
    graph = watch.graph
    spans = pieces[(graph.rank[pieces] >= 0) & (graph.event[pieces] >= 0)]
    by_name = np.bincount(graph.name[spans], weights=graph.duration_ns[spans]) if len(spans) else np.zeros(0)
    longest = graph.names[int(by_name.argmax())] if by_name.sum() > 0 else name
    short = name.removeprefix("void ").replace("(anonymous namespace)::", "").split("(", maxsplit=1)[0]  # no arguments
    short = short if len(short) <= 60 else short[:57] + "..."
    text = f"{short} #{which}"
    if longest != name and by_name.max() > 0.5 * max(float(graph.duration_ns[pieces].sum()), 1.0):
        text += f" ({longest[:60]})"
    return text + (f", {size:,} bytes" if size >= 0 else "")


def _took(watch: Stopwatch, roles: Roles, nodes: Ints) -> dict[int, float]:
    """Time of every transfer with the longest of its ranks' own parts."""
    graph = watch.graph
    own = nodes[graph.rank[nodes] >= 0]
    ranks = len(graph.ranks)
    transfers, place = np.unique(roles.exchange[own], return_inverse=True)
    column = graph.column[own]
    own_ns = graph.duration_ns[own].astype(np.float64)
    parts = np.bincount(place * ranks + column, weights=own_ns, minlength=len(transfers) * ranks).astype(np.float64)
    # The middle rank, so that one rank's slow link is reported as that rank's.
    usual = np.array([_middle(part) for part in parts.reshape(-1, ranks)])
    return {int(t): float(graph.duration_ns[t]) + float(u) for t, u in zip(transfers, usual, strict=True)}


def _middle(parts: Floats) -> float:
    positive_parts = parts[parts > 0]
    return float(np.median(positive_parts)) if len(positive_parts) else 0.0


def explained_ns(exchange: Exchange, others: Sequence[Exchange]) -> float | None:
    """Time that the exchange's size explains, by the others of its family; None where there are too few.

    The fit is alpha + beta * bytes: the median of the slopes between any two others (Theil and Sen), and the median of
    what is left, both 0 or more. With one other, or sizes all the same, an exchange of more bytes may take as many
    times longer, and one of fewer bytes as long.
    """
    alike = [
        other for other in others if other is not exchange and other.family == exchange.family and other.bytes >= 0
    ]
    if not alike or exchange.bytes < 0:
        return None
    sizes = np.array([other.bytes for other in alike], dtype=np.float64)
    times = np.array([other.usual_ns for other in alike])
    first, second = np.triu_indices(len(alike), 1)
    apart = sizes[first] != sizes[second]
    if apart.any():
        slopes = (times[second] - times[first])[apart] / (sizes[second] - sizes[first])[apart]
        beta = max(float(np.median(slopes)), 0.0)
        alpha = max(float(np.median(times - beta * sizes)), 0.0)
        if beta > 0 or float(times.max()) <= 2 * float(times.min()):
            return alpha + beta * exchange.bytes
    ratio = np.maximum(exchange.bytes / np.maximum(sizes, 1.0), 1.0)
    return float(np.median(times * ratio))

"""Gradients of a backward pass: when each is ready, what it weighs, and which all-reduces carry them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import CollectiveKind, Ints
from nodewise_replay.changes.exchanges import Exchanges
from nodewise_replay.changes.scenario import Scenario, is_piece
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph

__all__ = ["Bucket", "Gradient", "Pass", "backward_passes", "grouped"]

_READY: Final = (
    re.compile(r"^autograd::engine::evaluate_function: .*AccumulateGrad"),
    re.compile(r"AccumulateGrad"),
    re.compile(r"^autograd::engine::evaluate_function: "),
    re.compile(r"Backward\d*$"),
)
"""What ends when a gradient is ready, the most telling first: hooks of a gradient run inside the first."""

_INTO_BUCKET: Final = re.compile(r"reducer::")
"""What the data-parallel reducer does with a gradient of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """One operator that makes gradients ready: its first and last piece on its thread, and its share of a bucket."""

    first: int
    last: int
    bytes: float
    issues: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An all-reduce of gradients on one rank: its exchange, its row, and where it was issued."""

    exchange: int
    row: int
    issue: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One backward pass of one rank: buckets in the order of issue, and the gradients of each."""

    rank: int
    step: int
    buckets: tuple[Bucket, ...]
    gradients: tuple[tuple[Gradient, ...], ...]


def backward_passes(scenario: Scenario, exchanges: Exchanges) -> list[Pass]:
    """Find the gradient all-reduces of every rank and step.

    An all-reduce carries the gradients that got ready on the thread that issues it since it issued the one before. One
    that carries none (of a loss, of a count) is no bucket. A bucket's bytes are split evenly among its gradients: the
    trace tells their sum alone.
    """
    graph, rows = scenario.graph, scenario.graph.collectives
    launch = np.full(len(graph), NO_NODE, dtype=np.int64)
    launches = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
    launch[graph.target[launches]] = graph.source[launches]
    exchange_of = np.searchsorted(exchanges.transfer, rows.transfer)
    reduces = (exchanges.kind[exchange_of] == CollectiveKind.ALL_REDUCE) & (exchanges.bytes[exchange_of] > 0)
    ready = _ready_spans(graph)
    found = []
    for rank in graph.ranks:
        mine = np.flatnonzero(reduces & (rows.rank == rank) & (launch[rows.arrival] >= 0))
        for step in np.unique(graph.step[rows.transfer[mine]]):
            of_step = mine[graph.step[rows.transfer[mine]] == step]
            of_step = of_step[np.argsort(launch[rows.arrival[of_step]], kind="stable")]
            spans = ready.get((rank, int(step)), np.zeros((0, 2), dtype=np.int64))
            one = _pass(rank, int(step), of_step, launch[rows.arrival[of_step]], exchange_of, exchanges, spans, graph)
            if one is not None:
                found.append(one)
    return found


def _ready_spans(graph: Graph) -> dict[tuple[int, int], Ints]:
    """By rank and step, (first, last) piece of every operator that makes gradients ready, in order."""
    piece = is_piece(graph)
    for pattern in _READY:
        nodes = np.flatnonzero(graph.named(pattern) & piece & (graph.event >= 0))
        if not len(nodes):
            continue
        owner = np.column_stack((graph.rank[nodes], graph.event[nodes]))
        _, first, member = np.unique(owner, axis=0, return_index=True, return_inverse=True)
        last = np.zeros(len(first), dtype=np.int64)
        np.maximum.at(last, member.reshape(-1), np.arange(len(nodes)))
        spans = np.column_stack((nodes[first], nodes[last]))
        spans = _reduced(graph, spans[np.argsort(spans[:, 0], kind="stable")])
        where = np.column_stack((graph.rank[spans[:, 0]], graph.step[spans[:, 0]]))
        return {
            (int(rank), int(step)): spans[(where == (rank, step)).all(axis=1)]
            for rank, step in np.unique(where, axis=0)
        }
    return {}


def _reduced(graph: Graph, spans: Ints) -> Ints:
    """Spans in which the reducer is seen to take a gradient; all where it is seen in none.

    Others are of leaves that no rank exchanges, such as inputs.
    """
    seen = np.concatenate(([0], np.cumsum(graph.named(_INTO_BUCKET) & is_piece(graph))))
    taken = seen[spans[:, 1] + 1] > seen[spans[:, 0]]
    return spans[taken] if taken.any() else spans


def _pass(
    rank: int,
    step: int,
    rows: Ints,
    issues: Ints,
    exchange_of: Ints,
    exchanges: Exchanges,
    spans: Ints,
    graph: Graph,
) -> Pass | None:
    buckets, gradients, taken = [], [], 0
    for row, issue in zip(rows.tolist(), issues.tolist(), strict=True):
        upto = taken
        while upto < len(spans) and spans[upto, 0] <= issue and graph.lane[spans[upto, 0]] == graph.lane[issue]:
            upto += 1
        if upto == taken:
            continue
        size = int(exchanges.bytes[exchange_of[row]])
        carried = spans[taken:upto]
        buckets.append(Bucket(exchange=int(exchange_of[row]), row=row, issue=issue, bytes=size))
        gradients.append(
            tuple(
                Gradient(
                    first=int(first), last=int(last), bytes=size / len(carried), issues=bool(first <= issue <= last)
                )
                for first, last in carried
            )
        )
        taken = upto
    if not buckets:
        return None
    return Pass(rank=rank, step=step, buckets=tuple(buckets), gradients=tuple(gradients))


def grouped(sizes: Sequence[float], cap_bytes: float) -> list[int]:
    """Bucket of every gradient, in the order in which they get ready.

    As DistributedDataParallel does: a bucket closes as soon as its size reaches the cap. An explicit cap holds for the
    first bucket as well.
    """
    bucket, filled, found = 0, 0.0, []
    for size in sizes:
        found.append(bucket)
        filled += size
        # Evenly split bytes are sums of fractions: half a byte is no difference.
        if filled >= cap_bytes - 0.5:
            bucket, filled = bucket + 1, 0.0
    return found

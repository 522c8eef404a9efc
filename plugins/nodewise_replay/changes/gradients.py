"""Gradients of a backward pass: when each is ready, what it weighs, and which all-reduces carry them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import CollectiveKind, Floats, Ints
from nodewise_replay.changes.exchanges import Exchanges
from nodewise_replay.changes.scenario import Scenario, is_piece
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph

__all__ = ["Pass", "backward_passes", "group_by_cap"]

_READY: Final = (
    re.compile(r"^autograd::engine::evaluate_function: .*AccumulateGrad"),
    re.compile(r"AccumulateGrad"),
    re.compile(r"^autograd::engine::evaluate_function: "),
    re.compile(r"Backward\d*$"),
)
"""What ends when a gradient is ready, the most telling first: hooks of a gradient run inside the first."""

_INTO_BUCKET: Final = re.compile(r"reducer::")
"""Operators of the data-parallel reducer for a gradient of its own."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pass:
    """One backward pass of one rank: all-reduces of gradients in the order of issue, and what gets ready for them.

    Attributes
    ----------
    exchange, row, issue : (buckets,) int
        Of every all-reduce its exchange, its row among the graph's collectives, and the piece that issued it.
    first, last : (gradients,) int
        First and last piece of the operator that makes gradients ready, on its thread.
    bucket, bytes : (gradients,) int, float
        Place of the bucket that carries them, and their share of its bytes.
    """

    rank: int
    step: int
    exchange: Ints
    row: Ints
    issue: Ints
    first: Ints
    last: Ints
    bucket: Ints
    bytes: Floats

    @property
    def issues(self) -> NDArray[np.bool_]:
        """Which of the operators issue the all-reduce of their bucket."""
        issue = self.issue[self.bucket]
        return (self.first <= issue) & (issue <= self.last)


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
    passes = []
    for rank in graph.ranks:
        mine = np.flatnonzero(reduces & (rows.rank == rank) & (launch[rows.arrival] >= 0))
        for step in np.unique(graph.step[rows.transfer[mine]]):
            of_step = mine[graph.step[rows.transfer[mine]] == step]
            of_step = of_step[np.argsort(launch[rows.arrival[of_step]], kind="stable")]
            spans = ready.get((rank, int(step)), np.zeros((0, 2), dtype=np.int64))
            issued, span_count = _gradient_reductions(graph, of_step, launch[rows.arrival[of_step]], spans)
            if not len(issued):
                continue
            row, issue, gradient_counts = issued.T
            exchange = exchange_of[row]
            one = Pass(
                rank=rank,
                step=int(step),
                exchange=exchange,
                row=row,
                issue=issue,
                first=spans[:span_count, 0],
                last=spans[:span_count, 1],
                bucket=np.repeat(np.arange(len(row)), gradient_counts),
                bytes=np.repeat(exchanges.bytes[exchange] / gradient_counts, gradient_counts),
            )
            passes.append(one)
    return passes


def _ready_spans(graph: Graph) -> dict[tuple[int, int], Ints]:
    """By rank and step, (first, last) piece of every operator that makes gradients ready, in order."""
    piece = is_piece(graph)
    for pattern in _READY:
        nodes = np.flatnonzero(graph.match_names(pattern) & piece & (graph.event >= 0))
        if not len(nodes):
            continue
        owner = np.column_stack((graph.rank[nodes], graph.event[nodes]))
        _, first, member = np.unique(owner, axis=0, return_index=True, return_inverse=True)
        last = np.zeros(len(first), dtype=np.int64)
        np.maximum.at(last, member.reshape(-1), np.arange(len(nodes)))
        spans = np.column_stack((nodes[first], nodes[last]))
        spans = _reducer_spans(graph, spans[np.argsort(spans[:, 0], kind="stable")])
        where = np.column_stack((graph.rank[spans[:, 0]], graph.step[spans[:, 0]]))
        return {
            (int(rank), int(step)): spans[(where == (rank, step)).all(axis=1)]
            for rank, step in np.unique(where, axis=0)
        }
    return {}


def _reducer_spans(graph: Graph, spans: Ints) -> Ints:
    """Spans in which the reducer is seen to take a gradient; all where it is seen in none.

    Others are of leaves that no rank exchanges, such as inputs.
    """
    into_bucket_sums = np.concatenate(([0], np.cumsum(graph.match_names(_INTO_BUCKET) & is_piece(graph))))
    has_copies = into_bucket_sums[spans[:, 1] + 1] > into_bucket_sums[spans[:, 0]]
    return spans[has_copies] if has_copies.any() else spans


def _gradient_reductions(graph: Graph, rows: Ints, issues: Ints, spans: Ints) -> tuple[Ints, int]:
    """Rows of all-reduces that carry gradients, each with its issue and how many it carries; how many all carry."""
    reductions, span_count = [], 0
    for row, issue in zip(rows.tolist(), issues.tolist(), strict=True):
        upto = span_count
        while upto < len(spans) and spans[upto, 0] <= issue and graph.lane[spans[upto, 0]] == graph.lane[issue]:
            upto += 1
        if upto > span_count:
            reductions.append((row, issue, upto - span_count))
        span_count = upto
    return np.array(reductions, dtype=np.int64).reshape(-1, 3), span_count


def group_by_cap(sizes: Iterable[float], cap_bytes: float) -> list[int]:
    """Bucket of every gradient, in the order in which they get ready.

    As DistributedDataParallel does: a bucket closes as soon as its size reaches the cap. An explicit cap holds for the
    first bucket as well.
    """
    bucket, bucket_bytes, buckets = 0, 0.0, []
    for size in sizes:
        buckets.append(bucket)
        bucket_bytes += size
        # Evenly split bytes are sums of fractions: half a byte is no difference.
        if bucket_bytes >= cap_bytes - 0.5:
            bucket, bucket_bytes = bucket + 1, 0.0
    return buckets

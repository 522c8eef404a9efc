"""Replays: one sweep over the graph of a recorded job beside the same in plain Python; the graph beside json.loads.

The job is four real processes over gloo, its steps repeated until the graph has some 50,000 nodes.
"""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from results import Result

from nodewise.domain.trace import Trace, TraceSource, TraceSteps
from nodewise_replay.alignment.clocks import align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import Graph, NodeKind
from nodewise_replay.graph.sweep import sweep_times
from nodewise_traces.plugin import nodewise_trace_readers

JOB = Path(__file__).parent.parent / "tests" / "fixtures" / "traces" / "ddp_4_ranks_8_buckets"
NODES = 50_000
REPEATS = 5


def traces() -> list[Trace]:
    """What the four ranks recorded."""
    readers = [record.reader for record in nodewise_trace_readers()]
    found: list[Trace] = []
    for path in sorted(JOB.glob("rank*.json.gz")):
        content, source = gzip.decompress(path.read_bytes()), TraceSource(name=path.name)
        reader = max(readers, key=lambda one: one.recognises(content[:4096], source))
        found.extend(reader.read(io.BytesIO(content), source))
    return found


def repeated(trace: Trace, times: int) -> Trace:
    """The same recording several times, one after the other."""
    count, rows = len(trace), trace.collectives
    span = int(trace.end_ns.max() - trace.begin_ns.min()) + 1

    def copies(column: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        there = np.tile(column >= 0, times)
        return np.where(there, np.tile(column, times) + np.repeat(np.arange(times) * step, len(column)), -1)

    return replace(
        trace,
        name=np.tile(trace.name, times),
        lane=np.tile(trace.lane, times),
        kind=np.tile(trace.kind, times),
        begin_ns=copies(trace.begin_ns, span),
        duration_ns=np.tile(trace.duration_ns, times),
        correlation=copies(trace.correlation, int(trace.correlation.max()) + 1),
        sequence=copies(trace.sequence, int(trace.sequence.max()) + 1),
        forward_lane=np.tile(trace.forward_lane, times),
        bytes=np.tile(trace.bytes, times),
        steps=TraceSteps(
            number=copies(trace.steps.number, 1_000),
            begin_ns=copies(trace.steps.begin_ns, span),
            end_ns=copies(trace.steps.end_ns, span),
        ),
        collectives=replace(
            rows,
            event=copies(rows.event, count),
            call=copies(rows.call, count),
            kind=np.tile(rows.kind, times),
            group=np.tile(rows.group, times),
            in_bytes=np.tile(rows.in_bytes, times),
            out_bytes=np.tile(rows.out_bytes, times),
            sequence=np.tile(rows.sequence, times),
            peer=np.tile(rows.peer, times),
        ),
    )


def quickest_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of some runs."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def plain_sweep(graph: Graph, duration_ns: NDArray[np.int64]) -> list[int]:
    """What ``swept`` does, as one would write it down; returns the ends."""
    first, source, lag = graph.first_edge.tolist(), graph.source.tolist(), graph.lag_ns.tolist()
    duration, end = duration_ns.tolist(), graph.release_ns.tolist()
    step, recorded = graph.step.tolist(), graph.end_ns.tolist()
    for node in graph.order.tolist():
        begin = end[node]
        for edge in range(first[node], first[node + 1]):
            before = source[edge]
            ended = end[before] if step[before] == step[node] else recorded[before]
            begin = max(begin, ended + lag[edge])
        end[node] = begin + duration[node]
    return end


def run() -> Iterator[Result]:
    """One core; everything is compiled before it is timed."""
    recorded = traces()
    per_copy = len(build_graph(recorded, align_clocks(recorded)))
    job = [repeated(trace, max(1, round(NODES / per_copy))) for trace in recorded]
    graph = build_graph(job, align_clocks(job))
    slower = np.where(graph.kind == NodeKind.TRANSFER, 2 * graph.duration_ns, graph.duration_ns)
    if sweep_times(graph, slower)[1].tolist() != plain_sweep(graph, slower):
        raise SystemExit("the compiled sweep differs from the plain one")
    events = sum(len(trace) for trace in job)
    files = [gzip.decompress(path.read_bytes()) for path in JOB.glob("rank*.json.gz")]
    copies = events / sum(len(trace) for trace in recorded)
    parse_s = copies * quickest_s(lambda: [json.loads(content) for content in files])
    build_s = quickest_s(lambda: build_graph(job, align_clocks(job)))
    sweep_s = quickest_s(lambda: sweep_times(graph, slower))
    plain_s = quickest_s(lambda: plain_sweep(graph, slower), 3)
    yield Result("replay_sweep", len(graph) / sweep_s, f"nodes/s of {len(graph)}", len(graph) / plain_s)
    yield Result("replay_what_if", sweep_s * 1e3, f"ms of {len(graph)} nodes", plain_s * 1e3)
    yield Result("replay_graph", events / build_s, f"events/s of {events}, clocks included", events / parse_s)

"""The traces that an answer rests on: chosen, read, and of one job."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nodewise.diagnosis.results import Evidence, TraceQuestion
from nodewise.domain.errors import NodewiseError, Reason, Refusal, Violation, invalid_field
from nodewise.domain.profile import TraceReference
from nodewise.plugin import Run
from nodewise.profiles.reading import LoadedTrace, TraceLoader

__all__ = ["READING", "evidence_of"]

READING = "reading"
"""Stage of progress while traces are read."""


def evidence_of(loader: TraceLoader, question: TraceQuestion, run: Run) -> Evidence:
    """Read the requested traces; sorted by rank.

    Raises
    ------
    NodewiseError
        EVIDENCE_MISSING if the profile has no traces; INVALID_FIELD for a hash that it lacks and for a trace that
        cannot be read; CONTRADICTORY_FACTS if they are not of one job or a rank was recorded twice.
    """
    references = _choose(question)
    start_s = time.perf_counter()
    traces = loader.load(
        references, lambda count, total: run.advanced(READING, count, total), run.remaining_s, question.mapping
    )
    load_s = time.perf_counter() - start_s
    by_rank = tuple(sorted(traces, key=lambda each: each.trace.rank))
    _require_one_job(by_rank)
    if not any(len(each.trace) for each in by_rank):
        raise _missing("the traces hold no events")
    return Evidence(loaded=by_rank, load_s=load_s)


def _choose(question: TraceQuestion) -> Sequence[TraceReference]:
    """The references to use, each file once."""
    stored_traces = dict.fromkeys(question.profile.traces)
    if not stored_traces:
        raise _missing("the profile names no traces; ingest those of one or more ranks of the job")
    if not question.traces:
        return tuple(stored_traces)
    hashes = {reference.content_sha256 for reference in stored_traces}
    for place, requested in enumerate(question.traces):
        if requested not in hashes:
            raise invalid_field(f"trace_sha256s[{place}]", "must name a trace of the profile")
    return tuple(reference for reference in stored_traces if reference.content_sha256 in question.traces)


def _missing(message: str) -> NodewiseError:
    return NodewiseError.refused(Refusal.missing(message, "traces"))


def _require_one_job(traces: Sequence[LoadedTrace]) -> None:
    sizes = {trace.trace.world_size: trace for trace in traces if trace.trace.world_size}
    if len(sizes) > 1:
        (first, one), (second, other) = list(sizes.items())[:2]
        raise _contradiction(
            f"rank {one.trace.rank} belongs to a job of {first} ranks, rank {other.trace.rank} to one of {second}; "
            "name traces of one run"
        )
    world_size = next(iter(sizes), 0)
    by_rank: dict[int, LoadedTrace] = {}
    for trace in traces:
        rank = trace.trace.rank
        if world_size and rank >= world_size:
            raise _contradiction(f"rank {rank} is outside the job's {world_size} ranks; name traces of one run")
        before = by_rank.setdefault(rank, trace)
        if before is not trace:
            raise _contradiction(
                f"rank {rank} was recorded twice ({before.content_sha256[:12]} and {trace.content_sha256[:12]}): name "
                "the traces of one run in trace_sha256s, or state the ranks of traces that do not say theirs"
            )


def _contradiction(description: str) -> NodewiseError:
    return NodewiseError.invalid([Violation("profile.traces", description)], Reason.CONTRADICTORY_FACTS)

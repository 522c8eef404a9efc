"""Plans of appends: pure functions, shared by all stores, so that they decide alike and before they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.profiles.batches import Batch, EncodedBatch, TraceChunk
from nodewise.profiles.stated_facts import NOTHING, StatedFacts

__all__ = ["AppendPlan", "ChunkStep", "Commit", "ProfileState", "SessionState", "TraceState", "plan_append"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileState:
    """A profile before an append.

    ``last_number`` is that of the newest observation, ``last_timing_number`` of the newest phase timing, retracted or
    not.
    """

    revision: int = 0
    stated: StatedFacts = NOTHING
    last_number: int = 0
    last_timing_number: int = 0
    observations_count: int = 0


@dataclass(frozen=True, slots=True)
class TraceState:
    """A trace that a session is sending; ``finished_sequence_number`` 0 = it has not ended."""

    format: str
    rank: int
    world_size: int
    size_bytes: int = 0
    finished_sequence_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session before an append: its numbers and what it staged since its last commit."""

    durable: int = 0
    committed: int = 0
    stated: StatedFacts = NOTHING
    rows: int = 0
    timing_rows: int = 0
    has_content: bool = False
    traces: Mapping[str, TraceState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChunkStep:
    """A chunk to write: ``trace`` is its trace afterwards, ``settled_bytes`` the settled bytes before."""

    chunk: TraceChunk
    settled_bytes: int
    trace: TraceState


@dataclass(frozen=True, slots=True)
class Commit:
    """A unit that enters the profile: numbers of its batches, and how its observations are numbered."""

    revision: int
    first_sequence_number: int
    last_sequence_number: int
    first_observation_number: int
    rows: int
    timing_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendPlan:
    """The rows to write, and the states afterwards."""

    profile: ProfileState
    session: SessionState
    batches: tuple[EncodedBatch, ...]
    commits: tuple[Commit, ...]
    chunks: tuple[ChunkStep, ...]


def plan_append(
    profile: ProfileState,
    session: SessionState,
    batches: Sequence[EncodedBatch],
    stored_hash: Callable[[int], bytes | None],
) -> AppendPlan:
    """Plan the effect of batches on a session and its profile, one after the other.

    Parameters
    ----------
    stored_hash : callable
        Content hash of the batch stored under a number up to ``session.durable``.

    Raises
    ------
    NodewiseError
        As :meth:`ProfileStore.append`, before anything is written.
    """
    new: dict[int, EncodedBatch] = {}
    commits: list[Commit] = []
    chunks: list[ChunkStep] = []
    for encoded_batch in batches:
        number = encoded_batch.batch.sequence_number
        if number <= session.durable:
            stored_digest = new[number].content_hash if number in new else stored_hash(number)
            if stored_digest != encoded_batch.content_hash:
                raise _conflict(number)
            continue
        if number != session.durable + 1:
            raise _out_of_order(number, session.durable + 1)
        session, steps = _stage(profile, session, encoded_batch.batch)
        new[number] = encoded_batch
        chunks += steps
        if encoded_batch.batch.commit:
            profile, session, commit = _commit(profile, session)
            if commit is not None:
                commits.append(commit)
    return AppendPlan(
        profile=profile, session=session, batches=tuple(new.values()), commits=tuple(commits), chunks=tuple(chunks)
    )


def _stage(profile: ProfileState, session: SessionState, batch: Batch) -> tuple[SessionState, list[ChunkStep]]:
    facts = session.stated
    if batch.has_facts or batch.naming:
        facts = facts.then(batch.facts)
    if facts and (facts is not session.stated or batch.commit):
        profile.stated.then(facts).without_removals()
    steps: list[ChunkStep] = []
    if batch.trace_chunks:
        traces = dict(session.traces)
        for position, chunk in enumerate(batch.trace_chunks):
            step = _chunk_step(traces.get(chunk.trace_id), chunk, batch.sequence_number, f"trace_chunks[{position}]")
            traces[chunk.trace_id] = step.trace
            steps.append(step)
        session = replace(session, traces=traces)
    session = replace(
        session,
        stated=facts,
        durable=batch.sequence_number,
        rows=session.rows + len(batch.observations),
        timing_rows=session.timing_rows + len(batch.phase_timings),
        has_content=session.has_content or batch.has_content,
    )
    return session, steps


def _chunk_step(trace: TraceState | None, chunk: TraceChunk, sequence_number: int, path: str) -> ChunkStep:
    """The effect of a chunk on its trace. The trace store checks that resent bytes are the same."""
    if trace is None:
        if not chunk.trace_id:
            raise invalid_field(f"{path}.trace_id", "must not be empty")
        if not chunk.format:
            raise invalid_field(f"{path}.format", "must be stated in the first chunk of a trace")
        if chunk.world_size < 0:
            raise invalid_field(f"{path}.world_size", "must be 1 or more, or 0 to take it from the trace")
        if chunk.rank < -1:
            raise invalid_field(f"{path}.rank", "must be 0 or more, or -1 to take it from the trace")
        if chunk.world_size and chunk.rank >= chunk.world_size:
            raise invalid_field(f"{path}.rank", f"must be below world_size, {chunk.world_size}")
        trace = TraceState(format=chunk.format, rank=chunk.rank, world_size=chunk.world_size)
    if trace.finished_sequence_number:
        raise invalid_field(f"{path}.trace_id", "names a trace that is complete; a new trace needs a new trace_id")
    if not 0 <= chunk.offset_bytes <= trace.size_bytes:
        raise invalid_field(f"{path}.offset_bytes", f"must be {trace.size_bytes}, the end of the chunk before")
    size = max(trace.size_bytes, chunk.offset_bytes + len(chunk.data))
    if chunk.last and not size:
        raise invalid_field(f"{path}.data", "must not be empty: the trace would have no bytes")
    after = replace(trace, size_bytes=size, finished_sequence_number=sequence_number if chunk.last else 0)
    return ChunkStep(chunk, trace.size_bytes, after)


def _commit(profile: ProfileState, session: SessionState) -> tuple[ProfileState, SessionState, Commit | None]:
    unfinished_names = sorted(name for name, trace in session.traces.items() if not trace.finished_sequence_number)
    if unfinished_names:
        raise invalid_field("commit", f"must not commit before the last chunk of trace {unfinished_names[0]!r}")
    after = SessionState(durable=session.durable, committed=session.durable, traces=session.traces)
    if not session.has_content:
        return profile, after, None
    commit = Commit(
        revision=profile.revision + 1,
        first_sequence_number=session.committed + 1,
        last_sequence_number=session.durable,
        first_observation_number=profile.last_number + 1,
        rows=session.rows,
        timing_rows=session.timing_rows,
    )
    profile = ProfileState(
        revision=commit.revision,
        stated=profile.stated.then(session.stated).without_removals() if session.stated else profile.stated,
        last_number=profile.last_number + session.rows,
        last_timing_number=profile.last_timing_number + session.timing_rows,
        observations_count=profile.observations_count + session.rows,
    )
    return profile, after, commit


def _out_of_order(number: int, expected_number: int) -> NodewiseError:
    return NodewiseError(
        Reason.BATCH_OUT_OF_ORDER,
        f"batch {number} arrived, but {expected_number} is next; resend from {expected_number}",
        {"expected_sequence_number": str(expected_number), "sequence_number": str(number)},
    )


def _conflict(number: int) -> NodewiseError:
    return NodewiseError(
        Reason.BATCH_CONFLICT,
        f"batch {number} is stored with other content; a changed batch needs a new number or a new session",
        {"sequence_number": str(number)},
    )

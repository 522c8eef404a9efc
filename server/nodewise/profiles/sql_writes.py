"""Writing to the store's tables: one transaction of several requests, each in a savepoint of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from typing import TypeVar

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.batches import EncodedBatch, encode_batch
from nodewise.profiles.condition import StoreCondition
from nodewise.profiles.ingest import AppendPlan, ChunkStep, ProfileState, SessionState, TraceState, plan_append
from nodewise.profiles.ledger import put_unscored
from nodewise.profiles.quotas import BATCH_BYTES, PROFILE_BYTES, SESSION_BYTES, Counting, Usage
from nodewise.profiles.sql_reads import ProfileRow, memo, profile_row, stated_columns, stated_in, stated_out
from nodewise.profiles.sql_removals import delete, purge, retract, undelete
from nodewise.profiles.sql_rows import (
    Connection,
    change_profile,
    columns_of,
    insert,
    insert_keyed,
    transaction,
    translate_errors,
    update,
)
from nodewise.profiles.store import (
    AppendRequest,
    DeleteRequest,
    Outcome,
    RetractRequest,
    SessionStatus,
    StoreOptions,
    WriteRequest,
)
from nodewise.profiles.traces import TraceStore, stage_name

__all__ = ["Writing", "session_status"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Session:
    """A session with the keys of its rows; None = not stored yet."""

    profile: ProfileRow | None
    key: int | None
    state: SessionState


def _session(connection: Connection, profile_id: str, session_id: str) -> _Session:
    profile = profile_row(connection, profile_id)
    if profile is None:
        return _Session(None, None, SessionState())
    row = connection.execute(
        "SELECT key, durable, committed, staged_rows, staged_content, staged_facts,"
        " staged_timing_rows FROM sessions"
        " WHERE profile_key = ? AND session_id = ?",
        (profile.key, session_id),
    ).fetchone()
    if row is None:
        return _Session(profile, None, SessionState())
    key, durable, committed, rows, content, facts, timing_rows = row
    traces = {
        trace_id: TraceState(*of_trace)
        for trace_id, *of_trace in connection.execute(
            "SELECT trace_id, format, rank, world_size, size_bytes, finished_sequence_number FROM traces"
            " WHERE session_key = ?",
            (key,),
        )
    }
    state = SessionState(
        durable=durable,
        committed=committed,
        stated=stated_in(facts),
        rows=rows,
        timing_rows=timing_rows,
        has_content=bool(content),
        traces=traces,
    )
    return _Session(profile, key, state)


def session_status(connection: Connection, profile_id: str, session_id: str) -> SessionStatus:
    """Where a session stands."""
    session = _session(connection, profile_id, session_id)
    return _status(_profile_state(session.profile), session.state)


def _status(profile: ProfileState, session: SessionState) -> SessionStatus:
    return SessionStatus(
        durable_sequence_number=session.durable,
        committed_sequence_number=session.committed,
        revision=profile.revision,
        observations_count=profile.observations_count,
    )


def _profile_state(row: ProfileRow | None) -> ProfileState:
    return ProfileState() if row is None else row.state


def _growth(session: _Session, plan: AppendPlan) -> Usage:
    """Bytes and traces that an append adds."""
    stored_bytes = sum(len(new.payload) + BATCH_BYTES for new in plan.batches)
    stored_bytes += PROFILE_BYTES * (session.profile is None) + SESSION_BYTES * (session.key is None)
    traces = sum(step.trace.size_bytes - step.settled_bytes for step in plan.chunks)
    return Usage(stored_bytes=stored_bytes, trace_bytes=traces, profiles=int(session.profile is None))


def _encode(request: WriteRequest) -> tuple[EncodedBatch, ...] | NodewiseError:
    if not isinstance(request, AppendRequest):
        return ()
    try:
        return tuple(encode_batch(batch) for batch in request.batches)
    except NodewiseError as error:
        return error


_Asked = tuple[WriteRequest, tuple[EncodedBatch, ...] | NodewiseError]


def _by_session(
    requests: list[WriteRequest], batches_of_requests: list[tuple[EncodedBatch, ...] | NodewiseError]
) -> list[list[_Asked]]:
    """Requests in their order; consecutive valid appends to one session form a group.

    A group needs as many statements as one append.
    """
    groups: list[list[_Asked]] = []
    before: tuple[str, str] | None = None
    for request, batches in zip(requests, batches_of_requests):
        session = None
        if isinstance(request, AppendRequest) and not isinstance(batches, NodewiseError):
            session = (request.profile_id, request.session_id)
        if session is None or session != before:
            groups.append([])
        groups[-1].append((request, batches))
        before = session
    return groups


@dataclass(slots=True)
class Writing:
    """One transaction: ``run`` does its work, ``after`` the cleaning up once it is durable.

    Attributes
    ----------
    counting : Counting
        Counts what namespaces store, against their quotas.
    changed : bool
        Whether profiles changed, as opposed to staged batches only.
    generation : int
        Generation of the store after this, where profiles changed.
    discards : list of str
        Stages of traces that are no longer needed.
    orphaned : bool
        Whether traces may have lost their last reference.
    written : list of str
        Stages that were written to, which are re-read if the transaction fails.
    """

    connection: Connection
    traces: TraceStore
    condition: StoreCondition
    now: Callable[[], float]
    options: StoreOptions
    counting: Counting
    changed: bool = False
    generation: int = 0
    orphaned: bool = False
    discards: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def run(self, requests: list[WriteRequest], digests: dict[tuple[int, int], str]) -> list[Outcome]:
        """Do all requests in one transaction; also store the ``digests`` of (profile key, revision)."""
        encoded_requests = [_encode(request) for request in requests]
        self.connection.execute(self.connection.writing)
        self.connection.executemany(
            "UPDATE profiles SET digest = ? WHERE key = ? AND revision = ?",
            [(memo(digest), key, revision) for (key, revision), digest in digests.items()],
        )
        self.counting.begin(request.profile_id for request in requests)
        discards, self.orphaned = purge(self.connection, self.now(), self.counting)
        self.discards += discards
        outcomes: list[Outcome] = []
        for some in _by_session(requests, encoded_requests):
            outcomes += self._some(some)
        self.counting.settle()
        if self.changed:
            self.generation = self.connection.execute(self.connection.counting).fetchall()[0][0]
        self.connection.execute("COMMIT")
        return outcomes

    def roll_back(self) -> None:
        """Roll the transaction back."""
        for stage in self.written:
            self.traces.doubt(stage)
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def after(self) -> None:
        """Remove stages of traces, and traces that nothing refers to any more."""
        for stage in self.discards:
            self.traces.discard(stage)
        if self.orphaned:
            # Only write transactions finish traces, so no new reference appears while this one is open.
            with transaction(self.connection, self.connection.writing):
                orphans = self.connection.execute(
                    "SELECT content_sha256 FROM unreferenced u WHERE NOT EXISTS"
                    " (SELECT 1 FROM traces t WHERE t.content_sha256 = u.content_sha256)"
                ).fetchall()
                self.traces.remove_all(name for (name,) in orphans)
                self.connection.execute("DELETE FROM unreferenced")

    def _some(self, some: list[_Asked]) -> list[Outcome]:
        """Appends to one session together, or one by one where one of them fails; or a single request."""
        if len(some) > 1:
            first = some[0][0]
            assert isinstance(first, AppendRequest)
            parts = [batches for _, batches in some if not isinstance(batches, NodewiseError)]
            outcome = self._try(lambda: self._append(first, parts))
            if not isinstance(outcome, NodewiseError):
                return list(outcome)
        return [self._one(request, batches) for request, batches in some]

    def _one(self, request: WriteRequest, batches: tuple[EncodedBatch, ...] | NodewiseError) -> Outcome:
        return batches if isinstance(batches, NodewiseError) else self._try(lambda: self._do(request, batches))

    def _try(self, doing: Callable[[], Result]) -> Result | NodewiseError:
        """Do one request in a savepoint; its error is returned."""
        self.connection.execute("SAVEPOINT request")
        written_count, discards = len(self.written), len(self.discards)
        outcome: Result | NodewiseError
        try:
            with translate_errors("write", self.condition):
                outcome = doing()
        except NodewiseError as error:
            if not self.connection.in_transaction:  # the database rolled all back, e.g. because its disk is full
                raise
            self.connection.execute("ROLLBACK TO request")
            for stage in self.written[written_count:]:
                self.traces.doubt(stage)
            del self.written[written_count:], self.discards[discards:]
            outcome = error
        self.connection.execute("RELEASE request")
        return outcome

    def _do(self, request: WriteRequest, batches: tuple[EncodedBatch, ...]) -> Outcome:
        match request:
            case AppendRequest():
                return self._append(request, [batches])[0]
            case RetractRequest():
                summary, has_changed = retract(self.connection, request, self.now(), self.counting)
            case DeleteRequest():
                summary, has_changed = delete(self.connection, request, self.now(), self.options.deleted_kept_s)
            case _:
                summary, has_changed = undelete(self.connection, request, self.now())
        self.changed |= has_changed
        return summary

    # --- append

    def _append(self, request: AppendRequest, parts: Sequence[tuple[EncodedBatch, ...]]) -> list[SessionStatus]:
        """Append to the request's session; returns its status after each part."""
        current = _session(self.connection, request.profile_id, request.session_id)
        before, session = _profile_state(current.profile), current.state
        new: dict[int, bytes] = {}

        def stored_hash(number: int) -> bytes | None:
            if number in new:
                return new[number]
            row = self.connection.execute(
                "SELECT content_hash FROM batches WHERE session_key = ? AND sequence_number = ?", (current.key, number)
            ).fetchone()
            return None if row is None else bytes(row[0])

        plans: list[AppendPlan] = []
        for batches in parts:
            plans.append(plan_append(before, session, batches, stored_hash))
            before, session = plans[-1].profile, plans[-1].session
            new.update({each.batch.sequence_number: each.content_hash for each in plans[-1].batches})
        plan = AppendPlan(
            profile=before,
            session=session,
            batches=tuple(chain.from_iterable(each.batches for each in plans)),
            commits=tuple(chain.from_iterable(each.commits for each in plans)),
            chunks=tuple(chain.from_iterable(each.chunks for each in plans)),
        )
        if plan.batches:
            more = _growth(current, plan)
            self.counting.check(request.profile_id, more)
            profile = current.profile or self._new_profile(request.profile_id)
            session_key = self._put_session(profile.key, request.session_id, current.key, plan)
            for step in plan.chunks:
                self._put_chunk(stage_name(profile.uid, request.session_id, step.chunk.trace_id), session_key, step)
            if plan.commits:
                self._put_commits(profile, session_key, plan)
            self.counting.add(request.profile_id, more)
        return [_status(each.profile, each.session) for each in plans]

    def _new_profile(self, profile_id: str) -> ProfileRow:
        numbers = ("revision", "last_number", "last_timing_number", "observations_count")
        columns = {"facts": b"", **dict.fromkeys((*numbers, "create_time_s", "update_time_s"), 0)}
        insert(self.connection, "profiles", profile_id=profile_id, uid=uuid.uuid4().hex, **columns)
        row = profile_row(self.connection, profile_id)
        assert row is not None
        return row

    def _put_session(self, profile_key: int, session_id: str, key: int | None, plan: AppendPlan) -> int:
        state = plan.session
        columns = {
            "durable": state.durable,
            "committed": state.committed,
            "staged_rows": state.rows,
            "staged_content": int(state.has_content),
            "staged_facts": stated_out(state.stated),
            "staged_timing_rows": state.timing_rows,
        }
        if key is None:
            key = insert_keyed(self.connection, "sessions", profile_key=profile_key, session_id=session_id, **columns)
        else:
            update(self.connection, "sessions", key, **columns)
        self.connection.executemany(
            "INSERT INTO batches (session_key, sequence_number, content_hash, payload) VALUES (?, ?, ?, ?)",
            [(key, new.batch.sequence_number, new.content_hash, new.payload) for new in plan.batches],
        )
        return key

    def _put_chunk(self, stage: str, session_key: int, step: ChunkStep) -> None:
        self.written.append(stage)
        self.traces.write(stage, step.settled_bytes, step.chunk.offset_bytes, step.chunk.data)
        sha256 = None
        if step.chunk.last:
            sha256 = self.traces.finish(stage, step.trace.size_bytes)
            self.discards.append(stage)
        self.connection.execute(
            "INSERT INTO traces (session_key, trace_id, format, rank, world_size, size_bytes, finished_sequence_number,"
            " content_sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_key, trace_id) DO UPDATE SET"
            " size_bytes = excluded.size_bytes, finished_sequence_number = excluded.finished_sequence_number,"
            " content_sha256 = excluded.content_sha256",
            (session_key, step.chunk.trace_id, *astuple(step.trace), sha256),
        )

    def _put_commits(self, profile: ProfileRow, session_key: int, plan: AppendPlan) -> None:
        now = self.now()
        for commit in plan.commits:
            keys = {"profile_key": profile.key, "session_key": session_key, "time_s": now}
            insert(self.connection, "commits", **keys, **columns_of(commit))
        self.changed = True
        if self.options.scored:
            put_unscored(self.connection, profile.key, plan.commits)
        state = plan.profile
        change_profile(
            self.connection,
            profile.key,
            create_time_s=profile.create_time_s if profile.revision else now,
            update_time_s=now,
            digest=None,
            **columns_of(state, but="stated"),
            **stated_columns(state.stated),
        )

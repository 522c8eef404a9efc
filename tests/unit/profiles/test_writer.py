"""The writer: order, group commit, bounds, closing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import numpy as np
import pytest
from patience import PATIENCE_S
from profile_batches import batch, speeds

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.opening import open_store
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import AppendRequest, Evidence, Outcome, WriteRequest
from nodewise.profiles.writer import StoreWriter


class GatedStore(SqliteProfileStore):
    """Lets a test hold the writer's thread, and notes what it writes together."""

    def __init__(self) -> None:
        super().__init__(None)
        self.inside = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.groups: list[int] = []

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        self.groups.append(len(requests))
        self.inside.release()
        assert self.gate.acquire(timeout=PATIENCE_S)
        for request in requests:
            if isinstance(request, AppendRequest) and request.profile_id == "fault":
                raise RuntimeError("a fault with /secret/paths")
        return super().apply(requests)

    def open_gate(self, times: int = 1000) -> None:
        self.gate.release(times)

    def hold(self, writer: StoreWriter) -> None:
        """Occupy the thread with a write of its own."""
        writer.append("held", "s", [])
        assert self.inside.acquire(timeout=PATIENCE_S)


@pytest.fixture
def gated() -> Iterator[GatedStore]:
    store = GatedStore()
    yield store
    store.close()


def test_writes_and_answers() -> None:
    store = open_store("memory:")
    writer = StoreWriter(store)
    assert writer.append("job", "s", [batch(1, 1.0, 2.0, commit=True)]).result(PATIENCE_S).observations_count == 2
    assert writer.retract("job", "r", Evidence.of([1]), "why").result(PATIENCE_S).observations_count == 1
    conflict = writer.append("job", "s", [batch(1, 9.0)]).exception(30)
    assert isinstance(conflict, NodewiseError)
    assert conflict.reason == Reason.BATCH_CONFLICT
    deleted = writer.delete("job").result(PATIENCE_S)
    assert deleted.purge_time_s > deleted.delete_time_s > 0
    missing = writer.delete("job").exception(30)
    assert isinstance(missing, NodewiseError)
    assert missing.reason == Reason.PROFILE_NOT_FOUND
    assert writer.undelete("job").result(PATIENCE_S).etag == deleted.etag
    writer.close()
    store.close()


def test_what_waits_together_is_written_together_and_fails_alone(gated: GatedStore) -> None:
    writer = StoreWriter(gated, most_together=50)
    gated.hold(writer)
    good = [writer.append(f"job {number % 5}", "s", [batch(number // 5 + 1, 1.0, commit=True)]) for number in range(40)]
    bad = writer.append("job 0", "s", [batch(9, np.nan)])
    last = writer.append("job 0", "s", [batch(9, 3.0, commit=True)])
    assert writer.waiting == 42
    gated.open_gate()
    assert last.result(PATIENCE_S).observations_count == 9
    assert all(future.result(PATIENCE_S).durable_sequence_number for future in good)
    assert isinstance(bad.exception(30), NodewiseError)
    assert gated.groups == [1, 42]
    writer.close()


def test_a_transaction_is_bounded_by_requests_and_bytes(gated: GatedStore) -> None:
    writer = StoreWriter(gated, most_together=3, most_together_bytes=100_000)
    gated.hold(writer)
    many = [1.0] * 1000
    futures = [writer.append(f"small {number}", "s", [batch(1, 1.0)]) for number in range(4)]
    futures += [writer.append(f"large {number}", "s", [batch(1, *many)]) for number in range(2)]
    gated.open_gate()
    for future in futures:
        future.result(PATIENCE_S)
    assert gated.groups == [1, 3, 1, 1, 1]
    writer.close()


def test_too_many_waiting_are_refused_at_once(gated: GatedStore) -> None:
    writer = StoreWriter(gated, most_waiting=2)
    gated.hold(writer)
    kept = [writer.append(f"job {number}", "s", [batch(1, 1.0)]) for number in range(2)]
    refused = writer.append("job", "s", [batch(1, 1.0)]).exception(0)
    assert isinstance(refused, NodewiseError)
    assert refused.reason == Reason.STORE_UNAVAILABLE
    gated.open_gate()
    for future in kept:
        future.result(PATIENCE_S)
    writer.close()


def test_too_many_bytes_waiting_are_refused_but_one_request_always_may_wait(gated: GatedStore) -> None:
    writer = StoreWriter(gated, most_waiting_bytes=1000)
    gated.hold(writer)
    kept = writer.append("job", "s", [batch(1, *[1.0] * 100)])
    assert isinstance(writer.append("job", "s", [batch(2, 1.0)]).exception(0), NodewiseError)
    gated.open_gate()
    kept.result(PATIENCE_S)
    writer.close()


def test_a_cancelled_request_is_dropped_if_it_was_not_taken_up(gated: GatedStore) -> None:
    writer = StoreWriter(gated)
    gated.hold(writer)
    dropped = writer.append("job", "s", [batch(1, 1.0)])
    kept = writer.append("job", "s", [batch(1, 2.0, commit=True)])
    assert dropped.cancel()
    gated.open_gate()
    kept.result(PATIENCE_S)
    with pytest.raises(CancelledError):
        dropped.result(0)
    assert speeds(gated.load("job")) == {1: 2.0}
    gated.groups.clear()
    writer.close()
    assert gated.groups == []


def test_nothing_is_written_when_all_were_cancelled(gated: GatedStore) -> None:
    writer = StoreWriter(gated)
    gated.hold(writer)
    assert writer.append("job", "s", [batch(1, 1.0)]).cancel()
    gated.open_gate()
    writer.close()
    assert gated.groups == [1]


def test_a_fault_fails_its_own_request_and_keeps_its_text(gated: GatedStore) -> None:
    writer = StoreWriter(gated)
    gated.hold(writer)
    before = writer.append("job", "s", [batch(1, 1.0, commit=True)])
    fault = writer.append("fault", "s", [batch(1, 1.0)])
    after = writer.append("job", "s", [batch(2, 2.0, commit=True)])
    gated.open_gate()
    assert before.result(PATIENCE_S).revision == 1
    assert after.result(PATIENCE_S).revision == 2
    error = fault.exception(30)
    assert isinstance(error, NodewiseError)
    assert error.reason == Reason.INTERNAL
    assert "secret" not in str(error)
    writer.close()


def test_closing_writes_what_waits_and_refuses_what_comes(gated: GatedStore) -> None:
    writer = StoreWriter(gated, most_together=2)
    gated.hold(writer)
    waiting = [writer.append("job", "s", [batch(number, 1.0, commit=True)]) for number in range(1, 8)]
    gated.open_gate()
    writer.close()
    assert [future.result(0).revision for future in waiting] == [1, 2, 3, 4, 5, 6, 7]
    refused = writer.append("job", "s", [batch(8, 1.0)]).exception(0)
    assert isinstance(refused, NodewiseError)
    assert refused.reason == Reason.STORE_UNAVAILABLE
    writer.close()

"""Every profile store among several who use it: shared transactions, threads, processes."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from patience import PATIENCE_S, wait_until
from profile_batches import WORKLOAD, batch, chunk, observations, speeds
from stores import Opener, refused

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import PhaseTimings
from nodewise.profiles.batches import Batch
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import AppendRequest, DeleteRequest, Evidence, ProfileStore, ProfileSummary, RetractRequest


def test_requests_that_share_a_transaction_fail_alone(store: ProfileStore) -> None:
    store.append("old", "s", [batch(1, 1.0, commit=True)])
    outcomes = store.apply(
        [
            AppendRequest("a", "s", [batch(1, 1.0, commit=True)]),
            AppendRequest("b", "s", [batch(2, 1.0)]),
            AppendRequest("a", "s", [batch(2, np.nan)]),
            RetractRequest("old", "r", Evidence.of((7,))),
            AppendRequest("a", "s", [batch(2, 2.0, commit=True)]),
            DeleteRequest("old"),
            DeleteRequest("old"),
            AppendRequest("old", "s", [batch(1, 5.0, commit=True)]),
            RetractRequest("a", "r", Evidence.of((1,))),
        ]
    )
    reasons = [outcome.reason if isinstance(outcome, NodewiseError) else None for outcome in outcomes]
    assert reasons == [
        None,
        Reason.BATCH_OUT_OF_ORDER,
        Reason.INVALID_FIELD,
        Reason.EVIDENCE_NOT_FOUND,
        None,
        None,
        Reason.PROFILE_NOT_FOUND,
        None,
        None,
    ]
    assert speeds(store.load("a")) == {2: 2.0}
    assert speeds(store.load("old")) == {1: 5.0}
    assert isinstance(outcomes[8], ProfileSummary)
    assert outcomes[8].digest == store.load("a").digest
    assert store.apply([]) == []


def test_a_closed_store_is_unavailable(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.close()
    refused(Reason.STORE_UNAVAILABLE, store.load, "job")
    refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", [batch(2, 1.0)])
    refused(Reason.STORE_UNAVAILABLE, store.open_session, "job", "s")
    refused(Reason.STORE_UNAVAILABLE, store.generation)
    store.close()


def test_threads_share_a_store(store: ProfileStore) -> None:
    together = threading.Barrier(4)

    def work(worker: int) -> None:
        together.wait()
        for number in range(1, 11):
            store.append("job", f"s{worker}", [batch(number, float(worker), commit=True)])
            profile = store.load("job")
            assert profile.digest == content_digest(profile)
            assert profile.observations.number.tolist() == list(range(1, profile.revision + 1))
            store.list()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, worker) for worker in range(4)]:
            done.result()
    assert store.load("job").revision == 40
    assert sorted(speeds(store.load("job")).values()) == [0.0] * 10 + [1.0] * 10 + [2.0] * 10 + [3.0] * 10


def test_what_is_acknowledged_is_there_after_reopening(shared: Opener) -> None:
    store = shared()
    store.append("job", "s", [batch(1, 1.0, workload=WORKLOAD, trace_chunks=(chunk(0, b"ab"),)), batch(2, 2.0)])
    status = store.open_session("job", "s")
    store.close()
    store = shared()
    assert store.open_session("job", "s") == status
    refused(Reason.CONTRADICTORY_FACTS, store.append, "job", "s", [batch(3, workload=replace(WORKLOAD, tensors=17))])
    store.append("job", "s", [batch(3, trace_chunks=(chunk(2, b"c", last=True),), commit=True)])
    profile = store.load("job")
    store.close()
    store = shared()
    again = store.load("job")
    assert (again.uid, again.digest, again.revision) == (profile.uid, profile.digest, 1)
    assert speeds(again) == {1: 1.0, 2: 2.0}
    assert again.traces[0].content_sha256 == hashlib.sha256(b"abc").hexdigest()
    store.close()


def test_every_process_sees_what_another_committed(shared: Opener) -> None:
    one, other = shared(), shared()
    seen = {other.generation()}

    def moved() -> None:
        wait_until(lambda: other.generation() not in seen)  # at once in a file, when it is told in a database
        seen.add(other.generation())

    one.append("job", "s", [batch(1, 1.0)])
    assert other.generation() in seen
    assert other.open_session("job", "s").durable_sequence_number == 1
    one.append("job", "s", [batch(2, commit=True)])
    moved()
    assert other.generation() in seen
    known = other.load("job")
    other.append("job", "s", [batch(3, 2.0, commit=True)])
    assert other.generation() not in seen
    seen.add(other.generation())
    wait_until(lambda: one.generation() == other.generation())
    assert speeds(one.load("job", known)) == {1: 1.0, 2: 2.0}
    one.retract("job", "r", Evidence.of([1]))
    moved()
    one.delete("job")
    moved()
    refused(Reason.PROFILE_NOT_FOUND, other.load, "job", known)
    one.close()
    other.close()


def test_the_same_batches_sent_to_two_processes_are_stored_once(shared: Opener) -> None:
    stores = [shared(), shared()]
    together = threading.Barrier(2)

    def send(store: ProfileStore) -> None:
        together.wait()
        for number in range(1, 101):
            store.append("job", "s", [batch(number, float(number), commit=number % 10 == 0)])

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(send, store) for store in stores]:
            done.result()
    for store in stores:
        assert speeds(store.load("job")) == {number: float(number) for number in range(1, 101)}
        assert store.load("job").revision == 10
        store.close()


def test_a_reader_does_not_wait_for_a_writer(shared: Opener) -> None:
    store = shared()
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Batch):
        """Stops the writer inside its transaction."""

        __slots__ = ()

        @property
        def has_facts(self) -> bool:
            inside.set()
            assert go_on.wait(PATIENCE_S)
            return False

    with ThreadPoolExecutor(1) as pool:
        slow = Slow(sequence_number=2, observations=observations(2.0), phase_timings=PhaseTimings.none())
        writing = pool.submit(store.append, "job", "s", [slow])
        assert inside.wait(PATIENCE_S)
        assert speeds(store.load("job")) == {1: 1.0}
        assert store.open_session("job", "s").durable_sequence_number == 1
        assert store.list()[0].revision == 1
        store.generation()
        go_on.set()
        assert writing.result(PATIENCE_S).durable_sequence_number == 2
    store.close()

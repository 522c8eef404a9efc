"""The ingest writers over a real socket, under faults."""

# ruff: noqa: PT012  # the block of a writer is what is tested

from __future__ import annotations

import asyncio
import random
import threading
import uuid

import grpc
import pytest
from fake_nodewise import Cut, FakeServer, status_of
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S

from nodewise_client import (
    AsyncClient,
    Client,
    ConflictError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    Network,
    Observations,
    ResumePolicy,
    UnavailableError,
    Workload,
    configurations,
    observations,
    phase_timings,
)

S = grpc.StatusCode


def rate(value: float) -> Observations:
    return observations(configurations=configurations(nodes=1), steps_per_second=value)


def test_a_session_from_end_to_end(client, server, quick):
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.facts(workload=Workload(parameter_bytes=100), network=Network(link_bytes_per_second=1e9))
        writer.phases(phase_timings(compute_seconds=0.2))
        writer.observe(rate(float(i)) for i in range(2500))
        first = writer.commit()
        writer.observe(observations(configurations=configurations(nodes=[1, 2]), steps_per_second=[1.0, 2.0]))
        second = writer.commit()
        assert writer.commit() == second
    session = server.sessions["s"]
    assert server.requests["IngestProfile"][0].open.profile_id == "resnet"
    assert (first.revision, first.observations_count, first.sequence_number) == (1, 2500, 3)
    assert (second.revision, second.observations_count) == (2, 2502)
    assert session.rates == [*map(float, range(2500)), 1.0, 2.0]
    assert session.batches[0].workload.parameter_bytes == 100
    assert [batch.commit for batch in session.batches] == [False, False, True, True]
    assert session.received == [[1, 2, 3, 4]]


def test_leaving_the_block_commits(client, server, quick):
    with client.ingest("resnet", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
        session_id = writer.session_id
    assert len(session_id) == 36
    session = server.sessions[session_id]
    assert (session.committed, session.rates) == (1, [1.0])


def test_an_exception_commits_nothing(client, server, quick):
    with pytest.raises(KeyError), client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
        writer.flush()
        raise KeyError
    assert (server.sessions["s"].committed, server.sessions["s"].rates) == (0, [1.0])


def test_an_empty_block_writes_nothing(client, server, quick):
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        result = writer.commit()
    assert (result.revision, server.sessions["s"].batches) == (0, [])


def test_flush_makes_durable_without_counting(client, server, quick):
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe([rate(1.0), rate(2.0)])
        assert writer.flush() == 1
        assert writer.durable_sequence_number == 1
        assert server.sessions["s"].committed == 0


def test_rows_go_by_themselves_after_the_linger(server):
    arrived = threading.Event()
    server.answer("Batch", lambda _: arrived.set())
    with Client(server.target) as client, client.ingest("resnet", session_id="s", linger_s=0.01) as writer:
        writer.observe(rate(1.0))
        assert arrived.wait(PATIENCE_S)
        assert server.sessions["s"].committed == 0


async def test_rows_go_by_themselves_after_the_linger_in_asyncio(server):
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    server.answer("Batch", lambda _: loop.call_soon_threadsafe(arrived.set))
    async with AsyncClient(server.target) as client, client.ingest("resnet", linger_s=0.01) as writer:
        await writer.observe(rate(1.0))
        await asyncio.wait_for(arrived.wait(), 10)


async def test_async_iterables_are_accepted(server):
    async def rows(make):
        for value in range(5):
            yield make(float(value + 1))

    async with AsyncClient(server.target) as client, client.ingest("resnet", session_id="s") as writer:
        await writer.observe(rows(rate))
        await writer.phases(rows(lambda value: phase_timings(compute_seconds=value)))
    assert server.sessions["s"].rates == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(server.sessions["s"].batches[0].phase_timings.compute_seconds) == 5


CUT_CODES = [S.UNAVAILABLE, S.CANCELLED, S.OK]
cuts = st.lists(
    st.builds(
        Cut,
        st.integers(0, 4),
        st.sampled_from(CUT_CODES),
        stored=st.booleans(),
        told=st.booleans(),
    ),
    max_size=6,
)


def check(server: FakeServer, session_id: str, planned: int, rows: int) -> None:
    session = server.sessions.pop(session_id)
    assert session.rates == [float(row) for row in range(rows)]
    assert session.committed == len(session.batches)
    for numbers in session.received:
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    assert len(session.received) <= planned + 1


def resume(seed: int) -> ResumePolicy:
    return ResumePolicy(initial_pause_s=0.001, max_pause_s=0.002, deadline_s=20.0, uniform=random.Random(seed).random)


@settings(max_examples=16, deadline=None)
@given(cuts=cuts, rows=st.integers(1, 12), seed=st.integers(0, 100))
def test_any_cut_is_resumed_without_loss_or_double(shared, cuts, rows, seed):
    session_id = shared.new_session(cuts)
    with shared.sync.ingest(
        "resnet", session_id=session_id, resume=resume(seed), batch_rows=2, max_unacknowledged=3
    ) as writer:
        writer.observe(rate(float(row)) for row in range(rows))
        result = writer.commit()
    assert result.observations_count == rows
    check(shared.server, session_id, len(cuts), rows)


@settings(max_examples=16, deadline=None)
@given(cuts=cuts, rows=st.integers(1, 12), seed=st.integers(0, 100))
def test_any_cut_is_resumed_without_loss_or_double_in_asyncio(shared, cuts, rows, seed):
    async def write() -> int:
        client = shared.asynchronous
        async with client.ingest(
            "resnet", session_id=session_id, resume=resume(seed), batch_rows=2, max_unacknowledged=3
        ) as writer:
            await writer.observe(rate(float(row)) for row in range(rows))
            return (await writer.commit()).observations_count

    session_id = shared.new_session(cuts)
    counted = shared.runner.run(write())
    assert counted == rows
    check(shared.server, session_id, len(cuts), rows)


class Shared:
    """One server and one client of each kind for all examples of a property."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.server = FakeServer()
        self.runner = runner
        self.sync = Client(self.server.target)
        self.asynchronous = AsyncClient(self.server.target)

    def new_session(self, cuts: list[Cut]) -> str:
        self.server.cuts.clear()
        self.server.cuts.extend(cuts)
        return str(uuid.uuid4())


@pytest.fixture(scope="module")
def shared():
    with asyncio.Runner() as runner:
        made = Shared(runner)
        yield made
        made.sync.close()
        runner.run(made.asynchronous.close())
        made.server.stop()


@pytest.mark.parametrize("code", [S.UNAVAILABLE, S.CANCELLED])
def test_opening_outlives_a_server_that_is_not_ready(client, server, quick, code):
    server.cuts.extend([Cut(-1, code)] * 3)
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
    assert server.sessions["s"].rates == [1.0]


def test_a_restart_in_the_middle_is_outlived(client, server, quick):
    patient = ResumePolicy(initial_pause_s=0.02, max_pause_s=0.05, max_attempts=200, uniform=quick.uniform)
    with client.ingest("resnet", session_id="s", resume=patient, batch_rows=1) as writer:
        writer.observe(rate(float(row)) for row in range(5))
        writer.flush()
        server.stop()
        server.start()
        writer.observe(rate(float(row)) for row in range(5, 10))
        assert writer.commit().observations_count == 10
    assert server.sessions["s"].rates == [float(row) for row in range(10)]


def test_an_earlier_session_goes_on(client, server, quick):
    with pytest.raises(KeyError), client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
        writer.flush()
        raise KeyError
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        assert writer.durable_sequence_number == 1
        writer.observe(rate(2.0))
    assert server.sessions["s"].rates == [1.0, 2.0]
    assert server.sessions["s"].committed == 2


BAD = status_of(
    S.INVALID_ARGUMENT,
    "observations.steps_per_second[0]: above 0",
    reason="INVALID_FIELD",
    violations={"observations.steps_per_second[0]": "above 0"},
)


def test_a_batch_that_is_refused_ends_the_writer_with_its_error(client, server, quick):
    server.answer("Batch", BAD)
    with pytest.raises(InvalidArgumentError) as caught, client.ingest("resnet", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(-1.0))
        with pytest.raises(InvalidArgumentError):
            writer.commit()
        with pytest.raises(InvalidArgumentError):
            writer.observe(rate(1.0))
        with pytest.raises(InvalidArgumentError):
            writer.flush()
    assert caught.value.violations[0].field == "observations.steps_per_second[0]"
    assert len(server.requests["IngestProfile"]) == 1


def test_a_session_that_is_refused_says_so_at_once(client, server, quick):
    server.answer("IngestProfile", status_of(S.INVALID_ARGUMENT, "profile_id: empty", reason="INVALID_FIELD"))
    with pytest.raises(InvalidArgumentError, match="profile_id"), client.ingest("", resume=quick):
        pytest.fail("the block was entered")


def test_another_batch_under_the_same_number_is_a_conflict(client, server, quick):
    server.answer("Batch", status_of(S.ABORTED, "stored with other content", reason="BATCH_CONFLICT"))
    with pytest.raises(ConflictError), client.ingest("resnet", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))


def test_a_batch_out_of_order_is_not_resumed(client, server, quick):
    server.answer("Batch", status_of(S.FAILED_PRECONDITION, "missing 1", reason="BATCH_OUT_OF_ORDER"))
    with pytest.raises(FailedPreconditionError), client.ingest("resnet", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))


def test_a_server_that_stays_away_is_given_up(client, server):
    policy = ResumePolicy(max_attempts=3, initial_pause_s=0.001, max_pause_s=0.001)
    server.cuts.extend([Cut(1, S.UNAVAILABLE, stored=False)] * 10)
    with (
        pytest.raises(UnavailableError, match="gave up after 3 streams"),
        client.ingest("resnet", resume=policy) as writer,
    ):
        writer.observe(rate(1.0))
        writer.commit()
    assert len(server.requests["IngestProfile"]) == 3


def test_a_commit_may_be_waited_for_again(client, server, quick):
    server.answer("Batch", lambda _: server.hold.wait(PATIENCE_S))
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
        with pytest.raises(DeadlineExceededError, match="the commit in batch 1"):
            writer.commit(timeout_s=0.05)
        server.hold.set()
        assert writer.commit().sequence_number == 1
    assert len(server.sessions["s"].batches) == 1


def test_a_full_buffer_waits_and_then_says_so(client, server):
    server.answer("Batch", lambda _: server.hold.wait(PATIENCE_S))
    policy = ResumePolicy(deadline_s=0.2)
    with (
        pytest.raises(DeadlineExceededError, match="room in the buffer"),
        client.ingest("resnet", resume=policy, batch_rows=1, max_unacknowledged=2) as writer,
    ):
        writer.observe(rate(float(row)) for row in range(10))
    server.hold.set()


def test_a_silent_server_is_left_for_a_new_stream(server, make_client, quick):
    client = make_client(server.target, timeout_s=0.1)
    server.answer("Batch", lambda _: server.hold.wait(1))
    with client.ingest("resnet", session_id="s", resume=quick, linger_s=60.0) as writer:
        writer.observe(rate(1.0))
        writer.commit()
    assert len(server.requests["IngestProfile"]) >= 2
    assert server.sessions["s"].rates == [1.0]


def test_a_writer_is_used_once_and_in_its_block(server):
    with Client(server.target) as client:
        writer = client.ingest("resnet", session_id="s")
        with pytest.raises(RuntimeError, match="not open"):
            writer.observe(rate(1.0))
        with writer:
            assert (writer.profile_id, writer.session_id) == ("resnet", "s")
            with pytest.raises(RuntimeError, match="once"):
                writer.__enter__()
        writer.close()
        with pytest.raises(RuntimeError, match="not open"):
            writer.commit()
        assert not [thread for thread in threading.enumerate() if thread.name == "nodewise-ingest"]


async def test_an_async_writer_is_used_once_and_in_its_block(server):
    async with AsyncClient(server.target) as client:
        writer = client.ingest("resnet", session_id="s")
        with pytest.raises(RuntimeError, match="not open"):
            await writer.observe(rate(1.0))
        async with writer:
            assert (writer.profile_id, writer.session_id) == ("resnet", "s")
            with pytest.raises(RuntimeError, match="once"):
                await writer.__aenter__()
        await writer.close()
        with pytest.raises(RuntimeError, match="not open"):
            await writer.commit()
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "nodewise-ingest"]


def test_threads_may_share_a_writer(server):
    with Client(server.target) as client, client.ingest("resnet", session_id="s", batch_rows=7) as writer:
        threads = [
            threading.Thread(target=writer.observe, args=([rate(float(base + row)) for row in range(50)],))
            for base in range(0, 200, 50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(server.sessions["s"].rates) == [float(row) for row in range(200)]


async def test_cancelling_whoever_waits_leaves_the_writer_whole(server):
    server.answer("Batch", lambda _: server.hold.wait(PATIENCE_S))
    async with AsyncClient(server.target) as client, client.ingest("resnet", session_id="s") as writer:
        await writer.observe(rate(1.0))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await writer.commit()
        server.hold.set()
        assert (await writer.commit()).observations_count == 1
    assert server.sessions["s"].rates == [1.0]

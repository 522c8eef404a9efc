"""What an ingest writer decides, on a simulated wire that may lose anything at any moment."""

from __future__ import annotations

import random
from collections import deque

import pytest
from fake_nodewise import Session
from hypothesis import given
from hypothesis import strategies as st

from nodewise_client import (
    Code,
    ConflictError,
    InternalError,
    InvalidArgumentError,
    Network,
    NodewiseError,
    Observations,
    ResourceExhaustedError,
    ResumePolicy,
    UnavailableError,
    Workload,
    configurations,
    observations,
    phase_timings,
)
from nodewise_client._ingest_core import IngestCore
from nodewise_protos.v1 import profile_service_pb2 as wire

POLICY = ResumePolicy(max_attempts=10**6, deadline_s=1e9, opening_deadline_s=1e9, uniform=random.Random(1).random)
GONE = UnavailableError("gone", code=Code.UNAVAILABLE)


def core_of(policy: ResumePolicy = POLICY, **keywords: int | float) -> IngestCore:
    return IngestCore("resnet", "session", policy=policy, **keywords)


def opened(policy: ResumePolicy = POLICY, durable: int = 0, committed: int = 0, **keywords: int | float) -> IngestCore:
    core = core_of(policy, **keywords)
    core.open_request(0.0)
    core.stream_opened(reply(durable, committed), 0.0)
    return core


def reply(durable: int, committed: int = 0) -> wire.IngestState:
    return wire.IngestState(durable_sequence_number=durable, committed_sequence_number=committed)


def rate(value: float) -> Observations:
    return observations(configurations=configurations(nodes=1), steps_per_second=value)


def add(core: IngestCore, given_rows, now: float = 0.0) -> None:
    for piece in core.pieces(given_rows):
        core.add(piece, now)


class Link:
    """One writer's core and one server's session, with the messages that are on their way between them."""

    def __init__(self, batch_rows: int) -> None:
        self.core = core_of(batch_rows=batch_rows, linger_s=0.0)
        self.session = Session()
        self.out: deque[wire.IngestProfileRequest] = deque()
        self.back: deque[wire.IngestState] = deque()
        self.added: list[float] = []
        self.streaming = self.ready = False
        self.heard = 0
        """Highest number that this side was told is durable."""

    def act(self, action: str) -> None:
        getattr(self, action)()

    def write(self) -> None:
        if self.core.is_open:
            self.added.append(float(len(self.added) + 1))
            add(self.core, rate(self.added[-1]))

    def seal(self) -> None:
        if self.core.is_open:
            self.core.seal()

    def commit(self) -> None:
        if self.core.is_open:
            self.core.request_commit()

    def connect(self) -> None:
        if not self.streaming and self.core.wants_stream:
            self.streaming, self.ready = True, False
            self.out.append(self.core.open_request(0.0))

    def send(self) -> None:
        if self.ready:
            request = self.core.next_request(0.0)
            if request is not None:
                assert request.batch.sequence_number > self.heard, "sent again although it was acknowledged"
                self.out.append(request)

    def serve(self) -> None:
        if self.out:
            request = self.out.popleft()
            if request.WhichOneof("action") == "batch":
                problem = self.session.store(request.batch)
                assert problem is None, f"{problem} for batch {request.batch.sequence_number}"
            self.back.append(self.session.reply().state)

    def read(self) -> None:
        if self.back:
            found = self.back.popleft()
            if self.ready:
                self.core.acknowledge(found, 0.0)
            else:
                self.core.stream_opened(found, 0.0)
                self.ready = True
            self.heard = found.durable_sequence_number

    def cut(self) -> None:
        """Whatever is on its way is lost."""
        if self.streaming:
            self.out.clear()
            self.back.clear()
            self.streaming = self.ready = False
            self.core.stream_ended(GONE, 0.0)

    def late(self) -> None:
        """The server still stores what had reached it, but nobody hears of it."""
        while self.streaming and self.out:
            self.serve()
        self.cut()


ACTIONS = ("write", "write", "write", "seal", "commit", "connect", "send", "send", "serve", "read", "cut", "late")


@given(st.lists(st.sampled_from(ACTIONS), max_size=80), st.integers(1, 4))
def test_nothing_is_lost_or_doubled_under_any_cut(actions, batch_rows):
    link = Link(batch_rows)
    for action in actions:
        link.act(action)
    for action in ("connect", "serve", "read"):
        link.act(action)
    number = link.core.request_commit() if link.core.is_open else 0
    for _ in range(1000):
        if link.core.is_open and link.core.committed_number >= number:
            break
        for action in ("connect", "send", "serve", "read"):
            link.act(action)
    assert link.session.rates == link.added
    assert link.session.committed == len(link.session.batches) == link.core.committed_number == link.core.durable
    assert [batch.sequence_number for batch in link.session.batches] == list(range(1, len(link.session.batches) + 1))
    assert not link.core.has_uncommitted
    assert not link.core.wants_stream


def test_batches_are_full_and_rows_keep_their_order():
    core = opened(batch_rows=3)
    add(core, observations(configurations=configurations(nodes=2), steps_per_second=[float(i) for i in range(8)]))
    core.seal()
    batches = [core.next_request(0.0).batch for _ in range(3)]
    assert [list(batch.observations.steps_per_second) for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [len(batch.observations.configurations.nodes) for batch in batches] == [3, 3, 2]
    assert core.next_request(0.0) is None


def test_phases_and_observations_share_a_batch():
    core = opened(batch_rows=4)
    add(core, [rate(1.0), rate(2.0)])
    add(
        core,
        [
            phase_timings(compute_seconds=0.1),
            phase_timings(compute_seconds=0.2, compute_variation=0.5, hidden_seconds=0.1),
        ],
    )
    batch = core.next_request(0.0).batch
    assert len(batch.observations.steps_per_second) == 2
    assert list(batch.phase_timings.compute_variation) == [0.0, 0.5]
    assert list(batch.phase_timings.compute_variation_known) == [False, True]
    assert list(batch.phase_timings.hidden_seconds) == [0.0, 0.1]


def test_rows_that_state_different_things_part():
    core = opened()
    add(
        core,
        [
            rate(1.0),
            observations(configurations=configurations(nodes=1, sync_modes="sync"), steps_per_second=2.0),
            rate(3.0),
        ],
    )
    core.seal()
    batches = [core.next_request(0.0).batch for _ in range(3)]
    assert [list(batch.observations.steps_per_second) for batch in batches] == [[1.0], [2.0], [3.0]]


def test_measured_columns_may_be_missing_row_by_row():
    core = opened()
    add(core, rate(1.0))
    add(
        core,
        observations(
            configurations=configurations(nodes=1), steps_per_second=2.0, exposed_sync_seconds=0.5, steps_counts=9
        ),
    )
    core.seal()
    found = core.next_request(0.0).batch.observations
    assert (list(found.exposed_sync_seconds), list(found.steps_counts)) == ([0.0, 0.5], [0, 9])
    assert list(found.exposed_sync_known) == [False, True]


def test_facts_go_once_and_a_second_set_starts_a_batch():
    core = opened()
    core.add_facts(Workload(parameter_bytes=1), None, 0.0)
    core.add_facts(None, Network(link_bytes_per_second=2.0), 0.0)
    core.add_facts(None, None, 0.0)
    core.add_facts(Workload(tensors_count=3), None, 0.0)
    core.seal()
    first, second = (core.next_request(0.0).batch for _ in range(2))
    assert (first.workload.parameter_bytes, first.network.link_bytes_per_second) == (1, 2.0)
    assert (second.workload.tensors_count, second.HasField("network")) == (3, False)


def test_what_lingers_goes_after_its_time():
    core = opened(linger_s=0.1)
    add(core, rate(1.0), now=5.0)
    assert core.linger_left(5.04) == pytest.approx(0.06)
    assert core.next_request(5.04) is None
    assert core.next_request(5.2).batch.sequence_number == 1
    assert core.linger_left(5.2) is None


def test_only_news_wakes_the_sender():
    core = opened(batch_rows=3)
    news = [core.add(piece, 0.0) for piece in core.pieces(rate(float(i)) for i in range(6))]
    assert news == [True, False, True, True, False, True]


def test_the_buffer_is_bounded():
    core = opened(batch_rows=1, max_unacknowledged=2)
    add(core, rate(1.0))
    assert core.has_room
    add(core, rate(2.0))
    assert not core.has_room
    core.next_request(0.0)
    core.acknowledge(reply(1), 0.0)
    assert core.has_room
    with pytest.raises(ValueError, match="at least 1"):
        core_of(batch_rows=0)


def test_a_session_of_an_earlier_process_goes_on():
    core = opened(durable=5, committed=3)
    assert (core.durable, core.has_uncommitted) == (5, True)
    assert core.request_commit() == 6
    assert core.request_commit() == 6
    assert core.next_request(0.0).batch == wire.ProfileBatch(sequence_number=6, commit=True)
    core.acknowledge(reply(6, 6), 0.0)
    assert not core.has_uncommitted
    assert core.request_commit() == 6


def test_another_writer_in_the_same_session_is_found_out():
    core = opened()
    add(core, rate(1.0))
    core.seal()  # queued, but never sent: a durable batch 1 is somebody else's
    with pytest.raises(ConflictError, match="another writer"):
        core.acknowledge(reply(1), 0.0)


def test_a_server_that_forgot_is_found_out():
    core = opened(durable=5)
    add(core, rate(1.0))
    core.seal()
    core.next_request(0.0)
    core.acknowledge(reply(6), 0.0)
    core.stream_ended(GONE, 0.0)
    core.open_request(0.0)
    with pytest.raises(InternalError, match="acknowledged batch 6") as caught:
        core.stream_opened(reply(5), 0.0)
    assert caught.value.code is Code.DATA_LOSS


def test_a_commit_that_is_durable_but_not_confirmed_is_asked_for_again():
    core = opened()
    add(core, rate(1.0))
    core.request_commit()
    core.next_request(0.0)
    core.acknowledge(reply(1, 0), 0.0)
    assert core.wants_stream
    core.stream_ended(GONE, 0.0)
    core.open_request(0.0)
    core.stream_opened(reply(1, 1), 0.0)
    assert not core.wants_stream


def test_pauses_grow_to_their_limit_within_the_jitter():
    policy = ResumePolicy(
        initial_pause_s=0.1, multiplier=2.0, max_pause_s=1.0, jitter=0.2, uniform=random.Random(3).random
    )
    for attempt, middle in enumerate([0.1, 0.2, 0.4, 0.8, 1.0, 1.0], 1):
        assert 0.8 * middle <= policy.pause_s(attempt, None) <= 1.2 * middle
    asked = UnavailableError("later", code=Code.UNAVAILABLE, retry_delay_s=5.0)
    assert policy.pause_s(1, asked) == 5.0


def test_attempts_without_progress_end():
    core = opened(ResumePolicy(max_attempts=3, uniform=lambda: 0.5))
    add(core, rate(1.0))
    assert core.stream_ended(GONE, 1.0) == pytest.approx(0.05)
    assert core.stream_ended(None, 1.1) == pytest.approx(0.1)
    with pytest.raises(UnavailableError, match="gave up after 3 streams") as caught:
        core.stream_ended(GONE, 1.3)
    assert caught.value.__cause__ is GONE
    assert caught.value.metadata["durableSequenceNumber"] == "0"


def test_progress_starts_the_count_afresh():
    core = opened(ResumePolicy(max_attempts=2, uniform=lambda: 0.5), batch_rows=1)
    for number in range(1, 10):
        add(core, [rate(1.0), rate(2.0)])
        core.next_request(0.0)
        core.acknowledge(reply(number), 0.0)
        core.stream_ended(GONE, 0.0)
        core.open_request(0.0)
        core.stream_opened(reply(number), 0.0)


def test_no_stream_is_opened_beyond_the_deadline():
    core = opened(ResumePolicy(deadline_s=1.0, uniform=lambda: 0.5))
    add(core, rate(1.0))
    core.stream_ended(GONE, 100.0)
    core.stream_ended(GONE, 100.5)
    with pytest.raises(UnavailableError, match="the server ended the stream"):
        core.stream_ended(None, 101.0)


def test_an_idle_stream_may_be_cut_any_number_of_times():
    core = opened(ResumePolicy(max_attempts=2, deadline_s=1.0))
    for hour in range(10):
        assert core.stream_ended(GONE, hour * 3600.0) == 0.0
        assert not core.wants_stream
    add(core, rate(1.0), now=40000.0)
    assert core.wants_stream
    assert core.stream_ended(GONE, 40000.0) > 0.0


def test_opening_gives_up_early_with_what_the_server_said():
    core = core_of(ResumePolicy(uniform=lambda: 0.5))
    core.open_request(0.0)
    core.stream_ended(GONE, 0.0)
    core.stream_ended(GONE, 9.0)
    with pytest.raises(UnavailableError, match=r"^UNAVAILABLE: gone$"):
        core.stream_ended(GONE, 9.9)
    with pytest.raises(UnavailableError, match="the server ended the stream"):
        core_of(ResumePolicy(max_attempts=1)).stream_ended(None, 0.0)


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgumentError("bad", code=Code.INVALID_ARGUMENT),
        ResourceExhaustedError("too large", code=Code.RESOURCE_EXHAUSTED),
        InternalError("bug", code=Code.INTERNAL),
    ],
)
def test_what_a_new_stream_does_not_help_is_raised(error):
    core = opened()
    add(core, rate(1.0))
    with pytest.raises(type(error)) as caught:
        core.stream_ended(error, 0.0)
    assert caught.value is error


def test_an_overloaded_server_is_asked_again_when_it_says():
    core = opened()
    add(core, rate(1.0))
    assert (
        core.stream_ended(ResourceExhaustedError("busy", code=Code.RESOURCE_EXHAUSTED, retry_delay_s=3.0), 0.0) == 3.0
    )


def test_a_silent_stream_is_noticed():
    core = core_of()
    core.open_request(10.0)
    assert core.hung_at(2.0) == 12.0
    core.stream_opened(reply(0), 11.0)
    assert core.hung_at(2.0) is None
    add(core, rate(1.0))
    core.seal()
    core.next_request(50.0)
    assert core.hung_at(2.0) == 52.0
    core.acknowledge(reply(1), 51.0)
    assert core.hung_at(2.0) is None


@pytest.mark.parametrize(
    "wrong",
    [
        observations(configurations=configurations(nodes="four"), steps_per_second=1.0),
        observations(configurations=configurations(nodes=2**40), steps_per_second=1.0),
        observations(configurations=configurations(sync_modes="ring"), steps_per_second=1.0),
        phase_timings(compute_seconds="slow"),
    ],
)
def test_what_cannot_be_sent_fails_at_the_caller_and_leaves_the_rest(wrong):
    core = opened()
    add(core, rate(1.0))
    with pytest.raises(InvalidArgumentError):
        add(core, wrong)
    core.seal()
    assert list(core.next_request(0.0).batch.observations.steps_per_second) == [1.0]


def test_errors_compare_by_their_class():
    assert isinstance(GONE, NodewiseError)

"""Entries of lists are counted on the wire as the decoder would find them, and nothing legal is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.errors import NodewiseError
from nodewise.mapper.scan import plan_of, scan
from nodewise.ports.limits import Limits
from nodewise.rpc.intake import InFlight, Intake, Large, caps_of
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1beta1 import simulation_service_pb2

LIMITS = Limits(
    rows_per_call=50, rows_per_batch=50, backtest_rows=50, jobs_per_call=4, entries_per_list=20, parts_per_call=200
)
PREDICT = plan_of(pb.PredictRequest.DESCRIPTOR, caps_of(LIMITS))
BATCH = plan_of(pb.BatchPredictRequest.DESCRIPTOR, caps_of(LIMITS))


def with_layers(layers: int) -> pb.PredictRequest:
    request = pb.PredictRequest()
    for number in range(layers):
        request.profile.content.workload.layers.add(name=f"layer {number}")
    return request


def test_lists_up_to_their_caps_pass() -> None:
    request = with_layers(20)
    request.configurations.workers.extend(range(300, 350))
    request.configurations.batch_per_worker_samples.extend([1.5] * 50)
    assert scan(request.SerializeToString(), PREDICT, LIMITS.parts_per_call) is None


@pytest.mark.parametrize(
    ("request_", "field", "limit", "found"),
    [
        (with_layers(21), "profile.content.workload.layers", "entries_per_list", 21),
        (pb.PredictRequest(configurations={"workers": range(300, 351)}), "configurations.workers", "rows_per_call", 51),
        (
            pb.PredictRequest(configurations={"batch_per_worker_samples": [1.0] * 60}),
            "configurations.batch_per_worker_samples",
            "rows_per_call",
            60,
        ),
    ],
)
def test_a_list_above_its_cap_is_named(request_: pb.PredictRequest, field: str, limit: str, found: int) -> None:
    excess = scan(request_.SerializeToString(), PREDICT, LIMITS.parts_per_call)
    assert excess is not None
    assert (excess.field, excess.limit, excess.count) == (field, limit, found)


def test_a_list_within_a_list_is_named_by_its_place() -> None:
    batch = pb.BatchPredictRequest(jobs=[pb.BatchJob(), pb.BatchJob()])
    batch.jobs[1].profile.CopyFrom(with_layers(25).profile)
    excess = scan(batch.SerializeToString(), BATCH, LIMITS.parts_per_call)
    assert excess is not None
    assert excess.field == "jobs[1].profile.content.workload.layers"


def test_lists_that_are_short_one_by_one_are_counted_together() -> None:
    batch = pb.BatchPredictRequest(jobs=[pb.BatchJob(profile=with_layers(20).profile) for _ in range(4)])
    assert scan(batch.SerializeToString(), BATCH, LIMITS.parts_per_call) is None
    excess = scan(batch.SerializeToString(), BATCH, 60)
    assert excess is not None
    assert (excess.field, excess.limit) == ("", "parts_per_call")


def test_a_list_that_is_sent_entry_by_entry_counts_the_same() -> None:
    number = pb.PredictRequest.DESCRIPTOR.fields_by_name["configurations"].number
    rows = b"\x10\x03" * 51  # workers, unpacked
    data = bytes([number << 3 | 2, len(rows)]) + rows
    assert len(pb.PredictRequest.FromString(data).configurations.workers) == 51
    excess = scan(data, PREDICT, LIMITS.parts_per_call)
    assert excess is not None
    assert excess.field == "configurations.workers"


def test_what_the_decoder_steps_over_hides_nothing() -> None:
    unknown_group = b"\x7b\x08\x01\x7b\x7c\x12\x01x\x7c"  # field 15, another one within it
    data = unknown_group + with_layers(21).SerializeToString()
    assert len(pb.PredictRequest.FromString(data).profile.content.workload.layers) == 21
    excess = scan(data, PREDICT, LIMITS.parts_per_call)
    assert excess is not None
    assert excess.field == "profile.content.workload.layers"


def test_a_message_in_several_pieces_is_counted_as_one() -> None:
    data = with_layers(11).SerializeToString() * 2
    assert len(pb.PredictRequest.FromString(data).profile.content.workload.layers) == 22
    excess = scan(data, PREDICT, LIMITS.parts_per_call)
    assert excess is not None
    assert (excess.field, excess.count) == ("profile.content.workload.layers", 21)


def test_each_entry_of_a_list_is_counted_for_itself() -> None:
    batch = pb.BatchPredictRequest(jobs=[pb.BatchJob(profile=with_layers(11).profile) for _ in range(4)])
    assert scan(batch.SerializeToString(), BATCH, LIMITS.parts_per_call) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_judged(data: bytes) -> None:
    scan(data * 8, BATCH, 1_000)


async def test_millions_of_empty_messages_are_refused_by_their_count() -> None:
    limits = Limits()
    request = simulation_service_pb2.SimulateRequest
    tag = bytes([request.DESCRIPTOR.fields_by_name["curves"].number << 3 | 2])
    intake = Intake(request, 16 * 1024 * 1024, limits, InFlight(limits.bytes_in_flight))
    large = Large((tag + b"\x00") * 7_900_000)
    with intake.holding(large), pytest.raises(NodewiseError) as refused:
        await intake.read(large)
    assert refused.value.metadata["limit"] == "simulated_jobs_per_call"
    assert refused.value.metadata["found"] == "250001"
    assert refused.value.violations[0].field == "curves"


def test_bytes_of_all_calls_together_are_bounded() -> None:
    in_flight = InFlight(100)
    first, second = (Intake(pb.PredictRequest, 1_000, Limits(), in_flight) for _ in range(2))
    with first.holding(Large(b"x" * 80)):
        with pytest.raises(NodewiseError) as refused, second.holding(Large(b"x" * 30)):
            pass
        assert refused.value.reason == "OVERLOADED"
    with second.holding(Large(b"x" * 300)):  # alone, whatever the bound
        pass
    assert in_flight.total_bytes == 0


def test_replies_count_until_they_are_let_go() -> None:
    unread = InFlight(100, "unread_reply_bytes", "replies not yet read")
    unread.hold(80)
    with pytest.raises(NodewiseError, match="80 bytes of other replies not yet read") as refused:
        unread.hold(30)
    assert refused.value.metadata == {"limit": "unread_reply_bytes", "value": "100", "found": "110"}
    unread.release(80)
    unread.hold(300)


def test_a_request_above_the_bytes_of_its_method_is_refused() -> None:
    intake = Intake(pb.PredictRequest, 1_000, Limits(), InFlight(10_000))
    with pytest.raises(NodewiseError) as refused, intake.holding(Large(b"x" * 1_001)):
        pass
    assert refused.value.metadata == {"limit": "request_bytes", "value": "1000", "found": "1001"}

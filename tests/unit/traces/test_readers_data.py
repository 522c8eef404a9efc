"""Real traces, read: every count that was established independently (json and counting, one event after the other)."""

from __future__ import annotations

import gzip
import io
import tarfile
from functools import cache

import numpy as np
import pytest
from measurements import DATA

from nodewise.plugin import CollectiveKind, EventKind, SyncKind, Trace, TraceSource
from nodewise_traces.formats.chakra import ChakraReader
from nodewise_traces.formats.kineto import KinetoReader

pytestmark = pytest.mark.data

RANKS = range(8)
COUNTS = {
    "ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs": (40_573, 8_740, 3_774, {7: 3_753, 40: 21}),
    "ddp_one_rank/a100x8_recsys_rank3": (109_123, 24_692, 9_450, {7: 8_964, 20: 282, 22: 144, 21: 60}),
    "single_gpu/v100_resnet50_workers0_steps5-10": (75_718, 11_923, 9_096, {7: 9_096}),
    "single_gpu/v100_resnet50_workers4_steps5-10": (71_424, 12_085, 9_258, {7: 9_258}),
    "single_gpu/hta_cp_event_sync.": (92, 12, 5, {7: 5}),
    "single_gpu/hta_cp_event_sync_multi_stream": (149, 39, 6, {20: 2, 24: 2, 28: 2}),
}
STEPS_MS = {
    "ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs": (4, [222.44, 219.73, 224.94]),
    "ddp_one_rank/a100x8_recsys_rank3": (1009, [75.47, 76.94, 76.21, 76.73, 78.47, 81.12]),
    "single_gpu/v100_resnet50_workers0_steps5-10": (5, [176.08, 173.99, 176.92, 181.26, 176.47, 164.26]),
    "single_gpu/v100_resnet50_workers4_steps5-10": (5, [181.56, 123.88, 126.82, 126.27, 163.46, 116.15]),
    "single_gpu/hta_cp_event_sync.": (100, [3.15]),
    "single_gpu/hta_cp_event_sync_multi_stream": (0, []),
}


@cache
def trace(name: str) -> Trace:
    (path,) = (DATA / "traces").glob(f"{name}*gz")
    with gzip.open(path) as stream:
        (found,) = KinetoReader().read(stream, TraceSource(name=path.name))
    return found


def streams(found: Trace) -> dict[int, int]:
    on_device = np.isin(found.kind, [EventKind.KERNEL, EventKind.COPY, EventKind.FILL])
    lanes, events = np.unique(found.lane[on_device], return_counts=True)
    return {found.lanes[lane].number: count for lane, count in zip(lanes.tolist(), events.tolist())}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    events, calls, device_events, by_stream = COUNTS[name]
    found = trace(name)
    counts = found.report.counts
    assert counts["events"] == events
    assert counts["call_events"] == calls
    assert counts["device_events"] == counts["device_events_linked"] == device_events
    assert streams(found) == by_stream
    assert counts["malformed"] == 0


@pytest.mark.parametrize("name", STEPS_MS)
def test_steps(name: str) -> None:
    first, milliseconds = STEPS_MS[name]
    steps = trace(name).steps
    assert steps.number.tolist() == list(range(first, first + len(milliseconds)))
    assert (steps.end_ns - steps.begin_ns) / 1e6 == pytest.approx(milliseconds, abs=0.0051)


def test_eight_ranks_with_an_api_record_that_began_late_on_two() -> None:
    duration_us = [14_455, 19_901, 13_017, 19_313, 17_979, 17_797, 13_091, 12_509]
    begin_us = [5_469, 0, 6_887, 695, 2_844, 2_990, 6_875, 7_513]
    linked = []
    origin = trace("dlrm_8rank_v100/worker1_").steps.begin_ns[0]
    for rank in RANKS:
        found = trace(f"dlrm_8rank_v100/worker{rank}_")
        assert (found.rank, found.world_size) == (rank, 8)
        assert found.devices == ("Tesla V100-SXM2-32GB",) * 8
        (begin,), (end,) = found.steps.begin_ns, found.steps.end_ns
        assert (end - begin) // 1000 == duration_us[rank]
        assert (begin - origin) // 1000 == begin_us[rank]
        assert set(streams(found)) == {7, 22, 24, 84}
        assert streams(found)[84] == 8
        counts = found.report.counts
        assert counts["device_events_unlinked"] == (64 if rank in {1, 3} else 0)
        assert any("64 of" in warning for warning in found.report.warnings) == (rank in {1, 3})
        linked.append(counts["device_events_linked"])
    assert (linked[1], linked[3]) == (262, 273)


def test_collectives_of_a_job_without_arguments_on_kernels() -> None:
    exchange, reduce = CollectiveKind.ALL_TO_ALL, CollectiveKind.ALL_REDUCE
    for rank in RANKS:
        collectives = trace(f"dlrm_8rank_v100/worker{rank}_").collectives
        assert collectives.kind.tolist() == [exchange] * 4 + [reduce, exchange, reduce, reduce]
        assert collectives.in_bytes[[4, 6, 7]].tolist() == [4 * 394_241, 4 * 112, 4 * 226_960]
        assert (collectives.call >= 0).all()
    # float, then twice 64-bit and 32-bit integers
    first = trace("dlrm_8rank_v100/worker0_").collectives
    assert first.in_bytes[[0, 1, 2, 3, 5]].tolist() == [4 * 6_144, 8 * 24, 4 * 384, 4 * 3_392, 4 * 6_144]


def test_collectives_with_arguments() -> None:
    found = trace("ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs")
    collectives = found.collectives
    assert [(group.name, group.size, group.ranks) for group in collectives.groups] == [("0", 2, (0, 1))]
    assert collectives.group.tolist() == [0] * 21
    reduces = collectives.in_bytes[collectives.kind == CollectiveKind.ALL_REDUCE].reshape(3, 5)
    elements = [2_049_000, 7_875_584, 6_563_840, 6_637_568, 2_431_040]
    assert (reduces == 4 * np.array(elements)).all()
    assert np.count_nonzero(collectives.kind == CollectiveKind.BROADCAST) == 6
    per_step = trace("ddp_one_rank/a100x8_recsys_rank3").collectives
    assert np.count_nonzero(per_step.kind == CollectiveKind.ALL_TO_ALL) == 7 * 6
    assert np.count_nonzero(per_step.kind == CollectiveKind.ALL_REDUCE) == 3 * 6
    assert (per_step.in_bytes > 0).all()


def test_nanoseconds_and_the_base_of_the_clock() -> None:
    found = trace("ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs")
    row = [found.names[name] for name in found.name].index("autograd::engine::evaluate_function: DivBackward1")
    assert found.begin_ns[row] == 1_711_964_646_000_000_000 + 4_458_676_522_690_655
    assert found.duration_ns[row] == 156_777


def test_backward_operators_name_the_thread_of_their_forward_ones() -> None:
    for name, backward in (
        ("ddp_one_rank/a100x2_resnet_ddp_rank0_ncclargs", 1_086),
        ("ddp_one_rank/a100x8_recsys_rank3", 4_764),
        ("single_gpu/v100_resnet50_workers0_steps5-10", 1_068),
        ("dlrm_8rank_v100/worker0_", 76),
    ):
        found = trace(name)
        rows = np.flatnonzero(found.forward_lane >= 0)
        assert len(rows) == backward
        assert (found.lane[rows] != found.forward_lane[rows]).all()


def test_recorded_synchronisations() -> None:
    found = trace("single_gpu/hta_cp_event_sync.").syncs
    assert found.kind.tolist() == [SyncKind.STREAM, SyncKind.EVENT, SyncKind.EVENT, SyncKind.DEVICE]
    assert found.awaited_correlation.tolist() == [-1, 1533, 1533, -1]
    lanes = trace("single_gpu/hta_cp_event_sync.").lanes
    assert [lanes[lane].number for lane in found.awaited_lane[1:3]] == [7, 7]

    several = trace("single_gpu/hta_cp_event_sync_multi_stream")
    (wait,) = np.flatnonzero(several.syncs.kind == SyncKind.STREAM_WAIT)
    assert several.lanes[several.syncs.lane[wait]].number == 24
    assert several.lanes[several.syncs.awaited_lane[wait]].number == 20
    assert several.syncs.awaited_correlation[wait] == 1385
    assert np.count_nonzero(several.syncs.kind == SyncKind.DEVICE) == 1


def test_memory_of_an_old_recorder() -> None:
    memory = trace("single_gpu/v100_resnet50_workers0_steps5-10").memory
    assert len(memory) == 12_838
    assert set(memory.device.tolist()) == {-1, 0}
    assert (memory.allocated_bytes >= 0).all()


def test_spans_are_sorted_so_that_they_nest() -> None:
    for name in COUNTS:
        found = trace(name)
        steps = np.diff(found.begin_ns)
        assert (steps >= 0).all()
        assert (np.diff(found.duration_ns)[steps == 0] <= 0).all()


def member(archive: str, name: str) -> io.BytesIO:
    with tarfile.open(DATA / "chakra" / archive) as opened:
        content = opened.extractfile(name)
        assert content is not None
        return io.BytesIO(content.read())


def test_chakra_protobuf_and_json_are_one_graph() -> None:
    reader = ChakraReader()
    (binary,) = reader.read(member("feeder_tests_trace.tar.gz", "tests/data/chakra.0.et"), TraceSource(rank=0))
    assert not binary.timed
    counts = binary.report.counts
    assert (counts["events"], counts["durations"]) == (3_664, 3_507)
    assert (counts["communication_nodes"], counts["communication_nodes_sized"]) == (21, 7)
    assert binary.duration_ns.sum() == 381_795_000
    assert counts["nodes_in_cycles"] == 0
    assert counts["device_events_without_successor"] > 1
    assert any("no successor" in warning for warning in binary.report.warnings)
    first = binary.collectives.event[0]
    assert binary.names[binary.name[first]].startswith("ncclKernel_Broadcast")
    assert binary.collectives.kind[0] == CollectiveKind.BROADCAST
    assert (binary.collectives.in_bytes[0], binary.duration_ns[first]) == (212_480, 28_000)

    (text,) = reader.read(member("chakra_json_trace.tar.gz", "jsonData/chakra.0.json"), TraceSource(rank=0))
    assert text.duration_ns.tolist() == binary.duration_ns.tolist()
    assert sorted(map(tuple, text.dependencies.tolist())) == sorted(map(tuple, binary.dependencies.tolist()))
    assert text.collectives.kind.tolist() == binary.collectives.kind.tolist()

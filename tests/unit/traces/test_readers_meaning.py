"""What readers make of events: names without people, collectives of every recorder, steps, other formats."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from kineto_documents import document, names_of, one_step, read, span

from nodewise.plugin import CollectiveKind, EventKind, NodewiseError, TraceSource
from nodewise_traces.events.names import public_name
from nodewise_traces.formats.chakra import ChakraReader
from nodewise_traces.formats.chrome import ChromeReader
from nodewise_traces.formats.dpro import DproReader
from nodewise_traces.plugin import nodewise_trace_readers


@pytest.mark.parametrize(
    ("written", "public"),
    [
        ("/home/ada/job/train.py(12): main", "train.py(12): main"),
        ("call /usr/lib/python3/torch/nn.py(3): f;/home/ada/x.py(1)", "call nn.py(3): f;x.py(1)"),
        (r"C:\Users\Ada\job\train.py(3): step", "train.py(3): step"),
        (r"\\server\share\train.py", "train.py"),
        ("~/job/train.py", "train.py"),
        ("./kineto/worker0.json", "worker0.json"),
        ("owner /home/ada", "owner home"),
        (r"owner C:\Users\Ada", "owner home"),
        ("forward/layer1/attention", "forward/layer1/attention"),
        ("void f<a, b>(float, int) / 2", "void f<a, b>(float, int) / 2"),
        ("aten::add_", "aten::add_"),
    ],
)
def test_names_without_directories_and_users(written: str, public: str) -> None:
    assert public_name(written) == public


def test_the_host_goes_from_names() -> None:
    text = document([span("sync with node17.example", "cpu_op", 0, 1)], host_name="node17.example")
    assert names_of(read(text)) == ["sync with host"]


def test_names_with_escapes_are_one_name() -> None:
    assert names_of(read(document([span('a "b" \\ é', "cpu_op", 0, 1)]))) == ['a "b" \\ é']


def nccl(name: str = "ncclDevKernel_Generic(int)", **args: Any) -> list[dict[str, Any]]:
    return [
        span("c10d::op_", "cpu_op", 0, 100),
        span("record_param_comms", "cpu_op", 5, 90, **args),
        span("cudaLaunchKernelExC", "cuda_driver", 20, 5, correlation=1),
        span(name, "kernel", 30, 50, pid=0, device=0, stream=9, correlation=1),
    ]


@pytest.mark.parametrize(
    ("collective", "kind"),
    [
        ("allreduce_coalesced", CollectiveKind.ALL_REDUCE),
        ("_allgather_base", CollectiveKind.ALL_GATHER),
        ("reduce_scatter_tensor_coalesced", CollectiveKind.REDUCE_SCATTER),
        ("all_to_allv", CollectiveKind.ALL_TO_ALL),
        ("_broadcast_oop", CollectiveKind.BROADCAST),
        ("_reduce_oop", CollectiveKind.REDUCE),
        ("gather", CollectiveKind.GATHER),
        ("scatter", CollectiveKind.SCATTER),
        ("barrier", CollectiveKind.BARRIER),
        ("send", CollectiveKind.SEND),
        ("recv", CollectiveKind.RECEIVE),
        ("something", CollectiveKind.UNKNOWN),
    ],
)
def test_kinds_by_the_name_that_the_framework_gives(collective: str, kind: CollectiveKind) -> None:
    arguments = {"Collective name": collective, "In msg nelems": 10, "Out msg nelems": 80, "dtype": "BFloat16"}
    found = read(document(nccl(**arguments))).collectives
    assert (found.kind[0], found.in_bytes[0], found.out_bytes[0]) == (kind, 20, 160)


def test_groups_peers_and_sequence_numbers() -> None:
    arguments = {
        "Collective name": "send",
        "In msg nelems": 3,
        "dtype": "Long",
        "Process Group Name": "pipeline",
        "Process Group Ranks": "[0, 4, 8, ...]",
        "Group size": 4,
        "Global rank start": 0,
        "Global rank stride": 4,
        "Seq": 17,
        "Dst Rank": 2,
    }
    found = read(document(nccl(**arguments))).collectives
    assert (found.in_bytes[0], found.sequence[0], found.peer[0]) == (24, 17, 2)
    assert [(group.name, group.size, group.ranks) for group in found.groups] == [("pipeline", 4, (0, 4, 8, 12))]


def test_ranks_that_were_cut_and_cannot_be_told() -> None:
    arguments = {
        "Collective name": "allreduce",
        "Process Group Name": "odd",
        "Process Group Ranks": "[0, 1, 5, ...]",
        "Group size": 9,
    }
    found = read(document(nccl(**arguments)))
    assert [(group.size, group.ranks) for group in found.collectives.groups] == [(9, ())]
    assert found.collectives.in_bytes[0] == -1
    assert any("do not state their size" in warning for warning in found.report.warnings)


def test_rocm() -> None:
    events = [
        span("nccl:all_reduce", "user_annotation", 0, 60, **{"Input Dims": [[4, 5], [2]], "Input type": ["float"] * 2}),
        span("hipExtLaunchKernel", "cuda_runtime", 10, 5, correlation=4),
        span("ncclDevKernel_Generic(ncclDevComm*)", "kernel", 30, 9, pid=2, device=2, stream=3, correlation=4),
    ]
    found = read(document(events))
    assert found.report.counts["device_events_linked"] == 1
    assert found.collectives.kind[0] == CollectiveKind.ALL_REDUCE
    assert found.collectives.in_bytes[0] == 4 * 22


def test_gloo_spans_belong_to_enqueues_in_order() -> None:
    dims = {"Input Dims": [[1000]], "Input type": ["float"]}
    events = []
    for number in range(6):
        events.append(span("c10d::allreduce_", "cpu_op", 10 * number, 5, tid=1))
        events.append(span("gloo:all_reduce", "user_annotation", 100 + 50 * number, 40, tid=2 + number % 2, **dims))
    found = read(document(events, distributedInfo={"backend": "gloo", "rank": 1, "world_size": 2}))
    collectives = found.collectives
    assert collectives.in_bytes.tolist() == [4000] * 6
    assert (found.begin_ns[collectives.call] // 1000).tolist() == [0, 10, 20, 30, 40, 50]
    assert (found.begin_ns[collectives.event] // 1000).tolist() == [100, 150, 200, 250, 300, 350]


FIXTURES = Path(__file__).parents[2] / "fixtures" / "traces"


@pytest.mark.parametrize(("job", "collectives"), [("ddp_4_ranks_3_buckets", 18), ("parameter_server_4_ranks", 36)])
def test_jobs_recorded_on_gloo(job: str, collectives: int) -> None:
    for rank in range(4):
        with gzip.open(FIXTURES / job / f"rank{rank}.json.gz") as stream:
            found = read(stream.read())
        assert (found.rank, found.world_size) == (rank, 4)
        assert found.report.warnings == ()
        if rank == 0:
            assert found.report.counts["collectives"] == collectives
        assert found.report.counts["collectives_issued"] == found.report.counts["collectives_sized"]
        assert found.report.counts["collectives_issued"] == len(found.collectives)
        assert [group.ranks for group in found.collectives.groups] == [(0, 1, 2, 3)]
        assert (found.begin_ns[found.collectives.call] <= found.begin_ns[found.collectives.event]).all()


def test_gloo_spans_before_any_enqueue_are_not_matched() -> None:
    events = [
        span("gloo:all_reduce", "user_annotation", 0, 40, tid=2),
        span("c10d::allreduce_", "cpu_op", 100, 5, tid=1),
    ]
    assert read(document(events)).collectives.call.tolist() == [-1]


def test_kernels_of_the_users_own_communication() -> None:
    events = [span("deep_ep_dispatch", "kernel", 0, 10, pid=0, device=0, stream=1, correlation=1)]
    assert len(read(document(events)).collectives) == 0
    assert len(read(document(events), mapping={"communication": "^deep_ep_"}).collectives) == 1


def test_steps_of_a_pattern_and_echoes_of_steps() -> None:
    events = [span(f"train {n}", "user_annotation", 100 * n, 90) for n in (7, 8)]
    events.append(span("train 7", "user_annotation", 705, 10, tid=9))
    events.append(span("train 7", "gpu_user_annotation", 720, 300, pid=0))
    steps = read(document(events), mapping={"step": r"^train (\d+)$"}).steps
    assert steps.number.tolist() == [7, 8]
    assert (steps.end_ns - steps.begin_ns).tolist() == [90_000, 90_000]
    counted = read(document(events[:2]), mapping={"step": "^train"}).steps
    assert counted.number.tolist() == [1, 2]
    with pytest.raises(NodewiseError, match=r"mapping\.step is not a regular expression"):
        read(document(events), mapping={"step": "("})


def test_memory_with_totals() -> None:
    sample = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "s": "t"}
    device = {"Device Type": 1, "Device Id": 2, "Bytes": -64, "Total Allocated": 4096}
    host = {"Device Type": 0, "Device Id": -1, "Bytes": 8, "Total Allocated": 64}
    found = read(document([*one_step(1), {**sample, "args": device}, {**sample, "ts": 4, "args": host}])).memory
    assert found.device.tolist() == [-1, 2]
    assert found.allocated_bytes.tolist() == [64, 4096]


def test_every_format_has_one_reader() -> None:
    heads = {
        "kineto": document(one_step()),
        "chakra": b'{"workload_graph": [{"Id": 1}]}',
        "dpro": b'[{"name": "FW.conv", "ph": "X", "ts": 1, "dur": 2, "pid": "host0.rank0"}]',
        "chrome": b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]}',
        None: b"PK\x03\x04",
    }
    for name, head in heads.items():
        assert surest(head, TraceSource()) == name
    mapped = TraceSource(mapping={"device": "GPU"})
    assert [surest(heads[name], mapped) for name in ("kineto", "dpro", "chakra")] == ["chrome", "chrome", "chakra"]
    assert surest(heads["kineto"], TraceSource(mapping={"steps": "x"})) == "chrome"  # which says that it means nothing


def surest(head: bytes, source: TraceSource) -> str | None:
    """The one reader that is surest of a file that begins so; None = nobody knows it."""
    sure = {one.name: one.reader.recognises(head, source) for one in nodewise_trace_readers()}
    assert all(0 <= confidence <= 1 for confidence in sure.values())
    most = max(sure.values())
    (name,) = [name for name, confidence in sure.items() if confidence == most] if most else [None]
    return name


def test_a_chrome_trace_with_a_mapping() -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/host:CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "XLA Ops"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "XLA Modules"}},
        {"ph": "X", "name": "step 5", "pid": 2, "tid": 1, "ts": 0, "dur": 100},
        {"ph": "X", "name": "fusion.1", "pid": 1, "tid": 1, "ts": 10, "dur": 20},
        {"ph": "X", "name": "all-reduce.2", "pid": 1, "tid": 1, "ts": 30, "dur": 20},
        {"ph": "X", "name": "jit_train", "pid": 1, "tid": 2, "ts": 10, "dur": 40},
        {"ph": "B", "name": "open", "pid": 2, "tid": 1, "ts": 10},
    ]
    mapping = {"step": r"^step (\d+)", "communication": "^all-(reduce|gather)", "stream": "XLA Ops"}
    text = io.BytesIO(json.dumps({"traceEvents": events}).encode())
    (found,) = ChromeReader().read(text, TraceSource(mapping=mapping))
    kinds = dict(zip(names_of(found), found.kind.tolist()))
    assert kinds == {
        "step 5": EventKind.OPERATOR,
        "jit_train": EventKind.OTHER,
        "fusion.1": EventKind.KERNEL,
        "all-reduce.2": EventKind.KERNEL,
    }
    assert found.steps.number.tolist() == [5]
    assert found.collectives.kind.tolist() == [CollectiveKind.ALL_REDUCE]
    assert {lane.device for lane in found.lanes} == {0, -1}
    assert found.report.counts["dropped_other_phases"] == 1
    with pytest.raises(NodewiseError, match=r"mapping\.steps is not known; known are step"):
        ChromeReader().read(text, TraceSource(mapping={"steps": "x"}))


def test_dpro_holds_several_ranks() -> None:
    events = [
        {"name": name, "ph": "X", "ts": ts, "dur": 10, "pid": f"host{rank}.rank{rank}", "args": {"step": 4}}
        for rank in (1, 0)
        for ts, name in ((5, "FW.conv"), (20, "BW.conv"), (30, "Comm.conv.SEND"), (41, "Comm.conv.RECV"))
    ]
    first, second = DproReader().read(io.BytesIO(json.dumps(events).encode()), TraceSource())
    assert (first.rank, second.rank) == (0, 1)
    assert first.collectives.kind.tolist() == [CollectiveKind.SEND, CollectiveKind.RECEIVE]
    assert (first.steps.number[0], first.steps.begin_ns[0], first.steps.end_ns[0]) == (4, 5_000, 51_000)
    with pytest.raises(NodewiseError, match="no event belongs to a rank"):
        DproReader().read(io.BytesIO(b"[]"), TraceSource())


def chakra_json(nodes: list[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO(json.dumps({"workload_graph": nodes}).encode())


def test_chakra_counts_cycles_and_missing_parents() -> None:
    nodes = [
        {"Id": 1, "Name": "a", "NodeType": 4, "data_deps": [2], "runtime": 5, "is_cpu_op": True},
        {"Id": 2, "Name": "b", "NodeType": 4, "data_deps": [1, 99], "runtime": 5, "is_cpu_op": True},
        {
            "Id": 3,
            "Name": "ncclKernel_AllReduce",
            "NodeType": 7,
            "data_deps": [2],
            "ctrlDeps": [77],
            "is_cpu_op": False,
        },
        {"Id": 3, "Name": "again", "NodeType": 4},
        {"Name": "nameless"},
    ]
    (found,) = ChakraReader().read(chakra_json(nodes), TraceSource(rank=0))
    counts = found.report.counts
    assert (counts["nodes_in_cycles"], counts["missing_dependencies"], counts["missing_parents"]) == (3, 1, 1)
    assert (counts["duplicate_nodes"], counts["malformed"], counts["durations_missing"]) == (1, 1, 1)
    assert len(found.dependencies) == 3
    assert found.collectives.kind.tolist() == [CollectiveKind.ALL_REDUCE]
    assert len(found.report.warnings) >= 6


def test_chakra_protobuf_that_was_cut_or_is_none() -> None:
    node = b"\x08\x05\x12\x01a\x18\x04\x38\x0a"
    head = b"\x0a\x051.0.0\x12\x08\x0a\x06schema"
    stream = bytes([len(head)]) + head + bytes([len(node)]) + node + b"\x20abc"
    (found,) = ChakraReader().read(io.BytesIO(stream), TraceSource(rank=0))
    assert names_of(found) == ["a"]
    assert found.duration_ns.tolist() == [10_000]
    assert found.report.counts["truncated"] == 1
    with pytest.raises(NodewiseError, match="not a Chakra"):
        ChakraReader().read(io.BytesIO(b"\x7fELF" * 20), TraceSource())
    with pytest.raises(NodewiseError, match="no node"):
        ChakraReader().read(io.BytesIO(b""), TraceSource())

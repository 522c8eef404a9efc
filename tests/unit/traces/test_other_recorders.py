"""Traces of other recorders (see support/foreign_traces.py): the same job is found in each, and damage is said."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import foreign_traces as foreign
import numpy as np
import pytest

from nodewise.plugin import CollectiveKind, EventKind, NodewiseError, Trace, TraceReader, TraceSource
from nodewise_traces.formats.chakra import ChakraReader
from nodewise_traces.formats.flight_recorder import FlightRecorderReader
from nodewise_traces.formats.nsight import NsightReader
from nodewise_traces.formats.perfetto import PerfettoReader
from nodewise_traces.formats.rocprof_csv import RocprofCsvReader
from nodewise_traces.formats.rocprof_json import RocprofJsonReader
from nodewise_traces.formats.xla_json import XlaJsonReader
from nodewise_traces.formats.xplane import XplaneReader
from nodewise_traces.plugin import nodewise_trace_readers

JAX = Path(__file__).parents[2] / "fixtures" / "traces" / "jax_cpu_2_devices"
JOB: dict[str, tuple[TraceReader, bytes]] = {
    "nsight": (NsightReader(), foreign.nsight()),
    "perfetto": (PerfettoReader(), foreign.perfetto()),
    "perfetto with differences": (PerfettoReader(), foreign.perfetto(incremental=True)),
    "rocprof tables": (RocprofCsvReader(), foreign.rocprof_tables()),
    "rocprof json": (RocprofJsonReader(), foreign.as_json(foreign.rocprof_json())),
}


ENDLESS = """
DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)
SELECT n AS start, n + 1 AS end FROM t;
"""


def read(reader: TraceReader, content: bytes, **source: int) -> Sequence[Trace]:
    return reader.read(io.BytesIO(content), TraceSource(name="file", **source))


@pytest.mark.parametrize("name", JOB)
def test_the_job_is_the_same_in_every_format(name: str) -> None:
    reader, content = JOB[name]
    (found,) = read(reader, content)
    steps = found.steps
    assert steps.number.tolist() == list(range(foreign.STEPS))
    assert (steps.end_ns - steps.begin_ns).tolist() == [foreign.STEP_NS] * foreign.STEPS
    kernels = np.flatnonzero(found.kind == EventKind.KERNEL)
    assert len(kernels) == foreign.STEPS * foreign.LAUNCHES
    assert set(found.duration_ns[kernels].tolist()) == {900_000}
    assert [found.names[number] for number in found.name[kernels[:4]]] == [
        foreign.REDUCE,
        *[foreign.COMPUTE] * 2,
        foreign.REDUCE,
    ]
    counts = found.report.counts
    assert counts["device_events_linked"] == counts["device_events"]
    assert (counts["collectives"], counts["malformed"]) == (16, 0)
    assert found.collectives.kind.tolist() == [CollectiveKind.ALL_REDUCE] * 16
    call = np.flatnonzero(found.kind == EventKind.CALL)[0]
    assert found.begin_ns[kernels[0]] - found.begin_ns[call] == 7_000


EVERY: dict[str, tuple[str, bytes]] = {
    "nsight": ("nsight", foreign.nsight()),
    "perfetto": ("perfetto", foreign.perfetto()),
    "rocprof tables": ("rocprof-csv", foreign.rocprof_tables()),
    "rocprof json": ("rocprof-json", foreign.as_json(foreign.rocprof_json())),
    "flight recorder": ("flight-recorder", foreign.as_json(foreign.flight_recorder())),
    "flight recorder, pickled": ("flight-recorder", foreign.pickled(foreign.flight_recorder())),
    "execution trace": ("chakra", foreign.as_json(foreign.execution_trace())),
    "execution trace, old": ("chakra", foreign.as_json(foreign.execution_trace(old=True))),
    "chakra ring": ("chakra", foreign.chakra_ring(0, 4)),
    "chakra without a version": ("chakra", b"\0" + foreign.chakra_ring(0, 4)[8:]),
    "jax json": ("xla-json", gzip.decompress((JAX / "host.trace.json.gz").read_bytes())),
    "jax xplane": ("xplane", (JAX / "host.xplane.pb").read_bytes()),
}


@pytest.mark.parametrize("name", EVERY)
def test_each_format_is_recognised_by_its_reader_alone(name: str) -> None:
    wanted, content = EVERY[name]
    sure = {one.name: one.reader.recognises(content[: 64 << 10], TraceSource()) for one in nodewise_trace_readers()}
    assert max(sure, key=lambda one: sure[one]) == wanted
    assert sum(confidence > 0.5 for confidence in sure.values()) == 1


@pytest.mark.parametrize("name", EVERY)
def test_half_a_file_is_read_up_to_there_or_refused(name: str) -> None:
    wanted, content = EVERY[name]
    reader = next(one.reader for one in nodewise_trace_readers() if one.name == wanted)
    with suppress(NodewiseError):
        (found,) = reader.read(io.BytesIO(content[: len(content) // 2]), TraceSource(name="half"))
        assert len(found) > 0


class Runs:
    """A value whose unpickling would run a program."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"entries": [], "pg_config": Runs(), "pg_status": 0}),
        pickle.dumps({"entries": [], "pg_config": Runs(), "pg_status": 0}, protocol=2),
        b"\x80\x04}(cos\nsystem\nS'pg_config'\no.",
        b"\x80\x04\x82\x01.",
        b"\x80\x04Ppg_config\n.",
        b"\x80\x02}r\xff\xff\xff\x7f.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\x00\x00\x00.",
        b"\x80\x04}q\x00h\x00h\x00s.",
        b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fpg_config",
        b"\x80",
    ],
    ids=["reduce", "reduce 2", "object", "extension", "persistent", "memo", "bytes", "own key", "deep", "long", "cut"],
)
def test_hostile_pickles_are_refused(content: bytes) -> None:
    with pytest.raises(NodewiseError, match=r"pickle|dictionary"):
        read(FlightRecorderReader(), content)


def test_a_pickle_says_what_it_asks_for() -> None:
    with pytest.raises(NodewiseError, match=r"needs GLOBAL '\w+ exec'.*only lists, dictionaries, texts and numbers"):
        read(FlightRecorderReader(), pickle.dumps({"pg_config": Runs()}, protocol=2))


@pytest.mark.parametrize("form", ["json", "pickle"])
def test_flight_recorder_has_exchanges_and_says_what_is_not_complete(form: str) -> None:
    document = foreign.flight_recorder()
    content = foreign.as_json(document) if form == "json" else foreign.pickled(document)
    (found,) = read(FlightRecorderReader(), content, rank=0)
    table = found.collectives
    assert table.kind.tolist() == [CollectiveKind.ALL_REDUCE, CollectiveKind.SEND, CollectiveKind.ALL_REDUCE]
    assert table.in_bytes.tolist() == [4_000_000] * 3
    assert (table.sequence.tolist(), table.peer.tolist()) == ([1, -1, 2], [-1, 1, -1])
    assert found.world_size == 2
    assert [(group.name, group.ranks) for group in table.groups] == [("0", (0, 1))]
    assert found.duration_ns[table.event].tolist() == [10_500_000, 5_000, 10_500_000]
    told = " ".join(found.report.warnings)
    assert "nccl:all_reduce, number 3 of group 0, is scheduled" in told
    assert "records exchanges only" in told
    assert "ann" not in told + "".join(found.names)


def test_flight_recorder_without_a_complete_exchange_says_which_hangs() -> None:
    entries = foreign.flight_recorder()["entries"][-1:]
    with pytest.raises(NodewiseError, match=r"no exchange in the dump is complete.* is scheduled"):
        read(FlightRecorderReader(), foreign.as_json(foreign.flight_recorder(entries=entries)))


def test_nsight_export_of_two_processes_is_two_ranks() -> None:
    found = read(NsightReader(), foreign.nsight(processes=2))
    assert [(trace.rank, trace.world_size) for trace in found] == [(0, 2), (1, 2)]
    assert "numbered in the order of their ids" in " ".join(found[0].report.warnings)
    with pytest.raises(NodewiseError, match="sent as rank 1, but 2 processes"):
        read(NsightReader(), foreign.nsight(processes=2), rank=1)
    ranks = f"CREATE TABLE MPI_RANKS (globalPid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES ({100 << 24}, 1);"
    ranks += f"INSERT INTO MPI_RANKS VALUES ({101 << 24}, 0);"
    stated = read(NsightReader(), foreign.nsight(processes=2, extra=ranks))
    assert [trace.rank for trace in stated] == [1, 0]


def test_nsight_copies_threads_and_the_clock() -> None:
    (found,) = read(NsightReader(), foreign.nsight())
    (copy,) = np.flatnonzero(found.kind == EventKind.COPY)
    assert (found.names[found.name[copy]], found.bytes[copy]) == ("Memcpy HtoD", 4096)
    assert found.devices == ("NVIDIA A100-SXM4-40GB",)
    assert [lane.name for lane in found.lanes if lane.is_host] == ["main"]
    assert found.begin_ns[0] > 1_700_000_000_000_000_000


def test_nsight_columns_that_a_release_lacks_are_left_out() -> None:
    extra = """
    ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN greenContextId;
    ALTER TABLE NVTX_EVENTS DROP COLUMN textId; ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN eventClass;
    DROP TABLE ThreadNames; DROP TABLE TARGET_INFO_SESSION_START_TIME;
    UPDATE NVTX_EVENTS SET text = 'step_' || rowid WHERE eventType = 59;
    """
    (found,) = read(NsightReader(), foreign.nsight(extra=extra))
    assert len(found.steps) == foreign.STEPS
    assert found.report.counts["device_events_linked"] == 41


def test_ranges_of_pytorch_are_operators_of_one_name() -> None:
    extra = "UPDATE NVTX_EVENTS SET text = 'aten::mm, seq = ' || rowid || ', op_id = 3' WHERE eventType = 59"
    (found,) = read(NsightReader(), foreign.nsight(extra=extra))
    operators = found.kind == EventKind.OPERATOR
    assert {found.names[number] for number in found.name[operators]} == {"aten::mm"}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (ENDLESS, "none of the tables CUPTI_ACTIVITY_KIND"),
        ("CREATE TABLE rocpd_kernel_dispatch (id INTEGER)", "rocpd convert"),
    ],
    ids=["an endless view", "rocpd"],
)
def test_databases_that_are_none_of_nsights(extra: str, message: str) -> None:
    with pytest.raises(NodewiseError, match=message):
        read(NsightReader(), foreign.nsight(extra=extra))


def test_damage_whose_message_is_no_text_is_refused() -> None:
    content = foreign.nsight()
    with pytest.raises(NodewiseError, match="not a complete SQLite database"):
        read(NsightReader(), content.replace(b"CREATE TABLE NVTX_EVENTS", b"CREATE TAB\xff\xc8 NVTX_EVENTS"))


def test_a_cut_database_names_the_command() -> None:
    with pytest.raises(
        NodewiseError, match=r"file: the file is not a complete SQLite database .* nsys export --type sqlite"
    ):
        read(NsightReader(), foreign.nsight()[:9000])


def test_kernels_alone_have_a_window_and_say_so() -> None:
    (found,) = read(RocprofCsvReader(), foreign.rocprof_tables(only_kernels=True))
    assert found.report.counts["hosts_unrecorded"] == 1
    assert found.report.counts["device_events"] == 40


def test_tables_of_the_older_rocprof() -> None:
    text = '"Index","KernelName","gpu-id","queue-id","BeginNs","EndNs"\n0,"a(int, int)",1,0,100,300\n1,"b",1,0,x,5\n'
    (found,) = read(RocprofCsvReader(), text.encode() + b'2,"c(\n' + b"x" * 100_000 + b'\n3,"d",1,0,400,500\n')
    assert [found.names[number] for number in found.name[found.kind == EventKind.KERNEL]] == ["a(int, int)", "d"]
    assert found.report.counts["malformed"] == 3


def test_lines_that_end_elsewhere_are_lines() -> None:
    (found,) = read(RocprofCsvReader(), foreign.rocprof_tables().replace(b"hipLaunch", b"hip\rLaunch"))
    assert found.report.counts["call_events"] == 40


def test_perfetto_packets_may_be_compressed_but_not_without_bound() -> None:
    whole = foreign.perfetto()
    packed = foreign.field(1, foreign.field(50, zlib.compress(whole)))
    first = foreign.field(1, foreign.field(10, 1) + foreign.field(60, b""))
    (found,) = read(PerfettoReader(), first + packed)
    assert len(found.steps) == foreign.STEPS
    bomb = foreign.field(1, foreign.field(50, zlib.compress(bytes(70 << 20), 9)))
    with pytest.raises(NodewiseError, match="more bytes than a trace may have"):
        read(PerfettoReader(), first + bomb)


def test_perfetto_takes_a_mapping_for_devices_of_others() -> None:
    content = foreign.perfetto().replace(b"kernel_dispatch", b"other_category_")
    (found,) = PerfettoReader().read(io.BytesIO(content), TraceSource(mapping={"device": "QUEUE"}))
    assert found.report.counts["kernel_events"] == 40


def test_both_files_of_a_jax_profile_say_the_same() -> None:
    """Recorded by tests/fixtures/traces/record_jax.py with jax 0.10.2 on two CPU devices."""
    with gzip.open(JAX / "host.trace.json.gz") as stream:
        (text,) = XlaJsonReader().read(stream, TraceSource())
    (planes,) = read(XplaneReader(), (JAX / "host.xplane.pb").read_bytes())
    assert text.steps.number.tolist() == planes.steps.number.tolist() == [0, 1, 2, 3]
    assert (text.steps.end_ns - text.steps.begin_ns).tolist() == (planes.steps.end_ns - planes.steps.begin_ns).tolist()
    assert len(text) == len(planes) > 100
    assert text.collectives.kind.tolist() == planes.collectives.kind.tolist() == [CollectiveKind.ALL_REDUCE] * 8
    assert sorted(text.names[n] for n in text.name) == sorted(planes.names[n] for n in planes.name)


def test_streams_and_steps_of_a_jax_device() -> None:
    """As XLA writes for GPUs: a plane a device, a line a stream, other lines that repeat them, launches by number."""

    def named(number: int, name: str) -> bytes:
        return foreign.field(1, number) + foreign.field(2, foreign.field(1, number) + foreign.field(2, name))

    def event(name: int, offset_ps: int, correlation: int = 0) -> bytes:
        stat = foreign.field(4, foreign.field(1, 1) + foreign.field(3, correlation)) if correlation else b""
        parts = foreign.field(1, name) + foreign.field(2, offset_ps) + foreign.field(3, 500_000)
        return foreign.field(4, parts + stat)

    def line(number: int, name: str, *events: bytes) -> bytes:
        return foreign.field(
            3, foreign.field(1, number) + foreign.field(2, name) + foreign.field(3, 9) + b"".join(events)
        )

    names = (
        foreign.field(4, named(1, "loop_fusion"))
        + foreign.field(4, named(2, "1"))
        + foreign.field(4, named(3, "cuLaunchKernel"))
    )
    stats = foreign.field(5, named(1, "correlation_id"))
    lines = line(14, "Stream #14(Compute)", event(1, 2_000_000, 77)) + line(2, "XLA Ops", event(1, 2_000_000))
    device = foreign.field(2, "/device:GPU:1") + lines + line(3, "Steps", event(2, 1_000_000)) + names + stats
    host = foreign.field(2, "/host:CPU") + line(5, "python", event(3, 1_000_000, 77)) + names + stats
    (found,) = read(XplaneReader(), foreign.field(1, host) + foreign.field(1, device))
    (kernel,) = np.flatnonzero(found.kind == EventKind.KERNEL)
    assert found.begin_ns[kernel] == 2_009
    assert (found.lanes[found.lane[kernel]].device, found.lanes[found.lane[kernel]].number) == (1, 14)
    assert found.report.counts["device_events_linked"] == 1
    assert len(found.steps) == 1


@pytest.mark.parametrize("old", [False, True])
def test_execution_traces_have_operators_and_exchanges_without_times(*, old: bool) -> None:
    (found,) = read(ChakraReader(), foreign.as_json(foreign.execution_trace(old=old)))
    assert not found.timed
    assert found.collectives.kind.tolist() == [CollectiveKind.ALL_REDUCE]
    assert found.collectives.in_bytes.tolist() == [4096]
    assert found.dependencies.tolist() == [[0, 1], [0, 2]]
    assert "operators only" in " ".join(found.report.warnings)


def test_json_that_is_cut_or_deep() -> None:
    whole = foreign.as_json(foreign.rocprof_json())
    with pytest.raises(NodewiseError, match="damaged or truncated"):
        read(RocprofJsonReader(), whole[:-3])
    deep = b'{"rocprofiler-sdk-tool":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(NodewiseError, match="damaged or truncated"):
        read(RocprofJsonReader(), deep)
    with pytest.raises(NodewiseError, match="one object a process"):
        read(RocprofJsonReader(), json.dumps({"rocprofiler-sdk-tool": 3}).encode())

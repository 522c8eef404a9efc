"""What is broken is left out and counted; what is around it is read."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
from kineto_documents import document, names_of, one_step, read, span

from nodewise.plugin import NodewiseError, TraceSource
from nodewise_traces.formats.kineto import KinetoReader


def test_integers_beyond_64_bits_are_no_numbers() -> None:
    events = one_step()
    events[2]["args"]["correlation"] = 2**70
    events[3]["args"]["Addr"] = 2**200
    found = read(document(events))
    assert found.report.counts["malformed"] == 0
    assert found.report.counts["device_events_unlinked"] == 1
    assert found.correlation.max() == 4


def test_times_beyond_reason_are_left_out() -> None:
    found = read(document([*one_step(), span("late", "cpu_op", 1e30, 1), span("never", "cpu_op", 2**62 // 1000, 1)]))
    assert found.report.counts["malformed"] == 2


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    text = document([*one_step(), span("caf?", "cpu_op", 900, 1, shape="?")]).replace(b"caf?", b"caf\xe9\xff")
    found = read(text)
    assert "caf��" in names_of(found)
    assert found.report.counts["malformed"] == 0


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ['say "hello" twice', 'one " alone', 'ends with "'])
def test_quotes_that_are_not_escaped_cost_one_event(name: str, indent: int | None) -> None:
    events = [*one_step(2), span("BROKEN", "cpu_op", 500, 1), *one_step(2)]
    text = json.dumps({"traceEvents": events, "distributedInfo": {"rank": 5}}, indent=indent)
    found = read(text.replace("BROKEN", name).encode())
    assert found.report.counts["malformed"] == 1
    assert len(found) == 14
    assert found.rank == 5
    assert any("were ignored" in warning for warning in found.report.warnings)


def test_a_broken_last_event_does_not_hide_what_follows_the_list() -> None:
    text = document([*one_step(), span("BROKEN", "cpu_op", 500, 1)])
    text = text.replace(b"BROKEN", b'a"b')[:-1] + b', "baseTimeNanoseconds": 1000000}'
    found = read(text)
    assert found.report.counts["malformed"] == 1
    assert found.begin_ns.min() == 1_000_000


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_file_that_was_cut(share: float) -> None:
    whole = document(one_step(200))
    found = read(whole[: int(len(whole) * share)])
    assert 0.8 * share * 600 < len(found) < 600
    assert found.report.counts["truncated"] == 1
    assert any("ends inside" in warning for warning in found.report.warnings)


@pytest.mark.parametrize("rest", [b"", b', "trace', b', "traceName"', b', "traceName": ', b', "traceName": "a"'])
def test_a_file_that_was_cut_behind_its_events(rest: bytes) -> None:
    found = read(document(one_step(20))[:-1] + rest)
    assert found.report.counts["truncated"] == 1
    assert found.report.counts["malformed"] == 0


def test_a_packed_file_that_was_cut() -> None:
    packed = gzip.compress(document(one_step(500)))
    unpacked = io.BytesIO()
    try:
        with gzip.open(io.BytesIO(packed[: len(packed) // 2])) as stream:
            while chunk := stream.read1(1024):
                unpacked.write(chunk)
    except EOFError:
        pass
    assert 0 < len(read(unpacked.getvalue())) < 1501


def test_duplicate_correlations_link_to_the_last_call_before() -> None:
    events = [
        span("cudaLaunchKernel", "cuda_runtime", 0, 5, correlation=1),
        span("first", "kernel", 10, 5, pid=0, device=0, stream=7, correlation=1),
        span("cudaLaunchKernel", "cuda_runtime", 20, 5, correlation=1),
        span("second", "kernel", 30, 5, pid=0, device=0, stream=7, correlation=1),
    ]
    found = read(document(events))
    assert found.report.counts["duplicate_correlations"] == 1
    assert found.report.counts["device_events_linked"] == 2
    assert any("repeat a correlation" in warning for warning in found.report.warnings)


def test_many_kernels_of_one_call_are_all_linked() -> None:
    events = [span("cudaGraphLaunch", "cuda_runtime", 0, 5, correlation=9)]
    events += [span(f"k{n}", "kernel", 10 * n + 10, 5, pid=0, device=0, stream=7, correlation=9) for n in range(20)]
    found = read(document(events))
    assert found.report.counts["device_events_linked"] == 20
    assert "duplicate_correlations" not in found.report.counts


@pytest.mark.parametrize("tid", ["123", -5, 2**40, "a word", "", None, 1.0])
def test_threads_of_any_spelling(tid: object) -> None:
    found = read(document([span("op", "cpu_op", 0, 10, tid=tid), span("inner", "cpu_op", 2, 3, tid=tid)]))
    assert len(found) == 2
    assert len(found.lanes) == 1
    assert found.lanes[0].is_host
    if tid == "a word":
        assert found.lanes[0].name == "a word"


def test_streams_of_older_recorders_are_words() -> None:
    event = span("k", "Kernel", 0, 1, tid="stream 7", pid=0)
    found = read(document([event]))
    assert (found.lanes[0].device, found.lanes[0].number) == (0, 7)


@pytest.mark.parametrize("missing", ["args", "dur", "tid", "pid", "cat", "name"])
def test_members_that_are_missing(missing: str) -> None:
    events = one_step(3)
    for event in events[1:]:
        event.pop(missing)
    found = read(document(events))
    assert len(found) == len(events)
    assert found.report.counts["events"] == len(events)


def test_members_of_the_wrong_kind() -> None:
    odd = [
        {"ph": "X", "name": ["a"], "ts": "12.5", "dur": "3", "pid": {}, "tid": [], "cat": 7, "args": "none"},
        {"ph": "X", "name": None, "ts": None, "args": None},
        {"ph": 5, "ts": {}},
        {},
    ]
    found = read(document([*one_step(), *odd]))
    assert len(found) == 14
    assert found.report.counts["malformed"] == 3


def test_elements_that_are_no_events() -> None:
    text = document(one_step(2)).replace(b'"traceEvents": [', b'"traceEvents": [null, 3, "x", [], ')
    found = read(text)
    assert len(found) == 7
    assert found.report.counts["malformed"] >= 1


def test_a_bare_list() -> None:
    found = read(json.dumps(one_step()).encode())
    assert len(found) == 13
    assert found.world_size == 0


def test_members_behind_the_events_and_before_them_are_the_same() -> None:
    facts = {"baseTimeNanoseconds": 10**18, "distributedInfo": {"rank": 2, "world_size": 4}}
    before = read(json.dumps({**facts, "traceEvents": one_step()}).encode())
    behind = read(json.dumps({"traceEvents": one_step(), **facts}).encode())
    assert before.begin_ns.tolist() == behind.begin_ns.tolist()
    assert (before.rank, before.world_size) == (behind.rank, behind.world_size) == (2, 4)
    assert before.begin_ns[0] == 10**18


def test_skewed_clocks_and_negative_durations() -> None:
    events = one_step()
    events[-1]["ts"] = -50.5
    events[-2]["dur"] = -3
    found = read(document(events))
    assert found.begin_ns.min() == -50_500
    assert found.duration_ns.min() == 0
    assert found.report.counts["durations_negative"] == 1
    assert any("negative" in warning for warning in found.report.warnings)


def test_repeated_damage_takes_linear_time() -> None:
    text = b'{"traceEvents": [' + b',{"ph":[' * 400_000
    with pytest.raises(NodewiseError, match="no event"):
        read(text)


def test_one_event_longer_than_any_is_damage() -> None:
    monster = span("monster", "cpu_op", 1, 1, shape=[0] * 2_000_000)
    found = read(document([*one_step(2), monster, *one_step(2)], distributedInfo={"rank": 1}))
    assert found.report.counts["malformed"] >= 1
    assert len(found) >= 7


@pytest.mark.parametrize("text", [b"", b"{}", b"no trace", b'{"a": 1}', b"[]", b'{"traceEvents": 5}', b"\x00" * 100])
def test_what_is_no_trace_is_refused(text: bytes) -> None:
    with pytest.raises(NodewiseError, match="trace"):
        read(text, name="x.json")


def test_a_sender_and_a_file_that_disagree() -> None:
    text = document(one_step(), distributedInfo={"rank": 3, "world_size": 8})
    with pytest.raises(NodewiseError, match=r"worker3\.json: was sent as rank 2, but the trace states rank 3"):
        read(text, name="worker3.json", rank=2)
    assert read(text, rank=3, world_size=8).rank == 3


def test_memory_stays_bounded() -> None:
    class Endless(io.RawIOBase):
        """Events one after the other, never held together."""

        def __init__(self) -> None:
            event = json.dumps(span("python", "python_function", 1, 1)).encode() + b","
            self.piece = event * (1_000_000 // len(event))
            self.left = 25

        def read(self, size: int = -1) -> bytes:
            if self.left == 25:
                self.left -= 1
                return b"[" + json.dumps(span("op", "cpu_op", 0, 1)).encode() + b","
            self.left -= 1
            return self.piece if self.left > 0 else b"{}]" if self.left == 0 else b""

    import tracemalloc

    read(document(one_step(1)))
    tracemalloc.start()
    try:
        (found,) = KinetoReader().read(Endless(), TraceSource())  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.report.counts["dropped_python_function"] > 150_000
    assert peak < 14e6
    assert np.array_equal(found.begin_ns, [0])

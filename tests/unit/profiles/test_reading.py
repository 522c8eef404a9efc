"""Traces from their bytes to columns that are kept: which reader, once, and what is told where it cannot be."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misbehaving import ANSWERED, RAISED, SECRET, raising
from patience import PATIENCE_S
from structlog.testing import capture_logs
from tiny_traces import TinyReader, reader, tiny, trace_of

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile, TraceReference
from nodewise.domain.trace import Lane, Trace, TraceReport
from nodewise.hosting.registry import LoadedPlugin
from nodewise.profiles.artefacts import columns_of
from nodewise.profiles.reading import TraceLoader
from nodewise.profiles.traces import TraceStore, stage_name

STAGE = stage_name("uid", "session", "trace")


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path)


@pytest.fixture(params=["same", "another"])
def open_traces(request: pytest.FixtureRequest, store: TraceStore, tmp_path: Path) -> Callable[[], TraceStore]:
    """Each call is the same process, or another."""
    return (lambda: store) if request.param == "same" else (lambda: TraceStore(tmp_path))


def stored(store: TraceStore, data: bytes, **more: Any) -> TraceReference:
    store.write(STAGE, 0, 0, data)
    name = store.finish(STAGE, len(data))
    store.discard(STAGE)
    fields = {"format": "auto", "rank": -1, "world_size": 0, "size_bytes": len(data)} | more
    return TraceReference(content_sha256=name, **fields)


def loader(store: TraceStore, *answering: Any, **more: Any) -> TraceLoader:
    records = [each if hasattr(each, "reader") else reader(each) for each in answering]
    return TraceLoader(store, {record.name: LoadedPlugin(record, "tests 1.0", "inline") for record in records}, **more)


def same(found: Trace, expected: Trace) -> bool:
    pairs = zip(columns_of(found).values(), columns_of(expected).values())
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs) and (
        (found.rank, found.world_size, found.names, found.lanes, found.devices, found.timed, found.report.counts)
        == (
            expected.rank,
            expected.world_size,
            expected.names,
            expected.lanes,
            expected.devices,
            expected.timed,
            expected.report.counts,
        )
        and found.collectives.groups == expected.collectives.groups
        and found.format == expected.format
    )


def refused(call: Callable[[], Any]) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        call()
    return caught.value


def twice_packed(data: bytes) -> bytes:
    return gzip.compress(data[:40]) + gzip.compress(data[40:])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, twice_packed])
def test_a_trace_is_read_once_and_comes_back_the_same(
    open_traces: Callable[[], TraceStore], pack: Callable[[bytes], bytes]
) -> None:
    store, answering = open_traces(), TinyReader()
    reference = stored(store, pack(tiny(1, 2)))
    own = loader(store, answering)
    (first,) = own.load([reference])
    assert same(first.trace, trace_of(1, 2, 3, 4))
    assert (first.reader, first.reader_version, first.content_sha256) == ("tiny", "1.0", reference.content_sha256)
    again = TinyReader()
    (second,) = loader(open_traces(), again).traces_of(Profile(traces=(reference,)))
    assert same(second, first.trace)
    assert (answering.reads, again.reads) == (1, 0)
    assert not second.begin_ns.flags.writeable


def test_columns_are_mapped_and_survive_a_torn_file(tmp_path: Path) -> None:
    store, answering = TraceStore(tmp_path), TinyReader()
    reference = stored(store, tiny())
    loader(store, answering).load([reference])
    (path,) = tmp_path.glob("artefacts/*/*/*.columns")
    whole = path.read_bytes()
    for torn in (whole[:-1], whole[:20], b"", whole[:60] + b"?" + whole[61:], b"x" * len(whole)):
        path.write_bytes(torn)
        with capture_logs():
            (found,) = loader(TraceStore(tmp_path), answering).load([reference])
        assert same(found.trace, trace_of(0, 2, 3, 4))
        assert path.read_bytes() == whole
    assert answering.reads == 6


def test_another_version_of_the_reader_reads_again(open_traces: Callable[[], TraceStore]) -> None:
    store, answering = open_traces(), TinyReader()
    reference = stored(store, tiny())
    loader(store, reader(answering, version="1.0")).load([reference])
    loader(store, reader(answering, version="1.1")).load([reference])
    loader(store, reader(answering, version="1.0")).load([reference])
    assert answering.reads == 2
    (other,) = loader(store, answering).load([replace(reference, rank=1)])
    assert (other.trace.rank, answering.reads) == (1, 3)


def test_what_was_read_goes_with_the_trace(open_traces: Callable[[], TraceStore], tmp_path: Path) -> None:
    store, answering = open_traces(), TinyReader()
    reference = stored(store, tiny())
    loader(store, answering).load([reference])
    store.remove(reference.content_sha256)
    assert not list(tmp_path.glob("artefacts/*/*/*"))
    assert stored(store, tiny()) == reference
    loader(store, answering).load([reference])
    assert answering.reads == 2


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    store, answering = TraceStore(tmp_path, artefact_bytes=1), TinyReader()
    references = [stored(store, tiny(rank)) for rank in range(2)]
    for reference in references:
        loader(store, answering).load([reference])
    assert len(list(tmp_path.glob("artefacts/*/*/*.columns"))) == 1
    left = tmp_path / "artefacts" / "reading-left"
    for age_s, stays in ((60.0, True), (100_000.0, False)):
        left.touch()
        os.utime(left, (time.time() - age_s,) * 2)
        loader(store, answering).load([stored(store, tiny(name=f"{age_s}"))])
        assert left.exists() == stays
    assert answering.reads == 4


def test_a_disk_that_takes_nothing_is_no_failure(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    reference = stored(store, tiny())
    (tmp_path / "artefacts").write_text("in the way")
    with capture_logs():
        (found,) = loader(store, TinyReader()).load([reference])
    assert same(found.trace, trace_of(0, 2, 3, 4))


def test_a_reading_that_outlives_its_store_leaves_nothing_behind() -> None:
    store = TraceStore()
    reference, root = stored(store, tiny()), store.root

    def close(trace: Trace) -> list[Trace]:
        store.close()
        return [trace]

    with capture_logs():
        (found,) = loader(store, TinyReader(close)).load([reference])
    assert same(found.trace, trace_of(0, 2, 3, 4))
    assert not root.exists()


def test_whoever_asks_meanwhile_waits_for_the_same_reading(open_traces: Callable[[], TraceStore]) -> None:
    store, answering = open_traces(), TinyReader()
    reference = stored(store, tiny())
    own = loader(store, answering)
    answering.go.clear()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(own.load([reference]))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert answering.began.wait(PATIENCE_S)
    answering.go.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(found), answering.reads) == (3, 1)


def test_a_reading_whose_asker_has_gone_is_taken_up_by_the_next(open_traces: Callable[[], TraceStore]) -> None:
    store, answering = open_traces(), TinyReader()
    reference = stored(store, tiny())
    own = loader(store, answering)
    answering.go.clear()
    left = [1.0]
    failures: list[NodewiseError] = []
    found: list[Any] = []

    def first() -> None:
        failures.append(refused(lambda: own.load([reference], None, lambda: left[0])))

    begun = threading.Thread(target=first)
    begun.start()
    assert answering.began.wait(PATIENCE_S)
    second = threading.Thread(target=lambda: found.append(own.load([reference])))
    second.start()
    left[0] = 0.0
    answering.go.set()
    begun.join(PATIENCE_S)
    second.join(PATIENCE_S)
    assert [failure.reason for failure in failures] == [Reason.DEADLINE_EXCEEDED]
    assert len(found) == 1


def test_progress_counts_bytes(store: TraceStore) -> None:
    references = [stored(store, tiny(rank)) for rank in range(2)]
    told: list[tuple[int, int]] = []
    loader(store, TinyReader()).load(references, lambda done, total: told.append((done, total)))
    total = sum(reference.size_bytes for reference in references)
    assert told[0] == (0, total)
    assert told[-1] == (total, total)
    assert told == sorted(told)


def test_a_packed_file_that_is_cut_is_a_trace_that_was_cut(store: TraceStore) -> None:
    packed = gzip.compress(tiny() + bytes(range(256)) * 40, 0)
    for data, said in ((packed[:-500], "ends early"), (packed[:-500] + b"!" * 500, "damaged")):
        (found,) = loader(store, TinyReader()).load([stored(store, data)])
        report = TraceReport(counts={"events": 12})
        assert same(replace(found.trace, report=report), replace(trace_of(0, 2, 3, 4), report=report))
        assert found.trace.report.counts == {"events": 12, "truncated": 1}
        (warning,) = found.trace.report.warnings
        assert said in warning


def test_what_unpacks_to_too_much_is_refused_even_if_the_reader_hides_it(store: TraceStore) -> None:
    class Hiding(TinyReader):
        def read(self, stream: Any, source: Any) -> Any:
            try:
                return super().read(stream, source)
            except NodewiseError:
                return [trace_of(0, 2, 3, 4)]

    reference = stored(store, gzip.compress(tiny() + bytes(1 << 20)))
    for answering in (TinyReader(), Hiding()):
        own = loader(store, answering, max_unpacked_bytes=1 << 16)
        error = refused(lambda own=own: own.load([reference]))
        assert error.reason is Reason.LIMIT_EXCEEDED
        assert "65536" in error.message


class Sure(TinyReader):
    """Recognises everything as surely as it is told to."""

    def __init__(self, confidence: Any) -> None:
        super().__init__()
        self._confidence = confidence

    def recognises(self, head: bytes, source: Any) -> Any:
        return self._confidence


def test_the_surest_reader_reads_and_of_equally_sure_ones_the_first_by_name(store: TraceStore, logs: list[Any]) -> None:
    reference = stored(store, tiny())
    records = [reader(Sure(how), name) for name, how in (("a", 0.1), ("c", 0.9), ("b", 0.9), ("d", False))]
    (found,) = loader(store, *records).load([reference])
    assert found.reader == "b"
    assert [(one["chosen"], one["others"]) for one in logs if one["event"] == "readers_tie"] == [("b", ["c"])]


@pytest.mark.parametrize("confidence", [float("nan"), -0.1, 1.5, None, "very"])
def test_a_confidence_that_is_none_is_the_readers_fault(store: TraceStore, confidence: Any) -> None:
    error = refused(lambda: loader(store, reader(Sure(confidence), "odd")).load([stored(store, tiny())]))
    assert error.reason is Reason.READER_INVALID_RESULT
    assert error.metadata["reader"] == "odd"
    assert "a value that is not a confidence from 0 to 1" in error.message


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        (b"what is this", {}, "no reader recognises it; loaded are: tiny"),
        (b" \n ", {}, "it is empty"),
        (b"tiny trace\nnot json\n", {"rank": 3}, "of rank 3: trace: line 2 is no JSON"),
        (tiny(), {"format": "kineto"}, "must be auto or a reader's name (tiny), found 'kineto'"),
    ],
)
def test_a_trace_that_cannot_be_read_is_named_with_why(
    store: TraceStore, data: bytes, more: dict[str, Any], said: str
) -> None:
    good, bad = stored(store, tiny()), stored(store, data, **more)
    error = refused(lambda: loader(store, TinyReader()).load([good, bad]))
    assert error.reason is Reason.INVALID_FIELD
    assert error.violations[0].field.startswith("profile.traces[1]")
    assert said in error.message
    if "format" not in more:
        assert bad.content_sha256[:12] in error.message
        assert error.metadata["content_sha256"] == bad.content_sha256


def test_a_trace_that_is_not_stored_is_refused(store: TraceStore) -> None:
    missing = TraceReference(content_sha256="0" * 64, format="auto", rank=0, world_size=1, size_bytes=3)
    error = refused(lambda: loader(store, TinyReader()).load([missing]))
    assert error.reason is Reason.INVALID_FIELD


@pytest.mark.parametrize("raised", [ValueError("inside"), SystemExit("inside")])
def test_a_reader_that_fails_costs_its_trace_a_clear_error(store: TraceStore, raised: BaseException) -> None:
    def fail(trace: Trace) -> Any:
        raise raised

    reference = stored(store, tiny())
    with capture_logs():
        error = refused(lambda: loader(store, TinyReader(fail)).load([reference]))
    assert error.reason is Reason.READER_FAILED
    assert "inside" not in error.message


class Unsure(TinyReader):
    """Is asked first, by its name, and misbehaves as it is."""

    def __init__(self, behave: Callable[..., Any]) -> None:
        super().__init__()
        self.recognises = behave  # type: ignore[method-assign]


@pytest.mark.parametrize("name", [*RAISED, *ANSWERED])
def test_a_reader_that_cannot_say_keeps_no_other_from_a_trace(store: TraceStore, name: str) -> None:
    behave = raising(RAISED[name]) if name in RAISED else lambda *_: ANSWERED[name]
    known, unknown = stored(store, tiny()), stored(store, b"what is this")
    readers = (reader(Unsure(behave), "a-bad-one"), reader(TinyReader()))

    def ask() -> tuple[str, NodewiseError]:
        (found,) = loader(store, *readers).load([known])
        return found.reader, refused(lambda: loader(store, *readers).load([unknown]))

    # In a thread, where an interrupt cannot be the operator's.
    with capture_logs(), ThreadPoolExecutor(1) as threads:
        chosen, error = threads.submit(ask).result()
    assert chosen == "tiny"
    assert error.reason == f"READER_{'FAILED' if name in RAISED else 'INVALID_RESULT'}"
    assert "a-bad-one" in error.message
    assert SECRET[:8] not in error.message


def shifted(trace: Trace, name: str, value: int) -> Trace:
    column = getattr(trace, name).copy()
    column[-1] = value
    return replace(trace, **{name: column})


WRONG: dict[str, Callable[[Trace], Any]] = {
    "not a sequence": lambda trace: trace,
    "nothing": lambda trace: [],
    "no trace": lambda trace: ["trace"],
    "short column": lambda trace: [replace(trace, duration_ns=trace.duration_ns[1:])],
    "floats": lambda trace: [replace(trace, begin_ns=trace.begin_ns / 1.0)],
    "list": lambda trace: [replace(trace, begin_ns=trace.begin_ns.tolist())],
    "none": lambda trace: [replace(trace, steps=None)],
    "name": lambda trace: [shifted(trace, "name", 2)],
    "lane": lambda trace: [shifted(trace, "lane", -1)],
    "kind": lambda trace: [shifted(trace, "kind", 9)],
    "negative": lambda trace: [shifted(trace, "duration_ns", -1)],
    "order": lambda trace: [shifted(trace, "begin_ns", 0)],
    "rank": lambda trace: [replace(trace, rank=2)],
    "twice": lambda trace: [trace, trace],
    "exchange": lambda trace: [
        replace(trace, collectives=replace(trace.collectives, event=trace.collectives.event + 9))
    ],
    "word": lambda trace: [replace(trace, names=("\ud800", "x"))],
    "lane number": lambda trace: [replace(trace, lanes=(Lane(device=-1, number=1 << 63), Lane(device=0, number=7)))],
    "count": lambda trace: [replace(trace, report=TraceReport(counts={"events": 1.5}))],  # type: ignore[dict-item]
    "lanes": lambda trace: [replace(trace, lanes=("a", "b"))],
    "dependencies": lambda trace: [replace(trace, dependencies=np.array([[0, 99]]))],
    "steps": lambda trace: [replace(trace, steps=replace(trace.steps, end_ns=trace.steps.begin_ns - 1))],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_reader_returns_is_checked(store: TraceStore, wrong: str) -> None:
    error = refused(lambda: loader(store, TinyReader(WRONG[wrong])).load([stored(store, tiny())]))
    assert error.reason is Reason.READER_INVALID_RESULT


def test_ranks_of_one_file_come_in_order(store: TraceStore) -> None:
    both = TinyReader(lambda trace: [replace(trace, rank=1), trace])
    assert [trace.rank for trace in loader(store, both).traces_of(Profile(traces=(stored(store, tiny()),)))] == [0, 1]

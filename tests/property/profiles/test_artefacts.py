"""Whatever a trace holds, its artefact gives it back; whatever is broken in the file, it is noticed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nodewise.domain.trace import (
    Collectives,
    Lane,
    MemorySamples,
    ProcessGroup,
    SyncRecords,
    Trace,
    TraceReport,
    TraceSteps,
)
from nodewise.profiles.artefacts import ArtefactKey, TraceArtefacts, columns_of

WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
ROWS = st.integers(0, 70)


@st.composite
def columns(draw: st.DrawFn, *names: str, **types: type[np.generic]) -> dict[str, Any]:
    """Columns of the same length and any content."""
    rows = draw(ROWS)
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = {}
    for name in names:
        info = np.iinfo(types.get(name, np.int64))
        found[name] = random.integers(info.min, info.max, rows, dtype=info.dtype, endpoint=True)
    return found


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    events = draw(
        columns(
            "name", "lane", "kind", "begin_ns", "duration_ns", "correlation", "sequence", "forward_lane", "bytes",
            name=np.int32, lane=np.int32, kind=np.int8, forward_lane=np.int32,
        )
    )  # fmt: skip
    groups = st.builds(ProcessGroup, name=WORDS, size=st.integers(0, 9), ranks=st.tuples(st.integers(0, 9)))
    return Trace(
        rank=draw(st.integers(0, 99)),
        world_size=draw(st.integers(0, 99)),
        format=draw(WORDS),
        names=tuple(draw(st.lists(WORDS, max_size=5))),
        lanes=tuple(
            draw(
                st.lists(
                    st.builds(Lane, device=st.integers(-1, 8), number=st.integers(-(2**62), 2**62), name=WORDS),
                    max_size=4,
                )
            )
        )
        if draw(st.booleans())
        else (),
        steps=TraceSteps(**draw(columns("number", "begin_ns", "end_ns"))),
        collectives=Collectives(
            **draw(
                columns("event", "call", "kind", "group", "in_bytes", "out_bytes", "sequence", "peer", kind=np.int8)
            ),
            groups=tuple(draw(st.lists(groups, max_size=3))),
        ),
        syncs=SyncRecords(
            **draw(columns("kind", "correlation", "lane", "awaited_lane", "awaited_correlation", kind=np.int8))
        ),
        memory=MemorySamples(**draw(columns("time_ns", "device", "allocated_bytes"))),
        dependencies=np.arange(2 * draw(ROWS), dtype=np.int64).reshape(-1, 2),
        timed=draw(st.booleans()),
        devices=tuple(draw(st.lists(WORDS, max_size=2))),
        report=TraceReport(counts=draw(st.dictionaries(WORDS, st.integers(0, 2**60))), warnings=(draw(WORDS),)),
        **events,
    )


KEY = ArtefactKey(content_sha256="ab" * 32, reader="tests", reader_version="1/..", rank=-1, world_size=0)


@settings(max_examples=24, deadline=None)
@given(st.lists(traces(), min_size=1, max_size=3), st.data())
def test_a_trace_comes_back_or_its_file_is_dropped(given_traces: list[Trace], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "artefacts")
        TraceArtefacts(root).put(KEY, given_traces)
        found = TraceArtefacts(root).get(KEY)
        assert found is not None
        for one, other in zip(found, given_traces, strict=True):
            for name, column in columns_of(other).items():
                kept = columns_of(one)[name]
                assert (kept.dtype, kept.shape) == (column.dtype, column.shape)
                assert kept.tobytes() == column.tobytes()
                assert not kept.size or not kept.flags.writeable
            for name in ("rank", "world_size", "format", "names", "lanes", "timed", "devices", "report"):
                assert getattr(one, name) == getattr(other, name)
            assert one.collectives.groups == other.collectives.groups
        (path,) = root.glob("*/*/*")
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole) - 1))
        path.write_bytes(whole[:cut])
        with capture_logs():
            assert TraceArtefacts(root).get(KEY) is None
        assert not path.exists()

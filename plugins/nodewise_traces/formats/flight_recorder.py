"""PyTorch's flight recorder: the last exchanges of a rank, as JSON or as the pickle that the watchdog dumps.

Fields are those of PyTorch's FlightRecorder (versions 2.x of its dumps):
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO, Final

from nodewise.plugin import CollectiveKind, EventKind, ProcessGroup, Trace, TraceSource
from nodewise_traces.events.exchange_arguments import Exchange, kind_of_name, ranks_of, tensor_bytes
from nodewise_traces.events.header import header_of
from nodewise_traces.events.names import public_name
from nodewise_traces.events.rows import Rows
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.decode import starts_json
from nodewise_traces.scanning.numbers import integer_or, small_or
from nodewise_traces.scanning.plain_pickle import PickleError, is_pickle, load_pickle
from nodewise_traces.scanning.rewound import Rewound
from nodewise_traces.scanning.stream import ChromeStream, Source

__all__ = ["FlightRecorderReader"]

NAME: Final = "flight-recorder"
_MARKS: Final = (b"profiling_name", b"time_created_ns", b"collective_seq_id", b"pg_config", b"pg_status")
_LARGEST_PICKLE_BYTES: Final = 1 << 28
"""A ring buffer of 2,000 exchanges, the default, has a megabyte; with stacks some ten."""
_PEER: Final = re.compile(r"\s*(\d+)\s*(->|<-)\s*(\d+)$")
_MISSING: Final = (
    "no exchange in the dump is complete; set TORCH_FR_BUFFER_SIZE (older: TORCH_NCCL_TRACE_BUFFER_SIZE) to 2000 "
    "before the job starts"
)
_DEFAULT_GROUP: Final = "default_pg"


class FlightRecorderReader:
    """Reads dumps of the flight recorder: exchanges only, with the times that the host's watchdog observed."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A document, or a pickle of a dictionary, with the recorder's fields."""
        del source
        marks = sum(mark in head for mark in _MARKS)
        return 0.9 if marks >= 2 and (starts_json(head) or is_pickle(head)) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the exchanges of one rank. See TraceReader."""
        first = stream.read(1)
        whole = Rewound(first, stream)
        rows = Rows()
        if first == b"\x80":
            document = _unpickle(whole, source)
            entries: Iterable[Any] = document.get("entries") or ()
            if not isinstance(entries, list | tuple):
                raise unusable_error(
                    source, "entries must be a list of exchanges, as torch's _dump_nccl_trace writes it"
                )
            members: Mapping[str, Any] = document
            states = [_take(entry, rows) for entry in entries]
        else:
            scanner = ChromeStream(whole, events_key="entries")
            states = [_take(entry, rows) for entry in _events(scanner)]
            members = scanner.members
            rows.table.counts.update({key: scanner.counts[key] for key in ("malformed", "truncated")})
        unfinished = [text for text in states if text]
        groups = list(_groups(members.get("pg_config")))
        for group in groups:
            rows.table.groups.learn(group)
        counts = rows.table.counts
        counts["exchanges_alone"] = 1
        counts["collectives_unfinished"] = len(unfinished)
        header = header_of({"distributedInfo": {"rank": members.get("rank"), "world_size": _world(members)}}, source)
        warnings = [
            ("a flight recorder records exchanges only, with the times at which the host's watchdog observed them")
        ]
        if unfinished:
            warnings.append(
                f"{len(unfinished)} exchanges are not complete, the first: {unfinished[0]}; the others wait for the "
                "rank with the lowest sequence numbers"
            )
        if counts["durations_inexact"]:
            warnings.append(
                f"{counts['durations_inexact']} exchanges state no duration: the times between the watchdog's "
                "observations are used; set TORCH_NCCL_ENABLE_TIMING=1 to record durations"
            )
        header = replace(header, warnings=(*header.warnings, *warnings))
        return [rows.trace(header, source, NAME, missing=_missing(unfinished))]


def _missing(unfinished: list[str]) -> str:
    return f"{_MISSING}; the first that is not: {unfinished[0]}" if unfinished else _MISSING


def _unpickle(stream: Source, source: TraceSource) -> Mapping[str, Any]:
    parts: list[bytes] = []
    left = _LARGEST_PICKLE_BYTES + 1
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if not left:
        raise unusable_error(
            source, f"a flight recorder's pickle is at most {_LARGEST_PICKLE_BYTES >> 20} MiB; dump it as JSON"
        )
    try:
        value = load_pickle(b"".join(parts))
    except PickleError as error:
        raise unusable_error(source, str(error)) from None
    if not isinstance(value, dict):
        raise unusable_error(
            source, "the pickle must hold a dictionary with entries, as torch's _dump_nccl_trace writes it"
        )
    return value


def _events(document: ChromeStream) -> Iterator[dict[str, Any]]:
    for batch in document.batches():
        for row in range(len(batch.rows)):
            yield batch.event(row)


def _take(entry: Any, rows: Rows) -> str:
    """Add an exchange; one that is not complete is described instead."""
    name = entry.get("profiling_name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        rows.table.counts["malformed"] += 1
        return ""
    label = entry.get("process_group")
    group = str(label[0]) if isinstance(label, list | tuple) and label else str(entry.get("pg_id", ""))
    number = integer_or(entry.get("p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id"), -1)
    start_ns = integer_or(entry.get("time_discovered_started_ns"), 0)
    completed = integer_or(entry.get("time_discovered_completed_ns"), 0)
    duration = _nanoseconds(entry.get("duration_ms"))
    if entry.get("state") != "completed" and duration < 0 and not completed:
        state = "started" if start_ns else str(entry.get("state", "scheduled"))[:40]
        return f"{public_name(name)}, number {number} of group {public_name(group)}, is {state}"
    begin = start_ns or completed or integer_or(entry.get("time_created_ns"), 0)
    if duration < 0:
        rows.table.counts["durations_inexact"] += 1
        duration = max(completed - begin, 0)
    rows.add(
        name,
        rows.lane(0, small_or(entry.get("pg_id"), 0)),
        EventKind.KERNEL,
        begin,
        duration,
        exchange=_exchange(name, group, number, entry),
    )
    return ""


def _nanoseconds(milliseconds: Any) -> int:
    """-1 = not stated."""
    if not isinstance(milliseconds, int | float) or not 0 <= milliseconds < 1e12:
        return -1
    return round(milliseconds * 1e6)


def _exchange(name: str, group: str, number: int, entry: Mapping[str, Any]) -> Exchange:
    match = _PEER.search(name)
    kind = kind_of_name(name)
    # "nccl:send 0->1" on rank 0, "nccl:recv 1<-0" on rank 1: the other one stands last.
    peer = int(match.group(3)[:9]) if match else -1
    between_two = kind in {CollectiveKind.SEND, CollectiveKind.RECEIVE}
    return Exchange(
        kind=kind,
        in_bytes=tensor_bytes(entry.get("input_sizes"), entry.get("input_dtypes")),
        out_bytes=tensor_bytes(entry.get("output_sizes"), entry.get("output_dtypes")),
        group=group,
        sequence=-1 if between_two else number,
        peer=peer,
        is_stated=True,
    )


def _groups(config: Any) -> Iterator[ProcessGroup]:
    """Groups by the names that entries give them."""
    for key, entry in config.items() if isinstance(config, dict) else ():
        if isinstance(entry, dict):
            ranks = ranks_of(entry.get("ranks"))
            yield ProcessGroup(name=str(entry.get("name", key)), size=len(ranks), ranks=ranks)


def _world(members: Mapping[str, Any]) -> int:
    """As stated, else the size of the group of all ranks."""
    config = members.get("pg_config")
    sizes = [
        len(ranks_of(entry.get("ranks")))
        for entry in (config.values() if isinstance(config, dict) else ())
        if isinstance(entry, dict) and entry.get("desc") == _DEFAULT_GROUP
    ]
    return small_or(members.get("world_size"), max(sizes, default=0))

"""Times of steps on the wire, and the labels of a profile by which alarms and requests to record are told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.step_times import STEP_PARTS, StepsDiagnosis, StepTimes
from nodewise.mapper.mapping import to_message
from nodewise.mapper.reading import Reader
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["ALARM", "alarm_label", "read_report", "read_since", "recording_of", "write_steps"]

ALARM: Final = "nodewise.alarm"
"""The label of a profile whose job is slow: slowdowns that last, the newest first, separated by "; "."""
RECORD: Final = "nodewise.record"
"""The label of a profile whose ranks are asked to record: "ID STEPS", or "ID STEPS RANK,RANK,..."."""

MOST_WINDOWS: Final = 1000
MOST_RANK: Final = 1 << 20
LATEST_S: Final = 1e12
LONGEST_S: Final = 1e7
MOST_RECORDED: Final = 1000
_LONGEST_LABEL: Final = 128
_RECORD: Final = re.compile(r"([A-Za-z0-9-]{1,40}) ([1-9]\d{0,3})(?: (\d{1,7}(?:,\d{1,7})*))?")
_ALONE: Final = ("trace_sha256s", "steps", "trace_mapping")
"""Fields that say something of traces."""


def read_report(message: pb.ReportStepsRequest) -> StepTimes:
    """The windows of one rank.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; LIMIT_EXCEEDED for too many windows.
    """
    reader, windows = Reader(), message.windows
    reader.identifier(message.profile_id, "profile_id")
    count = len(windows.first_steps)
    if count > MOST_WINDOWS:
        raise NodewiseError(
            Reason.LIMIT_EXCEEDED,
            f"windows must be at most {MOST_WINDOWS}, found {count}",
            {"limit": "windows", "value": str(MOST_WINDOWS)},
        )
    if not count:
        reader.wrong("windows.first_steps", "must hold at least one window")
    rank = reader.whole(message.rank, "rank", most=MOST_RANK)
    reader.whole(message.world_size, "world_size", least=rank + 1, most=MOST_RANK + 1)
    node = reader.whole(message.node, "node", most=MOST_RANK) if message.HasField("node") else -1
    first = reader.ints(windows.first_steps, "windows.first_steps", count, default=None, most=2**53)
    steps = reader.ints(windows.steps_counts, "windows.steps_counts", count, default=None, least=1, most=10**6)
    begin_s = reader.floats(
        windows.begin_unix_seconds, "windows.begin_unix_seconds", count, default=None, most=LATEST_S
    )
    step_s = reader.floats(windows.step_seconds, "windows.step_seconds", count, default=None, above=0.0, most=LONGEST_S)
    parts = {
        f"{name}_s": reader.floats(
            getattr(windows, f"{name}_seconds"), f"windows.{name}_seconds", count, default=-1.0, most=LONGEST_S
        )
        for name in STEP_PARTS
    }
    reader.finish()
    misplaced = np.flatnonzero(first % steps)
    if len(misplaced):
        place = int(misplaced[0])
        reader.wrong(f"windows.first_steps[{place}]", f"must be a multiple of steps_counts[{place}] = {steps[place]}")
    reader.finish()
    return StepTimes(
        rank=np.full(count, rank),
        node=np.full(count, node),
        first_step=first,
        steps=steps,
        begin_s=begin_s,
        step_s=step_s,
        **parts,
    )


def read_since(message: pb.DiagnoseRequest) -> tuple[str, float]:
    """Of a question about the times of steps: which profile, and of how many seconds.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    since_s = float(reader.stated(message, "")["since_s"])
    if message.profile.WhichOneof("source") != "profile_id":
        reader.wrong("profile.profile_id", "must name a stored profile where since_seconds is given")
    else:
        reader.identifier(message.profile.profile_id, "profile.profile_id")
    for name in _ALONE:
        if getattr(message, name):
            reader.wrong(name, "must be empty where since_seconds is given: no traces are read")
    reader.finish()
    return message.profile.profile_id, since_s


def write_steps(found: StepsDiagnosis) -> pb.StepsDiagnosis:
    """What the times of steps say."""
    return to_message(found, pb.StepsDiagnosis)


def recording_of(labels: Mapping[str, str]) -> pb.RecordingRequest | None:
    """What a profile's label asks recorders for; None = nothing that can be read."""
    matched = _RECORD.fullmatch(labels.get(RECORD, ""))
    if matched is None:
        return None
    request_id, steps, ranks = matched.groups()
    return pb.RecordingRequest(
        request_id=request_id,
        steps_count=min(int(steps), MOST_RECORDED),
        ranks=[int(rank) for rank in ranks.split(",")] if ranks else [],
    )


def alarm_label(found: pb.StepsDiagnosis, before: str) -> str:
    """The text of the label; an alarm that was in it already keeps its text. Empty = nothing is slow."""
    told = {entry.partition(" since ")[0]: entry for entry in before.split("; ") if entry}
    entries: list[str] = []
    for alarm in found.alarms:
        if alarm.HasField("end_unix_seconds"):
            continue
        whom = alarm.kind
        if alarm.kind == "rank":
            whom += f" {','.join(map(str, alarm.ranks))}"
        elif alarm.kind == "node":
            whom += f" {alarm.node}"
        begin = datetime.fromtimestamp(alarm.begin_unix_seconds, UTC).isoformat(timespec="seconds")
        entry = told.get(whom, f"{whom} since {begin}")
        if entry not in entries and len("; ".join([*entries, entry])) <= _LONGEST_LABEL:
            entries.append(entry)
    return "; ".join(entries)

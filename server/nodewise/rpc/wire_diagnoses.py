"""Reads questions about replays and diagnoses, and writes their results."""

from __future__ import annotations

import math
import re
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from nodewise.diagnosis.results import DiagnosisResult, ReplayResult, TraceQuestion
from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Change, ChangeKind, EdgeCounts, ReplayQuestion
from nodewise.domain.step_times import STEP_PARTS, StepTimes
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader
from nodewise.profiles.reading import LoadedTrace
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = [
    "read_diagnosis",
    "read_replay",
    "read_report",
    "read_since",
    "read_trace_question",
    "recording_of",
    "write_diagnosis",
    "write_replay",
]

MOST_CHANGES: Final = 64
MOST_STEPS: Final = 10_000
MOST_ORDINAL: Final = 1_000_000
MOST_RANK: Final = 1 << 20
MOST_TRACES: Final = 1 << 16
MOST_MAPPED: Final = 256
LONGEST_DELAY_S: Final = 1e6
MOST_RATIO: Final = 1e6
MOST_BYTES: Final = 1e15
LONGEST_PATTERN: Final = 256
MOST_REPEATS: Final = 2
"""Most repetitions in a pattern: the time of a failing match grows with the name's length to this power plus one."""
EVENT_KINDS: Final = ("operator", "call", "kernel", "copy", "fill", "gap", "collective")

RECORD: Final = "nodewise.record"
"""The label of a profile that requests recordings of its ranks: "ID STEPS", or "ID STEPS RANK,RANK,..."."""
MOST_WINDOWS: Final = 1000
LATEST_S: Final = 1e12
LONGEST_S: Final = 1e7
MOST_RECORDED: Final = 1000
_RECORD: Final = re.compile(r"([A-Za-z0-9-]{1,40}) ([1-9]\d{0,3})(?: (\d{1,7}(?:,\d{1,7})*))?")
_ALONE: Final = ("trace_sha256s", "steps", "trace_mapping")
"""Fields about traces."""
_ESCAPED: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Parts of a pattern that match a single character: escapes and sets."""
_BOUNDS: Final = {
    ChangeKind.SCALE: (0.0, MOST_RATIO),
    ChangeKind.DELAY: (0.0, LONGEST_DELAY_S),
    ChangeKind.LINK_BANDWIDTH: (1.0 / MOST_RATIO, MOST_RATIO),
    ChangeKind.LINK_LATENCY: (0.0, MOST_RATIO),
    ChangeKind.WORLD_SIZE: (1.0, float(MOST_RANK)),
    ChangeKind.BUCKET_BYTES: (1.0, MOST_BYTES),
}
_KINDS: Final = {pb.ReplayChangeKind.Value(f"REPLAY_CHANGE_KIND_{kind.name}"): kind for kind in ChangeKind}

READER: Final = "READER_WARNING"
DIAGNOSER: Final = "DIAGNOSER_WARNING"
"""Reasons of warnings whose texts come from readers and diagnosers."""


def read_trace_question(message: pb.ReplayRequest | pb.DiagnoseRequest) -> tuple[TraceQuestion, float]:
    """The traces and the diagnoser, without the job's profile, and the most seconds that the call may take.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    reader.at_most(message.trace_sha256s, "trace_sha256s", MOST_TRACES, "hashes")
    reader.at_most(message.trace_mapping, "trace_mapping", MOST_MAPPED, "entries")
    for key, value in message.trace_mapping.items():
        reader.text(key, "trace_mapping")
        reader.text(value, f"trace_mapping[{key[:LONGEST_PATTERN]!r}]")
    budget_s = reader.read_scalars(message, "").get("budget_s", math.inf)
    reader.finish()
    trace_question = TraceQuestion(
        profile=Profile(),
        traces=tuple(message.trace_sha256s),
        diagnoser=message.diagnoser,
        mapping=tuple(sorted(message.trace_mapping.items())),
    )
    return trace_question, budget_s


def read_replay(message: pb.ReplayRequest) -> ReplayQuestion:
    """The question of a replay.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    reader.at_most(message.changes, "changes", MOST_CHANGES)
    question = from_message(
        message,
        ReplayQuestion,
        "",
        reader,
        fit_steps=_steps(message.fit_steps, "fit_steps", reader),
        test_steps=_steps(message.test_steps, "test_steps", reader),
        changes=tuple(
            _change(change, f"changes[{place}]", reader) for place, change in enumerate(message.changes[:MOST_CHANGES])
        ),
    )
    reader.finish()
    return question


def read_diagnosis(message: pb.DiagnoseRequest) -> DiagnosisQuestion:
    """The question of a diagnosis.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    question = from_message(message, DiagnosisQuestion, "", reader, steps=_steps(message.steps, "steps", reader))
    reader.finish()
    return question


def _steps(values: Sequence[int], path: str, reader: Reader) -> tuple[int, ...]:
    if not reader.at_most(values, path, MOST_STEPS, "steps"):
        return ()
    steps = {reader.whole(value, f"{path}[{place}]", least=1, most=MOST_ORDINAL) for place, value in enumerate(values)}
    return tuple(sorted(steps))


def _change(message: pb.ReplayChange, path: str, reader: Reader) -> Change:
    kind = _KINDS.get(message.kind)
    if kind is None:
        reader.wrong(f"{path}.kind", "must be given")
        kind = ChangeKind.SCALE
    least, most = _BOUNDS[kind]
    value = reader.number(message.value, f"{path}.value", least=least, most=most)
    if kind is ChangeKind.WORLD_SIZE and math.isfinite(value) and value != int(value):
        reader.wrong(f"{path}.value", f"must be a whole number of ranks, found {value}")
    for place, name in enumerate(message.event_kinds):
        if name not in EVENT_KINDS:
            reader.wrong(f"{path}.event_kinds[{place}]", f"must be one of {', '.join(EVENT_KINDS)}")
    ranks = {reader.whole(rank, f"{path}.ranks[{place}]", most=MOST_RANK) for place, rank in enumerate(message.ranks)}
    problem = _pattern_problem(message.name_pattern)
    if problem is not None:
        reader.wrong(f"{path}.name_pattern", problem)
    names = tuple(dict.fromkeys(message.event_kinds))
    return from_message(
        message, Change, "", reader, kind=kind, value=value, event_kinds=names, ranks=tuple(sorted(ranks))
    )


def _pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; matching some patterns would take too long, and nothing could stop it."""
    if len(pattern) > LONGEST_PATTERN:
        return f"must be at most {LONGEST_PATTERN} characters, found {len(pattern)}"
    bare = _ESCAPED.sub(".", pattern)
    if re.search(r"\)[*+?{]|\(\?(?!:)", bare):
        return "must have no repeated groups, and no groups other than (...) and (?:...)"
    if re.search(r"\\[1-9]", pattern):
        return "must have no backreferences"
    repeats = len(re.findall(r"[*+]|\{\d*,\d*\}", bare))
    if repeats > MOST_REPEATS:
        return f"must have at most {MOST_REPEATS} of * + and {{n,m}}, found {repeats}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"must be a regular expression ({error})"
    return None


def write_replay(result: ReplayResult) -> pb.ReplayResult:
    """The result of a replay, without its pieces."""
    replay = result.replay
    has_clock = replay.clock_uncertainty_s >= 0.0
    return to_message(
        replay,
        pb.ReplayResult,
        edges=_edges(replay.edges),
        clock_uncertainty_seconds=np.where(has_clock, replay.clock_uncertainty_s, 0.0),
        clock_tied=None if has_clock.all() else has_clock,
        warnings=_notices(DIAGNOSER, replay.warnings),
        basis=_basis(result),
    )


def write_diagnosis(result: DiagnosisResult) -> pb.DiagnosisResult:
    """The result of a diagnosis, without its pieces."""
    diagnosis = result.diagnosis
    return to_message(
        diagnosis,
        pb.DiagnosisResult,
        rank_shares=diagnosis.ranks,
        steps=None,
        edges=_edges(diagnosis.edges),
        warnings=_notices(DIAGNOSER, diagnosis.warnings),
        basis=_basis(result),
    )


def _edges(edges: Mapping[str, EdgeCounts]) -> Iterable[pb.EdgeCounts]:
    return [to_message(counts, pb.EdgeCounts, kind=kind) for kind, counts in edges.items()]


def _notices(reason: str, warnings: Iterable[str]) -> Iterable[Notice]:
    return [Notice(reason, text) for text in warnings]


def _basis(result: ReplayResult | DiagnosisResult) -> pb.DiagnosisBasis:
    return to_message(
        result.evidence,
        pb.DiagnosisBasis,
        diagnoser=result.diagnoser,
        diagnoser_version=result.diagnoser_version,
        profile_id=result.profile.profile_id,
        profile_revision=result.profile.revision or None,
        traces=[_read_trace(each) for each in result.evidence.loaded],
        peak_memory_bytes=_peak_memory_bytes(),
    )


def _read_trace(loaded_trace: LoadedTrace) -> pb.ReadTrace:
    trace = loaded_trace.trace
    return to_message(
        loaded_trace,
        pb.ReadTrace,
        rank=trace.rank,
        world_size=trace.world_size or None,
        events_count=trace.recorded_events,
        steps_count=len(trace.steps),
        counts=trace.report.counts,
        warnings=_notices(READER, trace.report.warnings),
    )


def _peak_memory_bytes() -> int:
    """Peak memory of this process."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


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
            f"windows: must hold at most {MOST_WINDOWS}, found {count}; send several reports",
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
    wrong = np.flatnonzero(first % steps)
    if len(wrong):
        place = int(wrong[0])
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
    """The profile, and the seconds back, of a question about step times.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    since_s = float(reader.read_scalars(message, "")["since_s"])
    if message.profile.WhichOneof("source") != "profile_id":
        reader.wrong("profile.profile_id", "must name a stored profile with since_seconds")
    else:
        reader.identifier(message.profile.profile_id, "profile.profile_id")
    for name in _ALONE:
        if getattr(message, name):
            reader.wrong(name, "must be empty with since_seconds, which reads no traces")
    reader.finish()
    return message.profile.profile_id, since_s


def recording_of(labels: Mapping[str, str]) -> pb.RecordingRequest | None:
    """The recording that a profile's label requests; None = there is no valid label."""
    match = _RECORD.fullmatch(labels.get(RECORD, ""))
    if match is None:
        return None
    request_id, steps, ranks = match.groups()
    return pb.RecordingRequest(
        request_id=request_id,
        steps_count=min(int(steps), MOST_RECORDED),
        ranks=[int(rank) for rank in ranks.split(",")] if ranks else [],
    )

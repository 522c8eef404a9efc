"""Replays and diagnoses on the wire: questions in, answers out."""

from __future__ import annotations

import math
import re
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nodewise.diagnosis.results import Diagnosed, Evidence, Replayed, TraceQuestion
from nodewise.domain.diagnosis import Bottleneck, DiagnosisQuestion, RankShares, Straggler, Strategy
from nodewise.domain.profile import Profile
from nodewise.domain.replay import Change, ChangeKind, EdgeCounts, ReplayedStep, ReplayQuestion
from nodewise.rpc.reading import Reader
from nodewise_protos.v1 import diagnosis_service_pb2 as pb

__all__ = ["read_asked", "read_diagnosis", "read_replay", "write_diagnosis", "write_replay"]

MOST_CHANGES: Final = 64
MOST_STEPS: Final = 10_000
MOST_ORDINAL: Final = 1_000_000
MOST_RANK: Final = 1 << 20
MOST_ANSWERS: Final = 1000
USUAL_ANSWERS: Final = 20
MOST_TRACES: Final = 1 << 16
MOST_MAPPED: Final = 256
LONGEST_BUDGET_S: Final = 1e7
LONGEST_DELAY_S: Final = 1e6
MOST_RATIO: Final = 1e6
MOST_BYTES: Final = 1e15
LONGEST_PATTERN: Final = 256
MOST_REPEATS: Final = 2
"""Of a pattern: what it takes to match a name that almost fits grows with its length to this power, and one."""
EVENT_KINDS: Final = ("operator", "call", "kernel", "copy", "fill", "gap", "collective")

_ESCAPED: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What stands for itself or for a single character: escapes and sets."""
_BOUNDS: Final = {
    ChangeKind.SCALE: (0.0, MOST_RATIO),
    ChangeKind.DELAY: (0.0, LONGEST_DELAY_S),
    ChangeKind.LINK_BANDWIDTH: (1.0 / MOST_RATIO, MOST_RATIO),
    ChangeKind.LINK_LATENCY: (0.0, MOST_RATIO),
    ChangeKind.WORLD_SIZE: (1.0, float(MOST_RANK)),
    ChangeKind.BUCKET_BYTES: (1.0, MOST_BYTES),
}
_KINDS: Final = {
    pb.REPLAY_CHANGE_KIND_SCALE: ChangeKind.SCALE,
    pb.REPLAY_CHANGE_KIND_DELAY: ChangeKind.DELAY,
    pb.REPLAY_CHANGE_KIND_LINK_BANDWIDTH: ChangeKind.LINK_BANDWIDTH,
    pb.REPLAY_CHANGE_KIND_LINK_LATENCY: ChangeKind.LINK_LATENCY,
    pb.REPLAY_CHANGE_KIND_WORLD_SIZE: ChangeKind.WORLD_SIZE,
    pb.REPLAY_CHANGE_KIND_BUCKET_BYTES: ChangeKind.BUCKET_BYTES,
}
_NUMBERS: Final = {kind: number for number, kind in _KINDS.items()}


def read_asked(message: pb.ReplayRequest | pb.DiagnoseRequest, profile: Profile) -> tuple[TraceQuestion, float]:
    """Of which job from which traces and by whom, and the most seconds that it may take.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    if len(message.trace_sha256s) > MOST_TRACES:
        reader.wrong("trace_sha256s", f"must hold at most {MOST_TRACES} hashes, found {len(message.trace_sha256s)}")
    reader.text(message.diagnoser, "diagnoser", 63)
    if len(message.trace_mapping) > MOST_MAPPED:
        reader.wrong("trace_mapping", f"must hold at most {MOST_MAPPED} entries, found {len(message.trace_mapping)}")
    for key, value in message.trace_mapping.items():
        reader.text(key, "trace_mapping")
        reader.text(value, f"trace_mapping[{key[:LONGEST_PATTERN]!r}]")
    budget_s = reader.number(message.budget_seconds, "budget_seconds", most=LONGEST_BUDGET_S) or math.inf
    reader.finish()
    asked = TraceQuestion(
        profile=profile,
        traces=tuple(message.trace_sha256s),
        diagnoser=message.diagnoser,
        mapping=tuple(sorted(message.trace_mapping.items())),
    )
    return asked, budget_s


def read_replay(message: pb.ReplayRequest) -> ReplayQuestion:
    """Which steps to predict, from which.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    if len(message.changes) > MOST_CHANGES:
        reader.wrong("changes", f"must hold at most {MOST_CHANGES}, found {len(message.changes)}")
    question = ReplayQuestion(
        fit_steps=_steps(message.fit_steps, "fit_steps", reader),
        test_steps=_steps(message.test_steps, "test_steps", reader),
        in_sample=message.in_sample,
        changes=tuple(
            _change(change, f"changes[{place}]", reader) for place, change in enumerate(message.changes[:MOST_CHANGES])
        ),
        timeline=message.timeline,
    )
    reader.finish()
    return question


def read_diagnosis(message: pb.DiagnoseRequest) -> DiagnosisQuestion:
    """What to look for.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()

    def most(name: str) -> int:
        found = reader.whole(getattr(message, name), name, least=-(2**31), most=MOST_ANSWERS)
        return max(found or USUAL_ANSWERS, 0)

    ratio = message.largest_batch_ratio
    if ratio:
        reader.number(ratio, "largest_batch_ratio", least=1.0, most=MOST_RATIO)
    question = DiagnosisQuestion(
        steps=_steps(message.steps, "steps", reader),
        bottlenecks=most("bottlenecks_count"),
        strategies=most("strategies_count"),
        largest_batch_factor=ratio or 1.0,
        timeline=message.timeline,
    )
    reader.finish()
    return question


def _steps(values: Sequence[int], path: str, reader: Reader) -> tuple[int, ...]:
    if len(values) > MOST_STEPS:
        reader.wrong(path, f"must hold at most {MOST_STEPS} steps, found {len(values)}")
        return ()
    found = {reader.whole(value, f"{path}[{place}]", least=1, most=MOST_ORDINAL) for place, value in enumerate(values)}
    return tuple(sorted(found))


def _change(message: pb.ReplayChange, path: str, reader: Reader) -> Change:
    kind = _KINDS.get(message.kind)
    if kind is None:
        reader.wrong(f"{path}.kind", "must be stated")
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
    return Change(
        kind=kind,
        value=value,
        name_pattern=message.name_pattern,
        event_kinds=tuple(dict.fromkeys(message.event_kinds)),
        ranks=tuple(sorted(ranks)),
    )


def _pattern_problem(pattern: str) -> str | None:
    """Why a pattern is not taken: some take longer than any deadline to match, and nothing ends that."""
    if len(pattern) > LONGEST_PATTERN:
        return f"must be at most {LONGEST_PATTERN} characters, found {len(pattern)}"
    bare = _ESCAPED.sub(".", pattern)
    if re.search(r"\)[*+?{]|\(\?(?!:)", bare):
        return "must hold no repeated groups, and no groups of another kind than (...) and (?:...)"
    if re.search(r"\\[1-9]", pattern):
        return "must hold no references back"
    repeats = len(re.findall(r"[*+]|\{\d*,\d*\}", bare))
    if repeats > MOST_REPEATS:
        return f"must hold at most {MOST_REPEATS} of * + and {{n,m}}, found {repeats}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"must be a regular expression ({error})"
    return None


def write_replay(found: Replayed) -> pb.ReplayResult:
    """The answer of a replay, without its pieces."""
    replay = found.replay
    message = pb.ReplayResult(
        steps=map(_step, replay.steps),
        in_sample=replay.in_sample,
        nodes_count=replay.nodes,
        edges=_edges(replay.edges),
        clock_offset_seconds=replay.clock_offset_s,
        clock_uncertainty_seconds=replay.clock_uncertainty_s,
        build_seconds=replay.build_s,
        replay_seconds=replay.replay_s,
        counts=dict(replay.counts),
        warnings=replay.warnings,
        basis=_basis(found, found.evidence),
    )
    for field, value in (
        ("host_error_ratio", replay.host_error),
        ("device_error_ratio", replay.device_error),
        ("persistence_error_ratio", replay.persistence_error),
        ("kernel_start_p50_error_seconds", replay.kernel_start_p50_error_s),
        ("kernel_start_p95_error_seconds", replay.kernel_start_p95_error_s),
    ):
        if value is not None:
            setattr(message, field, value)
    return message


def _step(step: ReplayedStep) -> pb.ReplayedStep:
    return pb.ReplayedStep(
        step_ordinal=step.step,
        measured_host_seconds=step.measured_host_s or None,
        predicted_host_seconds=step.predicted_host_s or None,
        measured_device_seconds=step.measured_device_s or None,
        predicted_device_seconds=step.predicted_device_s or None,
        rank_measured_host_seconds=step.rank_measured_host_s,
        rank_predicted_host_seconds=step.rank_predicted_host_s,
        lower_host_seconds=step.lower_host_s or None,
        upper_host_seconds=step.upper_host_s or None,
    )


def write_diagnosis(found: Diagnosed) -> pb.DiagnosisResult:
    """The answer of a diagnosis, without its pieces."""
    diagnosis = found.diagnosis
    return pb.DiagnosisResult(
        bottlenecks=map(_bottleneck, diagnosis.bottlenecks),
        strategies=map(_strategy, diagnosis.strategies),
        stragglers=map(_straggler, diagnosis.stragglers),
        bound_by=diagnosis.bound_by,
        verdict=diagnosis.verdict,
        step_seconds=diagnosis.step_s,
        persistence_seconds=diagnosis.persistence_s,
        exposed_communication_seconds=diagnosis.exposed_communication_s,
        rank_shares=map(_shares, diagnosis.ranks),
        edges=_edges(diagnosis.edges),
        warnings=diagnosis.warnings,
        complete=diagnosis.complete,
        basis=_basis(found, found.evidence),
    )


def _bottleneck(found: Bottleneck) -> pb.Bottleneck:
    return pb.Bottleneck(
        kind=found.kind,
        what=found.what,
        rank=found.rank,
        seconds=found.seconds,
        gain_if_removed_seconds=found.gain_if_removed_s,
        matters=found.matters,
        why=found.why,
    )


def _straggler(found: Straggler) -> pb.Straggler:
    return pb.Straggler(
        collective=found.collective,
        ranks=found.ranks,
        margin_seconds=found.margin_s,
        imposed_wait_seconds=found.imposed_wait_s,
        transfer_seconds=found.transfer_s,
    )


def _strategy(found: Strategy) -> pb.Strategy:
    return pb.Strategy(
        name=found.name,
        predicted_step_seconds=found.predicted_step_s,
        speedup_ratio=found.speedup,
        lower_step_seconds=found.lower_step_s or None,
        upper_step_seconds=found.upper_step_s or None,
        parts=found.parts,
        changes=[
            pb.ReplayChange(
                kind=_NUMBERS[change.kind],
                value=change.value,
                name_pattern=change.name_pattern,
                event_kinds=change.event_kinds,
                ranks=change.ranks,
            )
            for change in found.changes
        ],
        rests_on=found.rests_on,
        effort=found.effort,
    )


def _shares(found: RankShares) -> pb.RankShares:
    return pb.RankShares(
        rank=found.rank,
        step_seconds=found.step_s,
        compute_seconds=found.compute_s,
        communication_seconds=found.communication_s,
        exposed_communication_seconds=found.exposed_communication_s,
        waiting_seconds=found.waiting_s,
        idle_seconds=found.idle_s,
        host_bound_seconds=found.host_bound_s,
        data_loading_seconds=found.data_loading_s,
        memory_high_water_bytes=None if found.memory_high_water_bytes < 0 else found.memory_high_water_bytes,
    )


def _edges(edges: Mapping[str, EdgeCounts]) -> Iterable[pb.EdgeCounts]:
    return [
        pb.EdgeCounts(kind=kind, found_count=counts.found, inferred_count=counts.inferred, missing_count=counts.missing)
        for kind, counts in edges.items()
    ]


def _basis(found: Replayed | Diagnosed, evidence: Evidence) -> pb.DiagnosisBasis:
    return pb.DiagnosisBasis(
        diagnoser=found.diagnoser,
        diagnoser_version=found.diagnoser_version,
        profile_id=found.profile.profile_id,
        profile_revision=found.profile.revision,
        traces=[
            pb.ReadTrace(
                content_sha256=read.content_sha256,
                rank=read.trace.rank,
                world_size=read.trace.world_size,
                reader=read.reader,
                reader_version=read.reader_version,
                events_count=read.trace.recorded_events,
                steps_count=len(read.trace.steps),
                counts=dict(read.trace.report.counts),
                warnings=read.trace.report.warnings,
            )
            for read in evidence.loaded
        ],
        ranks=evidence.ranks,
        world_size=evidence.world_size,
        events_count=evidence.events,
        load_seconds=evidence.load_s,
        peak_memory_bytes=_peak_memory_bytes(),
    )


def _peak_memory_bytes() -> int:
    """Most memory that this process ever held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

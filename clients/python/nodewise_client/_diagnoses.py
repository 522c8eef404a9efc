"""Replays and diagnoses: recorded steps executed again, where their time goes, what would buy it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from nodewise_client._columns import frozen
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._timelines import Pieces, ReplayedCollective, Timeline
from nodewise_protos.v1 import diagnosis_service_pb2 as wire

ChangeWord: TypeAlias = Literal["scale", "delay", "link_bandwidth", "link_latency", "world_size", "bucket_bytes"]

CHANGES: Final[Mapping[str, wire.ReplayChangeKind]] = {
    "scale": wire.REPLAY_CHANGE_KIND_SCALE,
    "delay": wire.REPLAY_CHANGE_KIND_DELAY,
    "link_bandwidth": wire.REPLAY_CHANGE_KIND_LINK_BANDWIDTH,
    "link_latency": wire.REPLAY_CHANGE_KIND_LINK_LATENCY,
    "world_size": wire.REPLAY_CHANGE_KIND_WORLD_SIZE,
    "bucket_bytes": wire.REPLAY_CHANGE_KIND_BUCKET_BYTES,
}
WORDS: Final = {number: word for word, number in CHANGES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChange:
    """One change of a recorded job. Nothing selected = everything that the kind may concern."""

    kind: ChangeWord | str
    value: float
    """scale: durations times this; delay: seconds more each time; link_bandwidth, link_latency: times as much;
    world_size: ranks; bucket_bytes: bytes at which a bucket of gradients closes."""
    name_pattern: str = ""
    """Regular expression that a name must match somewhere."""
    event_kinds: str | Iterable[str] = ()
    """operator, call, kernel, copy, fill, gap (host time between events), collective."""
    ranks: int | Iterable[int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_kinds", frozen(self.event_kinds))
        object.__setattr__(self, "ranks", frozen(self.ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisProgress:
    """How far a replay or a diagnosis is."""

    stage: str
    done: int
    total: int
    """0 = not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedStep:
    """One step, from its begin to its end on the hosts, and to the end of the devices' work; the slowest rank counts.

    Measured times are None where something was changed, devices' times where nothing runs on a device.
    """

    step: int
    """Ordinal in the traces, from 1."""
    measured_host_s: float | None
    predicted_host_s: float | None
    measured_device_s: float | None
    predicted_device_s: float | None
    rank_measured_host_s: tuple[float, ...]
    """By rank in ascending order."""
    rank_predicted_host_s: tuple[float, ...]
    lower_host_s: float | None
    """Least that the hosts' time may be where ranks that were not recorded may change too; None = nothing is open."""
    upper_host_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCounts:
    """Edges of one kind: stated by the traces, inferred from recorded times, known to be missing."""

    found: int
    inferred: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTrace:
    """One trace as the server read it."""

    content_sha256: str
    rank: int
    world_size: int
    """0 = not known."""
    reader: str
    reader_version: str
    events: int
    steps: int
    counts: Mapping[str, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisBasis:
    """What an answer rests on, and what it took."""

    diagnoser: str
    diagnoser_version: str
    profile_id: str
    profile_revision: int
    traces: tuple[ReadTrace, ...]
    """By rank."""
    ranks: tuple[int, ...]
    world_size: int
    """0 = not known."""
    events: int
    load_s: float
    peak_memory_bytes: int
    """Of the server's process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The answer of a replay. Errors are means of |predicted / measured - 1| over the steps tested."""

    steps: tuple[ReplayedStep, ...]
    host_error: float | None
    device_error: float | None
    persistence_error: float | None
    """The same error of predicting each step as the mean of those fitted; None = a single step."""
    kernel_start_p50_error_s: float | None
    kernel_start_p95_error_s: float | None
    in_sample: bool
    """Whether steps were predicted from durations of their own: then errors say nothing of accuracy."""
    nodes: int
    edges: Mapping[str, EdgeCounts]
    clock_offset_s: tuple[float, ...]
    """By `basis.ranks`, against the first."""
    clock_uncertainty_s: tuple[float, ...]
    """-1 = nothing ties that clock to the first one's."""
    collectives: tuple[ReplayedCollective, ...]
    build_s: float
    replay_s: float
    counts: Mapping[str, int]
    warnings: tuple[str, ...]
    basis: DiagnosisBasis
    timeline: Timeline | None = field(repr=False)
    """As executed, where it was asked for."""
    recorded: Timeline | None = field(repr=False)
    """As recorded, on the first rank's clock."""
    raw: wire.ReplayResult = field(repr=False, compare=False)
    """The message as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Something that costs time."""

    kind: str
    what: str
    rank: int | None
    """None = all."""
    seconds: float
    """What it takes in a step."""
    gain_if_removed_s: float
    """How much shorter the replayed step is without it."""
    matters: bool
    """Whether that is more than steps differ by anyway."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Ranks that the others wait for at one exchange of the step; several = a tie."""

    collective: str
    ranks: tuple[int, ...]
    margin_s: float
    imposed_wait_s: float
    """What the others wait in sum."""
    transfer_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A change, or several together, and the step that its replay predicts."""

    name: str
    predicted_step_s: float
    speedup: float
    """Throughput in samples over today's."""
    lower_step_s: float | None
    upper_step_s: float | None
    parts: tuple[str, ...]
    changes: tuple[ReplayChange, ...]
    """The same as changes that `Client.replay` takes, where there are such."""
    rests_on: str
    effort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankShares:
    """Where one rank's mean step goes; what runs on a device is 0 where nothing does."""

    rank: int
    step_s: float
    compute_s: float
    communication_s: float
    exposed_communication_s: float
    waiting_s: float
    idle_s: float
    host_bound_s: float
    data_loading_s: float
    memory_high_water_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisResult:
    """The answer of a diagnosis, most worthwhile first."""

    bottlenecks: tuple[Bottleneck, ...]
    strategies: tuple[Strategy, ...]
    stragglers: tuple[Straggler, ...]
    bound_by: str
    """host, device, network, skew (ranks wait for each other) or loading."""
    verdict: str
    step_s: float
    persistence_s: float
    """Mean absolute difference of a step from the mean of the others."""
    exposed_communication_s: float
    ranks: tuple[RankShares, ...]
    collectives: tuple[ReplayedCollective, ...]
    edges: Mapping[str, EdgeCounts]
    warnings: tuple[str, ...]
    complete: bool
    """False = time was over."""
    basis: DiagnosisBasis
    timeline: Timeline | None = field(repr=False)
    """As executed, where it was asked for."""
    recorded: Timeline | None = field(repr=False)
    """As recorded, where nothing was executed."""
    raw: wire.DiagnosisResult = field(repr=False, compare=False)
    """The message as it came."""


def replay_request(
    profile: str | ProfileContent,
    *,
    fit_steps: Iterable[int],
    test_steps: Iterable[int],
    in_sample: bool,
    changes: Iterable[ReplayChange],
    timeline: bool,
    traces: Iterable[str],
    trace_mapping: Mapping[str, str] | None,
    diagnoser: str,
    budget_s: float,
    minimum_revision: int,
) -> wire.ReplayRequest:
    """Which steps to predict, from which."""
    return wire.ReplayRequest(
        profile=source_to_wire(profile, minimum_revision),
        trace_sha256s=traces,
        trace_mapping=trace_mapping,
        diagnoser=diagnoser,
        fit_steps=fit_steps,
        test_steps=test_steps,
        in_sample=in_sample,
        changes=map(_change_to_wire, changes),
        timeline=timeline,
        budget_seconds=budget_s,
    )


def diagnose_request(
    profile: str | ProfileContent,
    *,
    steps: Iterable[int],
    bottlenecks: int,
    strategies: int,
    largest_batch_factor: float,
    timeline: bool,
    traces: Iterable[str],
    trace_mapping: Mapping[str, str] | None,
    diagnoser: str,
    budget_s: float,
    minimum_revision: int,
) -> wire.DiagnoseRequest:
    """What to look for."""
    return wire.DiagnoseRequest(
        profile=source_to_wire(profile, minimum_revision),
        trace_sha256s=traces,
        trace_mapping=trace_mapping,
        diagnoser=diagnoser,
        steps=steps,
        bottlenecks_count=bottlenecks or -1,
        strategies_count=strategies or -1,
        largest_batch_ratio=largest_batch_factor,
        timeline=timeline,
        budget_seconds=budget_s,
    )


def _change_to_wire(change: ReplayChange) -> wire.ReplayChange:
    if change.kind not in CHANGES:
        raise ValueError(f"a change's kind is one of {', '.join(CHANGES)}, not {change.kind!r}")
    return wire.ReplayChange(
        kind=CHANGES[change.kind],
        value=change.value,
        name_pattern=change.name_pattern,
        event_kinds=frozen(change.event_kinds),
        ranks=frozen(change.ranks),
    )


def diagnosis_progress(response: wire.ReplayResponse | wire.DiagnoseResponse) -> DiagnosisProgress:
    """How far a replay or a diagnosis is."""
    told = response.progress
    return DiagnosisProgress(stage=told.stage, done=told.done_count, total=told.total_count)


def _pieces(responses: Iterable[wire.ReplayResponse] | Iterable[wire.DiagnoseResponse]) -> Pieces:
    pieces = Pieces()
    for response in responses:
        if response.HasField("timeline"):
            pieces.add_timeline(response.timeline)
        elif response.HasField("collectives"):
            pieces.add_collectives(response.collectives)
    return pieces


def replay_result(responses: Sequence[wire.ReplayResponse]) -> ReplayResult:
    """The answer that a last message and the pieces before it hold."""
    message, pieces = responses[-1].result, _pieces(responses)
    return ReplayResult(
        steps=tuple(map(_step, message.steps)),
        host_error=message.host_error_ratio if message.HasField("host_error_ratio") else None,
        device_error=message.device_error_ratio if message.HasField("device_error_ratio") else None,
        persistence_error=(message.persistence_error_ratio if message.HasField("persistence_error_ratio") else None),
        kernel_start_p50_error_s=(
            message.kernel_start_p50_error_seconds if message.HasField("kernel_start_p50_error_seconds") else None
        ),
        kernel_start_p95_error_s=(
            message.kernel_start_p95_error_seconds if message.HasField("kernel_start_p95_error_seconds") else None
        ),
        in_sample=message.in_sample,
        nodes=message.nodes_count,
        edges=_edges(message.edges),
        clock_offset_s=tuple(message.clock_offset_seconds),
        clock_uncertainty_s=tuple(message.clock_uncertainty_seconds),
        collectives=pieces.collectives,
        build_s=message.build_seconds,
        replay_s=message.replay_seconds,
        counts=dict(message.counts),
        warnings=tuple(message.warnings),
        basis=_basis(message.basis),
        timeline=pieces.executed,
        recorded=pieces.recorded,
        raw=message,
    )


def diagnosis_result(responses: Sequence[wire.DiagnoseResponse]) -> DiagnosisResult:
    """The answer that a last message and the pieces before it hold."""
    message, pieces = responses[-1].result, _pieces(responses)
    return DiagnosisResult(
        bottlenecks=tuple(map(_bottleneck, message.bottlenecks)),
        strategies=tuple(map(_strategy, message.strategies)),
        stragglers=tuple(map(_straggler, message.stragglers)),
        bound_by=message.bound_by,
        verdict=message.verdict,
        step_s=message.step_seconds,
        persistence_s=message.persistence_seconds,
        exposed_communication_s=message.exposed_communication_seconds,
        ranks=tuple(map(_shares, message.rank_shares)),
        collectives=pieces.collectives,
        edges=_edges(message.edges),
        warnings=tuple(message.warnings),
        complete=message.complete,
        basis=_basis(message.basis),
        timeline=pieces.executed,
        recorded=pieces.recorded,
        raw=message,
    )


def _step(message: wire.ReplayedStep) -> ReplayedStep:
    return ReplayedStep(
        step=message.step_ordinal,
        measured_host_s=message.measured_host_seconds if message.HasField("measured_host_seconds") else None,
        predicted_host_s=message.predicted_host_seconds if message.HasField("predicted_host_seconds") else None,
        measured_device_s=message.measured_device_seconds if message.HasField("measured_device_seconds") else None,
        predicted_device_s=message.predicted_device_seconds if message.HasField("predicted_device_seconds") else None,
        rank_measured_host_s=tuple(message.rank_measured_host_seconds),
        rank_predicted_host_s=tuple(message.rank_predicted_host_seconds),
        lower_host_s=message.lower_host_seconds if message.HasField("lower_host_seconds") else None,
        upper_host_s=message.upper_host_seconds if message.HasField("upper_host_seconds") else None,
    )


def _edges(messages: Iterable[wire.EdgeCounts]) -> dict[str, EdgeCounts]:
    return {
        each.kind: EdgeCounts(found=each.found_count, inferred=each.inferred_count, missing=each.missing_count)
        for each in messages
    }


def _basis(message: wire.DiagnosisBasis) -> DiagnosisBasis:
    return DiagnosisBasis(
        diagnoser=message.diagnoser,
        diagnoser_version=message.diagnoser_version,
        profile_id=message.profile_id,
        profile_revision=message.profile_revision,
        traces=tuple(
            ReadTrace(
                content_sha256=each.content_sha256,
                rank=each.rank,
                world_size=each.world_size,
                reader=each.reader,
                reader_version=each.reader_version,
                events=each.events_count,
                steps=each.steps_count,
                counts=dict(each.counts),
                warnings=tuple(each.warnings),
            )
            for each in message.traces
        ),
        ranks=tuple(message.ranks),
        world_size=message.world_size,
        events=message.events_count,
        load_s=message.load_seconds,
        peak_memory_bytes=message.peak_memory_bytes,
    )


def _bottleneck(message: wire.Bottleneck) -> Bottleneck:
    return Bottleneck(
        kind=message.kind,
        what=message.what,
        rank=None if message.rank < 0 else message.rank,
        seconds=message.seconds,
        gain_if_removed_s=message.gain_if_removed_seconds,
        matters=message.matters,
        why=message.why,
    )


def _straggler(message: wire.Straggler) -> Straggler:
    return Straggler(
        collective=message.collective,
        ranks=tuple(message.ranks),
        margin_s=message.margin_seconds,
        imposed_wait_s=message.imposed_wait_seconds,
        transfer_s=message.transfer_seconds,
    )


def _strategy(message: wire.Strategy) -> Strategy:
    return Strategy(
        name=message.name,
        predicted_step_s=message.predicted_step_seconds,
        speedup=message.speedup_ratio,
        lower_step_s=message.lower_step_seconds if message.HasField("lower_step_seconds") else None,
        upper_step_s=message.upper_step_seconds if message.HasField("upper_step_seconds") else None,
        parts=tuple(message.parts),
        changes=tuple(
            ReplayChange(
                kind=WORDS.get(each.kind, "unspecified"),
                value=each.value,
                name_pattern=each.name_pattern,
                event_kinds=each.event_kinds,
                ranks=each.ranks,
            )
            for each in message.changes
        ),
        rests_on=message.rests_on,
        effort=message.effort,
    )


def _shares(message: wire.RankShares) -> RankShares:
    return RankShares(
        rank=message.rank,
        step_s=message.step_seconds,
        compute_s=message.compute_seconds,
        communication_s=message.communication_seconds,
        exposed_communication_s=message.exposed_communication_seconds,
        waiting_s=message.waiting_seconds,
        idle_s=message.idle_seconds,
        host_bound_s=message.host_bound_seconds,
        data_loading_s=message.data_loading_seconds,
        memory_high_water_bytes=(
            message.memory_high_water_bytes if message.HasField("memory_high_water_bytes") else None
        ),
    )

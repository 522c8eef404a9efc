"""DiagnosisService: where the time of recorded training steps goes, and what would buy it back.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise_values.v1.problem import Notice
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import LazyValue, Value, Word

__all__ = [
    "Bottleneck",
    "DiagnoseRequest",
    "DiagnoseResponse",
    "DiagnosisBasis",
    "DiagnosisProgress",
    "DiagnosisResult",
    "EdgeCounts",
    "RankShares",
    "ReadTrace",
    "RecordingRequest",
    "ReplayChange",
    "ReplayChangeKind",
    "ReplayRequest",
    "ReplayResponse",
    "ReplayResult",
    "ReplayedCollectives",
    "ReplayedStep",
    "ReportStepsRequest",
    "ReportStepsResponse",
    "SlowHour",
    "StepAlarm",
    "StepBound",
    "StepPart",
    "StepWindows",
    "StepsDiagnosis",
    "Straggler",
    "Strategy",
    "TimelinePiece",
]


class ReplayChangeKind(Word):
    """What is changed in the recorded job before it is executed again."""

    SCALE = "scale"
    """Durations of what is selected times value, 0 or more."""
    DELAY = "delay"
    """value seconds more for everything that is selected, each time; 0 or more."""
    LINK_BANDWIDTH = "link_bandwidth"
    """The link carries value times the bytes per second, above 0."""
    LINK_LATENCY = "link_latency"
    """Every exchange's fixed time is value times as long, 0 or more."""
    WORLD_SIZE = "world_size"
    """The job runs on value ranks, a whole number."""
    BUCKET_BYTES = "bucket_bytes"
    """Gradients are exchanged in buckets that close as soon as they reach value bytes, above 0."""


class StepBound(Word):
    """What bounds a step."""

    HOST = "host"
    """The host: devices wait for launches."""
    DEVICE = "device"
    """Devices' work."""
    NETWORK = "network"
    """Transfers that nothing hides."""
    SKEW = "skew"
    """Ranks wait for each other."""
    LOADING = "loading"
    """Loading of data."""
    NONE = "none"
    """Nothing stands out, or it cannot be told: the verdict says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayChange(Value):
    """One change. An empty selection = everything that the kind may concern."""

    kind: ReplayChangeKind | None = None
    """What is changed."""
    value: float = 0.0
    """By how much, in the kind's unit."""
    name_pattern: str = ""
    """Regular expression that a name must match somewhere.

    Regular expression that a name must match somewhere: at most 256 characters, no repeated groups, no references back
    and no looking ahead or behind, at most two * + or {n,}.
    """
    event_kinds: tuple[str, ...] = ()
    """operator, call, kernel, copy, fill, gap (host time between events), collective."""
    ranks: tuple[int, ...] = ()
    """Ranks concerned."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayRequest(Value):
    """Which steps to predict, from which."""

    profile: ProfileSource | None = None
    """A profile that names traces."""
    trace_sha256s: tuple[str, ...] = ()
    """Which of the profile's traces, by content_sha256. Empty = all; a rank that was recorded twice must be chosen."""
    diagnoser: str = ""
    """Who answers. Empty = the only diagnoser that is loaded, or the shipped one."""
    fit_steps: tuple[int, ...] = ()
    """Ordinals of the steps in the traces, from 1, that durations are learned from. Empty = all but the one tested."""
    test_steps: tuple[int, ...] = ()
    """Ordinals of the steps to predict. Empty = all."""
    in_sample: bool = False
    """Whether a step may be predicted from durations of its own: a check of the graph, never of accuracy."""
    changes: tuple[ReplayChange, ...] = ()
    """Applied before the replay; measured times are then left out."""
    timeline: bool = False
    """Whether the executed events are wanted."""
    budget_seconds: float | None = None
    """Seconds for the answer. Absent = as long as the call has."""
    trace_mapping: Mapping[str, str] = field(default_factory=dict)
    """For readers of formats that do not say what is what, such as generic Chrome traces.

    For readers of formats that do not say what is what, such as generic Chrome traces: what the reader's page names.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayResponse(Value):
    """Progress, then pieces, then the result."""

    progress: DiagnosisProgress | None = None
    """How far it is."""
    timeline: TimelinePiece | None = None
    """The next executed events."""
    collectives: ReplayedCollectives | None = None
    """The next exchanges of the steps tested."""
    result: ReplayResult | None = None
    """The answer; the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisProgress(Value):
    """How far a replay or a diagnosis is."""

    stage: str = ""
    """What is being done, e.g. "reading"."""
    done_count: int = 0
    """So many of it are done."""
    total_count: int | None = None
    """Of so many. Absent = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TimelinePiece(LazyValue):
    """Events as columns, those of one timeline in several pieces one after the other."""

    recorded: bool = False
    """False = as executed in simulated time; true = as recorded, on the first rank's clock."""
    names: tuple[str, ...] = ()
    """Names that join the timeline's dictionary, after those of the pieces before."""
    lanes: tuple[str, ...] = ()
    """Lanes that join the dictionary of lanes: a host thread's or a device stream's name."""
    kinds: tuple[str, ...] = ()
    """Kinds that join the dictionary of kinds, e.g. "kernel"."""
    rank_numbers: tuple[int, ...] = ()
    """Rank of each event."""
    lane_indexes: tuple[int, ...] = ()
    """Index of its lane."""
    name_indexes: tuple[int, ...] = ()
    """Index of its name."""
    kind_indexes: tuple[int, ...] = ()
    """Index of its kind. Empty = not known."""
    begin_nanoseconds: tuple[int, ...] = ()
    """When it begins, nanoseconds since the first step began; below 0 = before."""
    duration_nanoseconds: tuple[int, ...] = ()
    """How long it takes, nanoseconds."""
    waiting_nanoseconds: tuple[int, ...] = ()
    """Of an exchange: how long it waits for others first, nanoseconds. Empty = nothing waits, or it is not known."""
    parts: tuple[str, ...] = ()
    """Parts of a step that join the dictionary of parts: kind and what of a StepPart, with ": " between them."""
    part_indexes: tuple[int, ...] = ()
    """Index of the part that it belongs to; -1 = none. Empty = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayedCollectives(LazyValue):
    """Exchanges between ranks as columns, one row per exchange; those of ranks are ragged."""

    step_ordinals: tuple[int, ...] = ()
    """Ordinal of the step."""
    names: tuple[str, ...] = ()
    """What it is, for people."""
    kinds: tuple[str, ...] = ()
    """Its kind, e.g. "all_reduce"."""
    bytes: tuple[float, ...] = ()
    """Bytes that a rank puts in. Empty or 0 in a row: not known."""
    groups: tuple[str, ...] = ()
    """The group that exchanges."""
    transfer_seconds: tuple[float, ...] = ()
    """Transfer, without waiting."""
    end_spread_seconds: tuple[float, ...] = ()
    """From the first rank's end to the last one's."""
    margin_seconds: tuple[float, ...] = ()
    """Lead of the last rank over the next that is not late with it."""
    rank_offsets: tuple[int, ...] = ()
    """Where the ranks of each row begin in the columns below, and at last where they end."""
    rank_numbers: tuple[int, ...] = ()
    """Ranks that exchange."""
    arrival_seconds: tuple[float, ...] = ()
    """When each arrived, seconds since the first."""
    wait_seconds: tuple[float, ...] = ()
    """How long each waited."""
    late_rank_offsets: tuple[int, ...] = ()
    """Where the late ranks of each row begin below, and at last where they end."""
    late_ranks: tuple[int, ...] = ()
    """All that arrived within the clock's uncertainty of the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayedStep(Value):
    """One step, seconds since the one before was over.

    One step, seconds since the one before was over: until hosts and devices are done, and until devices are; slowest
    rank.
    """

    step_ordinal: int = 0
    """Ordinal in the traces, from 1."""
    measured_host_seconds: float | None = None
    """As recorded. Absent = not comparable, because something was changed."""
    predicted_host_seconds: float | None = None
    """As predicted."""
    measured_device_seconds: float | None = None
    """As recorded. Absent = not comparable, or nothing runs on a device."""
    predicted_device_seconds: float | None = None
    """As predicted. Absent = nothing runs on a device."""
    rank_measured_host_seconds: tuple[float, ...] = ()
    """As recorded, by rank in ascending order. Empty = not comparable."""
    rank_predicted_host_seconds: tuple[float, ...] = ()
    """As predicted, by rank in ascending order."""
    lower_host_seconds: float | None = None
    """The least that the hosts' time may be, where ranks that were not recorded may change too.

    Absent = nothing is open.
    """
    upper_host_seconds: float | None = None
    """The most that it may be."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EdgeCounts(Value):
    """Edges of one kind in the graph of what was recorded."""

    kind: str = ""
    """host, launch, stream, stream_wait, host_sync, collective, forward_backward, stated, contention, queue."""
    found_count: int = 0
    """Stated by the traces."""
    inferred_count: int = 0
    """Inferred from recorded times."""
    missing_count: int = 0
    """Known to be missing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadTrace(Value):
    """One trace as it was read."""

    content_sha256: str = ""
    """SHA-256 of the file that it came from."""
    rank: int = 0
    """Rank of the process that recorded it."""
    world_size: int | None = None
    """Processes of the job. Absent = not known."""
    reader: str = ""
    """Its reader."""
    reader_version: str = ""
    """The reader's version."""
    events_count: int = 0
    """Events in it, those that the reader left out included."""
    steps_count: int = 0
    """Steps in it."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the reader met, by name, e.g. "malformed"."""
    warnings: tuple[Notice, ...] = ()
    """What the reader warns of."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisBasis(Value):
    """What an answer rests on, and what it took."""

    diagnoser: str = ""
    """Who answered."""
    diagnoser_version: str = ""
    """Its version."""
    profile_id: str = ""
    """Name of the profile. Empty = it came with the question."""
    profile_revision: int | None = None
    """Its revision. Absent = it came with the question."""
    traces: tuple[ReadTrace, ...] = ()
    """The traces, by rank."""
    ranks: tuple[int, ...] = ()
    """Ranks that were recorded, ascending."""
    world_size: int | None = None
    """Ranks of the job. Absent = not known."""
    events_count: int = 0
    """Events of all traces, those that readers left out included."""
    load_seconds: float = 0.0
    """Seconds to read the traces, or to find them read."""
    peak_memory_bytes: float = 0.0
    """Largest resident memory of the server's process so far."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayResult(Value):
    """The answer of a replay. Errors are means of |predicted / measured - 1| over the steps tested."""

    steps: tuple[ReplayedStep, ...] = ()
    """The steps tested."""
    host_error_ratio: float | None = None
    """Of the hosts' times. Absent = nothing to compare with."""
    device_error_ratio: float | None = None
    """Of the devices' times. Absent = nothing to compare with."""
    persistence_error_ratio: float | None = None
    """The same error of predicting each step as the mean of the steps fitted. Absent = a single step."""
    kernel_start_p50_error_seconds: float | None = None
    """Median error of when the devices' work begins within its step."""
    kernel_start_p95_error_seconds: float | None = None
    """95th percentile of the same."""
    in_sample: bool = False
    """Whether steps were predicted from durations of their own: then errors say nothing of accuracy."""
    nodes_count: int = 0
    """Nodes of the graph."""
    edges: tuple[EdgeCounts, ...] = ()
    """Edges of the graph, by kind."""
    clock_offset_seconds: tuple[float, ...] = ()
    """Clock of each rank minus that of the first, as found; by ranks of the basis."""
    clock_uncertainty_seconds: tuple[float, ...] = ()
    """How sure that is, in rows of clocks that something ties to the first one's."""
    clock_tied: tuple[bool, ...] = ()
    """Ranks whose clock something ties to the first one's. Empty = all."""
    build_seconds: float = 0.0
    """Seconds to build the graph."""
    replay_seconds: float = 0.0
    """Seconds to execute the steps."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was met, by name."""
    warnings: tuple[Notice, ...] = ()
    """What the reader should know."""
    basis: DiagnosisBasis | None = None
    """What the answer rests on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnoseRequest(Value):
    """What to look for."""

    profile: ProfileSource | None = None
    """A profile that names traces."""
    trace_sha256s: tuple[str, ...] = ()
    """Which of the profile's traces, by content_sha256. Empty = all; a rank that was recorded twice must be chosen."""
    diagnoser: str = ""
    """Who answers. Empty = the only diagnoser that is loaded, or the shipped one."""
    steps: tuple[int, ...] = ()
    """Ordinals of the steps, from 1. Empty = all but the first and the last where there are more than three."""
    max_bottlenecks: int | None = None
    """Most bottlenecks to answer with, up to 1000. Absent = 20; 0 = none."""
    max_strategies: int | None = None
    """Most strategies to answer with, up to 1000. Absent = 20; 0 = none, which is quicker."""
    largest_batch_ratio: float | None = None
    """How many times the batch per worker may grow where memory is freed, 1 or more. Absent = 1: not at all."""
    timeline: bool = False
    """Whether the executed events are wanted, for a picture."""
    budget_seconds: float | None = None
    """Seconds for the answer. Absent = as long as the call has."""
    trace_mapping: Mapping[str, str] = field(default_factory=dict)
    """For readers of formats that do not say what is what, such as generic Chrome traces.

    For readers of formats that do not say what is what, such as generic Chrome traces: what the reader's page names.
    """
    since_seconds: float | None = None
    """Diagnose the times of steps that the stored profile's ranks reported in so many seconds up to now.

    Diagnose the times of steps that the stored profile's ranks reported in so many seconds up to now, in place of
    traces. Absent = traces.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepWindows(Value):
    """Windows of consecutive steps of one rank, as columns of equal length.

    A window begins at a multiple of its length, so that those of all ranks hold the same steps. Seconds are medians
    over the steps; a column that is empty is not known.
    """

    first_steps: tuple[int, ...] = ()
    """Number of each window's first step, counted by the job from 0."""
    steps_counts: tuple[int, ...] = ()
    """Steps of each window."""
    begin_unix_seconds: tuple[float, ...] = ()
    """When each began, seconds since 1970 (UTC)."""
    step_seconds: tuple[float, ...] = ()
    """The whole step."""
    loading_seconds: tuple[float, ...] = ()
    """Waiting for the next batch."""
    forward_seconds: tuple[float, ...] = ()
    """Forward pass."""
    backward_seconds: tuple[float, ...] = ()
    """Backward pass, without what exchange_seconds holds."""
    exchange_seconds: tuple[float, ...] = ()
    """Exchange of gradients, and waiting for it, that nothing hides."""
    update_seconds: tuple[float, ...] = ()
    """Update of the parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportStepsRequest(Value):
    """Windows of one rank."""

    profile_id: str = ""
    """The job's profile."""
    rank: int = 0
    """Rank of the process that timed them."""
    world_size: int = 0
    """Processes of the job."""
    node: int | None = None
    """Number of the machine within the job. Absent = not known."""
    windows: StepWindows | None = None
    """At most 1,000 windows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RecordingRequest(Value):
    """What recorders are asked to record, by the profile's label "nodewise.record"."""

    request_id: str = ""
    """A recorder follows a request of another id than its last one."""
    steps_count: int = 0
    """So many steps, from the next one on."""
    ranks: tuple[int, ...] = ()
    """On these ranks. Empty = all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportStepsResponse(Value):
    """The server has them."""

    recording: RecordingRequest | None = None
    """Absent = nothing is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepAlarm(Value):
    """A slowdown that was found in the times of steps."""

    kind: str = ""
    """Whom it concerns: "rank", "node", "exchange" (all ranks, in the exchange alone) or "job" (all ranks)."""
    ranks: tuple[int, ...] = ()
    """The slow ranks. Empty = all."""
    node: int | None = None
    """Their machine, where they are those of one. Absent = not one machine."""
    part: str = ""
    """The part of the step that grew most: "loading", "forward", "backward", "exchange", "update", or "step"."""
    first_step: int | None = None
    """Since this step. Absent = the first that is known."""
    begin_unix_seconds: float = 0.0
    """When that step began, seconds since 1970 (UTC)."""
    end_unix_seconds: float | None = None
    """When it was over. Absent = it lasts."""
    slowdown_ratio: float = 0.0
    """Time over what it was, or over that of the other ranks."""
    lower_slowdown_ratio: float = 0.0
    """Lower end of its interval (90 %)."""
    upper_slowdown_ratio: float = 0.0
    """Upper end of its interval (90 %)."""
    what: str = ""
    """The same in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SlowHour(Value):
    """An hour of the day in which the job was slow on several days."""

    hour: int = 0
    """Begin of the hour, UTC, 0 to 23."""
    slowdown_ratio: float = 0.0
    """Median over days of its step over that of the other hours of the same day."""
    slow_days_count: int = 0
    """Days on which it was slower."""
    days_count: int = 0
    """Days on which it was seen."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepsDiagnosis(Value):
    """What the times of steps say while a job runs."""

    alarms: tuple[StepAlarm, ...] = ()
    """The newest first; at most 1,000."""
    slow_hours: tuple[SlowHour, ...] = ()
    """Hours that recur."""
    verdict: str = ""
    """The answer in one sentence."""
    ranks_count: int = 0
    """Ranks that reported."""
    steps_count: int = 0
    """Steps that all windows hold, of one rank."""
    lost_windows_count: int = 0
    """Windows between a rank's first and last that never came, over ranks."""
    step_seconds: float = 0.0
    """Median step, over ranks and windows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnoseResponse(Value):
    """Progress, then pieces, then the result."""

    progress: DiagnosisProgress | None = None
    """How far it is."""
    timeline: TimelinePiece | None = None
    """The next executed events."""
    collectives: ReplayedCollectives | None = None
    """The next exchanges of the steps."""
    result: DiagnosisResult | None = None
    """The answer; the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bottleneck(Value):
    """Something that costs time."""

    kind: str = ""
    """What kind of thing it is."""
    what: str = ""
    """Which one."""
    rank: int | None = None
    """The rank. Absent = all."""
    seconds: float = 0.0
    """What it takes in a step."""
    gain_if_removed_seconds: float = 0.0
    """How much shorter the replayed step is without it."""
    matters: bool = False
    """Whether that is more than steps differ by anyway."""
    why: str = ""
    """Why, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Straggler(Value):
    """Ranks that the others wait for at one exchange of the step."""

    collective: str = ""
    """The exchange."""
    ranks: tuple[int, ...] = ()
    """All that arrived within the clock's uncertainty of the last: a tie where there are several."""
    margin_seconds: float = 0.0
    """Lead of the last over the next that is not among them."""
    imposed_wait_seconds: float = 0.0
    """What the others wait in sum."""
    transfer_seconds: float = 0.0
    """The exchange's transfer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strategy(Value):
    """A change, or several together, and the step that its replay predicts."""

    name: str = ""
    """What to do."""
    predicted_step_seconds: float = 0.0
    """Seconds of a step then."""
    speedup_ratio: float = 0.0
    """Throughput in samples over today's."""
    lower_step_seconds: float | None = None
    """Lower end of the interval. Absent = not known."""
    upper_step_seconds: float | None = None
    """Upper end of the interval. Absent = not known."""
    parts: tuple[str, ...] = ()
    """What it consists of."""
    changes: tuple[ReplayChange, ...] = ()
    """The same as changes that Replay takes, where there are such."""
    rests_on: str = ""
    """What the numbers come from."""
    effort: str = ""
    """What it asks of people."""
    acts_on: tuple[str, ...] = ()
    """Parts of a step that it makes shorter: a kind of StepPart, or kind and what with ": " between. Empty = any."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepPart(Value):
    """A part of a rank's mean step."""

    kind: str = ""
    """computation, transfer and waiting (in exchanges, hidden by nothing), loading, dependency.

    computation, transfer and waiting (in exchanges, hidden by nothing), loading, dependency; and where the device waits
    for its host: startup, synchronisation, blocking_copy, allocation, host_computation, preprocessing,
    garbage_collection, python, launch, unexplained.
    """
    what: str = ""
    """The kind of kernels, the exchange, the call that blocks, the function."""
    seconds: float = 0.0
    """How long it takes."""
    waits_for_rank: int | None = None
    """Of waiting: the rank that comes last. Absent = several, or not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RankShares(Value):
    """Where one rank's mean step goes, seconds; what runs on a device is 0 where nothing does.

    A step lasts from where the one before is over, else from its mark, until its host and all work of its devices are
    done.
    """

    rank: int = 0
    """The rank."""
    step_seconds: float = 0.0
    """Its step."""
    compute_seconds: float = 0.0
    """Computation."""
    communication_seconds: float = 0.0
    """Communication, waiting included."""
    exposed_communication_seconds: float = 0.0
    """Of this not hidden by computation."""
    waiting_seconds: float = 0.0
    """Waiting for other ranks."""
    idle_seconds: float = 0.0
    """Nothing runs on the device."""
    host_bound_seconds: float = 0.0
    """The device waits for the host."""
    data_loading_seconds: float = 0.0
    """Waiting for data."""
    memory_high_water_bytes: float | None = None
    """Most memory that the allocator held. Absent = not recorded."""
    parts: tuple[StepPart, ...] = ()
    """Parts that add up to the step, the longest first."""
    step_ordinals: tuple[int, ...] = ()
    """Ordinals of the steps that the mean is of, from 1. Empty = not known."""
    step_begin_nanoseconds: tuple[int, ...] = ()
    """When each begins, nanoseconds since the first of all ranks' began, as in a timeline."""
    step_duration_nanoseconds: tuple[int, ...] = ()
    """How long each takes, nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisResult(Value):
    """The answer of a diagnosis, most worthwhile first."""

    bottlenecks: tuple[Bottleneck, ...] = ()
    """What costs time."""
    strategies: tuple[Strategy, ...] = ()
    """What would buy time back."""
    stragglers: tuple[Straggler, ...] = ()
    """Who is waited for."""
    bound_by: StepBound | None = None
    """What bounds the step."""
    verdict: str = ""
    """The answer in one sentence."""
    step_seconds: float = 0.0
    """Mean step."""
    persistence_seconds: float = 0.0
    """Mean absolute difference of a step from the mean of the others."""
    exposed_communication_seconds: float = 0.0
    """Mean over ranks of transfer and waiting that no computation hides, per step."""
    rank_shares: tuple[RankShares, ...] = ()
    """Where each rank's step goes."""
    edges: tuple[EdgeCounts, ...] = ()
    """Edges of the graph, by kind."""
    warnings: tuple[Notice, ...] = ()
    """What the reader should know."""
    complete: bool = False
    """False = time was over."""
    basis: DiagnosisBasis | None = None
    """What the answer rests on."""
    steps: StepsDiagnosis | None = None
    """What the times of steps say, where they were asked for; all lists above are empty then."""

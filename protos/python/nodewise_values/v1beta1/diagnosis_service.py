"""DiagnosisService: where recorded training steps spend their time, and which changes would shorten them.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """What to change in the recorded job before it is replayed."""

    SCALE = "scale"
    """The selected durations are multiplied by value, 0 or more."""
    DELAY = "delay"
    """Each selected event takes value seconds longer, 0 or more."""
    LINK_BANDWIDTH = "link_bandwidth"
    """The link's bytes per second are multiplied by value, above 0."""
    LINK_LATENCY = "link_latency"
    """The fixed time of every exchange is multiplied by value, 0 or more."""
    WORLD_SIZE = "world_size"
    """The job runs on value ranks, a whole number."""
    BUCKET_BYTES = "bucket_bytes"
    """Gradients are exchanged in buckets that close as soon as they reach value bytes, above 0."""


class StepBound(Word):
    """What bounds a step."""

    HOST = "host"
    """The host: devices wait for launches."""
    DEVICE = "device"
    """The work of the devices."""
    NETWORK = "network"
    """Exposed transfers."""
    SKEW = "skew"
    """Waiting of ranks for each other."""
    LOADING = "loading"
    """Loading of data."""
    NONE = "none"
    """No single cause, or the cause cannot be determined; the verdict says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayChange(Value):
    """One change. An empty selection = everything that the kind of change applies to."""

    kind: ReplayChangeKind | None = None
    """Kind of the change."""
    value: float = 0.0
    """Amount of the change, in the unit of its kind."""
    name_pattern: str = ""
    """Regular expression that must match part of an event's name.

    At most 256 characters and two of * + or {n,}; repeated groups, backreferences, lookahead and lookbehind are not
    allowed.
    """
    event_kinds: tuple[str, ...] = ()
    """Kinds of events: operator, call, kernel, copy, fill, gap (host time between events), collective."""
    ranks: tuple[int, ...] = ()
    """Ranks that the change applies to."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayRequest(Value):
    """The steps to predict, and the steps to learn from."""

    profile: ProfileSource | None = None
    """A profile that refers to traces."""
    trace_sha256s: tuple[str, ...] = ()
    """Traces of the profile to use, by content_sha256.

    Empty = all. If a rank was recorded twice, one of its traces must be chosen.
    """
    diagnoser: str = ""
    """Name of the diagnoser. Empty = the only diagnoser that is loaded, or the shipped one."""
    fit_steps: tuple[int, ...] = ()
    """Steps to learn durations from, as ordinals of the steps in the traces, from 1.

    Empty = all except the tested step.
    """
    test_steps: tuple[int, ...] = ()
    """Steps to predict, as ordinals. Empty = all."""
    in_sample: bool = False
    """Whether a step may be predicted from its own durations. This checks the graph, not the accuracy."""
    changes: tuple[ReplayChange, ...] = ()
    """Changes to make before the replay. The result then has no measured times."""
    timeline: bool = False
    """Whether to send the executed events."""
    budget_seconds: float | None = None
    """Seconds within which to answer. Absent = the call's time."""
    trace_mapping: Mapping[str, str] = field(default_factory=dict)
    """For readers of formats that do not state the meaning of events, such as generic Chrome traces.

    For readers of formats that do not state the meaning of events, such as generic Chrome traces: the entries that the
    reader's page describes.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayResponse(Value):
    """A message of the stream: progress, then pieces, then the result."""

    progress: DiagnosisProgress | None = None
    """Progress of the replay."""
    timeline: TimelinePiece | None = None
    """The next executed events."""
    collectives: ReplayedCollectives | None = None
    """The next exchanges of the tested steps."""
    result: ReplayResult | None = None
    """The answer, in the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisProgress(Value):
    """Progress of a replay or a diagnosis."""

    stage: str = ""
    """Present stage, e.g. "reading"."""
    done_count: int = 0
    """Units of the stage that are done."""
    total_count: int | None = None
    """Units of the stage in total. Absent = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TimelinePiece(LazyValue):
    """Events as columns. The pieces of one timeline follow each other."""

    recorded: bool = False
    """False = events as executed in simulated time. True = events as recorded, on the first rank's clock."""
    names: tuple[str, ...] = ()
    """Names to add to the timeline's dictionary of names, after those of earlier pieces."""
    lanes: tuple[str, ...] = ()
    """Names of host threads or device streams to add to the dictionary of lanes."""
    kinds: tuple[str, ...] = ()
    """Kinds to add to the dictionary of kinds, e.g. "kernel"."""
    rank_numbers: tuple[int, ...] = ()
    """Rank of each event."""
    lane_indexes: tuple[int, ...] = ()
    """Index of each event's lane."""
    name_indexes: tuple[int, ...] = ()
    """Index of each event's name."""
    kind_indexes: tuple[int, ...] = ()
    """Index of each event's kind. Empty = not known."""
    begin_nanoseconds: tuple[int, ...] = ()
    """Begin of each event, nanoseconds since the first step began; below 0 = before it."""
    duration_nanoseconds: tuple[int, ...] = ()
    """Duration of each event, nanoseconds."""
    waiting_nanoseconds: tuple[int, ...] = ()
    """For exchanges, the time spent waiting for other ranks before the transfer, nanoseconds.

    Empty = nothing waits, or it is not known.
    """
    parts: tuple[str, ...] = ()
    """Parts of a step to add to the dictionary of parts: kind and what of a StepPart, joined by ": "."""
    part_indexes: tuple[int, ...] = ()
    """Index of the part that each event belongs to; -1 = none. Empty = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayedCollectives(LazyValue):
    """Exchanges between ranks as columns, one row per exchange. The columns about ranks are ragged."""

    step_ordinals: tuple[int, ...] = ()
    """Ordinal of the step, from 1."""
    names: tuple[str, ...] = ()
    """Name of the exchange, for people."""
    kinds: tuple[str, ...] = ()
    """Kind of the exchange, e.g. "all_reduce"."""
    bytes: tuple[float, ...] = ()
    """Bytes that each rank contributes. Empty or 0 in a row: not known."""
    groups: tuple[str, ...] = ()
    """Group of ranks that takes part."""
    transfer_seconds: tuple[float, ...] = ()
    """Seconds of transfer, without waiting."""
    end_spread_seconds: tuple[float, ...] = ()
    """Seconds from the first rank's end to the last rank's end."""
    margin_seconds: tuple[float, ...] = ()
    """Seconds between the arrival of the last rank and that of the latest rank that is not late."""
    rank_offsets: tuple[int, ...] = ()
    """Where the ranks of each row begin in the columns below; one more entry ends the last row."""
    rank_numbers: tuple[int, ...] = ()
    """Ranks that take part."""
    arrival_seconds: tuple[float, ...] = ()
    """When each rank arrived, seconds since the first rank."""
    wait_seconds: tuple[float, ...] = ()
    """Seconds that each rank waited."""
    late_rank_offsets: tuple[int, ...] = ()
    """Where the late ranks of each row begin below; one more entry ends the last row."""
    late_ranks: tuple[int, ...] = ()
    """Ranks that arrived last, within the uncertainty of the clocks."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayedStep(Value):
    """One step.

    Its durations are seconds since the previous step ended, for the slowest rank. Host seconds end when hosts and
    devices are done, device seconds when devices are done.
    """

    step_ordinal: int = 0
    """Ordinal of the step in the traces, from 1."""
    measured_host_seconds: float | None = None
    """Recorded host seconds. Absent = not comparable, because something was changed."""
    predicted_host_seconds: float | None = None
    """Predicted host seconds."""
    measured_device_seconds: float | None = None
    """Recorded device seconds. Absent = not comparable, or no work runs on a device."""
    predicted_device_seconds: float | None = None
    """Predicted device seconds. Absent = no work runs on a device."""
    rank_measured_host_seconds: tuple[float, ...] = ()
    """Recorded host seconds by rank, in ascending order of ranks. Empty = not comparable."""
    rank_predicted_host_seconds: tuple[float, ...] = ()
    """Predicted host seconds by rank, in ascending order of ranks."""
    lower_host_seconds: float | None = None
    """Lower bound of the host seconds, if changes also affect ranks that were not recorded.

    Absent = all ranks are known.
    """
    upper_host_seconds: float | None = None
    """Upper bound of the host seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EdgeCounts(Value):
    """Edges of one kind in the graph of the recorded events."""

    kind: str = ""
    """Kind: host, launch, stream, stream_wait, host_sync, collective, forward_backward, stated, contention or queue."""
    found_count: int = 0
    """Number of edges that the traces state."""
    inferred_count: int = 0
    """Number of edges inferred from recorded times."""
    missing_count: int = 0
    """Number of edges that are known to be missing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadTrace(Value):
    """A trace that was read."""

    content_sha256: str = ""
    """SHA-256 of the trace's file."""
    rank: int = 0
    """Rank of the process that recorded the trace."""
    world_size: int | None = None
    """Number of processes of the job. Absent = not known."""
    reader: str = ""
    """Name of the reader."""
    reader_version: str = ""
    """Version of the reader."""
    events_count: int = 0
    """Events in the trace, including those that the reader skipped."""
    steps_count: int = 0
    """Steps in the trace."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts that the reader reports, by name, e.g. "malformed"."""
    warnings: tuple[Notice, ...] = ()
    """Warnings of the reader."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisBasis(Value):
    """What an answer is based on, and the resources that it took."""

    diagnoser: str = ""
    """Name of the diagnoser."""
    diagnoser_version: str = ""
    """Version of the diagnoser."""
    profile_id: str = ""
    """Name of the profile. Empty = the profile was sent with the question."""
    profile_revision: int | None = None
    """Revision of the profile. Absent = the profile was sent with the question."""
    traces: tuple[ReadTrace, ...] = ()
    """The traces, by rank."""
    ranks: tuple[int, ...] = ()
    """Recorded ranks, ascending."""
    world_size: int | None = None
    """Number of ranks of the job. Absent = not known."""
    events_count: int = 0
    """Events of all traces, including those that readers skipped."""
    load_seconds: float = 0.0
    """Seconds to read the traces, or to load stored results of an earlier reading."""
    peak_memory_bytes: float = 0.0
    """Largest resident memory of the server's process so far, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayResult(Value):
    """The result of a replay. Errors are means of |predicted / measured - 1| over the tested steps."""

    steps: tuple[ReplayedStep, ...] = ()
    """The tested steps."""
    host_error_ratio: float | None = None
    """Error of the host seconds. Absent = there are no measured times to compare with."""
    device_error_ratio: float | None = None
    """Error of the device seconds. Absent = there are no measured times to compare with."""
    persistence_error_ratio: float | None = None
    """Error of the simple prediction that each step takes the mean of the fitted steps.

    Absent = there is only one step.
    """
    kernel_start_p50_error_seconds: float | None = None
    """Median error of the time within the step at which the devices' work begins, seconds."""
    kernel_start_p95_error_seconds: float | None = None
    """95th percentile of that error, seconds."""
    in_sample: bool = False
    """Whether steps were predicted from their own durations. The errors then say nothing about accuracy."""
    nodes_count: int = 0
    """Number of nodes in the graph."""
    edges: tuple[EdgeCounts, ...] = ()
    """Edges of the graph, by kind."""
    clock_offset_seconds: tuple[float, ...] = ()
    """Estimated clock of each rank minus that of the first rank, seconds, in the order of the basis's ranks."""
    clock_uncertainty_seconds: tuple[float, ...] = ()
    """Uncertainty of those estimates, for the ranks whose clock is tied to the first rank's."""
    clock_tied: tuple[bool, ...] = ()
    """Whether events tie each rank's clock to the first rank's. Empty = all clocks are tied."""
    build_seconds: float = 0.0
    """Seconds to build the graph."""
    replay_seconds: float = 0.0
    """Seconds to execute the steps."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts of special cases, by name."""
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader."""
    basis: DiagnosisBasis | None = None
    """What the answer is based on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnoseRequest(Value):
    """Requests a diagnosis."""

    profile: ProfileSource | None = None
    """A profile that refers to traces."""
    trace_sha256s: tuple[str, ...] = ()
    """Traces of the profile to use, by content_sha256.

    Empty = all. If a rank was recorded twice, one of its traces must be chosen.
    """
    diagnoser: str = ""
    """Name of the diagnoser. Empty = the only diagnoser that is loaded, or the shipped one."""
    steps: tuple[int, ...] = ()
    """Steps to diagnose, as ordinals from 1.

    Empty = all, without the first and the last if there are more than three.
    """
    max_bottlenecks: int | None = None
    """Most bottlenecks in the result, up to 1000. Absent = 20; 0 = none."""
    max_strategies: int | None = None
    """Most strategies in the result, up to 1000. Absent = 20; 0 = none, which is quicker."""
    largest_batch_ratio: float | None = None
    """Largest factor by which a strategy may increase the batch per worker where it frees memory, 1 or more.

    Absent = 1: no increase.
    """
    timeline: bool = False
    """Whether to send the executed events, for a picture."""
    budget_seconds: float | None = None
    """Seconds within which to answer. Absent = the call's time."""
    trace_mapping: Mapping[str, str] = field(default_factory=dict)
    """For readers of formats that do not state the meaning of events, such as generic Chrome traces.

    For readers of formats that do not state the meaning of events, such as generic Chrome traces: the entries that the
    reader's page describes.
    """
    since_seconds: float | None = None
    """Diagnose the step times that the stored profile's ranks reported in the last so many seconds, instead of traces.

    Absent = diagnose traces.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepWindows(Value):
    """Windows of consecutive steps of one rank, as columns of equal length.

    A window begins at a multiple of its length, so windows of all ranks hold the same steps. Seconds are medians over
    the steps. An empty column is not known.
    """

    first_steps: tuple[int, ...] = ()
    """Number of each window's first step; the job counts steps from 0."""
    steps_counts: tuple[int, ...] = ()
    """Number of steps in each window."""
    begin_unix_seconds: tuple[float, ...] = ()
    """When each window began, seconds since 1970 (UTC)."""
    step_seconds: tuple[float, ...] = ()
    """Seconds of the whole step."""
    loading_seconds: tuple[float, ...] = ()
    """Seconds in which the step waits for the next batch."""
    forward_seconds: tuple[float, ...] = ()
    """Seconds of the forward pass."""
    backward_seconds: tuple[float, ...] = ()
    """Seconds of the backward pass, without those in exchange_seconds."""
    exchange_seconds: tuple[float, ...] = ()
    """Exposed seconds of the exchange of gradients, including waiting for it."""
    update_seconds: tuple[float, ...] = ()
    """Seconds of the update of the parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportStepsRequest(Value):
    """Reports windows of one rank."""

    profile_id: str = ""
    """Name of the job's profile."""
    rank: int = 0
    """Rank of the process that timed the steps."""
    world_size: int = 0
    """Number of processes of the job."""
    node: int | None = None
    """Number of the machine within the job. Absent = not known."""
    windows: StepWindows | None = None
    """At most 1,000 windows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RecordingRequest(Value):
    """What recorders should record, as stated by the profile's label "nodewise.record"."""

    request_id: str = ""
    """Id of the request. A recorder records when the id differs from that of its last request."""
    steps_count: int = 0
    """Number of steps to record, beginning with the next one."""
    ranks: tuple[int, ...] = ()
    """Ranks that should record. Empty = all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportStepsResponse(Value):
    """Confirms that the windows are stored."""

    recording: RecordingRequest | None = None
    """What recorders should record. Absent = nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepAlarm(Value):
    """A slowdown in the times of steps."""

    kind: str = ""
    """What is slow: "rank", "node", "exchange" (all ranks, but only in the exchange) or "job" (all ranks)."""
    ranks: tuple[int, ...] = ()
    """The slow ranks. Empty = all."""
    node: int | None = None
    """Machine of the slow ranks. Absent = they are not all on one machine."""
    part: str = ""
    """Part of the step that grew most: "loading", "forward", "backward", "exchange", "update", or "step"."""
    first_step: int | None = None
    """First slow step. Absent = all reported steps are slow."""
    begin_unix_seconds: float = 0.0
    """When that step began, seconds since 1970 (UTC)."""
    end_unix_seconds: float | None = None
    """When the slowdown ended. Absent = it has not ended."""
    slowdown_ratio: float = 0.0
    """Step time divided by the earlier step time, or by that of the other ranks."""
    lower_slowdown_ratio: float = 0.0
    """Lower bound of the ratio's 90 % interval."""
    upper_slowdown_ratio: float = 0.0
    """Upper bound of the ratio's 90 % interval."""
    what: str = ""
    """Description of the slowdown in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SlowHour(Value):
    """An hour of the day at which the job was slow on several days."""

    hour: int = 0
    """Begin of the hour, UTC, 0 to 23."""
    slowdown_ratio: float = 0.0
    """Step time in this hour divided by that of the other hours of the same day; median over days."""
    slow_days_count: int = 0
    """Days on which the job was slower in this hour."""
    days_count: int = 0
    """Days for which this hour is known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepsDiagnosis(Value):
    """Diagnosis of the step times of a running job."""

    alarms: tuple[StepAlarm, ...] = ()
    """Slowdowns, the newest first; at most 1,000."""
    slow_hours: tuple[SlowHour, ...] = ()
    """Hours of the day that are slow repeatedly."""
    verdict: str = ""
    """The answer in one sentence."""
    ranks_count: int = 0
    """Number of ranks that reported."""
    steps_count: int = 0
    """Number of steps in all windows of one rank."""
    lost_windows_count: int = 0
    """Number of windows, over all ranks, that are missing between a rank's first and last one."""
    step_seconds: float = 0.0
    """Median seconds of a step, over ranks and windows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnoseResponse(Value):
    """A message of the stream: progress, then pieces, then the result."""

    progress: DiagnosisProgress | None = None
    """Progress of the diagnosis."""
    timeline: TimelinePiece | None = None
    """The next executed events."""
    collectives: ReplayedCollectives | None = None
    """The next exchanges of the steps."""
    result: DiagnosisResult | None = None
    """The answer, in the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bottleneck(Value):
    """A cause of lost time."""

    kind: str = ""
    """Kind of the cause."""
    what: str = ""
    """The particular cause of that kind."""
    rank: int | None = None
    """Rank that loses the time. Absent = all ranks."""
    seconds: float = 0.0
    """Seconds per step that it takes."""
    gain_if_removed_seconds: float = 0.0
    """Seconds by which the replayed step is shorter without it."""
    matters: bool = False
    """Whether the gain is larger than the usual difference between steps."""
    why: str = ""
    """Explanation in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Straggler(Value):
    """Ranks that the others wait for in one exchange of the step."""

    collective: str = ""
    """Name of the exchange."""
    ranks: tuple[int, ...] = ()
    """Ranks that arrived last, within the uncertainty of the clocks; several ranks are a tie."""
    margin_seconds: float = 0.0
    """Seconds between the arrival of the last rank and that of the latest other rank."""
    imposed_wait_seconds: float = 0.0
    """Sum of the seconds that the other ranks wait."""
    transfer_seconds: float = 0.0
    """Seconds of transfer in the exchange."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strategy(Value):
    """A change, or a combination of changes, and the step time that a replay with it predicts."""

    name: str = ""
    """Name of the change."""
    predicted_step_seconds: float = 0.0
    """Predicted seconds of a step."""
    speedup_ratio: float = 0.0
    """Throughput in samples, divided by the present throughput."""
    lower_step_seconds: float | None = None
    """Lower bound of the interval of the step's seconds. Absent = not known."""
    upper_step_seconds: float | None = None
    """Upper bound of the interval of the step's seconds. Absent = not known."""
    parts: tuple[str, ...] = ()
    """Names of the combined changes."""
    changes: tuple[ReplayChange, ...] = ()
    """The same changes for Replay, where it supports them."""
    rests_on: str = ""
    """What the numbers are based on."""
    effort: str = ""
    """Work that the change takes people."""
    acts_on: tuple[str, ...] = ()
    """Parts of a step that the change makes shorter: a kind of StepPart, or kind and what joined by ": ".

    Empty = any.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepPart(Value):
    """A part of a rank's mean step."""

    kind: str = ""
    """Kind: computation, transfer and waiting (exposed, in exchanges), loading or dependency.

    If the device waits for its host: startup, synchronisation, blocking_copy, allocation, host_computation,
    preprocessing, garbage_collection, python, launch or unexplained.
    """
    what: str = ""
    """The kind of kernels, the exchange, the blocking call or the function."""
    seconds: float = 0.0
    """Seconds of the part."""
    waits_for_rank: int | None = None
    """For waiting, the rank that arrives last. Absent = several ranks, or not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RankShares(Value):
    """How one rank's mean step is spent, in seconds.

    Seconds on the device are 0 if no work runs on a device. A step begins when the previous step ends, or else at its
    mark. It ends when its host and all work of its devices are done.
    """

    rank: int = 0
    """The rank."""
    step_seconds: float = 0.0
    """Seconds of the step."""
    compute_seconds: float = 0.0
    """Seconds of computation."""
    communication_seconds: float = 0.0
    """Seconds of communication, including waiting."""
    exposed_communication_seconds: float = 0.0
    """Seconds of communication that computation does not hide."""
    waiting_seconds: float = 0.0
    """Seconds of waiting for other ranks."""
    idle_seconds: float = 0.0
    """Seconds in which no work runs on the device."""
    host_bound_seconds: float = 0.0
    """Seconds in which the device waits for the host."""
    data_loading_seconds: float = 0.0
    """Seconds of waiting for data."""
    memory_high_water_bytes: float | None = None
    """Highest memory of the allocator, bytes. Absent = not recorded."""
    parts: tuple[StepPart, ...] = ()
    """Parts that add up to the step, the longest first."""
    step_ordinals: tuple[int, ...] = ()
    """Steps that the mean is taken over, as ordinals from 1. Empty = not known."""
    step_begin_nanoseconds: tuple[int, ...] = ()
    """When each step begins, nanoseconds since the first step of any rank began, as in a timeline."""
    step_duration_nanoseconds: tuple[int, ...] = ()
    """Duration of each step, nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisResult(Value):
    """The result of a diagnosis. Lists begin with the largest gain."""

    bottlenecks: tuple[Bottleneck, ...] = ()
    """Causes of lost time."""
    strategies: tuple[Strategy, ...] = ()
    """Changes that would shorten the step."""
    stragglers: tuple[Straggler, ...] = ()
    """Ranks that others wait for."""
    bound_by: StepBound | None = None
    """What bounds the step."""
    verdict: str = ""
    """The answer in one sentence."""
    step_seconds: float = 0.0
    """Mean seconds of a step."""
    persistence_seconds: float = 0.0
    """Mean absolute difference between a step and the mean of the others, seconds."""
    exposed_communication_seconds: float = 0.0
    """Seconds per step of transfer and waiting that no computation hides, mean over ranks."""
    rank_shares: tuple[RankShares, ...] = ()
    """How each rank's step is spent."""
    edges: tuple[EdgeCounts, ...] = ()
    """Edges of the graph, by kind."""
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader."""
    complete: bool = False
    """Whether the diagnosis is complete. False = its time ended first."""
    basis: DiagnosisBasis | None = None
    """What the answer is based on."""
    steps: StepsDiagnosis | None = None
    """Diagnosis of step times, if the request has since_seconds. All lists above are then empty."""

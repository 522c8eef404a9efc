"""AdminService: which plugins serve, how others take over while calls go on, and who may call.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.plugin import Plugin, PluginProblem
from nodewise_values.value import Value, Word

__all__ = [
    "CallerRole",
    "Canary",
    "CreateTokenRequest",
    "CreateTokenResponse",
    "EstimatorDifference",
    "EstimatorPrior",
    "Generation",
    "LearnedPriors",
    "ListGenerationsRequest",
    "ListGenerationsResponse",
    "ListPluginStatesRequest",
    "ListPluginStatesResponse",
    "ListPriorsRequest",
    "ListPriorsResponse",
    "ListTokensRequest",
    "ListTokensResponse",
    "PastLessons",
    "PluginDistribution",
    "PluginState",
    "PriorAction",
    "PriorEffect",
    "PromoteRequest",
    "PromoteResponse",
    "ReloadOutcome",
    "ReloadRequest",
    "ReloadResponse",
    "RevokeTokenRequest",
    "RevokeTokenResponse",
    "RollbackRequest",
    "RollbackResponse",
    "SetCanaryRequest",
    "SetCanaryResponse",
    "SetPriorRequest",
    "SetPriorResponse",
    "Token",
    "Tracks",
    "Trial",
    "TrimmedJob",
    "WorkerState",
]


class ReloadOutcome(Word):
    """What came of a call for another generation."""

    TAKEN = "taken"
    """It serves."""
    UNCHANGED = "unchanged"
    """Nothing differs from what serves."""
    FAILED = "failed"
    """It failed what it was tried with; nothing changed."""
    RESTARTING = "restarting"
    """What changed runs in the workers themselves: new ones are being started, one by one."""


class CallerRole(Word):
    """What a caller is there for."""

    READ = "read"
    """Asks: predictions, plans, diagnoses, profiles, listings."""
    INGEST = "ingest"
    """Writes to profiles, and retracts evidence."""
    SCHEDULE = "schedule"
    """Shares clusters among jobs, and simulates that."""
    ADMIN = "admin"
    """Does all of that, deletes profiles, and calls AdminService if it reaches all profiles."""


class PriorAction(Word):
    """What becomes of what a namespace learned."""

    PIN = "pin"
    """It stays as it is, whatever its jobs say from now on."""
    UNPIN = "unpin"
    """It learns from its jobs as they are."""
    ROLL_BACK = "roll_back"
    """It returns to what was learned before, and stays there."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginDistribution(Value):
    """A distribution that brings plugins, as a generation has it."""

    name: str = ""
    """Name."""
    version: str = ""
    """Version."""
    digest: str = ""
    """Digest of its files."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Generation(Value):
    """What is served together."""

    number: int = 0
    """Number, from 1 upwards. 0 = what is installed with the server, before there was any."""
    create_time: datetime | None = None
    """When it was made. Absent = it is what is installed."""
    why: str = ""
    """What made it, for people."""
    distributions: tuple[PluginDistribution, ...] = ()
    """Distributions besides those of the server's own environment, in whose place they stand."""
    catalog_digest: str = ""
    """Digest of its file of devices and links. Empty = the shipped facts alone."""
    trial: Trial | None = None
    """What came of trying it last. Absent = it was not tried."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trial(Value):
    """What came of trying a generation beside the one that served."""

    trial_time: datetime | None = None
    """When."""
    failures: tuple[str, ...] = ()
    """Why it was not taken; empty = nothing speaks against it."""
    notices: tuple[str, ...] = ()
    """What the operator should know."""
    checks_passed_count: int = 0
    """Conformance checks of changed plugins that passed."""
    checks_left_out_count: int = 0
    """Those for which there was no time."""
    differences: tuple[EstimatorDifference, ...] = ()
    """How its answers to recent requests differ, by estimator."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorDifference(Value):
    """How two generations answer the same requests."""

    estimator: str = ""
    """Estimator that was asked; "auto" = its choice."""
    version_before: str = ""
    """Version in the generation that served."""
    version_after: str = ""
    """Version in the other one."""
    requests_count: int = 0
    """Requests that both were asked."""
    rows_count: int = 0
    """Rows that both answered."""
    median_log_ratio: float = 0.0
    """Median over rows of |ln(throughput after / before)|."""
    largest_log_ratio: float = 0.0
    """Largest of them."""
    changed_refusals_count: int = 0
    """Rows, and whole requests, that one answered and the other refused."""
    failures_count: int = 0
    """Requests that the other one failed and the first did not."""
    median_seconds_before: float = 0.0
    """Median seconds of a request before."""
    median_seconds_after: float = 0.0
    """Median seconds of a request after."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Canary(Value):
    """A generation that answers a share of the jobs."""

    generation: int = 0
    """Generation."""
    share: float = 0.0
    """Share of the jobs, above 0 and below 1. A job stays on its track."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorkerState(Value):
    """What one process of the server serves."""

    process_id: int = 0
    """Process id."""
    stable_generation: int = 0
    """Generation of its stable track."""
    canary_generation: int = 0
    """Generation of its canary. 0 = none."""
    problem: str = ""
    """Why it does not serve what it should. Empty = it does."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tracks(Value):
    """Who serves whom."""

    stable_generation: int = 0
    """Generation of the default track. 0 = what is installed with the server."""
    canary: Canary | None = None
    """Absent = none."""
    candidate_generation: int = 0
    """Generation that the next Reload takes. 0 = none waits."""
    previous_generations: tuple[int, ...] = ()
    """Stable generations before this one, the last first."""
    workers: tuple[WorkerState, ...] = ()
    """Processes that have said what they serve."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListGenerationsRequest(Value):
    """Which generations."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListGenerationsResponse(Value):
    """Generations."""

    generations: tuple[Generation, ...] = ()
    """The newest first."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
    tracks: Tracks | None = None
    """Who serves whom."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReloadRequest(Value):
    """What is to take over."""

    generation: int | None = None
    """Generation. Absent = the one that waits, else what is installed or written by now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReloadResponse(Value):
    """What came of it."""

    outcome: ReloadOutcome | None = None
    """Outcome."""
    generation: int = 0
    """Generation that was tried, or serves already."""
    generation_before: int = 0
    """Generation that served before."""
    trial: Trial | None = None
    """What trying it showed."""
    tracks: Tracks | None = None
    """Who serves whom now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetCanaryRequest(Value):
    """What is to answer a share of the jobs."""

    generation: int | None = None
    """Generation. Absent = the one that waits for a reload."""
    share: float = 0.0
    """Share of the jobs, above 0 and below 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetCanaryResponse(Value):
    """What came of it."""

    outcome: ReloadOutcome | None = None
    """TAKEN or FAILED."""
    generation: int = 0
    """Generation that was tried."""
    trial: Trial | None = None
    """What trying it showed."""
    tracks: Tracks | None = None
    """Who serves whom now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromoteRequest(Value):
    """No more to say: there is one canary at most."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromoteResponse(Value):
    """What came of it."""

    generation: int = 0
    """Generation that serves."""
    tracks: Tracks | None = None
    """Who serves whom now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackRequest(Value):
    """No more to say."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackResponse(Value):
    """What came of it."""

    outcome: ReloadOutcome | None = None
    """TAKEN or FAILED."""
    generation: int = 0
    """Generation that serves."""
    failures: tuple[str, ...] = ()
    """Why it was not taken; empty = it was."""
    tracks: Tracks | None = None
    """Who serves whom now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginStatesRequest(Value):
    """No more to say."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginStatesResponse(Value):
    """How plugins fare."""

    plugins: tuple[PluginState, ...] = ()
    """By track, kind and name."""
    problems: tuple[PluginProblem, ...] = ()
    """Plugins of the stable track that were left out."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginState(Value):
    """How a plugin fares in the process that answers."""

    plugin: Plugin | None = None
    """The plugin."""
    generation: int = 0
    """Generation that has it."""
    track: str = ""
    """Track, "canary" or empty for the default one."""
    serving: bool = False
    """Whether it is asked: false while it fails too often, until a probe succeeds."""
    calls_count: int = 0
    """Calls that it was asked since it was loaded."""
    failures_count: int = 0
    """Those that failed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Token(Value):
    """A bearer token, without its text."""

    token_id: str = ""
    """Names it; the token's text has it after its first word."""
    description: str = ""
    """For people."""
    roles: tuple[CallerRole | None, ...] = ()
    """What it is for."""
    prefixes: tuple[str, ...] = ()
    """Profiles that it reaches, by the first segments of their names, such as "team-a/". Empty = all."""
    create_time: datetime | None = None
    """When it was made."""
    expire_time: datetime | None = None
    """When it expires. Absent = never."""
    revoke_time: datetime | None = None
    """When it was revoked. Absent = it was not."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CreateTokenRequest(Value):
    """What a new token is for."""

    description: str = ""
    """For people."""
    roles: tuple[CallerRole | None, ...] = ()
    """What it is for: at least one."""
    prefixes: tuple[str, ...] = ()
    """Profiles that it reaches, by whole segments at the start of their names.

    Profiles that it reaches, by whole segments at the start of their names: "team-a" and "team-a/" reach
    "team-a/vgg16", and not "team-ab/vgg16". At least one; "*" = all profiles.
    """
    lifetime_seconds: float | None = None
    """How long it is taken. Absent = 90 days."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CreateTokenResponse(Value):
    """The token."""

    token: Token | None = None
    """What is kept of it."""
    bearer_token: str = ""
    """Its text, to be sent as the metadata "authorization: Bearer TEXT". It is told here alone."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListTokensRequest(Value):
    """Which tokens."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""
    show_ended: bool = False
    """Those as well that expired or were revoked, until the operator purges them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListTokensResponse(Value):
    """Tokens."""

    tokens: tuple[Token, ...] = ()
    """By the time that they were made."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RevokeTokenRequest(Value):
    """Which token is to end."""

    token_id: str = ""
    """Its id."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RevokeTokenResponse(Value):
    """What was revoked."""

    token: Token | None = None
    """The token."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PriorEffect(Value):
    """What estimators answer with by what was learned, against what they would by what ships.

    What estimators answer with by what was learned, against what they would by what ships: scores of observations that
    arrived later, as of running scores, since the process that answers began.
    """

    observations_count: int = 0
    """Observations that both were scored on."""
    mean_absolute_log_error: float = 0.0
    """Mean |ln(predicted / measured)| of steps/s with what was learned."""
    mean_absolute_log_error_without: float = 0.0
    """The same without it."""
    coverage: float | None = None
    """Share of the observations within their 90 % intervals, with it. Absent = there were no intervals."""
    coverage_without: float | None = None
    """The same without it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorPrior(Value):
    """What one estimator learned."""

    estimator: str = ""
    """Estimator."""
    prior_id: str = ""
    """As bases of answers name it. Empty = it has none; each job's own evidence answers."""
    sources: tuple[str, ...] = ()
    """What it was learned from, for people."""
    spread_factor: float = 0.0
    """Factor on its spreads, by how far off it was on the namespace's jobs. 1 = it was tried on none."""
    tried_jobs_count: int = 0
    """Jobs that it was tried on."""
    effect: PriorEffect | None = None
    """Absent = nothing arrived since, or it answers as by what ships."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrimmedJob(Value):
    """A job of which nothing, or not all, is learned."""

    profile_id: str = ""
    """Its profile."""
    reason: str = ""
    """The rule that it contradicts, and what it states."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PastLessons(Value):
    """Lessons that a namespace can return to."""

    lessons_id: str = ""
    """Names them."""
    learn_time: datetime | None = None
    """When they were learned first."""
    profiles_count: int = 0
    """Profiles that they were learned from, those of others too."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LearnedPriors(Value):
    """What a namespace learned."""

    namespace: str = ""
    """First segment of the ids of its profiles.

    Empty = ids without a slash; "*" = whatever has no lessons of its own, and profiles that are not stored.
    """
    lessons_id: str = ""
    """Names what it was learned from: same id, same lessons."""
    learn_time: datetime | None = None
    """When it was learned first."""
    pin_time: datetime | None = None
    """When it was pinned. Absent = it is not pinned."""
    jobs_count: int = 0
    """Jobs that taught, those of other owners too."""
    owners_count: int = 0
    """Whose jobs these are: namespaces, and each id without a slash."""
    profile_ids: tuple[str, ...] = ()
    """The namespace's own jobs among them."""
    trimmed_jobs: tuple[TrimmedJob, ...] = ()
    """Its own jobs that contradict physics."""
    groups_count: int = 0
    """Groups of other owners that move its answers within bounds. 0 = nobody else does."""
    lost_profiles_count: int = 0
    """Profiles that it is pinned to and that are no more: what is left of them teaches."""
    priors: tuple[EstimatorPrior, ...] = ()
    """By estimator."""
    past: tuple[PastLessons, ...] = ()
    """What it can return to, the last first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPriorsRequest(Value):
    """Whose."""

    namespace: str | None = None
    """Namespace. Absent = all."""
    page_size: int | None = None
    """At most this many namespaces, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPriorsResponse(Value):
    """What was learned."""

    learned: tuple[LearnedPriors, ...] = ()
    """By namespace."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
    shared_namespaces: tuple[str, ...] = ()
    """Namespaces whose jobs move each other's answers, within bounds; "*" = all. Empty = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetPriorRequest(Value):
    """What is to become of what a namespace learned."""

    namespace: str = ""
    """Namespace, as listed."""
    action: PriorAction | None = None
    """What."""
    lessons_id: str | None = None
    """Of ROLL_BACK: lessons to return to, as listed, or "shipped". Absent = those before the present ones."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetPriorResponse(Value):
    """What came of it."""

    learned: LearnedPriors | None = None
    """As it is now."""

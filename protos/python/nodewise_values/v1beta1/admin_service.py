"""AdminService: which plugins serve, how others replace them while calls continue, and which callers have access.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """Outcome of a call that changes the serving generation."""

    TAKEN = "taken"
    """The generation serves."""
    UNCHANGED = "unchanged"
    """The generation does not differ from the serving one."""
    FAILED = "failed"
    """The generation failed its trial; nothing changed."""
    RESTARTING = "restarting"
    """The changed plugins run inside the workers. The server replaces the workers one by one."""


class CallerRole(Word):
    """What a caller may do."""

    READ = "read"
    """Call methods that only read: predictions, plans, diagnoses, profiles, listings."""
    INGEST = "ingest"
    """Write to profiles, and retract evidence."""
    SCHEDULE = "schedule"
    """Schedule and simulate clusters."""
    ADMIN = "admin"
    """All of these, and delete profiles; with access to all profiles, also call AdminService."""


class PriorAction(Word):
    """Change to what a namespace learned."""

    PIN = "pin"
    """Keep what was learned, regardless of later evidence."""
    UNPIN = "unpin"
    """Learn from the namespace's jobs again."""
    ROLL_BACK = "roll_back"
    """Return to what was learned before, and keep that."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginDistribution(Value):
    """A distribution that provides plugins, as part of a generation."""

    name: str = ""
    """Name of the distribution."""
    version: str = ""
    """Version of the distribution."""
    digest: str = ""
    """Digest of the distribution's files."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Generation(Value):
    """Distributions and a catalog that are served together."""

    number: int = 0
    """Number of the generation, from 1.

    0 = the plugins installed with the server, before any generation was created.
    """
    create_time: datetime | None = None
    """When it was created. Absent = it is what was installed with the server."""
    why: str = ""
    """Why it was created, for people."""
    distributions: tuple[PluginDistribution, ...] = ()
    """Distributions that the generation adds to the server's environment, or replaces there."""
    catalog_digest: str = ""
    """Digest of its file of devices and links. Empty = only the shipped facts."""
    trial: Trial | None = None
    """Result of its last trial. Absent = it was not tried."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trial(Value):
    """Result of trying a generation beside the serving one."""

    trial_time: datetime | None = None
    """When it was tried."""
    failures: tuple[str, ...] = ()
    """Why it was rejected. Empty = nothing was wrong."""
    notices: tuple[str, ...] = ()
    """Notices for the operator."""
    checks_passed_count: int = 0
    """Conformance checks of changed plugins that passed."""
    checks_left_out_count: int = 0
    """Conformance checks that were skipped for lack of time."""
    differences: tuple[EstimatorDifference, ...] = ()
    """Differences between its answers to recent requests and those of the serving generation, by estimator."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorDifference(Value):
    """Differences between the answers of two generations to the same requests."""

    estimator: str = ""
    """Estimator that the requests named; "auto" = the service's choice."""
    version_before: str = ""
    """Version in the serving generation."""
    version_after: str = ""
    """Version in the new generation."""
    requests_count: int = 0
    """Requests that both generations were sent."""
    rows_count: int = 0
    """Rows that both generations answered."""
    median_log_ratio: float = 0.0
    """Median over rows of |ln(throughput after / before)|."""
    largest_log_ratio: float = 0.0
    """Largest |ln(throughput after / before)| of any row."""
    changed_refusals_count: int = 0
    """Rows, and whole requests, that one generation answered and the other refused."""
    failures_count: int = 0
    """Requests that failed in the new generation but not in the serving one."""
    median_seconds_before: float = 0.0
    """Median seconds of a request in the serving generation."""
    median_seconds_after: float = 0.0
    """Median seconds of a request in the new generation."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Canary(Value):
    """A generation that answers a share of the jobs."""

    generation: int = 0
    """Number of the generation."""
    share: float = 0.0
    """Share of the jobs that it answers, above 0 and below 1. A job always stays on its track."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorkerState(Value):
    """State of one process of the server."""

    process_id: int = 0
    """Process id."""
    stable_generation: int = 0
    """Generation of its stable track."""
    canary_generation: int = 0
    """Generation of its canary. 0 = none."""
    problem: str = ""
    """Why the process does not serve the intended generations. Empty = it does."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tracks(Value):
    """Generation on each track."""

    stable_generation: int = 0
    """Generation on the default track. 0 = the plugins installed with the server."""
    canary: Canary | None = None
    """Generation on the canary track. Absent = none."""
    candidate_generation: int = 0
    """Pending generation, which the next Reload takes. 0 = none."""
    previous_generations: tuple[int, ...] = ()
    """Earlier stable generations, the latest first."""
    workers: tuple[WorkerState, ...] = ()
    """Processes that have reported their state."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListGenerationsRequest(Value):
    """Lists generations."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListGenerationsResponse(Value):
    """A page of generations."""

    generations: tuple[Generation, ...] = ()
    """Generations, the newest first."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
    tracks: Tracks | None = None
    """Generation on each track."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReloadRequest(Value):
    """Names the generation that should serve."""

    generation: int | None = None
    """Number of the generation. Absent = the pending one, else what is installed now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReloadResponse(Value):
    """Result of a reload."""

    outcome: ReloadOutcome | None = None
    """Outcome of the reload."""
    generation: int = 0
    """Generation that was tried, or that already serves."""
    generation_before: int = 0
    """Generation that served before."""
    trial: Trial | None = None
    """Result of the trial."""
    tracks: Tracks | None = None
    """Generation on each track after the call."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetCanaryRequest(Value):
    """Names the generation that should answer a share of the jobs."""

    generation: int | None = None
    """Number of the generation. Absent = the pending one."""
    share: float = 0.0
    """Share of the jobs that it answers, above 0 and below 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetCanaryResponse(Value):
    """Result of starting a canary."""

    outcome: ReloadOutcome | None = None
    """TAKEN or FAILED."""
    generation: int = 0
    """Generation that was tried."""
    trial: Trial | None = None
    """Result of the trial."""
    tracks: Tracks | None = None
    """Generation on each track after the call."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromoteRequest(Value):
    """An empty request: there is at most one canary."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromoteResponse(Value):
    """Result of a promotion."""

    generation: int = 0
    """Generation that serves after the call."""
    tracks: Tracks | None = None
    """Generation on each track after the call."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackRequest(Value):
    """An empty request."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackResponse(Value):
    """Result of a rollback."""

    outcome: ReloadOutcome | None = None
    """TAKEN or FAILED."""
    generation: int = 0
    """Generation that serves after the call."""
    failures: tuple[str, ...] = ()
    """Why the earlier generation was rejected. Empty = it serves."""
    tracks: Tracks | None = None
    """Generation on each track after the call."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginStatesRequest(Value):
    """An empty request."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginStatesResponse(Value):
    """States of all plugins."""

    plugins: tuple[PluginState, ...] = ()
    """Plugins by track, kind and name."""
    problems: tuple[PluginProblem, ...] = ()
    """Plugins of the stable track that could not be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginState(Value):
    """State of a plugin in the process that answers the call."""

    plugin: Plugin | None = None
    """The plugin."""
    generation: int = 0
    """Generation that the plugin belongs to."""
    track: str = ""
    """Track of the plugin: "canary", or empty for the default track."""
    serving: bool = False
    """Whether the server calls the plugin. False while it fails too often, until a probe succeeds."""
    calls_count: int = 0
    """Calls to the plugin since it was loaded."""
    failures_count: int = 0
    """Calls that failed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Token(Value):
    """A bearer token, without its text."""

    token_id: str = ""
    """Id of the token. The token's text contains it after the first word."""
    description: str = ""
    """Description, for people."""
    roles: tuple[CallerRole | None, ...] = ()
    """What callers with the token may do."""
    prefixes: tuple[str, ...] = ()
    """Profiles that the token gives access to, by the first segments of their names, such as "team-a/".

    Empty = all profiles.
    """
    create_time: datetime | None = None
    """When it was created."""
    expire_time: datetime | None = None
    """When it expires. Absent = never."""
    revoke_time: datetime | None = None
    """When it was revoked. Absent = it is not revoked."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CreateTokenRequest(Value):
    """Creates a token."""

    description: str = ""
    """Description, for people."""
    roles: tuple[CallerRole | None, ...] = ()
    """What callers with the token may do: at least one role."""
    prefixes: tuple[str, ...] = ()
    """Profiles that the token gives access to, by whole segments at the start of their names.

    Profiles that the token gives access to, by whole segments at the start of their names: "team-a" and "team-a/"
    include "team-a/vgg16", but not "team-ab/vgg16". At least one; "*" = all profiles.
    """
    lifetime_seconds: float | None = None
    """Seconds until the token expires. Absent = 90 days."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CreateTokenResponse(Value):
    """The new token."""

    token: Token | None = None
    """The stored token, without its text."""
    bearer_token: str = ""
    """Text of the token, to send as the metadata "authorization: Bearer TEXT". No other reply holds it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListTokensRequest(Value):
    """Lists tokens."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""
    show_ended: bool = False
    """Whether to list expired and revoked tokens as well, until the operator purges them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListTokensResponse(Value):
    """A page of tokens."""

    tokens: tuple[Token, ...] = ()
    """Tokens by creation time."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RevokeTokenRequest(Value):
    """Revokes a token."""

    token_id: str = ""
    """Id of the token."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RevokeTokenResponse(Value):
    """The revoked token."""

    token: Token | None = None
    """The token."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PriorEffect(Value):
    """Effect of the learned prior: errors with it, and errors that the shipped prior would have made.

    They are scored on observations that arrived later, as running scores are, since the process that answers started.
    """

    observations_count: int = 0
    """Observations that both were scored on."""
    mean_absolute_log_error: float = 0.0
    """Mean |ln(predicted / measured)| of steps per second, with the learned prior."""
    mean_absolute_log_error_without: float = 0.0
    """The same mean, with the shipped prior."""
    coverage: float | None = None
    """Share of the observations within their 90 % intervals, with the learned prior.

    Absent = there were no intervals.
    """
    coverage_without: float | None = None
    """The same share, with the shipped prior."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorPrior(Value):
    """What one estimator learned."""

    estimator: str = ""
    """Name of the estimator."""
    prior_id: str = ""
    """Id of the prior, as bases of answers name it.

    Empty = the estimator has none, and answers from each job's own evidence.
    """
    sources: tuple[str, ...] = ()
    """What it was learned from, for people."""
    spread_factor: float = 0.0
    """Factor on the estimator's spreads, computed from its errors on the namespace's jobs.

    1 = it was tested on none.
    """
    tried_jobs_count: int = 0
    """Number of jobs that the estimator was tested on."""
    effect: PriorEffect | None = None
    """Effect of the prior. Absent = no observation arrived since, or answers equal those with the shipped prior."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrimmedJob(Value):
    """A job from which estimators learn nothing, or only in part."""

    profile_id: str = ""
    """Name of the job's profile."""
    reason: str = ""
    """The physical rule that the job contradicts, and what the job states."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PastLessons(Value):
    """An earlier state of what a namespace learned, which it can return to."""

    lessons_id: str = ""
    """Id of this state."""
    learn_time: datetime | None = None
    """When it was first learned."""
    profiles_count: int = 0
    """Number of profiles that it was learned from, including those of other namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LearnedPriors(Value):
    """What a namespace learned."""

    namespace: str = ""
    """First segment of the ids of the namespace's profiles.

    Empty = ids without a slash; "*" = namespaces that learned nothing of their own, and profiles that are not stored.
    """
    lessons_id: str = ""
    """Id of what was learned; equal ids mean equal content."""
    learn_time: datetime | None = None
    """When it was first learned."""
    pin_time: datetime | None = None
    """When it was pinned. Absent = it is not pinned."""
    jobs_count: int = 0
    """Number of jobs that it was learned from, including those of other owners."""
    owners_count: int = 0
    """Number of owners of these jobs: namespaces, and each id without a slash."""
    profile_ids: tuple[str, ...] = ()
    """The namespace's own jobs among them."""
    trimmed_jobs: tuple[TrimmedJob, ...] = ()
    """The namespace's own jobs that contradict physics."""
    groups_count: int = 0
    """Number of groups of other owners that influence its answers, within bounds. 0 = no other owner does."""
    lost_profiles_count: int = 0
    """Profiles that it is pinned to but that no longer exist. The remaining ones are used."""
    priors: tuple[EstimatorPrior, ...] = ()
    """What each estimator learned."""
    past: tuple[PastLessons, ...] = ()
    """Earlier states that it can return to, the latest first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPriorsRequest(Value):
    """Lists what namespaces learned."""

    namespace: str | None = None
    """Namespace to list. Absent = all."""
    page_size: int | None = None
    """Most namespaces in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPriorsResponse(Value):
    """A page of what namespaces learned."""

    learned: tuple[LearnedPriors, ...] = ()
    """What each namespace learned, by namespace."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
    shared_namespaces: tuple[str, ...] = ()
    """Namespaces whose jobs influence each other's answers, within bounds; "*" = all. Empty = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetPriorRequest(Value):
    """Changes what a namespace learned."""

    namespace: str = ""
    """Namespace, as in the listing."""
    action: PriorAction | None = None
    """The change."""
    lessons_id: str | None = None
    """For ROLL_BACK, the id of the state to return to, as in the listing, or "shipped".

    Absent = the state before the present one.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetPriorResponse(Value):
    """Result of the change."""

    learned: LearnedPriors | None = None
    """What the namespace has learned after the call."""

"""The interface of profile stores, for any database."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.profile import Profile
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.batches import Batch
from nodewise.profiles.quotas import DEFAULT_QUOTAS, StoreQuotas, Usage
from nodewise.profiles.traces import TraceStore

if TYPE_CHECKING:
    from nodewise.profiles.ledger import ScoreLedger
    from nodewise.profiles.step_reports import StepLedger
    from nodewise.profiles.tokens import TokenLedger

__all__ = [
    "DEFAULT_DELETED_KEPT_S",
    "AppendRequest",
    "DeleteRequest",
    "Durability",
    "Evidence",
    "Label",
    "Outcome",
    "ProfileStore",
    "ProfileSummary",
    "Retention",
    "RetractRequest",
    "SessionStatus",
    "StoreFormatError",
    "StoreOptions",
    "UndeleteRequest",
    "WriteRequest",
    "profile_not_found",
    "revision_not_found",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The status of a session and its profile.

    Attributes
    ----------
    durable_sequence_number : int
        Highest number stored durably together with all before it; 0 = none.
    committed_sequence_number : int
        Highest number covered by a commit of this session; 0 = none.
    revision, observations_count : int
        Of the profile; 0 = nothing was ever committed. Retracted observations do not count.
    """

    durable_sequence_number: int = 0
    committed_sequence_number: int = 0
    revision: int = 0
    observations_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSummary:
    """A stored profile without its content; times in seconds since 1970, those of its deletion 0 if it was not."""

    profile_id: str
    uid: str
    revision: int
    digest: str
    create_time_s: float
    update_time_s: float
    observations_count: int
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    delete_time_s: float = 0.0
    purge_time_s: float = 0.0

    @staticmethod
    def of(profile: Profile) -> ProfileSummary:
        """The summary of a loaded profile."""
        own: dict[str, Any] = {f.name: getattr(profile, f.name, f.default) for f in fields(ProfileSummary)}
        return ProfileSummary(**own | {"observations_count": len(profile.observations)})

    @property
    def etag(self) -> str:
        """Changes with every revision; the same as the profile's."""
        return f"{self.uid}-{self.revision}"


@dataclass(frozen=True, slots=True, eq=False)
class AppendRequest:
    """Append batches to a session; answered with a SessionStatus. ``prepared``: :meth:`ProfileStore.prepare` ran."""

    profile_id: str
    session_id: str
    batches: Sequence[Batch]
    prepared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Pieces of a profile's evidence, in ascending order and each once.

    Attributes
    ----------
    observations, phase_timings : tuple of int
        By number.
    facts : tuple of str
        By path, e.g. ``workload.parameter_bytes``, with the names of :class:`Workload` and :class:`Network`.
    traces : tuple of str
        By the SHA-256 of their bytes.
    shared_runs : tuple of str
        By their ``content_sha256``.
    """

    observations: tuple[int, ...] = ()
    phase_timings: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    shared_runs: tuple[str, ...] = ()

    @staticmethod
    def of(
        observations: Iterable[int] = (),
        phase_timings: Iterable[int] = (),
        facts: Iterable[str] = (),
        traces: Iterable[str] = (),
        shared_runs: Iterable[str] = (),
    ) -> Evidence:
        """Evidence from names in any order, with duplicates."""
        return Evidence(
            observations=tuple(sorted({int(number) for number in observations})),
            phase_timings=tuple(sorted({int(number) for number in phase_timings})),
            facts=tuple(sorted(set(facts))),
            traces=tuple(sorted(set(traces))),
            shared_runs=tuple(sorted(set(shared_runs))),
        )

    def __bool__(self) -> bool:
        return bool(self.observations or self.phase_timings or self.facts or self.traces or self.shared_runs)


@dataclass(frozen=True, slots=True)
class RetractRequest:
    """Retract evidence; answered with a ProfileSummary."""

    profile_id: str
    request_id: str
    evidence: Evidence
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """Delete a profile, whatever its etag if that is None; answered with a ProfileSummary."""

    profile_id: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class UndeleteRequest:
    """Bring a deleted profile back; answered with a ProfileSummary."""

    profile_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long things are kept, in seconds; None = for ever.

    Attributes
    ----------
    profiles_s : float or None
        Since a profile's last change; it is deleted then, and can be brought back like any other.
    observations_s : float or None
        Since the commit of an observation; it is retracted then.
    traces_s : float or None
        Of a trace that nothing refers to, since it was stored.
    """

    profiles_s: float | None = None
    observations_s: float | None = None
    traces_s: float | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.profiles_s, self.observations_s, self.traces_s))


WriteRequest = AppendRequest | RetractRequest | DeleteRequest | UndeleteRequest
Outcome = SessionStatus | ProfileSummary | NodewiseError
Label = tuple[str, str | None]
"""A key and the value to match; None = any value."""

DEFAULT_DELETED_KEPT_S: Final = 86_400.0
Durability = Literal["process", "power"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How a store is opened.

    Attributes
    ----------
    durability : "process" or "power"
        What acknowledged batches survive: a crash of every process (fast), or also a power loss (every commit
        waits for the disk).
    traces : TraceStore or None
        Where traces go, closed with the store; None = beside the rows, or in a temporary directory. PostgreSQL needs
        one.
    scored : bool
        Whether commits are queued for scoring.
    artefact_bytes : int
        Most bytes of artefacts of traces, where ``traces`` is None.
    deleted_kept_s : float
        How long deleted profiles can be brought back.
    quotas : StoreQuotas
        Quotas of namespaces.
    now : callable
        Seconds since 1970.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for another durability.
    """

    durability: Durability = "process"
    traces: TraceStore | None = None
    scored: bool = True
    artefact_bytes: int = DEFAULT_ARTEFACT_BYTES
    deleted_kept_s: float = DEFAULT_DELETED_KEPT_S
    quotas: StoreQuotas = DEFAULT_QUOTAS
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if self.durability not in {"process", "power"}:
            raise invalid_field("durability", "must be 'process' or 'power'")


class ProfileStore(Protocol):
    """Stores profiles as batches, in order of commits. Safe from many threads and processes; may block.

    Methods that write one thing call :meth:`apply` with one request; subclasses inherit them.

    A session's batches are numbered from 1 and stored in that order. They count from the batch with ``commit`` that
    ends their unit: then everything that the session staged since its last commit enters the profile at once and the
    revision moves by one. A commit with nothing staged changes nothing but the session's numbers; it creates no
    profile. Every method raises NodewiseError STORE_UNAVAILABLE if the database does not answer.
    """

    traces: TraceStore
    """The traces that profiles refer to."""
    scores: ScoreLedger
    """Running scores, and the commits that wait for them."""
    steps: StepLedger
    """Times of steps of running jobs."""
    tokens: TokenLedger | None = None
    """Bearer tokens; None = this kind of store keeps none."""

    def open_session(self, profile_id: str, session_id: str) -> SessionStatus:
        """The status of a session; zeros for a session or profile that does not exist. Writes nothing."""

    def append(self, profile_id: str, session_id: str, batches: Sequence[Batch]) -> SessionStatus:
        """Store batches in one transaction; durable when it returns. All of them are stored or none.

        A batch whose number is stored already with the same content is skipped.

        Raises
        ------
        NodewiseError
            BATCH_OUT_OF_ORDER for a gap, with ``expected_sequence_number`` (1 also after the profile was deleted);
            BATCH_CONFLICT for a number stored with other content; CONTRADICTORY_FACTS for facts that disagree with what
            was committed to the profile or staged by this session (if another session committed such facts in between,
            the staged ones can never be committed: start another session); INVALID_FIELD and LIMIT_EXCEEDED for numbers
            that are not finite, for trace chunks that do not continue their trace, and for a commit before a trace has
            ended; QUOTA_EXCEEDED, naming the quota.
        """
        status: SessionStatus = _only(self.apply([AppendRequest(profile_id, session_id, batches)]))
        return status

    def load(self, profile_id: str, last_read: Profile | None = None, revision: int | None = None) -> Profile:
        """The profile at its newest revision, or as it was at an earlier one.

        ``last_read`` is the result of an earlier call: it is returned again if it has the revision, and otherwise only
        later commits are read, if it is older.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND; REVISION_NOT_FOUND for a revision that the profile has not reached.
        """

    def list(
        self,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
        labels: Sequence[Label] = (),
        *,
        deleted: bool = False,
    ) -> tuple[ProfileSummary, ...]:
        """Profiles by name in code point order: those that start with ``prefix`` and come after ``after``.

        Parameters
        ----------
        labels : sequence of Label
            All of them must hold.
        deleted : bool
            Also the deleted profiles that can be brought back.
        """

    def changes(self, since: int, prefix: str = "") -> tuple[int, tuple[ProfileSummary, ...]]:
        """The current generation, and the profiles that changed after an earlier one, deleted ones too.

        Of a deleted profile and a newer one of its name, the newer comes later.
        """

    def delete(self, profile_id: str, etag: str | None = None) -> ProfileSummary:
        """Delete a profile with all its sessions; until it is purged, :meth:`undelete` can bring it back.

        Repeating a deletion with the same etag changes nothing.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND; ETAG_MISMATCH if an etag is given and it is not the newest.
        """
        summary: ProfileSummary = _only(self.apply([DeleteRequest(profile_id, etag)]))
        return summary

    def undelete(self, profile_id: str) -> ProfileSummary:
        """Bring back the profile that was deleted last; a profile that is not deleted stays as it is.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, also if a new profile of that name was begun.
        """
        summary: ProfileSummary = _only(self.apply([UndeleteRequest(profile_id)]))
        return summary

    def retract(self, profile_id: str, request_id: str, evidence: Evidence, reason: str = "") -> ProfileSummary:
        """Retract evidence from the profile, which gets a new revision. The evidence stays in its history.

        Repeating a request changes nothing and returns the current profile. A fact may be stated again
        afterwards, with another value too, and a trace may be sent again.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND; INVALID_FIELD for no evidence; EVIDENCE_NOT_FOUND, naming what the profile does not hold
            or no longer holds; REQUEST_ID_REUSED for a request id that retracted other evidence.
        """
        summary: ProfileSummary = _only(self.apply([RetractRequest(profile_id, request_id, evidence, reason)]))
        return summary

    def prepare(self, request: AppendRequest) -> None:
        """Do the work of an append outside the database, so that its transaction is short. Writes no row.

        :meth:`apply` prepares requests that are not prepared. Raises as that does.
        """

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """Several writes, in one transaction if the database can, each with its own outcome.

        An error fails its own request. Errors are returned, not raised.
        """

    def usage(self) -> Mapping[str, Usage]:
        """Usage of each namespace that stores anything; empty where a store does not count."""
        return {}

    def generation(self) -> Hashable:
        """A token that is cheap to read, and differs from all earlier ones after any process changed a profile.

        Writes through this object show at once, and all writes do where processes share a file. Across
        machines they may show a few seconds later; the store states how many.
        """

    def changed_since(self, generation: Hashable) -> frozenset[str] | None:  # noqa: ARG002  # the protocol's
        """Names of profiles that changed after an earlier generation; None = any profile may have changed.

        Called on the event loop: a store that would wait for a network returns None.
        """
        return None

    def check(self) -> None:
        """Check that the store can be read and written now; called every second, by each process.

        Raises
        ------
        NodewiseError
            STORE_UNAVAILABLE, with the metadata ``cause``, one of the words of ``condition``.
        """
        self.generation()

    def inspect(self, rest: Callable[[], bool]) -> int:  # noqa: ARG002  # others have steps
        """Check all stored data for damage, in small steps; returns the number of damaged pieces.

        Parameters
        ----------
        rest : callable
            Called between steps, and pauses as needed; False = stop here.
        """
        return 0

    def keep(self, rules: Retention) -> Mapping[str, int]:  # noqa: ARG002  # others may let go
        """Delete what the rules say, a little in each transaction; returns the numbers by kind.

        Profiles deleted so can be brought back like others, and no trace is deleted that anything refers to.
        """
        return {}

    def claim(self, task: str, lease_s: float) -> bool:  # noqa: ARG002  # a store of one process needs no lease
        """Claim a task for this process until the lease ends; False = another process of the store holds it."""
        return True

    def close(self) -> None:
        """Release files and connections. Later calls raise STORE_UNAVAILABLE."""


def _only(outcomes: Sequence[Outcome]) -> Any:
    """The result of a single request; raises its error."""
    (outcome,) = outcomes
    if isinstance(outcome, NodewiseError):
        raise outcome
    return outcome


class StoreFormatError(Exception):
    """The file is not a store of Nodewise, or has the schema of a newer release; the text is for the operator."""


def profile_not_found(profile_id: str) -> NodewiseError:
    """The error for a profile that is not stored."""
    return NodewiseError(Reason.PROFILE_NOT_FOUND, f"no profile is named {profile_id!r}", {"profile_id": profile_id})


def revision_not_found(profile_id: str, revision: int) -> NodewiseError:
    """The error for a revision that the profile never had, or no longer has."""
    return NodewiseError(
        Reason.REVISION_NOT_FOUND,
        f"profile {profile_id!r} has no revision {revision}",
        {"profile_id": profile_id, "revision": str(revision)},
    )

"""What a store of profiles offers, whatever database is behind it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.profiles.batches import Batch
from nodewise.profiles.ledger import ScoreLedger
from nodewise.profiles.traces import TraceStore

__all__ = [
    "AppendRequest",
    "DeleteRequest",
    "Outcome",
    "ProfileStore",
    "ProfileSummary",
    "RetractRequest",
    "SessionStatus",
    "StoreFormatError",
    "WriteRequest",
    "profile_not_found",
    "store_unavailable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Where a session and its profile stand.

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
    """A stored profile without its content; times in seconds since 1970."""

    profile_id: str
    uid: str
    revision: int
    digest: str
    create_time_s: float
    update_time_s: float
    observations_count: int

    @property
    def etag(self) -> str:
        """Changes with every revision; the same as the profile's."""
        return f"{self.uid}-{self.revision}"


@dataclass(frozen=True, slots=True, eq=False)
class AppendRequest:
    """Append batches to a session; answered with a SessionStatus."""

    profile_id: str
    session_id: str
    batches: Sequence[Batch]


@dataclass(frozen=True, slots=True)
class RetractRequest:
    """Retract observations; answered with a ProfileSummary."""

    profile_id: str
    request_id: str
    numbers: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """Delete a profile, whatever its etag if that is None; answered with None."""

    profile_id: str
    etag: str | None = None


WriteRequest = AppendRequest | RetractRequest | DeleteRequest
Outcome = SessionStatus | ProfileSummary | NodewiseError | None


class ProfileStore(Protocol):
    """Stores profiles as what was sent, in the order of commits. Safe from many threads and processes; may block.

    A session's batches are numbered from 1 and stored in that order. They count from the batch with ``commit`` on that
    ends their unit: then everything that the session staged since its last commit enters the profile at once and the
    revision moves by one. A commit with nothing staged changes nothing but the session's numbers; it creates no
    profile. Every method raises NodewiseError STORE_UNAVAILABLE if the database does not answer.
    """

    @property
    def traces(self) -> TraceStore:
        """Where the traces are that profiles refer to."""
        ...

    @property
    def scores(self) -> ScoreLedger:
        """Running scores, and the commits that wait for them."""
        ...

    def open_session(self, profile_id: str, session_id: str) -> SessionStatus:
        """Where to go on; zeros for a session or profile that does not exist. Writes nothing."""
        ...

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
            ended.
        """
        ...

    def load(self, profile_id: str, known: Profile | None = None, revision: int | None = None) -> Profile:
        """The profile at its newest revision, or at an earlier one: then it is as it was returned at that time.

        ``known`` is what an earlier call returned: it is returned again if it is what is asked for, and otherwise only
        what came after it is read, if it is older.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, also for a revision that the profile has not reached.
        """
        ...

    def list(self, prefix: str = "", after: str = "", limit: int = 100) -> tuple[ProfileSummary, ...]:
        """Profiles by name in code point order: those that start with ``prefix`` and come after ``after``."""
        ...

    def delete(self, profile_id: str, etag: str | None = None) -> None:
        """Delete a profile and all its sessions, staged batches included.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND; ETAG_MISMATCH if an etag is given and it is not the newest.
        """
        ...

    def retract(self, profile_id: str, request_id: str, numbers: Sequence[int], reason: str = "") -> ProfileSummary:
        """Take observations out of the profile; the revision moves by one. They stay in its history.

        The same request again changes nothing and answers the profile as it is now.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND; INVALID_FIELD for no numbers; OBSERVATION_NOT_FOUND, naming the ``numbers`` that the
            profile does not hold or no longer holds; BATCH_CONFLICT for a request id that retracted others.
        """
        ...

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """Several writes, in one transaction if the database can, each with its own outcome.

        An error fails its own request. Errors are returned, not raised.
        """
        ...

    def profiles(self) -> Iterator[Profile]:
        """Every profile at its newest revision, by name. Each is consistent in itself."""
        ...

    def generation(self) -> Hashable:
        """A cheap token; differs from all earlier ones after any process committed, retracted or deleted."""
        ...

    def close(self) -> None:
        """Release files and connections. Later calls raise STORE_UNAVAILABLE."""
        ...


class StoreFormatError(Exception):
    """The file is no store of ours, or one of a newer release; the text is for the operator who opens it."""


def profile_not_found(profile_id: str) -> NodewiseError:
    """No profile of that name."""
    return NodewiseError(Reason.PROFILE_NOT_FOUND, f"no profile is named {profile_id!r}", {"profile_id": profile_id})


def store_unavailable() -> NodewiseError:
    """The database does not answer; the log says why, the caller may retry."""
    return NodewiseError(Reason.STORE_UNAVAILABLE, "the store cannot be read or written now; retry later")

"""Pages of names and of observations. A token encodes where the next page begins; it is opaque to callers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from nodewise.domain.columns import freeze
from nodewise.domain.errors import invalid_field
from nodewise.domain.profile import Observations, Profile
from nodewise.mapper.reading import Reader
from nodewise.profiles.store import revision_not_found
from nodewise_protos.v1 import profile_service_pb2 as pb

__all__ = ["ObservationPage", "PageRequest", "next_token", "page", "page_after", "page_size"]

DEFAULT_PAGE: Final = 100
LARGEST_PAGE: Final = 1000
_MARK: Final = "after:"

SaidT = TypeVar("SaidT")


class PageRequest(Protocol):
    """A request for a page: ``optional`` size, and the token of an earlier reply."""

    page_size: int
    page_token: str

    def HasField(self, field_name: Any, /) -> bool:  # noqa: N802  # as messages have it
        """Whether a field is present."""
        ...


def page_size(request: PageRequest, *, default: int = DEFAULT_PAGE, largest: int = LARGEST_PAGE) -> int:
    """Entries of a page.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a size below 1, or too large.
    """
    if not request.HasField("page_size"):
        return default
    if not 1 <= request.page_size <= largest:
        raise invalid_field("page_size", f"must be from 1 to {largest}, found {request.page_size}")
    return request.page_size


def page_after(token: str) -> str:
    """The last name of the previous page; empty = this is the first page.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a token that is not from a reply.
    """

    def name(text: str) -> str:
        if not text.startswith(_MARK):
            raise ValueError
        return text.removeprefix(_MARK)

    return read_token(token, name) if token else ""


def next_token(last: str) -> str:
    """The token of the page after one that ends with ``last``."""
    return token_of(_MARK + last)


def token_of(text: str) -> str:
    """A token that encodes a text; only the server reads it."""
    return base64.urlsafe_b64encode(text.encode()).decode("ascii")


def read_token(token: str, read: Callable[[str], SaidT]) -> SaidT:
    """The value of a token.

    Parameters
    ----------
    read : callable
        From the text to the value; raises ValueError for an invalid text.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    try:
        return read(base64.urlsafe_b64decode(token.encode("ascii")).decode())
    except ValueError:  # also for characters outside of the alphabet
        raise invalid_field("page_token", "must be empty or the next_page_token of an earlier reply") from None


def page(names: Sequence[str], request: PageRequest) -> tuple[list[str], str]:
    """Names after the token, at most a page of them, and the next token (empty = this was the last page)."""
    size, after = page_size(request), page_after(request.page_token)
    rest = [name for name in names if name > after] if after else list(names)
    return rest[:size], next_token(rest[size - 1]) if len(rest) > size else ""


MOST_OBSERVATIONS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationPage:
    """The page that a GetProfile requests.

    Attributes
    ----------
    view : int
        How much of the profile.
    size : int
        Most observations.
    revision : int or None
        Revision of the profile; None = the newest.
    uid : str
        Uid of the profile on the first page; empty = this is the first page.
    after : int
        Number of the last observation of the previous page.
    """

    view: int
    size: int
    revision: int | None = None
    uid: str = ""
    after: int = 0

    @staticmethod
    def of(request: pb.GetProfileRequest) -> ObservationPage:
        """The page of a request.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, also for a token of another revision than the requested one.
        """
        reader = Reader()
        revision = reader.read_scalars(request, "", but=("page_size",)).get("revision")
        if request.view not in pb.ProfileView.values():
            reader.wrong("view", f"must be a value of ProfileView, found {request.view}")
        reader.finish()
        size = page_size(request, default=MOST_OBSERVATIONS, largest=MOST_OBSERVATIONS)
        view = request.view or pb.PROFILE_VIEW_FULL
        if not request.page_token:
            return ObservationPage(view=view, size=size, revision=revision)
        uid, bound, after = read_token(request.page_token, _read)
        if revision not in (None, bound):
            raise invalid_field("page_token", f"must be of revision {revision}, found one of revision {bound}")
        return ObservationPage(view=view, size=size, revision=bound, uid=uid, after=after)

    @property
    def with_facts(self) -> bool:
        """Whether to return facts, phase timings and references to traces: on the first page."""
        return self.view != pb.PROFILE_VIEW_BASIC and not self.uid

    @property
    def with_observations(self) -> bool:
        """Whether to return observations."""
        return self.view == pb.PROFILE_VIEW_FULL

    def of_profile(self, profile: Profile) -> tuple[Observations, str]:
        """The observations of this page, and the token of the next (empty = this is the last).

        Raises
        ------
        NodewiseError
            REVISION_NOT_FOUND if another profile has the name now.
        """
        if self.uid not in ("", profile.uid):
            raise revision_not_found(profile.profile_id, self.revision or 0)
        numbers = profile.observations.number
        first = int(np.searchsorted(numbers, self.after, side="right"))
        last = min(first + self.size, len(numbers))
        rows = profile.observations
        if first or last < len(numbers):
            rows = rows.take(freeze(np.arange(first, last, dtype=np.int64)))
        more = last < len(numbers)
        return rows, token_of(f"{profile.uid}:{profile.revision}:{numbers[last - 1]}") if more else ""


def _read(text: str) -> tuple[str, int, int]:
    uid, revision, after = text.split(":")
    return uid, int(revision), int(after)

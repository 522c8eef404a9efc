"""Pages of a profile's observations: each of the revision that the first was of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.domain.columns import freeze
from nodewise.domain.errors import invalid_field
from nodewise.domain.profile import Observations, Profile
from nodewise.mapper.reading import Reader
from nodewise.profiles.store import revision_not_found
from nodewise.rpc.paging import page_size, read_token, token_of
from nodewise_protos.v1 import profile_service_pb2 as pb

__all__ = ["ObservationPage"]

LARGEST_PAGE: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationPage:
    """What a GetProfile asks for.

    Attributes
    ----------
    view : int
        How much of the profile.
    size : int
        Observations at most.
    revision : int or None
        Which; None = the newest.
    uid : str
        Of the profile that the first page was of; empty = this is the first.
    after : int
        Number of the last observation of the page before.
    """

    view: int
    size: int
    revision: int | None = None
    uid: str = ""
    after: int = 0

    @staticmethod
    def of(request: pb.GetProfileRequest) -> ObservationPage:
        """As a request asks.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, also for a token of another revision than the one that is asked for.
        """
        reader = Reader()
        revision = reader.stated(request, "", but=("page_size",)).get("revision")
        if request.view not in pb.ProfileView.values():
            reader.wrong("view", f"must be a view of this contract, found {request.view}")
        reader.finish()
        size = page_size(request, default=LARGEST_PAGE, largest=LARGEST_PAGE)
        view = request.view or pb.PROFILE_VIEW_FULL
        if not request.page_token:
            return ObservationPage(view=view, size=size, revision=revision)
        uid, bound, after = read_token(request.page_token, _read)
        if revision not in (None, bound):
            raise invalid_field("page_token", f"must be of revision {revision}, is of {bound}")
        return ObservationPage(view=view, size=size, revision=bound, uid=uid, after=after)

    @property
    def with_facts(self) -> bool:
        """Whether facts, timed phases and references to traces are wanted: on the first page."""
        return self.view != pb.PROFILE_VIEW_BASIC and not self.uid

    @property
    def with_observations(self) -> bool:
        """Whether observations are wanted."""
        return self.view == pb.PROFILE_VIEW_FULL

    def of_profile(self, profile: Profile) -> tuple[Observations, str]:
        """The observations of this page, and the token of the next (empty = this is the last).

        Raises
        ------
        NodewiseError
            REVISION_NOT_FOUND if another profile has the name by now.
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

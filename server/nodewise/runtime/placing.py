"""Which workers are wanted next: how many start, who opens the port, who makes room, and on which core."""

from __future__ import annotations

import os
from collections.abc import Sequence

from nodewise.runtime.members import Member, State
from nodewise.runtime.pinning import cores
from nodewise.runtime.settings import Settings

__all__ = ["core_for", "next_to_open", "of", "room", "surplus"]


def of(members: Sequence[Member], *states: State) -> list[Member]:
    """Those in one of the states, oldest first."""
    return [member for member in members if member.state in states]


def room(members: Sequence[Member], settings: Settings, *, announced: bool) -> int:
    """How many workers are to be started now.

    Parameters
    ----------
    announced : bool
        Whether as many as wanted have served at once before: a spare waits for that.
    """
    alive = of(members, State.STARTING, State.WARM, State.OPENING, State.SERVING)
    fresh = [member for member in alive if not member.stale]
    if len(fresh) < len(alive):  # others serve meanwhile: one after the other
        coming = sum(member.state is not State.SERVING for member in fresh)
        return min(1 - coming, settings.workers - len(fresh))
    # Whoever is to serve first gets the cores.
    served = len(of(members, State.SERVING)) >= settings.workers
    spare = int(settings.warm_spare and announced and served)
    at_a_time = (os.cpu_count() or 1) - len(of(members, State.STARTING))
    return min(settings.workers + spare - len(fresh), max(1, at_a_time))


def next_to_open(members: Sequence[Member], wanted: int) -> Member | None:
    """The warm worker that is to open store and port; None = none is wanted, or there is none."""
    fresh = [member for member in of(members, State.SERVING) if not member.stale]
    # One at a time: the first creates the store's tables.
    if of(members, State.OPENING) or len(fresh) >= wanted:
        return None
    return next(iter(of(members, State.WARM)), None)


def surplus(members: Sequence[Member], wanted: int) -> Member | None:
    """The worker that is to make room for others that serve; None = there are not too many."""
    serving = of(members, State.SERVING)
    if len(serving) <= wanted:
        return None
    return next((member for member in serving if member.stale), serving[0])


def core_for(members: Sequence[Member], settings: Settings) -> int | None:
    """The core that the fewest keep to, for one more worker; None = it is not to keep to one."""
    if not settings.pin_workers:
        return None
    taken = [member.core for member in members if not member.stale]
    return min(cores(), key=lambda each: (taken.count(each), each))

"""Who holds how many devices until when: reservations over time, for pools and for queues with a quota."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nodewise.plugin import Floats, Ints

__all__ = ["Slot", "Timeline"]


class Slot(NamedTuple):
    """A choice (index into what was offered) and when it starts, seconds from now."""

    choice: int
    start_s: float


class Timeline:
    """Free devices of several resources as step functions of time, from now on.

    Parameters
    ----------
    free : list of int
        Of every resource now, where nothing is reserved yet.
    """

    def __init__(self, free: list[int]) -> None:
        self._starts: Floats = np.zeros(1)
        self._free: Ints = np.array(free, dtype=np.int64)[:, np.newaxis]

    def earliest(
        self, resources: list[int], devices: Ints, seconds: Floats, cost: Floats, latest_s: float
    ) -> Slot | None:
        """The earliest start at which a choice fits and ends by ``latest_s``, and of the choices then the cheapest.

        Parameters
        ----------
        resources : list of int
            What each choice takes its devices from, all of them.
        devices, seconds, cost : (choices,)
            Ties in cost: the first choice.
        """
        in_time = int(np.searchsorted(self._starts, latest_s - float(seconds.min()), side="right"))
        if not in_time:
            return None
        level = self._free[resources].min(axis=0)
        for interval in np.flatnonzero(level[:in_time] >= int(devices.min())).tolist():
            start = float(self._starts[interval])
            ends = start + seconds
            # Last interval that each choice runs in; what is free throughout is the least since the start.
            last = np.searchsorted(self._starts, ends, side="left") - 1
            lowest = np.minimum.accumulate(level[interval:])
            fits = (devices <= lowest[np.maximum(last - interval, 0)]) & (ends <= latest_s)
            if fits.any():
                return Slot(int(np.where(fits, cost, np.inf).argmin()), start)
        return None

    def reserve(self, resources: list[int], devices: int, start_s: float, seconds: float) -> None:
        """Take devices of every resource for that long."""
        first, last = self._split(start_s), self._split(start_s + seconds)
        for resource in resources:
            self._free[resource, first:last] -= devices

    def _split(self, moment_s: float) -> int:
        """The interval that starts at the moment, made if need be."""
        place = int(np.searchsorted(self._starts, moment_s))
        if place == len(self._starts) or self._starts[place] != moment_s:
            self._starts = np.insert(self._starts, place, moment_s)
            self._free = np.insert(self._free, place, self._free[:, place - 1], axis=1)
        return place

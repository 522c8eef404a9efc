"""Reservations over time, for pools and for queues with a quota: how many devices are held from when to when."""

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
            By ascending devices. Ties in cost: the first choice.
        """
        latest_s = min(latest_s, np.finfo(float).max)
        level = self._free[resources[0]] if len(resources) == 1 else self._free[resources].min(axis=0)
        # The least seconds that what is free in each interval allows.
        shortest = np.concatenate(([np.inf], np.minimum.accumulate(seconds)))[devices.searchsorted(level, side="right")]
        in_time = np.flatnonzero(self._starts + shortest <= latest_s).tolist()
        slot = _first_fit([*self._starts.tolist(), np.inf], shortest.tolist(), in_time, latest_s)
        if slot is None:
            return None
        start, most = float(self._starts[slot]), int(devices.searchsorted(level[slot], side="right"))
        devices, ends = devices[:most], start + seconds[:most]
        # Last interval that each choice runs in; what is free throughout is the least since the start.
        last = self._starts.searchsorted(ends, side="left") - 1
        lowest = np.minimum.accumulate(level[slot:])
        fits = (devices <= lowest[np.maximum(last - slot, 0)]) & (ends <= latest_s)
        return Slot(int(np.where(fits, cost[:most], np.inf).argmin()), start)

    def reserve(self, resources: list[int], devices: int, start_s: float, seconds: float) -> None:
        """Take devices of every resource for that long."""
        first, last = self._split_at(start_s), self._split_at(start_s + seconds)
        for resource in resources:
            self._free[resource, first:last] -= devices

    def _split_at(self, moment_s: float) -> int:
        """The interval that starts at the moment, made if need be."""
        place = int(self._starts.searchsorted(moment_s))
        if place == len(self._starts) or self._starts[place] != moment_s:
            starts, free = self._starts, self._free
            self._starts = np.concatenate((starts[:place], [moment_s], starts[place:]))
            self._free = np.concatenate((free[:, :place], free[:, place - 1 :]), axis=1)
        return place


def _first_fit(starts: list[float], shortest: list[float], intervals: list[int], latest_s: float) -> int | None:
    """The first of some intervals with whose start some choice fits throughout and ends by ``latest_s``.

    What fits until the end of a later interval is what the scarcest one on the way allows: the longest of the least
    seconds. Where that is too long for one start it is for all later ones: they have to end before the scarce interval.
    """
    scarce = -1
    for interval in intervals:
        start, longest = starts[interval], shortest[interval]
        if interval <= scarce and start + longest > starts[scarce]:
            continue
        for place in range(interval, len(shortest)):
            if shortest[place] > longest:
                longest = shortest[place]
                if start + longest > latest_s:
                    scarce = place
                    break
            if start + longest <= starts[place + 1]:
                return interval
    return None

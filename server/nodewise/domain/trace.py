"""Traces and what is found in them, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise.domain.columns import Ints

__all__ = ["Bottleneck", "Diagnosis", "Strategy", "Trace"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """Events of one rank.

    Attributes
    ----------
    rank, world_size : int
        Process that recorded it, and how many there were.
    names, categories : tuple of str
        Dictionaries of ``name_index`` and ``category_index``.
    begin_ns, duration_ns : int
        On the rank's own clock; instants last 0.
    lane : int
        Thread or stream that the event ran on.
    correlation : int
        Links a launch to its kernel; -1 = none.
    step : int
        Ordinal of the training step, from 1; 0 = outside any.
    found : mapping of str to int
        What the reader met: events, kernels linked, edges found, inferred, missing.
    """

    rank: int
    world_size: int
    names: tuple[str, ...]
    name_index: Ints
    categories: tuple[str, ...]
    category_index: Ints
    begin_ns: Ints
    duration_ns: Ints
    lane: Ints
    correlation: Ints
    step: Ints
    found: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Something that costs time, and what the step would gain without it. ``rank`` -1 = all."""

    kind: str
    what: str
    rank: int
    seconds: float
    gain_if_removed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A change and the step time it is predicted to bring."""

    name: str
    predicted_step_s: float
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Bottlenecks and strategies, most worthwhile first."""

    bottlenecks: tuple[Bottleneck, ...] = ()
    strategies: tuple[Strategy, ...] = ()

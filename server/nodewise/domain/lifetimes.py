"""Lifetimes of machines that can be revoked: observations, laws and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

__all__ = [
    "AvailabilityLaw",
    "AvailabilityRecord",
    "EmpiricalLifetimes",
    "ExponentialLifetimes",
    "FleetRecord",
    "KnownRevocations",
    "LifetimeBasis",
    "LifetimeFamily",
    "LifetimeLaw",
    "LifetimeOrigin",
    "NamedLifetimes",
    "ObservedLifetimes",
    "WeibullLifetimes",
]


class LifetimeFamily(IntEnum):
    """How observed lifetimes are used: as they are, as a fitted law, or as the nearer law if that is near enough."""

    UNSPECIFIED = 0
    EMPIRICAL = 1
    WEIBULL = 2
    EXPONENTIAL = 3
    NEAREST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeOrigin:
    """Where lifetimes were observed; ``measured_time`` in seconds since 1970, 0 = not known; 0 machines = not known."""

    name: str = ""
    device: str = ""
    region: str = ""
    measured_time: float = 0.0
    machines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLifetimes:
    """Lifetimes that the estimator provides under a name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalLifetimes:
    """Share of the machines that was revoked by each age, linear in between."""

    ages_s: tuple[float, ...] = ()
    revoked: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLifetimes:
    """Seconds that each machine lived, and whether it was revoked then; no flags = all were."""

    lives_s: tuple[float, ...] = ()
    revoked: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WeibullLifetimes:
    """Share alive at age t: exp(-(t / scale)^shape)."""

    scale_s: float
    shape: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialLifetimes:
    """Losses at a constant rate."""

    mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """Nodes of a fleet that were added and removed, by event."""

    times_s: tuple[float, ...] = ()
    added: tuple[bool, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityRecord:
    """How many nodes were available from each time on, up to the end of the record."""

    since_s: tuple[float, ...] = ()
    nodes: tuple[int, ...] = ()
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityLaw:
    """Runs with and without nodes, of exponential length."""

    available_mean_s: float
    unavailable_mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRevocations:
    """Times, from the start, at which one node each is lost; the other nodes live on."""

    times_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeLaw:
    """How long nodes live; ``law`` None = for ever."""

    law: (
        NamedLifetimes
        | EmpiricalLifetimes
        | ObservedLifetimes
        | WeibullLifetimes
        | ExponentialLifetimes
        | FleetRecord
        | AvailabilityRecord
        | KnownRevocations
        | None
    ) = None
    family: LifetimeFamily = LifetimeFamily.UNSPECIFIED
    origin: LifetimeOrigin = field(default_factory=LifetimeOrigin)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeBasis:
    """Evidence for the lifetimes of a group.

    Attributes
    ----------
    group : int
        Index of the group in its offer.
    data_set, device, region : str
        Observations, or what was stated in their place; ``""`` = not known.
    measured_time : float
        Latest end of the observations, in seconds since 1970; 0 = not known.
    machines : int
        Observed machines; 0 = a stated law.
    law : str
        ``empirical``, ``weibull``, ``exponential``, ``trace`` or ``stated``.
    ks_distance : float or None
        Largest distance between the law and the observations; None = the observations themselves are used.
    """

    group: int
    data_set: str
    device: str = ""
    region: str = ""
    measured_time: float = 0.0
    machines: int = 0
    law: str = "stated"
    ks_distance: float | None = None

"""Lifetimes of a question's nodes, as laws to draw from or as recorded changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Final

import numpy as np

from nodewise.plugin import (
    AvailabilityRecord,
    CompletionGroup,
    EmpiricalLifetimes,
    ExponentialLifetimes,
    FleetRecord,
    KnownRevocations,
    LifetimeBasis,
    LifetimeFamily,
    LifetimeLaw,
    NamedLifetimes,
    NodewiseError,
    Notice,
    ObservedLifetimes,
    Refusal,
    WeibullLifetimes,
)
from nodewise_transient.fitting import LifetimeSample, choose, empirical, fit, single
from nodewise_transient.lifetimes import Lifetime, exponential, never, piecewise_linear, weibull
from nodewise_transient.provenance import Provenance
from nodewise_transient.shipped_laws import shipped_names, shipped_of
from nodewise_transient.traces import Availability, fleet_of

__all__ = ["Lives", "lives_of", "today_of"]

INFANT_SHAPE: Final = 0.9
"""If the hazard falls at least like that of a Weibull law of this shape, young nodes count as lost first, as they are
below 1; a tenth is about the least difference that thirty machines show."""
ALL_NODES: Final = 0.99
"""Share revoked above which a law is assumed to reach all nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lives:
    """Lifetimes of the nodes of a group.

    Attributes
    ----------
    law : law from which lifetimes are drawn.
    changes_s : of each node, times of its losses and returns, by turns; empty = lifetimes are drawn.
    ends_s : end of the record; infinite for none.
    warnings : notices of the answer about them.
    """

    law: Lifetime
    changes_s: tuple[tuple[float, ...], ...] = ()
    ends_s: float = math.inf
    warnings: tuple[Notice, ...] = ()

    @property
    def is_random(self) -> bool:
        """Whether nodes are lost by chance."""
        return not self.changes_s and (float(self.law.revoked[-1]) > 0.0 or math.isfinite(self.law.cap_s))

    def basis(self, group: int) -> LifetimeBasis:
        """The basis of the lifetimes."""
        origin = self.law.provenance
        measured = origin.measured
        return LifetimeBasis(
            group=group,
            data_set=origin.data_set,
            device=origin.device,
            region=origin.place,
            measured_time=0.0 if measured is None else datetime(*measured.timetuple()[:3], tzinfo=UTC).timestamp(),
            machines=origin.machines,
            law=origin.law,
            ks_distance=origin.ks,
        )


def today_of(now_s: float) -> date | None:
    """The day of a time in seconds since 1970."""
    return datetime.fromtimestamp(now_s, tz=UTC).date() if now_s > 0.0 else None


def lives_of(group: CompletionGroup, now_s: float) -> Lives:
    """Lifetimes of a group's nodes.

    Raises
    ------
    NodewiseError
        EVIDENCE_MISSING where lifetimes are needed and not stated, or are of an unknown name; INVALID_FIELD is
        the reader's.
    """
    lifetime = group.lifetime
    if isinstance(lifetime.law, AvailabilityRecord):
        return _of_availability(lifetime.law, group.nodes)
    if isinstance(lifetime.law, KnownRevocations):
        return _of_revocations(lifetime.law, group.nodes)
    if lifetime.law is None:
        if group.spot:
            names = ", ".join(shipped_names())
            text = (
                f"groups of spot nodes need a lifetime: a law, observations, a record, or one of the data sets {names}"
            )
            raise NodewiseError.refused(Refusal.missing(text, "lifetime"))
        law = never() if group.cap_s is None else never().with_cap(group.cap_s)
        return Lives(law=law)
    law = _law(lifetime)
    if group.cap_s is not None:
        law = law.with_cap(group.cap_s)
    for age_s in group.ages_s:
        if float(law.revoked_by(age_s)) >= 1.0:
            text = f"by this lifetime law no node reaches {age_s:g} s: correct the age of the running nodes, or the law"
            raise NodewiseError.refused(Refusal.unsupported(text, "ages_seconds"))
    warnings = law.provenance.warnings(device=group.device, place=group.region, today=today_of(now_s))
    if law.provenance.law == "stated" and not lifetime.origin.name:
        # A law that is stated without its origin carries no warning about where it holds.
        warnings = ()
    return Lives(law=law, warnings=(*warnings, *_infant(law)))


def _law(lifetime: LifetimeLaw) -> Lifetime:
    law = lifetime.law
    origin = _origin(lifetime)
    match law:
        case WeibullLifetimes():
            return weibull(law.scale_s, law.shape, provenance=origin)
        case ExponentialLifetimes():
            return exponential(law.mean_s, provenance=origin)
        case EmpiricalLifetimes():
            seen_of = replace(origin, law="empirical")
            if lifetime.family in {LifetimeFamily.UNSPECIFIED, LifetimeFamily.EMPIRICAL}:
                return piecewise_linear(law.ages_s, law.revoked, provenance=seen_of)
            return _fit(_bin_stated(law, seen_of), lifetime.family)
        case NamedLifetimes():
            shipped = shipped_of(law.name)
            if shipped is None:
                text = f"lifetime law {law.name!r} is not known; known are {', '.join(shipped_names())}"
                raise NodewiseError.refused(Refusal.missing(text, "lifetime"))
            return _fit(shipped, lifetime.family)
        case ObservedLifetimes():
            revoked = law.revoked or (True,) * len(law.lives_s)
            return _fit(_single(law.lives_s, revoked, origin), lifetime.family)
        case FleetRecord():
            fleet = fleet_of(law.times_s, law.added, list(law.nodes))
            return _fit(_single(fleet.lives_s, fleet.ended, origin), lifetime.family)
        case _:
            raise AssertionError(law)


def _single(lives_s: object, revoked: object, origin: Provenance) -> LifetimeSample:
    lives, ended = np.asarray(lives_s, dtype=np.float64), np.asarray(revoked, dtype=np.bool_)
    if not ended.any():
        text = "no revocation was observed, so no lifetime law can be fitted: state a law"
        raise NodewiseError.refused(Refusal.missing(text, "lifetime"))
    return single(np.maximum(lives, 1e-3), ended, provenance=origin)


def _bin_stated(law: EmpiricalLifetimes, origin: Provenance) -> LifetimeSample:
    """Shares of a table, of the stated number of machines; without one, of so many that no fit depends on it."""
    ages, shares = np.array(law.ages_s), np.array(law.revoked)
    machines = origin.machines or 1
    left = 1.0 - np.append(0.0, shares)
    exposure = float(np.sum(0.5 * (left[1:] + left[:-1]) * np.diff(np.append(0.0, ages)))) * machines
    return LifetimeSample(
        ages_s=ages,
        revoked=shares,
        machines=machines,
        cap_s=math.inf,
        events=float(shares[-1]) * machines,
        exposure_s=exposure,
        provenance=origin,
    )


def _fit(sample: LifetimeSample, family: LifetimeFamily) -> Lifetime:
    if family == LifetimeFamily.NEAREST:
        return choose(sample)
    if family in {LifetimeFamily.WEIBULL, LifetimeFamily.EXPONENTIAL}:
        law_fit = fit(sample, "weibull" if family == LifetimeFamily.WEIBULL else "exponential")
        if law_fit.degenerate:
            # All losses happen at one age: no law of ageing describes that.
            law = empirical(sample)
            note = "the fitted law was degenerate: the observed lifetimes themselves are used"
            return replace(law, provenance=replace(law.provenance, notes=(*law.provenance.notes, note)))
        return law_fit.law
    return empirical(sample)


def _origin(lifetime: LifetimeLaw) -> Provenance:
    origin = lifetime.origin
    return Provenance(
        data_set=origin.name or "stated in the request",
        device=origin.device,
        place=origin.region,
        measured=today_of(origin.measured_time),
        machines=origin.machines,
    )


def _infant(law: Lifetime) -> tuple[Notice, ...]:
    """Warning that young nodes are lost first, by the share of the hazard in the first half of the observed ages."""
    last = float(law.revoked[-1])
    if last <= 0.0:
        return ()
    # Of a law that reaches all nodes, ages up to which nine tenths are lost: beyond, single machines decide.
    until_s = float(law.knots_s[-1] if last < ALL_NODES else np.interp(0.9, law.revoked, law.knots_s))
    early, whole = (-math.log1p(-float(np.interp(age, law.knots_s, law.revoked))) for age in (0.5 * until_s, until_s))
    if not 0.0 < early <= whole:
        return ()
    shape = abs(math.log2(early / whole))
    if shape >= INFANT_SHAPE or not _is_told(law, until_s, whole):
        return ()
    text = (
        f"nodes are lost mostly while young (as in a Weibull law of shape {shape:.2f}): saves at even intervals are "
        "not optimal"
    )
    return (Notice("YOUNG_ARE_LOST_FIRST", text),)


def _is_told(law: Lifetime, until_s: float, hazard: float) -> bool:
    """Whether observations differ from a constant rate by more than the uncertainty of their shares."""
    origin = law.provenance
    if origin.law != "empirical" or not origin.machines:
        return True
    ages = law.knots_s[law.knots_s <= until_s]
    distance = float(np.max(np.abs(law.revoked[: len(ages)] + np.expm1(-hazard * ages / until_s))))
    return distance > 0.5 / math.sqrt(origin.machines)


def _of_availability(record: AvailabilityRecord, nodes: int) -> Lives:
    """The first nodes are there when few are: the k-th is there while more than k could be had."""
    availability = Availability(
        since_s=np.array(record.since_s), instances=np.array(record.nodes, dtype=np.int64), length_s=record.length_s
    )
    changes = []
    for node in range(nodes):
        there = availability.instances > node
        turns = np.flatnonzero(there != np.append(True, there[:-1]))
        changes.append(tuple(availability.since_s[turns].tolist()) or (math.inf,))
    law = never(Provenance(data_set="recorded availability", law="trace"))
    return Lives(law=law, changes_s=tuple(changes), ends_s=record.length_s)


def _of_revocations(revocations: KnownRevocations, nodes: int) -> Lives:
    """The last nodes are lost first, so that a chief is only where all are."""
    times = sorted(revocations.times_s, reverse=True)[:nodes]
    changes = [(math.inf,)] * (nodes - len(times)) + [(time,) for time in times]
    law = never(Provenance(data_set="known revocations", law="trace"))
    return Lives(law=law, changes_s=tuple(changes))

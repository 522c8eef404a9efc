"""Lifetimes on the wire: what laws, observations and records must be, and names of the request's own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from nodewise.domain.lifetimes import (
    AvailabilityRecord,
    EmpiricalLifetimes,
    FleetRecord,
    LifetimeFamily,
    LifetimeLaw,
    NamedLifetimes,
    ObservedLifetimes,
)
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader, shown
from nodewise_protos.v1beta1 import completion_offer_pb2 as pb

__all__ = ["LIFETIME_CHECKS", "read_data_sets", "read_law", "rises"]

MOST_ENTRIES: Final = 100_000
"""Ages, lives, events or changes of one law."""
MOST_DATA_SETS: Final = 256


def read_data_sets(messages: Sequence[pb.LifetimeDataSet], reader: Reader) -> dict[str, LifetimeLaw]:
    """Lifetimes of the request by their names."""
    found: dict[str, LifetimeLaw] = {}
    reader.at_most(messages, "data_sets", MOST_DATA_SETS, "data sets")
    for number, message in enumerate(messages[:MOST_DATA_SETS]):
        path = f"data_sets[{number}]"
        name = reader.text(message.name, f"{path}.name", 64)
        if not name:
            reader.wrong(f"{path}.name", "must name the lifetimes")
        if name in found:
            reader.contradicts(f"{path}.name", f"was given before, {shown(name)}")
        if message.law.WhichOneof("law") in (None, "data_set"):
            reader.wrong(f"{path}.law", "must state a law, observations or a record itself")
            continue
        found[name] = read_law({}, message.law, f"{path}.law", reader)
    return found


def read_law(known: Mapping[str, LifetimeLaw], message: pb.LifetimeLaw, path: str, reader: Reader) -> LifetimeLaw:
    """How long nodes live; names of the request's own lifetimes are those."""
    kind = message.WhichOneof("law")
    if kind is None:
        reader.wrong(path, "must state a law: a data set, observations, Weibull, exponential, or a record")
    elif kind != "data_set" and not _is_short(getattr(message, kind), f"{path}.{kind}", reader):
        return LifetimeLaw()
    found = from_message(message, LifetimeLaw, f"{path}.", reader)
    if kind == "availability":  # who was there is known, by whomever it was observed
        return LifetimeLaw(law=found.law)
    if kind != "data_set":
        return found
    name = reader.text(message.data_set, f"{path}.data_set", 64)
    own = known.get(name, LifetimeLaw(law=NamedLifetimes(name=name)))
    return own if found.family == LifetimeFamily.UNSPECIFIED else replace(own, family=found.family)


def _is_short(message: Any, path: str, reader: Reader) -> bool:
    """Whether columns are of a length that is taken."""
    columns = [(field.name, values) for field, values in message.ListFields() if field.is_repeated]
    return all(reader.at_most(values, f"{path}.{name}", MOST_ENTRIES, "entries") for name, values in columns)


def _check_availability(found: AvailabilityRecord, path: str, reader: Reader) -> None:
    reader.at_most(found.since_s, f"{path}since_seconds", MOST_ENTRIES, "entries")
    reader.alike(path, since_seconds=found.since_s, nodes_counts=found.nodes)
    if not found.since_s or found.since_s[0] != 0.0 or not rises(found.since_s):
        reader.wrong(f"{path}since_seconds", "must ascend from 0")
    elif found.length_s < found.since_s[-1]:
        reader.wrong(f"{path}length_seconds", f"must not end before the last change, at {found.since_s[-1]:g}")


def _check_empirical(law: EmpiricalLifetimes, path: str, reader: Reader) -> None:
    reader.alike(path, ages_seconds=law.ages_s, revoked_shares=law.revoked)
    if not law.ages_s:
        reader.wrong(f"{path}ages_seconds", "must hold at least one age")
    if not rises(law.ages_s):
        reader.wrong(f"{path}ages_seconds", "must ascend")
    if list(law.revoked) != sorted(law.revoked):
        reader.wrong(f"{path}revoked_shares", "must not descend: who was revoked stays so")


def _check_observed(law: ObservedLifetimes, path: str, reader: Reader) -> None:
    if not law.lives_s:
        reader.wrong(f"{path}lives_seconds", "must hold at least one life")
    if law.revoked:
        reader.alike(path, lives_seconds=law.lives_s, revoked=law.revoked)


def _check_fleet(law: FleetRecord, path: str, reader: Reader) -> None:
    reader.alike(path, times_seconds=law.times_s, added=law.added, nodes=law.nodes)
    if not law.times_s:
        reader.wrong(f"{path}times_seconds", "must hold at least one event")
    if list(law.times_s) != sorted(law.times_s):
        reader.wrong(f"{path}times_seconds", "must not descend")


LIFETIME_CHECKS: Final[Mapping[type, Any]] = MappingProxyType(
    {
        AvailabilityRecord: _check_availability,
        EmpiricalLifetimes: _check_empirical,
        ObservedLifetimes: _check_observed,
        FleetRecord: _check_fleet,
    }
)
"""What columns must be among each other."""


def rises(values: Sequence[float]) -> bool:
    """Whether each is above the one before."""
    return all(one < other for one, other in itertools.pairwise(values))

"""Lifetimes on the wire: laws, observations and records in, what answers rest on out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from nodewise.domain.lifetimes import (
    AvailabilityRecord,
    EmpiricalLifetimes,
    ExponentialLifetimes,
    FleetRecord,
    KnownRevocations,
    LifetimeFamily,
    LifetimeLaw,
    LifetimeOrigin,
    NamedLifetimes,
    ObservedLifetimes,
    WeibullLifetimes,
)
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader, shown
from nodewise_protos.v1beta1 import completion_offer_pb2 as pb

__all__ = ["read_availability", "read_data_sets", "read_law"]

MOST_ENTRIES: Final = 100_000
"""Ages, lives, events or changes of one law."""
MOST_DATA_SETS: Final = 256

_KINDS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "empirical": EmpiricalLifetimes,
        "observed": ObservedLifetimes,
        "weibull": WeibullLifetimes,
        "exponential": ExponentialLifetimes,
        "fleet": FleetRecord,
        "revocations": KnownRevocations,
    }
)


def read_data_sets(messages: Sequence[pb.LifetimeDataSet], reader: Reader) -> dict[str, LifetimeLaw]:
    """Lifetimes of the request by their names."""
    found: dict[str, LifetimeLaw] = {}
    if len(messages) > MOST_DATA_SETS:
        reader.wrong("data_sets", f"must hold at most {MOST_DATA_SETS} data sets, found {len(messages)}")
    for number, message in enumerate(messages[:MOST_DATA_SETS]):
        path = f"data_sets[{number}]"
        name = reader.text(message.name, f"{path}.name", 64)
        if not name:
            reader.wrong(f"{path}.name", "must name the lifetimes")
        if name in found:
            reader.contradicts(f"{path}.name", f"was given before, {shown(name)}")
        law = message.law.WhichOneof("law")
        if law is None or law == "data_set":
            reader.wrong(f"{path}.law", "must state a law, observations or a record itself")
            continue
        found[name] = read_law(message.law, f"{path}.law", reader, {})
    return found


def read_law(message: pb.LifetimeLaw, path: str, reader: Reader, known: Mapping[str, LifetimeLaw]) -> LifetimeLaw:
    """How long nodes live; names of the request's own lifetimes are those."""
    kind = message.WhichOneof("law")
    family = LifetimeFamily.UNSPECIFIED
    try:
        family = LifetimeFamily(int(message.family))
    except ValueError:
        reader.wrong(f"{path}.family", f"must be one of the values of the contract, found {message.family}")
    if kind == "data_set":
        name = reader.text(message.data_set, f"{path}.data_set", 64)
        own = known.get(name)
        if own is None:
            return LifetimeLaw(law=NamedLifetimes(name=name), family=family)
        return (
            own if family == LifetimeFamily.UNSPECIFIED else LifetimeLaw(law=own.law, family=family, origin=own.origin)
        )
    if kind is None:
        reader.wrong(path, "must state a law: a data set, observations, Weibull, exponential, or a record")
        return LifetimeLaw()
    part, place = getattr(message, kind), f"{path}.{kind}"
    if kind == "availability":
        return LifetimeLaw(law=read_availability(part, place, reader))
    if not _is_long(part, place, reader):
        return LifetimeLaw()
    law = from_message(part, _KINDS[kind], f"{place}.", reader)
    _checked(law, place, reader)
    origin = from_message(message.origin, LifetimeOrigin, f"{path}.origin.", reader)
    return LifetimeLaw(law=law, family=family, origin=origin)


def read_availability(message: pb.AvailabilityRecord, path: str, reader: Reader) -> AvailabilityRecord:
    """How many nodes could be had."""
    empty = AvailabilityRecord(since_s=(0.0,), nodes=(0,), length_s=1.0)
    if not _is_long(message, path, reader):
        return empty
    found = from_message(message, AvailabilityRecord, f"{path}.", reader)
    _alike(reader, path, since_seconds=found.since_s, nodes_counts=found.nodes)
    if not found.since_s or found.since_s[0] != 0.0 or not _rises(found.since_s):
        reader.wrong(f"{path}.since_seconds", "must ascend from 0")
    elif found.length_s < found.since_s[-1]:
        reader.wrong(f"{path}.length_seconds", f"must not end before the last change, at {found.since_s[-1]:g}")
    return found if reader.clean else empty


def _is_long(message: Any, path: str, reader: Reader) -> bool:
    """Whether columns are of a length that is taken."""
    for field, values in message.ListFields():
        if field.is_repeated and len(values) > MOST_ENTRIES:
            reader.wrong(f"{path}.{field.name}", f"must hold at most {MOST_ENTRIES} entries, found {len(values)}")
            return False
    return True


def _checked(law: Any, path: str, reader: Reader) -> None:
    """What columns must be among each other."""
    if isinstance(law, EmpiricalLifetimes):
        _alike(reader, path, ages_seconds=law.ages_s, revoked_shares=law.revoked)
        if not law.ages_s:
            reader.wrong(f"{path}.ages_seconds", "must hold at least one age")
        if not _rises(law.ages_s):
            reader.wrong(f"{path}.ages_seconds", "must ascend")
        if list(law.revoked) != sorted(law.revoked):
            reader.wrong(f"{path}.revoked_shares", "must not descend: who was revoked stays so")
    elif isinstance(law, ObservedLifetimes):
        if not law.lives_s:
            reader.wrong(f"{path}.lives_seconds", "must hold at least one life")
        if law.revoked:
            _alike(reader, path, lives_seconds=law.lives_s, revoked=law.revoked)
    elif isinstance(law, FleetRecord):
        _alike(reader, path, times_seconds=law.times_s, added=law.added, nodes=law.nodes)
        if not law.times_s:
            reader.wrong(f"{path}.times_seconds", "must hold at least one event")
        if list(law.times_s) != sorted(law.times_s):
            reader.wrong(f"{path}.times_seconds", "must not descend")


def _alike(reader: Reader, path: str, **columns: Sequence[Any]) -> None:
    """Columns have one entry each for the same things."""
    (first, entries), *others = columns.items()
    for name, values in others:
        if len(values) != len(entries):
            reader.wrong(
                f"{path}.{name}", f"must have as many entries as {first} ({len(entries)}), found {len(values)}"
            )


def _rises(values: Sequence[float]) -> bool:
    return all(one < other for one, other in itertools.pairwise(values))

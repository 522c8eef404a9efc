"""Profiles as estimators in other processes get them: nodewise.v1's messages, field by field as the contract's facts
name them, and the runs that it has no field for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.domain.columns import as_ints, freeze
from nodewise.domain.profile import UNKNOWN, Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.domain.workload import Encoder, Layer, Network, Transformer, Workload
from nodewise.hosting.processes.wire import filled, read_configurations, write_configurations
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.v1 import profile_pb2, sharing_pb2, workload_pb2
from nodewise_values.facts import BY_MESSAGE, OBSERVATIONS, PHASE_TIMINGS

__all__ = ["read_profile", "write_profile"]

_PARTS: Final[Mapping[str, type]] = MappingProxyType({"Transformer": Transformer, "Encoder": Encoder, "Layer": Layer})
_KNOWN: Final = MappingProxyType(
    {
        "compute_variation": "compute_variation_known",
        "transfer_variation": "transfer_variation_known",
        "step_variation": "step_variation_known",
        "exposed_sync_seconds": "exposed_sync_known",
    }
)
"""Columns in which 0 is a value, and those beside them that say which rows are known."""


class _Field(NamedTuple):
    """A field of a message, its name in the domain, and what the domain holds where it is absent."""

    field: str
    row: str
    absent: Any
    repeated: bool
    optional: bool
    part: Any
    whole: bool


@lru_cache(maxsize=16)
def _fields(message: Any, kind: type) -> tuple[_Field, ...]:
    facts = BY_MESSAGE.get(message.DESCRIPTOR.full_name, {})
    columns = {each.name: each for each in fields(kind)}
    found = []
    for each in message.DESCRIPTOR.fields:
        fact = facts.get(each.name)
        row = each.name if fact is None else fact.row
        if row not in columns or each.enum_type is not None:
            continue
        absent = columns[row].default
        if absent is MISSING:
            absent = fact.default if fact is not None and each.has_presence else each.default_value
        part = _PARTS.get(each.message_type.name) if each.message_type is not None else None
        found.append(_Field(each.name, row, absent, each.is_repeated, each.has_presence, part, fact is not None and fact.whole))
    return tuple(found)


def _write_row(found: Any, row: Any) -> Any:
    """A message, after it was made to say what a row of the domain says."""
    for each in _fields(type(found), type(row)):
        value = getattr(row, each.row)
        if value is None or (each.optional and value == each.absent):
            continue
        target = getattr(found, each.field)
        if each.part is None and not each.repeated:
            setattr(found, each.field, value)
        elif each.part is None:
            target.extend(value)
        elif each.repeated:
            for part in value:
                _write_row(target.add(), part)
        else:
            target.SetInParent()
            _write_row(target, value)
    return found


def _read_row(kind: type, message: Any, **others: Any) -> Any:
    """As written."""
    for each in _fields(type(message), kind):
        value = getattr(message, each.field)
        if each.repeated:
            value = tuple([_read_row(each.part, part) for part in value] if each.part else value) or each.absent
        elif not (message.HasField(each.field) if each.optional else value):
            value = each.absent
        elif each.part is not None:
            value = _read_row(each.part, value)
        elif each.whole:
            value = int(value)
        others[each.row] = value
    return kind(**others)


def _write_runs(message: Any, facts: Mapping[str, Any], runs: Any, numbers: Any) -> Any:
    """Runs; those columns of which no row is known are left out."""
    found = message(configurations=write_configurations(runs.configurations), numbers=numbers.tolist())
    for field, fact in facts.items():
        column, mask = getattr(runs, fact.row), _KNOWN.get(field)
        if mask is not None:
            known = column >= 0.0
            if not known.any():
                continue
            if not known.all():
                getattr(found, mask).extend(known.tolist())
                column = np.where(known, column, 0.0)
        getattr(found, field).extend(column.tolist())
    return found


def _read_runs(kind: Any, facts: Mapping[str, Any], message: Any, **others: Any) -> Any:
    configurations = read_configurations(message.configurations)
    rows = len(configurations)
    for field, fact in facts.items():
        default = kind.UNKNOWN_NUMBERS.get(fact.row, 0.0)
        column = filled(getattr(message, field), rows, default)
        known = getattr(message, _KNOWN.get(field, ""), ())
        if len(known):
            column = freeze(np.where(filled(known, rows, 0) > 0, column, UNKNOWN))
        others[fact.row] = column
    return kind(configurations=configurations, **others)


def _time(seconds: float) -> Timestamp | None:
    if not seconds:
        return None
    whole = int(seconds)
    return Timestamp(seconds=whole, nanos=round((seconds - whole) * 1e9))


def _seconds(message: Timestamp) -> float:
    return message.seconds + message.nanos / 1e9


def _write_shared(run: SharedDeviceRun) -> sharing_pb2.SharedDeviceRun:
    found: sharing_pb2.SharedDeviceRun = _write_row(sharing_pb2.SharedDeviceRun(), run)
    found.mode = sharing_pb2.SharingMode.Value(f"SHARING_MODE_{run.mode.name}")
    if run.measured_at_s:
        found.measured_time.CopyFrom(_time(run.measured_at_s))
    return found


def _read_shared(message: sharing_pb2.SharedDeviceRun) -> Any:
    mode = SharingMode[sharing_pb2.SharingMode.Name(message.mode).removeprefix("SHARING_MODE_")]
    return _read_row(SharedDeviceRun, message, mode=mode, measured_at_s=_seconds(message.measured_time))


def write_profile(profile: Profile) -> pb.Profile:
    """A profile with its content."""
    observations, phases, memory = profile.observations, profile.phase_timings, profile.memory_runs
    content = profile_pb2.ProfileContent(
        workload=_write_row(workload_pb2.Workload(), profile.workload),
        network=_write_row(workload_pb2.Network(), profile.network),
        phase_timings=_write_runs(profile_pb2.PhaseTimings, PHASE_TIMINGS, phases, profile.phase_timing_numbers),
        observations=_write_runs(profile_pb2.Observations, OBSERVATIONS, observations, observations.number),
        traces=[_write_row(profile_pb2.TraceReference(), each) for each in profile.traces],
        shared_runs=map(_write_shared, profile.shared_runs),
    )
    found = profile_pb2.Profile(
        profile_id=profile.profile_id,
        uid=profile.uid,
        revision=profile.revision,
        digest=profile.digest,
        create_time=_time(profile.create_time_s),
        update_time=_time(profile.update_time_s),
        observations_count=len(observations),
        content=content,
        display_name=profile.display_name,
        labels=profile.labels,
    )
    runs = _write_runs(profile_pb2.Observations, OBSERVATIONS, memory, memory.number) if len(memory) else None
    return pb.Profile(profile=found, memory_runs=runs)


def read_profile(message: pb.Profile) -> Profile:
    """As written."""
    said, content = message.profile, message.profile.content

    def runs(of: Any) -> Observations:
        found: Observations = _read_runs(Observations, OBSERVATIONS, of, number=as_ints(of.numbers))
        return found

    return Profile(
        profile_id=said.profile_id,
        uid=said.uid,
        revision=said.revision,
        digest=said.digest,
        workload=_read_row(Workload, content.workload),
        network=_read_row(Network, content.network),
        phase_timings=_read_runs(PhaseTimings, PHASE_TIMINGS, content.phase_timings),
        phase_timing_numbers=as_ints(content.phase_timings.numbers),
        observations=runs(content.observations),
        memory_runs=runs(message.memory_runs),
        traces=tuple([_read_row(TraceReference, each) for each in content.traces]),
        shared_runs=tuple(map(_read_shared, content.shared_runs)),
        create_time_s=_seconds(said.create_time),
        update_time_s=_seconds(said.update_time),
        display_name=said.display_name,
        labels=dict(said.labels),
    )

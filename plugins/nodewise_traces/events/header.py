"""Facts of a trace beside its events: rank, world, groups, devices, base of its clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodewise.plugin import ProcessGroup, TraceSource
from nodewise_traces.events.exchange_arguments import ranks_of
from nodewise_traces.refusals import contradiction_error
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["Header", "header_of"]

_MOST_DEVICES: Final = 4_096
"""More devices than any process sees: a larger number is damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Facts of the whole file; ``rank`` -1 and ``world_size`` 0 = not stated."""

    rank: int = -1
    world_size: int = 0
    groups: tuple[ProcessGroup, ...] = ()
    devices: tuple[str, ...] = ()
    base_ns: int = 0
    hosts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def header_of(members: Mapping[str, Any], source: TraceSource) -> Header:
    """Read the members of the top level beside the events.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS if the sender and the file name different ranks or worlds.
    """
    distributed = members.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    rank = _reconcile("rank", source.rank, small_or(distributed.get("rank"), -1), -1, source)
    world = _reconcile("world_size", source.world_size, small_or(distributed.get("world_size"), 0), 0, source)
    host = members.get("host_name")
    return Header(
        rank=rank,
        world_size=world,
        groups=_groups(distributed.get("pg_config")),
        devices=_devices(members.get("deviceProperties")),
        base_ns=integer_or(members.get("baseTimeNanoseconds"), 0),
        hosts=(host,) if isinstance(host, str) and host else (),
        warnings=() if rank >= 0 else ("the trace does not state its rank: rank 0 is assumed",),
    )


def _reconcile(what: str, stated: int, recorded: int, unknown: int, source: TraceSource) -> int:
    if unknown not in {stated, recorded} and stated != recorded:
        raise contradiction_error(source, f"was sent as {what} {stated}, but the trace states {what} {recorded}")
    return recorded if stated == unknown else stated


def _groups(value: Any) -> tuple[ProcessGroup, ...]:
    groups = []
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and "pg_name" in entry:
            ranks = ranks_of(entry.get("ranks"))
            size = small_or(entry.get("pg_size"), len(ranks))
            groups.append(
                ProcessGroup(name=str(entry["pg_name"]), size=size, ranks=ranks if len(ranks) == size else ())
            )
    return tuple(groups)


def _devices(value: Any) -> tuple[str, ...]:
    names: dict[int, str] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            names[small_or(entry.get("id"), -1)] = str(entry.get("name", ""))
    names.pop(-1, None)
    if not names or max(names) >= _MOST_DEVICES:
        return ()
    return tuple(names.get(number, "") for number in range(max(names) + 1))

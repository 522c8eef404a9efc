"""The rows of Collectives: kernels of the communication library, or its spans on host threads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, CollectiveKind, Collectives, EventKind, Ints, ProcessGroup
from nodewise_replay.readers.collectives import Exchange, described, kind_of_name, sized
from nodewise_replay.readers.header import Header

__all__ = ["collectives_of"]

_KERNEL: Final = re.compile(r"^(nccl|rccl|msccl)", re.IGNORECASE)
_HOST_SPAN: Final = re.compile(r"^(gloo|mpi|ucc):")
_LIBRARY_SPAN: Final = re.compile(r"^(nccl|gloo|mpi|ucc|rccl|xccl):")
_ISSUER: Final = re.compile(r"^(c10d::|record_param_comms|(nccl|rccl|xccl):)")
_ENQUEUE: Final = re.compile(r"^c10d::")


def collectives_of(
    names: tuple[str, ...],
    name: NDArray[np.int32],
    kind: NDArray[np.int8],
    begin_ns: Ints,
    lane: NDArray[np.int32],
    parent: Ints,
    calls: Ints,
    arguments: Mapping[int, Mapping[str, Any]],
    header: Header,
    counts: Counter[str],
) -> Collectives:
    """Find the exchanges that took place and describe each by its own arguments, else by its issuer's."""
    groups: dict[str, ProcessGroup] = {group.name: group for group in header.groups}
    rows = []
    kernels = np.flatnonzero(_named(names, name, _KERNEL) & (kind == EventKind.KERNEL))
    for event in kernels.tolist():
        chain = _issuers(names, name, parent, int(calls[event]))
        found = _kernel_exchange(names[name[event]], event, chain, names, name, arguments)
        rows.append(
            (
                int(begin_ns[calls[event]]) if calls[event] >= 0 else int(begin_ns[event]),
                event,
                chain[-1] if chain else NO_EVENT,
                found,
            )
        )
    spans = np.flatnonzero(_named(names, name, _HOST_SPAN) & (kind <= EventKind.ANNOTATION))
    issuers = _enqueued(names, name, kind, begin_ns, spans)
    for event, issuer in zip(spans.tolist(), issuers):
        kind_found = kind_of_name(names[name[event]])
        in_bytes, out_bytes = sized(kind_found, arguments.get(event, {}))
        found = Exchange(kind=kind_found, in_bytes=in_bytes, out_bytes=out_bytes)
        rows.append((int(begin_ns[issuer]) if issuer >= 0 else int(begin_ns[event]), event, issuer, found))
    rows.sort(key=lambda row: row[:2])
    columns = []
    for _, event, issuer, found in rows:
        columns.append(
            (
                event,
                issuer,
                found.kind,
                _number(found, groups, header),
                found.in_bytes,
                found.out_bytes,
                found.sequence,
                found.peer,
            )
        )
    table = np.array(columns, dtype=np.int64).reshape(-1, 8).T
    counts["collectives"] = len(rows)
    counts["collectives_sized"] = int(np.count_nonzero(table[4] >= 0))
    counts["collectives_of_unknown_kind"] = int(np.count_nonzero(table[2] == CollectiveKind.UNKNOWN))
    return Collectives(
        event=table[0],
        call=table[1],
        kind=table[2].astype(np.int8),
        group=table[3],
        in_bytes=table[4],
        out_bytes=table[5],
        sequence=table[6],
        peer=table[7],
        groups=tuple(groups.values()),
    )


def _named(names: tuple[str, ...], name: NDArray[np.int32], pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    matching = np.fromiter((bool(pattern.search(text)) for text in names), dtype=np.bool_, count=len(names))
    return matching[name] if len(names) else np.zeros(0, dtype=np.bool_)


def _issuers(names: tuple[str, ...], name: NDArray[np.int32], parent: Ints, call: int) -> list[int]:
    """Communication's events around a call, the innermost first."""
    chain = []
    while call >= 0:
        if _ISSUER.search(names[name[call]]):
            chain.append(call)
        call = int(parent[call])
    return chain


def _kernel_exchange(
    text: str,
    event: int,
    chain: list[int],
    names: tuple[str, ...],
    name: NDArray[np.int32],
    arguments: Mapping[int, Mapping[str, Any]],
) -> Exchange:
    stated = [described(arguments[one]) for one in (event, *chain) if "Collective name" in arguments.get(one, {})]
    best = stated[0] if stated else Exchange()
    kinds = [best.kind, *(kind_of_name(names[name[one]]) for one in chain), kind_of_name(text.split("(")[0])]
    kind = next((kind for kind in kinds if kind != CollectiveKind.UNKNOWN), CollectiveKind.UNKNOWN)
    in_bytes, out_bytes = best.in_bytes, best.out_bytes
    if in_bytes < 0:
        for one in chain:
            if _LIBRARY_SPAN.search(names[name[one]]):
                in_bytes, out_bytes = sized(kind, arguments.get(one, {}))
                break
    return Exchange(
        kind=kind, in_bytes=in_bytes, out_bytes=out_bytes, group=best.group, sequence=best.sequence, peer=best.peer
    )


def _enqueued(
    names: tuple[str, ...], name: NDArray[np.int32], kind: NDArray[np.int8], begin_ns: Ints, spans: Ints
) -> list[int]:
    """The operator that enqueued each span: the k-th of its kind, where both are as many and none ran too early."""
    issuers = np.full(len(spans), NO_EVENT, dtype=np.int64)
    span_kinds = np.array([kind_of_name(names[name[span]]) for span in spans.tolist()], dtype=np.int64)
    operators = np.flatnonzero(_named(names, name, _ENQUEUE) & (kind == EventKind.OPERATOR))
    operator_kinds = np.array([kind_of_name(names[name[one]]) for one in operators.tolist()], dtype=np.int64)
    for each in np.unique(span_kinds):
        mine, theirs = np.flatnonzero(span_kinds == each), operators[operator_kinds == each]
        surplus = len(mine) - len(theirs)
        if surplus > 0:  # enqueued before the window began
            mine = mine[surplus:]
        theirs = theirs[: len(mine)]
        if np.all(begin_ns[theirs] <= begin_ns[spans[mine]]):
            issuers[mine] = theirs
    result: list[int] = issuers.tolist()
    return result


def _number(found: Exchange, groups: dict[str, ProcessGroup], header: Header) -> int:
    """Number of the group; a job that states one group has no other."""
    if found.group is None:
        return 0 if len(header.groups) == 1 else NO_EVENT
    known = groups.setdefault(found.group.name, found.group)
    if not known.ranks and found.group.ranks and known.size in {0, found.group.size}:
        groups[known.name] = found.group
    return list(groups).index(found.group.name)

"""The rows of Collectives: kernels of the communication library, or its spans on host threads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, CollectiveKind, Collectives, EventKind, Ints, ProcessGroup
from nodewise_traces.events.exchange_arguments import LIBRARY_SPAN, Exchange, Groups, kind_of_name

__all__ = ["Spans", "collectives_of", "collectives_table"]

_KERNEL: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|msccl|oneccl|ccl_|hccl|hcom|lccl|nvshmem|deep_ep::)|"
    r"(?<![a-z])(?:all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective[-_]?permute)|"
    r"multimem_(?:one_shot_)?(?:all_|reduce)|(?:one|two)_?shot_?all_?reduce|cross_device_reduce|quickreduce|userbuffers",
    re.IGNORECASE,
)
"""Kernels of NCCL, RCCL, MSCCL, oneCCL, HCCL, NVSHMEM and DeepEP; of PyTorch's symmetric memory; of vLLM, TensorRT-LLM,
FlashInfer, AITER and Transformer Engine; and whatever has an exchange's name, as of XLA (``all-reduce.1``)."""
_HOST_SPAN: Final = re.compile(r"^(gloo|mpi|ucc):")
_ISSUER: Final = re.compile(
    r"^(c10d::|_c10d_functional::|record_param_comms|symm_mem::|(nccl|rccl|xccl|hccl|mccl):)", re.IGNORECASE
)
_RECORD: Final = re.compile(r"^record_param_comms$")
"""PyTorch's operator around all work of its process groups."""
_ENQUEUE: Final = re.compile(r"^c10d::")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The sorted columns by which exchanges are found.

    Attributes
    ----------
    parent : (events,) int64
        The event directly around each on its lane; -1 = none.
    launch : (events,) int64
        The call that launched each event of a device; -1 = none.
    """

    names: tuple[str, ...]
    name: NDArray[np.int32]
    kind: NDArray[np.int8]
    begin_ns: Ints
    parent: Ints
    launch: Ints

    def match_names(self, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
        """Events whose name matches."""
        matching = np.fromiter((bool(pattern.search(text)) for text in self.names), np.bool_, len(self.names))
        return matching[self.name] if len(matching) else np.zeros(len(self.name), dtype=np.bool_)

    def text(self, event: int) -> str:
        """Name of an event."""
        return self.names[int(self.name[event])]


def collectives_of(
    spans: Spans,
    exchanges: dict[int, Exchange],
    groups: Groups,
    *,
    pattern: re.Pattern[str] | None,
    counts: Counter[str],
) -> Collectives:
    """Find the exchanges that took place and describe each by its own arguments, else by its issuer's.

    Parameters
    ----------
    exchanges
        Facts from the arguments of events, by event.
    groups
        Those of the file's head, and those mentioned in arguments.
    pattern
        Names of further kernels or spans that are exchanges.
    """
    kernel = spans.match_names(_KERNEL) & (spans.kind == EventKind.KERNEL)
    own = spans.match_names(pattern) if pattern else np.zeros(len(spans.kind), dtype=np.bool_)
    kernel |= own & (spans.kind >= EventKind.KERNEL)
    kernel[[event for event in exchanges if spans.kind[event] == EventKind.KERNEL]] = True
    kernel[_by_record(spans, kernel)] = True
    rows: list[tuple[int, int, int, Exchange]] = []
    for event in np.flatnonzero(kernel).tolist():
        chain = _issuers(spans, int(spans.launch[event]))
        launch = int(spans.launch[event])
        when = spans.begin_ns[launch if launch >= 0 else event]
        rows.append((int(when), event, chain[-1] if chain else NO_EVENT, _of_kernel(spans, event, chain, exchanges)))
    host = np.flatnonzero((spans.match_names(_HOST_SPAN) | own) & (spans.kind <= EventKind.CALL))
    for event, issuer in zip(host.tolist(), _enqueuing_operators(spans, host)):
        exchange = exchanges.get(event, Exchange())
        if exchange.kind == CollectiveKind.UNKNOWN:
            exchange = replace(exchange, kind=kind_of_name(spans.text(event)))
        when = spans.begin_ns[issuer if issuer >= 0 else event]
        rows.append((int(when), event, issuer, exchange))
    rows.sort(key=lambda row: row[:2])
    counts["collectives"] = len(rows)
    counts["collectives_sized"] = sum(exchange.in_bytes >= 0 for *_, exchange in rows)
    counts["collectives_of_unknown_kind"] = sum(exchange.kind == CollectiveKind.UNKNOWN for *_, exchange in rows)
    counts["collectives_issued"] = sum(issuer >= 0 for _, _, issuer, _ in rows)
    return _columns(rows, groups)


def _columns(rows: list[tuple[int, int, int, Exchange]], groups: Groups) -> Collectives:
    numbers = {name: number for number, name in enumerate(groups)}
    only = 0 if len(groups) == 1 else NO_EVENT  # a job that states one group has no other
    described = [(event, issuer, numbers.get(found.group, only), found) for _, event, issuer, found in rows]
    return collectives_table(described, groups.values())


def collectives_table(
    rows: Iterable[tuple[int, int, int, Exchange]], groups: Iterable[ProcessGroup] = ()
) -> Collectives:
    """Rows of (event, call, number of the group, exchange) as columns."""
    table = [
        (event, call, found.kind, group, found.in_bytes, found.out_bytes, found.sequence, found.peer)
        for event, call, group, found in rows
    ]
    names = ("event", "call", "kind", "group", "in_bytes", "out_bytes", "sequence", "peer")
    columns = dict(zip(names, np.ascontiguousarray(np.array(table, dtype=np.int64).reshape(-1, len(names)).T)))
    return Collectives(**{**columns, "kind": columns["kind"].astype(np.int8)}, groups=tuple(groups))


def _by_record(spans: Spans, is_known: NDArray[np.bool_]) -> list[int]:
    """Kernels of unknown name: the last one launched within a record of the process groups that holds no other."""
    records = spans.match_names(_RECORD)
    if not records.any():
        return []
    last: dict[int, int] = {}
    events: set[int] = set()
    for event in np.flatnonzero((spans.kind == EventKind.KERNEL) & (spans.launch >= 0)).tolist():
        around = int(spans.launch[event])
        while around >= 0 and not records[around]:
            around = int(spans.parent[around])
        if around < 0:
            continue
        if is_known[event]:
            events.add(around)
        else:
            last[around] = event
    return [event for around, event in last.items() if around not in events]


def _issuers(spans: Spans, call: int) -> list[int]:
    """Communication's events around a call, the innermost first."""
    chain = []
    while call >= 0:
        if _ISSUER.search(spans.text(call)):
            chain.append(call)
        call = int(spans.parent[call])
    return chain


def _of_kernel(spans: Spans, event: int, chain: list[int], exchanges: dict[int, Exchange]) -> Exchange:
    """Facts of a kernel's arguments, then of its issuer's; for the kind also names, for sizes also tensor shapes."""
    chain_exchanges = [exchanges.get(one, Exchange()) for one in (event, *chain)]
    best = next((one for one in chain_exchanges if one.is_stated), Exchange())
    kinds = [best.kind, *(kind_of_name(spans.text(one)) for one in chain)]
    kinds.append(kind_of_name(spans.text(event).replace("(anonymous namespace)::", "").split("(", maxsplit=1)[0]))
    kind = next((kind for kind in kinds if kind != CollectiveKind.UNKNOWN), CollectiveKind.UNKNOWN)
    if best.in_bytes >= 0:
        return replace(best, kind=kind)
    # Of the library's span only: the operator above it counts both its input and its output tensors.
    library_spans = [one for one in chain if LIBRARY_SPAN.search(spans.text(one))]
    sizes = exchanges.get(library_spans[0], Exchange()) if library_spans else Exchange()
    return replace(best, kind=kind, in_bytes=sizes.in_bytes, out_bytes=sizes.out_bytes)


def _enqueuing_operators(spans: Spans, kernels: Ints) -> list[int]:
    """The operator that enqueued each span: the k-th of its kind, if none of them ran before its span was requested."""
    issuers = np.full(len(kernels), NO_EVENT, dtype=np.int64)
    operators = np.flatnonzero(spans.match_names(_ENQUEUE) & (spans.kind == EventKind.OPERATOR))
    span_kinds = np.array([kind_of_name(spans.text(span)) for span in kernels.tolist()], dtype=np.int64)
    operator_kinds = np.array([kind_of_name(spans.text(one)) for one in operators.tolist()], dtype=np.int64)
    for kind in np.unique(span_kinds):
        mine, theirs = np.flatnonzero(span_kinds == kind), operators[operator_kinds == kind]
        # The first spans may have been enqueued before the window, the last operators may run after it.
        mine = mine[max(len(mine) - len(theirs), 0) :]
        theirs = theirs[: len(mine)]
        if np.all(spans.begin_ns[theirs] <= spans.begin_ns[kernels[mine]]):
            issuers[mine] = theirs
    result: list[int] = issuers.tolist()
    return result

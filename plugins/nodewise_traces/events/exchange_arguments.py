"""Facts about an exchange between ranks from names and arguments of events: kind, sizes, group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from nodewise.plugin import CollectiveKind, ProcessGroup
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = [
    "LIBRARY_SPAN",
    "SAME_OUT",
    "Exchange",
    "Groups",
    "element_bytes",
    "exchange_of",
    "kind_of_name",
    "ranks_of",
    "tensor_bytes",
]

_KINDS: Final = (
    ("crossdevicereduce", CollectiveKind.ALL_REDUCE),
    ("deepep", CollectiveKind.ALL_TO_ALL),
    ("reducescatter", CollectiveKind.REDUCE_SCATTER),
    ("allreduce", CollectiveKind.ALL_REDUCE),
    ("allgather", CollectiveKind.ALL_GATHER),
    ("alltoall", CollectiveKind.ALL_TO_ALL),
    ("broadcast", CollectiveKind.BROADCAST),
    ("barrier", CollectiveKind.BARRIER),
    ("gather", CollectiveKind.GATHER),
    ("scatter", CollectiveKind.SCATTER),
    ("reduce", CollectiveKind.REDUCE),
    ("push", CollectiveKind.PUSH),
    ("pull", CollectiveKind.PULL),
)
"""Kinds by parts of their names, the more specific first."""

_ELEMENT_BYTES: Final = {
    "float": 4,
    "double": 8,
    "half": 2,
    "bfloat16": 2,
    "long": 8,
    "longint": 8,
    "int": 4,
    "short": 2,
    "shortint": 2,
    "char": 1,
    "byte": 1,
    "bool": 1,
    "signedchar": 1,
    "unsignedchar": 1,
    "complexfloat": 8,
    "complexdouble": 16,
    "complexhalf": 4,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
}
"""Bytes of an element, by the framework's and by C++'s names without spaces and name spaces."""

SAME_OUT: Final = frozenset({CollectiveKind.ALL_REDUCE, CollectiveKind.BROADCAST})
"""Kinds that give every rank as many bytes as it contributes."""
_UNKNOWN: Final = -1
LIBRARY_SPAN: Final = re.compile(r"^(nccl|rccl|xccl|hccl|mccl|gloo|mpi|ucc):", re.IGNORECASE)
"""Names of the spans around calls of communication libraries."""
_OTHER_THAN_LETTERS: Final = re.compile(r"[^a-z]")


def kind_of_name(name: str) -> CollectiveKind:
    """The kind by the name of a collective, of its kernel or of its span."""
    letters = _OTHER_THAN_LETTERS.sub("", name.lower())
    if "sendrecv" in letters:  # all-to-all and exchanges between two alike
        return CollectiveKind.UNKNOWN
    for part, kind in _KINDS:
        if part in letters:
            return kind
    if "send" in letters:
        return CollectiveKind.SEND
    if "recv" in letters or "receive" in letters:
        return CollectiveKind.RECEIVE
    return CollectiveKind.UNKNOWN


class Groups(dict[str, ProcessGroup]):
    """Process groups by name, in the order of their first mention."""

    def learn(self, group: ProcessGroup) -> None:
        """Add a mention; facts missing in earlier ones (ranks that were cut there) are added."""
        previous = self.get(group.name)
        if previous is None or (not previous.ranks and group.ranks and previous.size in {0, group.size}):
            self[group.name] = group


@dataclass(frozen=True, slots=True)
class Exchange:
    """Facts of some event about an exchange; -1, UNKNOWN and an empty name = none."""

    kind: CollectiveKind = CollectiveKind.UNKNOWN
    in_bytes: int = _UNKNOWN
    out_bytes: int = _UNKNOWN
    group: str = ""
    sequence: int = _UNKNOWN
    peer: int = _UNKNOWN
    is_stated: bool = False
    """Whether the recorder described the exchange itself, not only the tensors of a span around it."""


def exchange_of(name: str, arguments: Mapping[str, Any], groups: Groups) -> Exchange:
    """Read the arguments of an event of communication.

    Recorders since 2024 describe the exchange on its kernel and on ``record_param_comms``; before, only the shapes of
    the tensors of the library's span (``nccl:all_reduce``, ``gloo:broadcast``) tell how much is moved.
    """
    if "Collective name" not in arguments:
        if not LIBRARY_SPAN.search(name):
            return Exchange()
        in_bytes = tensor_bytes(arguments.get("Input Dims"), arguments.get("Input type"))
        kind = kind_of_name(name)
        return Exchange(in_bytes=in_bytes, out_bytes=in_bytes if kind in SAME_OUT else _UNKNOWN)
    kind = kind_of_name(str(arguments["Collective name"]))
    width = element_bytes(arguments.get("dtype"))
    peer_key = {CollectiveKind.SEND: "Dst Rank", CollectiveKind.RECEIVE: "Src Rank"}.get(kind, "Root Rank")
    group = _group(arguments)
    if group is not None:
        groups.learn(group)
    return Exchange(
        kind=kind,
        in_bytes=_times(small_or(arguments.get("In msg nelems"), _UNKNOWN), width),
        out_bytes=_times(small_or(arguments.get("Out msg nelems"), _UNKNOWN), width),
        group=group.name if group is not None else "",
        sequence=small_or(arguments.get("Seq"), _UNKNOWN),
        peer=small_or(arguments.get(peer_key), _UNKNOWN),
        is_stated=True,
    )


def tensor_bytes(shapes: Any, types: Any) -> int:
    """Bytes of all tensors by their shapes and the names of their types; -1 = not known."""
    if not isinstance(shapes, list | tuple) or not isinstance(types, list | tuple) or len(shapes) != len(types):
        return _UNKNOWN
    sizes = [_times(_elements(shape), width) for shape, width in zip(shapes, map(element_bytes, types)) if width > 0]
    return sum(sizes) if sizes and min(sizes) >= 0 else _UNKNOWN


def _elements(shape: Any) -> int:
    if not isinstance(shape, list | tuple):
        return _UNKNOWN
    if any(isinstance(part, list | tuple) for part in shape):
        parts = [_elements(part) for part in shape]
        return _UNKNOWN if min(parts) < 0 else sum(parts)
    sizes = [small_or(size, _UNKNOWN) for size in shape]
    return _UNKNOWN if any(size < 0 for size in sizes) else prod(sizes)


def element_bytes(name: Any) -> int:
    """Bytes of an element by the name of its type; -1 = not known."""
    letters = str(name).lower().removeprefix("c10::").replace(" ", "").replace("_", "")
    if letters.startswith(("float8", "c10::float8")):
        return 1
    return _ELEMENT_BYTES.get(letters, _UNKNOWN)


def _times(elements: int, width: int) -> int:
    return elements * width if elements >= 0 and width > 0 else _UNKNOWN


def _group(arguments: Mapping[str, Any]) -> ProcessGroup | None:
    name = arguments.get("Process Group Name")
    if name is None:
        return None
    size = small_or(arguments.get("Group size"), 0)
    ranks = ranks_of(arguments.get("Process Group Ranks"))
    if not ranks and size > 0:
        first = small_or(arguments.get("Global rank start"), _UNKNOWN)
        stride = small_or(arguments.get("Global rank stride"), 0)
        if first >= 0 and stride > 0:
            ranks = tuple(range(first, first + stride * size, stride))
    return ProcessGroup(name=str(name), size=size or len(ranks), ranks=ranks if len(ranks) in {0, size} else ())


def ranks_of(value: Any) -> tuple[int, ...]:
    """Ranks from a list or its text; none where the list was cut."""
    if isinstance(value, str):
        if "..." in value:
            return ()
        value = re.findall(r"\d+", value)
    if not isinstance(value, Sequence):
        return ()
    ranks = tuple(integer_or(rank, _UNKNOWN) for rank in value)
    return () if any(rank < 0 for rank in ranks) else ranks

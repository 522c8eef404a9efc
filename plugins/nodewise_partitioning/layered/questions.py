"""Rows of a query about a layered network, grouped by replica or refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    DEGREES,
    Catalogue,
    Configurations,
    Ints,
    Profile,
    Recomputation,
    Refusal,
    RowRefusal,
    SyncMode,
)

__all__ = ["ASSUMED_PRECISION", "Inner", "Question", "alike", "question_of"]

ASSUMED_PRECISION: Final = "fp32"
"""Number format of a network that does not state one: the default of frameworks."""

_OTHER_DEGREES: Final = ("expert_parallel", "context_parallel", "interleave")


@dataclass(frozen=True, slots=True, order=True)
class Inner:
    """Parameters that determine the inside of a replica."""

    device: str
    precision: str
    mode: int
    width: int
    stages: int
    batch: int
    accumulation: int
    per_node: int
    link_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Question:
    """Rows grouped by replica, and refusals."""

    groups: Mapping[Inner, Ints]
    refusals: tuple[RowRefusal, ...]


def question_of(configurations: Configurations, profile: Profile, catalogue: Catalogue) -> Question:
    """Group the rows by replica, and refuse those that cannot be answered."""
    groups: dict[Inner, list[Ints]] = {}
    refused: dict[Refusal, list[Ints]] = {}
    layers = profile.workload.layers or ()
    default_link = profile.network.link_bytes_per_s or 0.0
    precisions = configurations.precisions
    columns = {name: getattr(configurations, name) for name in _READ}
    workers, nodes = configurations.workers, np.maximum(configurations.nodes, 1)
    columns["per_node"] = -(-workers // nodes)
    columns["one_node"] = workers <= columns["per_node"]
    columns["too_few"] = workers < configurations.tensor_parallel * configurations.pipeline_parallel
    for members in alike(list(columns.values()), len(configurations)):
        at = {name: column[members[0]].item() for name, column in columns.items()}
        inner = Inner(
            device=configurations.devices[at["device_index"]],
            precision=(precisions[at["precision_index"]] or profile.workload.precision or ASSUMED_PRECISION).lower(),
            mode=at["sync_mode"],
            width=at["tensor_parallel"],
            stages=at["pipeline_parallel"],
            batch=at["batch_per_worker"],
            accumulation=max(at["accumulation"], 1),
            per_node=at["per_node"],
            link_bytes_per_s=at["link_bytes_per_s"] or default_link,
        )
        wrong = _wrong(inner, at, len(layers)) or _missing(inner, at, catalogue)
        if wrong is None:
            groups.setdefault(inner, []).append(members)
        else:
            refused.setdefault(wrong, []).append(members)
    return Question(
        {inner: _join(parts) for inner, parts in groups.items()},
        tuple(RowRefusal(tuple(_join(parts).tolist()), refusal) for refusal, parts in refused.items()),
    )


def alike(columns: Sequence[NDArray[Any]], rows: int) -> list[Ints]:
    """Return groups of rows that agree in every column. Rows ascend; groups are in the order of their first rows."""
    if not rows:
        return []
    key = np.zeros(rows, dtype=np.int64)
    for column in columns:
        if (column == column[0]).all():
            continue
        values, index = np.unique(column, return_inverse=True)
        # Made small again each time: a product of many columns' values would leave the integers.
        _, key = np.unique(key * len(values) + index.ravel(), return_inverse=True)
        key = key.ravel().astype(np.int64)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    return sorted(np.split(order, starts[1:]), key=lambda members: int(members[0]))


def _join(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


def _wrong(inner: Inner, at: Mapping[str, int], layers: int) -> Refusal | None:
    if inner.mode == SyncMode.HYBRID:
        return Refusal.unsupported("layered networks need sync mode ASYNC, SYNC or ALLREDUCE, not HYBRID")
    beyond = [name for name in _OTHER_DEGREES if at[name] > 1]
    beyond += [name for name in ("sequence_parallel", "zero_stage") if at[name]]
    if at["recomputation"] not in (Recomputation.UNSPECIFIED, Recomputation.NONE):
        beyond.append("recomputation")
    if beyond:
        return Refusal.unsupported(
            f"layered networks are not split in these ways: {', '.join(beyond)} must be left at the default"
        )
    if inner.mode == SyncMode.ALLREDUCE and (inner.width > 1 or inner.stages > 1):
        return Refusal.unsupported(
            "with all-reduce, a replica of a layered network is one device: tensor_parallel and pipeline_parallel "
            "must be 1, or the sync mode one with parameter servers"
        )
    if inner.stages > layers:
        return Refusal.unsupported(f"pipeline_parallel must be at most {layers}, the layers of the network")
    if at["too_few"]:
        return Refusal.unsupported(
            "workers must be a multiple of tensor_parallel x pipeline_parallel, the workers of a replica"
        )
    return None


def _missing(inner: Inner, at: Mapping[str, int], catalogue: Catalogue) -> Refusal | None:
    if not inner.device:
        return Refusal.missing(
            ("the device must be stated in the configuration or in an observation"), "configurations.device_names"
        )
    if inner.batch < 1:
        return Refusal.missing(
            ("the batch must be stated in the configuration or in an observation"), "configurations.batches_per_worker"
        )
    alone = inner.mode == SyncMode.ALLREDUCE and bool(at["one_node"])
    if not inner.link_bytes_per_s and not alone:
        text = "the link between nodes must be stated: without it the exchange cannot be predicted"
        return Refusal.missing(text, "network.link_bytes_per_second", "configurations.link_bytes_per_second")
    facts = catalogue.device(inner.device)
    if facts is None:
        return Refusal.missing(
            f"the catalogue has no device {inner.device!r}: add it to the catalogue", "catalogue.devices"
        )
    if f"{inner.precision}_flops_per_s" not in facts:
        field = f"catalogue.devices.{inner.precision}_flops_per_s"
        return Refusal.missing(f"the catalogue has no peak of device {inner.device!r} in {inner.precision}", field)
    if alone and inner.per_node > 1 and "intra_node_link_bytes_per_s" not in facts:
        text = f"the catalogue has no link between devices {inner.device!r} of one node"
        return Refusal.missing(text, "catalogue.devices.intra_node_link")
    return None


_READ: Final = (
    *(name for name in DEGREES if name != "data_parallel"),
    *("device_index", "precision_index", "sync_mode", "batch_per_worker", "accumulation", "link_bytes_per_s"),
)

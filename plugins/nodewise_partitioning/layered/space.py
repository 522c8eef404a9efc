"""Search space of a layered network: divisions of nodes into parts, stages, replicas and parameter servers.

A prefix determines the pool, the nodes, the machines per replica (hence the number of replicas), the kind of exchange,
the number of servers and the batch. Its completions are the layouts of a replica over its machines: parts of each layer
and stages. ``bounds`` bounds all completions without computing a layout, because the inside of a replica depends on its
machines only, and the exchange between replicas on few properties of the inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Configurations,
    Exclusion,
    Floats,
    Ints,
    NodewiseError,
    PlanConstraints,
    PlanPool,
    Recomputation,
    RowRefusal,
    SyncMode,
    Violation,
    as_floats,
    as_ints,
    constant_ints,
    freeze,
)
from nodewise_partitioning.space import MOST_PREFIXES, SETTLED, divisors, too_many, unused_values

__all__ = ["LayeredSpace"]

MODES: Final = (SyncMode.ASYNC, SyncMode.SYNC, SyncMode.ALLREDUCE)
MOST_BATCH: Final = 2**31 - 1
"""As messages count samples."""
DEFAULTS: Final = {
    "context_parallel": 1,
    "expert_parallel": 1,
    "interleave": 1,
    "zero_stages": 0,
    "sequence_parallel": 0,
    "recomputations": int(Recomputation.NONE),
}
"""Constraints that layered networks do not support, and the only value of each that is allowed."""

_COLUMNS: Final = (
    "pool", "nodes", "workers", "machines", "sync_mode", "parameter_servers", "global_batch", "batch_per_worker",
    "accumulation",
)  # fmt: skip

_REFUSED_BY: Final = ("device_index", "nodes", "workers", "sync_mode", "precision_index")
"""What rows are refused by: they are looked at once for each of its combinations."""
_NO_WAYS: Final = np.zeros((0, 2), dtype=np.int64)


class LayeredSpace:
    """Divisions of nodes within constraints.

    Parameters
    ----------
    layers : int
        Number of layers of the network.
    constraints : PlanConstraints
        Constraints on the choice.
    refusals : callable
        Returns the reasons why rows cannot be answered.
    bounds : callable
        Computes the columns of :meth:`lower_bound` of some prefixes.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if the number of servers is not stated; LIMIT_EXCEEDED; the refusal of rows.
    """

    final = SETTLED

    def __init__(
        self,
        layers: int,
        constraints: PlanConstraints,
        refusals: Callable[[Configurations], Sequence[RowRefusal]],
        bounds: Callable[[Configurations], Mapping[str, Floats]],
    ) -> None:
        self._layers, self._constraints, self._bounds = layers, constraints, bounds
        self._modes = [mode for mode in MODES if constraints.allows("sync_modes", mode)]
        if any(mode != SyncMode.ALLREDUCE for mode in self._modes):
            _require_servers(constraints)
        if not all(constraints.allows(name, value) for name, value in DEFAULTS.items()):
            self._modes = []
        self._splits: dict[int, list[tuple[int, int]]] = {}
        prefix_rows = list(self._rows())
        rows = np.concatenate(prefix_rows, axis=1) if prefix_rows else np.zeros((len(_COLUMNS), 0), dtype=np.int64)
        columns = dict(zip(_COLUMNS, np.repeat(rows, len(constraints.precisions), axis=1)))
        pool, self._machines = columns.pop("pool"), columns.pop("machines")
        count = len(pool)
        link = np.array([each.link_bytes_per_s for each in constraints.pools]) * constraints.link_factor
        self.prefixes = Configurations.of(count).replaced(
            devices=tuple(each.device for each in constraints.pools),
            device_index=as_ints(pool),
            link_bytes_per_s=as_floats(link[pool]),
            data_parallel=as_ints(columns["workers"] // np.maximum(self._machines, 1)),
            precisions=constraints.precisions,
            precision_index=as_ints(np.tile(np.arange(len(constraints.precisions)), rows.shape[1])),
            recomputation=constant_ints(count, int(Recomputation.UNSPECIFIED)),
            **{name: as_ints(column) for name, column in columns.items()},
        )
        self._unknown = self._leave_out(refusals)
        widths = np.array(sorted(self._splits), dtype=np.int64)
        ways = [self._ways(width, alone=False) for width in widths.tolist()]
        self._first = np.concatenate(([0], np.cumsum([len(each) for each in ways]))).astype(np.int64)
        self._flat = np.array([way for each in ways for way in each] or [(1, 1)], dtype=np.int64)
        self._kind = np.searchsorted(widths, self._machines)
        counts = np.diff(self._first)[self._kind] if len(widths) else np.zeros(0, dtype=np.int64)
        self.sizes: Ints = freeze(np.where(self.prefixes.sync_mode == SyncMode.ALLREDUCE, 1, counts).astype(np.int64))
        self.exclusions = self._exclusions()

    def _leave_out(self, refusals: Callable[[Configurations], Sequence[RowRefusal]]) -> tuple[Exclusion, ...]:
        """Refuse rows that cannot be answered. Exclude all-reduce inside one node, which uses another link."""
        prefixes = self.prefixes
        keys = np.stack([getattr(prefixes, name) for name in _REFUSED_BY])
        _, first, kind = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        examples = prefixes.take(as_ints(first))
        exclusions: list[Exclusion] = []
        is_possible = np.ones(len(prefixes), dtype=bool)
        for refusal in refusals(examples):
            rows = list(refusal.rows)
            mine = np.isin(kind.ravel(), rows)
            inside = (examples.sync_mode[rows] == SyncMode.ALLREDUCE) & (examples.nodes[rows] == 1)
            is_possible &= ~mine
            if not inside.all() or not is_possible.any():
                raise NodewiseError.refused(refusal.refusal)
            count = int(np.count_nonzero(mine))
            exclusions.append(Exclusion(constraint="sync_modes", message=refusal.refusal.message, count=count))
        if exclusions:
            self.prefixes, self._machines = (
                prefixes.take(as_ints(np.flatnonzero(is_possible))),
                self._machines[is_possible],
            )
        return tuple(exclusions)

    def lower_bound(self) -> Mapping[str, Floats]:
        """Return lower bounds of seconds and bytes over all completions of a prefix, and the available bytes."""
        return self._bounds(self.prefixes)

    def completed(self, prefixes: Ints) -> Configurations:
        """Return all completions of some prefixes, one prefix after the other."""
        sizes = self.sizes[prefixes]
        origin = np.repeat(prefixes, sizes)
        number = np.arange(len(origin)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        way = self._flat[self._first[self._kind[origin]] + number]
        return self.prefixes.take(as_ints(origin)).replaced(
            tensor_parallel=as_ints(way[:, 0]), pipeline_parallel=as_ints(way[:, 1])
        )

    # --- prefixes

    def _rows(self) -> Iterator[NDArray[np.int64]]:
        """Return blocks of shape (columns, rows)."""
        total = 0
        for number, pool in enumerate(self._constraints.pools):
            for nodes, machines, mode, servers, batches in self._choices(pool):
                total += len(servers) * len(batches) * len(self._constraints.precisions)
                if total > MOST_PREFIXES:
                    raise too_many("divisions of nodes and batches")
                workers = nodes * pool.workers_per_node
                server, which = (axis.ravel() for axis in np.meshgrid(servers, np.arange(len(batches)), indexing="ij"))
                same = (np.full(len(server), each) for each in (number, nodes, workers, machines, mode))
                yield np.stack([*same, server, *np.array(batches, dtype=np.int64)[which].T])

    def _choices(
        self, pool: PlanPool
    ) -> Iterator[tuple[int, int, SyncMode, NDArray[np.int64], list[tuple[int, int, int]]]]:
        """Return the valid combinations of nodes, machines per replica, mode, servers and batches."""
        most = self._constraints.max_nodes
        choices: dict[int, list[tuple[int, int, int]]] = {}
        for nodes in pool.nodes:
            if most is not None and nodes > most:
                continue
            workers = nodes * pool.workers_per_node
            for machines in divisors(workers):
                replicas = workers // machines
                if not self._constraints.allows("data_parallel", replicas):
                    continue
                if replicas not in choices:
                    choices[replicas] = self._batches(replicas)
                for mode in self._modes:
                    servers = self._servers(nodes, mode)
                    if len(servers) and choices[replicas] and self._ways(machines, alone=mode == SyncMode.ALLREDUCE):
                        yield nodes, machines, mode, servers, choices[replicas]

    def _ways(self, machines: int, *, alone: bool) -> list[tuple[int, int]]:
        """Return the parts and stages of so many machines; with all-reduce a replica is one machine."""
        if alone and machines > 1:
            return []
        if machines not in self._splits:
            self._splits[machines] = [
                (machines // stages, stages)
                for stages in divisors(machines)
                if stages <= self._layers
                and self._constraints.allows("pipeline_parallel", stages)
                and self._constraints.allows("tensor_parallel", machines // stages)
            ]
        return self._splits[machines]

    def _servers(self, nodes: int, mode: SyncMode) -> NDArray[np.int64]:
        """Return the numbers of servers that are possible beside so many worker nodes."""
        if mode == SyncMode.ALLREDUCE:
            return np.zeros(1, dtype=np.int64)
        listed, most = self._constraints.parameter_servers, self._constraints.max_nodes
        left = None if most is None else most - nodes
        if listed is None:
            return np.arange(1, (left or 0) + 1, dtype=np.int64)
        return np.array([count for count in listed if left is None or count <= left], dtype=np.int64)

    def _batches(self, replicas: int) -> list[tuple[int, int, int]]:
        """Return global batch, batch per replica, and micro-batches between two exchanges."""
        constraints = self._constraints
        if not constraints.global_batches:
            sizes = constraints.micro_batches or ()
            return [(replicas * size, size, 1) for size in sizes if replicas * size <= MOST_BATCH]
        return [
            (batch, size, batch // replicas // size)
            for batch in constraints.global_batches
            if batch % replicas == 0
            for size in divisors(batch // replicas)
            if constraints.allows("micro_batches", size)
        ]

    # --- what is not in it

    def _exclusions(self) -> tuple[Exclusion, ...]:
        """Return the listed values that no configuration has, with the reason."""
        constraints, prefixes = self._constraints, self.prefixes
        exclusions = list(self._unknown)
        for name, default in DEFAULTS.items():
            listed = getattr(constraints, name)
            if listed is not None:
                exclusions += unused_values(
                    name, listed, {default}, f"layered networks are not split in this way: must be {default}"
                )
        kinds = np.unique(self._kind).tolist()
        used = np.concatenate([self._flat[self._first[kind] : self._first[kind + 1]] for kind in kinds] or [_NO_WAYS])
        rules = {
            "tensor_parallel": ("must divide the workers; with all-reduce a replica is one device", used[:, 0]),
            "pipeline_parallel": (f"must divide the workers and be at most the {self._layers} layers", used[:, 1]),
            "data_parallel": ("must be the workers divided by parts and stages", prefixes.data_parallel),
            "micro_batches": ("must divide the samples of a replica", prefixes.batch_per_worker),
            "global_batches": ("must be divisible by an allowed number of replicas", prefixes.global_batch),
            "parameter_servers": (
                ("max_nodes leaves no node for servers, or no allowed sync mode uses servers"),
                prefixes.parameter_servers,
            ),
        }
        for name, (rule, column) in rules.items():
            exclusions += unused_values(name, getattr(constraints, name) or (), set(np.unique(column).tolist()), rule)
        if not len(prefixes):
            rule = (
                "no number of nodes divides into the allowed parts, stages, replicas and servers with an allowed batch"
            )
            exclusions.append(Exclusion(constraint="space", message=rule))
        return tuple(exclusions)


def _require_servers(constraints: PlanConstraints) -> None:
    if constraints.parameter_servers is None and constraints.max_nodes is None:
        text = "must list numbers of servers where sync_modes allows more than ALLREDUCE, unless max_nodes is given"
        raise NodewiseError.invalid([Violation("constraints.parameter_servers", text)])

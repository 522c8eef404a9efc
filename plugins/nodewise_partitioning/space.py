"""The space of partitions of a transformer: every layout that can run, as prefixes and their completions.

A prefix fixes pool, nodes, batch, the degrees of tensor, pipeline, context, expert and data parallelism, the
micro-batch, the number format and recomputation. Its completions differ in sequence parallelism, ZeRO stage and
interleaving, which change the bounds of time and memory little, or both in one direction. The rules of validity are
those of ``rows``, except that stages have equally many layers, unless numbers of stages are listed, and so have their
chunks, which p micro-batches pass at a time. Of switches without effect (sequence parallelism without tensor
parallelism, ZeRO without replicas) one setting represents all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    Reason,
    Recomputation,
    SyncMode,
    Violation,
    as_floats,
    as_ints,
    freeze,
)
from nodewise_partitioning.workload import Dimensions

__all__ = ["MOST_PREFIXES", "SETTLED", "PartitionSpace", "divisors", "too_many", "unused_values"]

SETTLED: Final = frozenset(
    {
        "device_index",
        "nodes",
        "workers",
        "link_bytes_per_s",
        "global_batch",
        "data_parallel",
        "batch_per_worker",
        "accumulation",
        "precision_index",
        "sync_mode",
        "parameter_servers",
    }
)
"""Columns that the prefixes of any space fix."""
RECOMPUTATIONS: Final = (int(Recomputation.NONE), int(Recomputation.SELECTIVE), int(Recomputation.FULL))
DEGREES: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
ZERO_STAGES: Final = (0, 1, 2, 3)
PIPELINED_STAGES: Final = (0, 1)
"""ZeRO stages 2 and 3 exchange gradients or parameters with every micro-batch of a pipeline: tried where listed."""
UNMATCHED: Final = "no other allowed degree, batch or interleaving combines with it on these devices"
SHOWN_VALUES: Final = 8
MOST_PREFIXES: Final = 2_000_000
"""About twenty million configurations, and half a gigabyte."""

_ALONE, _REPLICATED, _PIPELINED = range(3)
_COMPLETED: Final = ("sequence_parallel", "zero_stage", "interleave")


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Lists of values by kind of prefix, padded: ``values[kind, :counts[kind]]``; and the kind of each prefix."""

    values: Ints
    counts: Ints
    kinds: Ints

    @staticmethod
    def of(lists: Sequence[Sequence[int]], kinds: NDArray[np.int64]) -> _Choices:
        """From one list per kind."""
        counts = np.array([len(each) for each in lists], dtype=np.int64)
        values = np.zeros((len(lists), max(1, int(counts.max(initial=0)))), dtype=np.int64)
        for kind, each in enumerate(lists):
            values[kind, : len(each)] = each
        return _Choices(values, counts, kinds)

    def sizes(self) -> Ints:
        """Values of each prefix."""
        return self.counts[self.kinds]

    def take(self, rows: NDArray[np.intp]) -> _Choices:
        """Some prefixes."""
        return _Choices(self.values, self.counts, self.kinds[rows])


class PartitionSpace:
    """Partitions of one transformer within constraints.

    Parameters
    ----------
    dimensions : Dimensions
        Of the transformer.
    constraints : PlanConstraints
        The allowed values.
    assumed_links_bytes_per_s : sequence of float
        Network of a node of each pool where it is not stated, for constraints that multiply it.
    bounds : callable
        Computes the columns of :meth:`lower_bound`.
    zero_bubble : bool
        The declared schedule leaves no interleaving.
    """

    final = SETTLED | {*DEGREES, "recomputation"}

    def __init__(
        self,
        dimensions: Dimensions,
        constraints: PlanConstraints,
        assumed_links_bytes_per_s: Sequence[float],
        bounds: Callable[[PartitionSpace], Mapping[str, Floats]],
        *,
        zero_bubble: bool = False,
    ) -> None:
        if not constraints.global_batches:
            text = "must hold at least one value: partitions of one model are compared at the same global batch"
            raise NodewiseError.invalid([Violation("constraints.global_batch_samples", text)])
        self._dimensions = dimensions
        self._zero_bubble = zero_bubble
        self._constraints = constraints
        self._right_alone: dict[str, set[int]] = {name: set() for name in DEGREES}
        layers, tokens = int(dimensions.layers), int(dimensions.sequence)
        pool, nodes, workers, tensor, pipeline, context, expert, data = np.concatenate(
            [self._layouts(number, each) for number, each in enumerate(constraints.pools)], axis=1
        )
        self._has_layouts = bool(len(data))
        row, batch, micro = self._batches(data)
        self._batched = {"global_batches": set(batch.tolist()), "micro_batches": set(micro.tolist())}
        formats = len(constraints.precisions)
        row, batch, micro = (np.repeat(column, formats) for column in (row, batch, micro))
        tensor, pipeline, data, context = tensor[row], pipeline[row], data[row], context[row]
        steps = batch // (data * micro)
        plain = Configurations.of(len(row), sync_mode=SyncMode.ALLREDUCE, parameter_servers=0)
        link_bytes_per_s = np.array([each.link_bytes_per_s for each in constraints.pools])
        if constraints.link_factor != 1.0:
            link_bytes_per_s = (
                np.where(link_bytes_per_s > 0.0, link_bytes_per_s, assumed_links_bytes_per_s) * constraints.link_factor
            )
        prefixes = plain.replaced(
            devices=tuple(each.device for each in constraints.pools),
            device_index=as_ints(pool[row]),
            nodes=as_ints(nodes[row]),
            workers=as_ints(workers[row]),
            link_bytes_per_s=as_floats(link_bytes_per_s[pool[row]]),
            global_batch=as_ints(batch),
            batch_per_worker=as_ints(micro),
            accumulation=as_ints(steps),
            tensor_parallel=as_ints(tensor),
            pipeline_parallel=as_ints(pipeline),
            context_parallel=as_ints(context),
            expert_parallel=as_ints(expert[row]),
            data_parallel=as_ints(data),
            precisions=constraints.precisions,
            precision_index=as_ints(np.tile(np.arange(formats), len(row) // formats)),
        )
        even = (tokens % np.maximum(tensor, 1) == 0).astype(np.int64)
        kinds = np.where(data * context == 1, _ALONE, np.where(pipeline == 1, _REPLICATED, _PIPELINED))
        stages, stage_kind = np.unique(pipeline, return_inverse=True)
        choices = (
            _Choices.of(self._switches(), np.where(tensor == 1, 2, even)),
            _Choices.of(self._zero_stages(), kinds),
            _Choices.of(self._interleaves(stages.tolist(), layers), 2 * stage_kind + (steps % pipeline == 0)),
        )
        sizes = np.prod([each.sizes() for each in choices], axis=0, dtype=np.int64)
        nonempty = np.flatnonzero(sizes)
        self.layouts = prefixes.take(as_ints(nonempty))
        """Prefixes, without recomputation."""
        self.recomputations = self._allow("recomputations", RECOMPUTATIONS)
        """What may be recomputed; the prefixes are all layouts with the first, then with the next."""
        times = len(self.recomputations)
        every = np.tile(np.arange(len(nonempty)), times)
        recomputation = np.repeat(np.array(self.recomputations, dtype=np.int64), len(nonempty))
        self.prefixes = self.layouts.take(as_ints(every)).replaced(recomputation=freeze(recomputation))
        self.sizes: Ints = freeze(np.tile(sizes[nonempty], times))
        self.choices = {name: each.take(nonempty) for name, each in zip(_COMPLETED, choices)}
        self.exclusions = self._exclusions()
        self._bounds = bounds

    def lower_bound(self) -> Mapping[str, Floats]:
        """Lower bounds of seconds and bytes over all completions of a prefix, and the available memory."""
        return self._bounds(self)

    # --- prefixes

    def _layouts(self, number: int, pool: PlanPool) -> NDArray[np.int64]:
        """(columns, rows): pool, nodes, workers, tensor, pipeline, context, expert, data."""
        dimensions = self._dimensions
        layouts = [np.zeros((8, 0), dtype=np.int64)]
        experts = int(dimensions.experts) or 1
        synchronous = self._constraints.allows("sync_modes", SyncMode.ALLREDUCE)
        most = self._constraints.max_nodes
        for nodes in pool.nodes if synchronous else ():
            if most is not None and nodes > most:
                continue
            workers = nodes * pool.workers_per_node
            tensor = self._dividing("tensor_parallel", workers, int(dimensions.heads))
            tensor = [each for each in tensor if dimensions.hidden_size % each == 0]
            states_pipeline = self._constraints.pipeline_parallel is not None
            # Stages that differ by a layer are planned only if they are listed.
            pipeline = self._dividing(
                "pipeline_parallel", workers, *(() if states_pipeline else (int(dimensions.layers),))
            )
            pipeline = [each for each in pipeline if each <= dimensions.layers]
            context = [
                each
                for each in self._dividing("context_parallel", workers, workers)
                if each == 1 or dimensions.sequence % (2 * each) == 0
            ]
            expert = self._dividing("expert_parallel", workers, experts)
            for name, degrees in zip(DEGREES, (tensor, pipeline, context, expert)):
                self._right_alone[name].update(degrees)
            mesh = np.meshgrid(tensor, pipeline, context, expert, indexing="ij")
            t, p, c, x = (axis.ravel().astype(np.int64) for axis in mesh)
            model = t * p * c
            data = workers // np.maximum(model, 1)
            # Experts over tensor-parallel ranks as well are planned only if their numbers are listed.
            folded = x // np.gcd(x, data * c)
            allowed = folded == 1 if self._constraints.expert_parallel is None else t % np.maximum(folded, 1) == 0
            right = (model * data == workers) & allowed
            if self._constraints.data_parallel is not None:
                right &= np.isin(data, self._constraints.data_parallel)
            t, p, c, x, data = (column[right] for column in (t, p, c, x, data))
            layouts.append(np.stack([np.full(len(t), each) for each in (number, nodes, workers)] + [t, p, c, x, data]))
        return np.concatenate(layouts, axis=1)

    def _dividing(self, name: str, *wholes: int) -> list[int]:
        """Allowed degrees that divide all of some numbers."""
        return [
            each
            for each in divisors(int(np.gcd.reduce(np.array(wholes, dtype=np.int64))))
            if self._constraints.allows(name, each)
        ]

    def _batches(self, data: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Layout, global batch and micro-batch of every prefix: whole micro-batches on every replica."""
        rows, batches, micros = [], [], []
        total, each_layout = 0, len(self._constraints.precisions) * len(RECOMPUTATIONS)
        for batch in self._constraints.global_batches:
            whole = np.flatnonzero(batch % data == 0)
            each_replica, which = np.unique(batch // data[whole], return_inverse=True)
            lists = [
                [size for size in divisors(share) if self._constraints.allows("micro_batches", size)]
                for share in each_replica.tolist()
            ]
            counts = np.array([len(each) for each in lists], dtype=np.int64)[which]
            total += int(counts.sum()) * each_layout
            if total > MOST_PREFIXES:
                raise too_many("layouts of degrees, batches and recomputation", ", such as powers of two")
            rows.append(np.repeat(whole, counts))
            batches.append(np.full(int(counts.sum()), batch))
            micros.append(np.array([size for each in which.tolist() for size in lists[each]], dtype=np.int64))
        return (
            np.concatenate(rows).astype(np.int64),
            np.concatenate(batches).astype(np.int64),
            np.concatenate(micros),
        )

    # --- completions

    def _allow(self, name: str, values: Sequence[int]) -> list[int]:
        return [value for value in values if self._constraints.allows(name, value)]

    def _switches(self) -> list[list[int]]:
        """Sequence parallelism: where tensor parallelism does not divide the sequence, where it does, without any."""
        either = self._allow("sequence_parallel", (0, 1))
        return [self._allow("sequence_parallel", (0,)), either, either[:1]]

    def _zero_stages(self) -> list[list[int]]:
        """Kinds by devices that hold the model: one device only, replicas, replicas of a pipeline."""
        every = self._allow("zero_stages", ZERO_STAGES)
        pipelined = self._allow("zero_stages", PIPELINED_STAGES)
        return [pipelined[:1], every, pipelined if self._constraints.zero_stages is None else every]

    def _interleaves(self, stages: Sequence[int], layers: int) -> list[list[int]]:
        """By number of stages, and whether it divides the number of micro-batches."""
        interleaves = []
        for count in stages:
            plain = self._allow("interleave", (1,))
            every = (
                self._allow("interleave", divisors(layers // count))
                if count > 1 and layers % count == 0 and not self._zero_bubble
                else plain
            )
            interleaves += [plain, every]
        return interleaves

    def completed(self, prefixes: Ints) -> Configurations:
        """All completions of some prefixes, one prefix after the other."""
        sizes = self.sizes[prefixes]
        origin = np.repeat(prefixes, sizes)
        layout = origin % max(len(self.layouts), 1)
        number = np.arange(len(origin)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns = {}
        for name, choices in self.choices.items():
            kinds = choices.kinds[layout]
            number, place = np.divmod(number, choices.counts[kinds])
            columns[name] = freeze(choices.values[kinds, place])
        return self.prefixes.take(origin).replaced(**columns)

    # --- what is not in it

    def _exclusions(self) -> tuple[Exclusion, ...]:
        """Listed values that no configuration has, with the reason."""
        dimensions = self._dimensions
        exclusions: list[Exclusion] = []
        heads, layers, tokens = int(dimensions.heads), int(dimensions.layers), int(dimensions.sequence)
        rules = {
            "tensor_parallel": f"must divide the {heads} attention heads, the hidden size and the devices",
            "pipeline_parallel": f"must divide the devices, and be at most the {layers} layers",
            "context_parallel": f"twice it must divide the {tokens} tokens of a sequence, and it the devices",
            "expert_parallel": f"must divide the {int(dimensions.experts)} experts, and the replicas x tensors",
            "data_parallel": "must be the devices divided by the other degrees, and divide the global batch",
        }
        for name, rule in rules.items():
            listed = getattr(self._constraints, name) or ()
            used = set(np.unique(getattr(self.layouts, name)).tolist())
            alone = self._right_alone.get(name, set())
            exclusions += unused_values(name, listed, used | alone, rule)
            exclusions += unused_values(name, [each for each in listed if each in alone], used, UNMATCHED)
        if self._has_layouts:
            rule = "must divide the samples of a replica"
            exclusions += unused_values(
                "micro_batches", self._constraints.micro_batches or (), self._batched["micro_batches"], rule
            )
            rule = "must be divisible by an allowed number of replicas into allowed micro-batches"
            exclusions += unused_values(
                "global_batches", self._constraints.global_batches, self._batched["global_batches"], rule
            )
        if self._constraints.interleave is not None:
            rule = f"times the pipeline stages must divide the {layers} layers, and the stages the micro-batches"
            rule = "must be 1 with the zero-bubble schedule that the framework declares" if self._zero_bubble else rule
            choices = self.choices["interleave"]
            kinds = np.unique(choices.kinds).tolist()
            used = {value for kind in kinds for value in choices.values[kind, : choices.counts[kind]].tolist()}
            exclusions += unused_values("interleave", self._constraints.interleave, used, rule)
        rule = "partitioned transformers exchange by all-reduce: they have no servers"
        others = [SyncMode(mode).name for mode in self._constraints.sync_modes or () if mode != SyncMode.ALLREDUCE]
        exclusions += unused_values("sync_modes", others, set(), rule)
        exclusions += unused_values("parameter_servers", self._constraints.parameter_servers or (), set(), rule)
        if not len(self.prefixes):
            rule = "no product of allowed degrees is a number of devices whose batch it divides"
            exclusions.append(Exclusion(constraint="space", message=rule))
        return tuple(exclusions)


def too_many(what: str, such_as: str = "") -> NodewiseError:
    """A space of more prefixes than are searched."""
    text = f"constraints: the space has more than {MOST_PREFIXES} {what}; list fewer values{such_as}"
    return NodewiseError(Reason.LIMIT_EXCEEDED, text, {"limit": "plan_layouts", "value": str(MOST_PREFIXES)})


def unused_values(name: str, listed: Sequence[int] | Sequence[str], used: set[int], rule: str) -> list[Exclusion]:
    """Exclusions for listed values that no configuration has."""
    left = [value for value in listed if value not in used]
    if not left:
        return []
    some = ", ".join(map(str, left[:SHOWN_VALUES])) + (", ..." if len(left) > SHOWN_VALUES else "")
    return [Exclusion(constraint=name, message=f"{name} {some}: {rule}")]


def divisors(number: int) -> list[int]:
    """All divisors of a number from 1, in order."""
    small = np.arange(1, math.isqrt(number) + 1)
    small = small[number % small == 0]
    return sorted({*small.tolist(), *(number // small).tolist()})

"""The model of one job: step time and memory of every partition, from its dimensions and a corrected software stack."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    Configurations,
    Floats,
    Ints,
    NodewiseError,
    Notice,
    Observations,
    Options,
    PlanConstraints,
    Predictions,
    Reason,
    Refusal,
    RowRefusal,
    as_ints,
    freeze,
    sum_columns,
)
from nodewise_laws.alternatives import DEVIATIONS
from nodewise_partitioning.bounds import least_of
from nodewise_partitioning.evidence import OWN_VARIANCE
from nodewise_partitioning.groups import Group, group_rows, refusals_of, rows_asked, settled_in
from nodewise_partitioning.hardware import node_link_of
from nodewise_partitioning.hypotheses import Doubts, doubts_of
from nodewise_partitioning.knowledge import Knowledge
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import OVER_STEP, TERMS, memory_of, needed_of_fullest_stage, over_step, terms_of
from nodewise_partitioning.memory_doubts import (
    FUSED,
    MASTERS,
    SIXTEEN_BITS,
    UNKNOWN,
    Change,
    Reach,
    larger_batches,
    memory_reach,
)
from nodewise_partitioning.memory_evidence import MemoryRuns, memory_level
from nodewise_partitioning.micro_batches import choose_micro_batches, least
from nodewise_partitioning.notices import assumption_notices, memory_notices
from nodewise_partitioning.rows import QueryRows, layout_of
from nodewise_partitioning.software import is_known
from nodewise_partitioning.space import ZERO_STAGES, PartitionSpace
from nodewise_partitioning.splits import is_splittable, quickest, states_no_split
from nodewise_partitioning.step import PARTS, chunks, step_parts_s

__all__ = ["COLUMNS", "PartitioningModel", "memory_learned"]

KNOWN_DEVICES: Final = 512.0
"""Number of devices of the largest runs that the defaults were fitted to."""

MOST_STEP_S: Final = 1e9
"""Longest step, beyond the age of any cluster."""
_TOO_LONG: Final = Refusal.unsupported(f"a step would take more than {MOST_STEP_S:g} s: check the batch")
MEMORY_COLUMNS: Final = tuple(f"memory_{term}_bytes" for term in TERMS)
OVER_STEP_COLUMNS: Final = tuple(f"memory_{name}" for name in OVER_STEP)
COLUMNS: Final = (
    *("step_s", "memory_bytes", "memory_upper_bytes", "memory_capacity_bytes", "excess_memory_bytes"),
    *(*PARTS, *MEMORY_COLUMNS),
)
"""Columns of :meth:`PartitioningModel.evaluate`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Columns of rows that can be answered: (parts, rows) seconds, (terms, rows) bytes, and the rest (rows,).

    ``over_step`` has a row for each of ``memory.OVER_STEP``.
    """

    parts_s: Floats
    terms_bytes: Floats
    over_step: Floats
    available_bytes: Floats
    named_bytes: Floats
    peak_flops_per_s: Floats
    memory_log_spread: Floats
    log_spread: Floats

    @property
    def memory_bytes(self) -> Floats:
        return sum_columns(self.terms_bytes)

    @property
    def needed_bytes(self) -> Floats:
        """Needed bytes: the allocator frees its cache before it fails."""
        return sum_columns(term for name, term in zip(TERMS, self.terms_bytes) if name != "cache")

    @property
    def factor(self) -> Floats:
        """Factors from bytes to the bounds of their 90 % interval."""
        return np.asarray(np.exp(DEVIATIONS * self.memory_log_spread))


MFU: Final = "model_flops"
"""Name of the model's FLOPs over the devices' peak among utilisations."""


class PartitioningModel:
    """Partitions of one transformer."""

    tells_upper_memory = True
    """:meth:`evaluate` has ``memory_upper_bytes``: the upper bound of what must be in a device's memory."""

    def __init__(
        self, knowledge: Knowledge, notices: tuple[Notice, ...] = (), *, runs: Configurations | None = None
    ) -> None:
        self._knowledge = knowledge
        self._notices = notices
        self._runs = runs
        """The job's runs: rows without a split are assumed to be split as these, without a search. None = nothing
        ran."""
        self._splits: dict[Hashable, object] = {}
        """Results of the search for rows that state no split."""

    @property
    def layers(self) -> float:
        """Layers of the transformer."""
        return float(self._knowledge.dimensions.layers)

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row; refuse rows that are no partition of the model, each with its reason."""
        rows, stated_rows = len(configurations), configurations
        configurations, split_rows = self._choose_split(self.cut(stated_rows), stated_rows)
        query, groups, refusals = rows_asked(self._knowledge, configurations)
        numbers = self._numbers(query.layout, groups, spread=True)
        too_long = sum_columns(numbers.parts_s) > MOST_STEP_S
        if too_long.any():
            return self._without(query.rows[too_long], stated_rows, options)
        memory = numbers.memory_bytes
        doubts = self._doubts(stated_rows, configurations, query, numbers)
        reach = self._reach(rows, query, groups, numbers, doubts)
        down, up = reach.down[query.rows], reach.up[query.rows]
        upper = self._upper_bytes(numbers)
        answer = Predictions.assembled(
            dict(zip(PARTS, numbers.parts_s)),
            log_spread=np.hypot(numbers.log_spread, doubts.deviation[query.rows]),
            extrapolation=np.maximum(query.layout.devices / KNOWN_DEVICES, 1.0),
            memory_bytes=memory,
            memory_capacity_bytes=numbers.available_bytes,
            utilisation={MFU: self._flops_utilisation(query.layout, numbers)},
            extra={"sample_tokens": np.full(len(memory), self._knowledge.dimensions.sequence)},
            memory_extra={
                **dict(zip(MEMORY_COLUMNS, numbers.terms_bytes)),
                **dict(zip(OVER_STEP_COLUMNS, numbers.over_step)),
                "memory_available_bytes": numbers.available_bytes,
                "memory_lower_bytes": memory * np.exp(-down),
                "memory_upper_bytes": np.maximum(upper, np.minimum(memory * np.exp(up), numbers.available_bytes)),
            },
        )
        notices_of_memory = memory_notices(
            query,
            self._knowledge.catalogue,
            groups,
            numbers.needed_bytes,
            numbers.available_bytes,
            numbers.named_bytes,
            numbers.factor,
            rows,
        )
        unfit = numbers.memory_bytes > numbers.available_bytes
        assumptions = assumption_notices(self._knowledge, query, groups, stated_rows, unfit, split_rows)
        unsaid = (*doubts.notices(query.rows, numbers.log_spread), *reach.notices(query.rows))
        notices = (*self._notices, *assumptions, *notices_of_memory, *unsaid)
        places = None if len(query.rows) == rows else query.rows
        return Predictions.joined(rows, ((places, answer),), refusals=refusals, notices=notices)

    def cut(self, configurations: Configurations) -> Configurations:
        """The same rows with micro-batches where they state none."""

        def try_batches(every: Configurations) -> tuple[Ints, Floats, Floats]:
            query, numbers = self._try_micro_batches(every)
            memory_share = numbers.needed_bytes / numbers.available_bytes
            return query.rows, sum_columns(numbers.parts_s), memory_share * numbers.factor - 1.0

        return choose_micro_batches(configurations, try_batches)

    def trial(self, configurations: Configurations) -> tuple[Ints, Floats, Floats]:
        """Rows that can run, with their seconds and bytes, and needed over available memory."""
        query, numbers = self._try_micro_batches(configurations)
        quantities = np.stack([sum_columns(numbers.parts_s), numbers.memory_bytes])
        return query.rows, quantities, numbers.needed_bytes / numbers.available_bytes

    def _try_micro_batches(self, configurations: Configurations) -> tuple[QueryRows, _Numbers]:
        query, groups, _ = rows_asked(self._knowledge, configurations)
        return query, self._numbers(query.layout, groups)

    def log_likelihood(self, runs: Observations) -> float:
        """Ln of the probability of measured steps and memory, up to a constant; -inf if some run is impossible."""
        query, groups, _ = rows_asked(replace(self._knowledge, ran=True), self.cut(runs.configurations))
        numbers = self._numbers(query.layout, groups, spread=True)
        lacking = numbers.needed_bytes > numbers.available_bytes * numbers.factor
        if len(query.rows) < len(runs) or lacking.any():
            return -np.inf
        own = np.diag(np.full(len(runs), OWN_VARIANCE))
        covariance = np.maximum(np.square(numbers.log_spread).min() - OWN_VARIANCE, 0.0) + own
        misfit = np.log(runs.steps_per_s * sum_columns(numbers.parts_s))
        log_probability = -0.5 * float(misfit @ np.linalg.solve(covariance, misfit) + np.linalg.slogdet(covariance)[1])
        has_memory = runs.measured_memory_bytes > 0.0
        if has_memory.any():
            level = np.log(numbers.memory_bytes[has_memory] / runs.measured_memory_bytes[has_memory]).mean()
            log_probability -= 0.5 * float(level / numbers.memory_log_spread[has_memory].mean()) ** 2
        return log_probability

    def _doubts(
        self, stated_rows: Configurations, complete_rows: Configurations, query: QueryRows, numbers: _Numbers
    ) -> Doubts:
        """Uncertainty by facts that rows do not state; facts that runs settled stay as other facts change."""
        results, log_spread = np.zeros((2, len(stated_rows))), np.zeros(len(stated_rows))
        results[:, query.rows] = sum_columns(numbers.parts_s), numbers.memory_bytes
        log_spread[query.rows] = numbers.log_spread
        larger = list(larger_batches(self._knowledge, stated_rows, complete_rows))
        runs = self._runs
        if runs is not None:
            cut, own = self._cut_runs
            stated_rows, complete_rows = (
                Configurations.concatenated(each) for each in ((stated_rows, runs), (complete_rows, cut))
            )
            results, log_spread = (
                np.concatenate([results, own], axis=1),
                np.concatenate([log_spread, np.zeros(len(runs))]),
            )
        measured = 0 if runs is None else len(runs)
        return doubts_of(
            self._knowledge, stated_rows, complete_rows, results, log_spread, self._trial_under, measured, larger
        )

    @cached_property
    def _cut_runs(self) -> tuple[Configurations, Floats]:
        """The job's own runs with micro-batches where they state none, and their seconds and bytes; 0 = none."""
        runs = Configurations.of(0) if self._runs is None else self._runs
        cut, own = self.cut(runs), np.zeros((2, len(runs)))
        rows, quantities, _ = self.trial(cut)
        own[:, rows] = quantities
        return cut, own

    def _trial_under(self, configurations: Configurations, knowledge: Knowledge) -> tuple[Ints, Floats, Floats]:
        model = self if knowledge is self._knowledge else PartitioningModel(knowledge)
        return model.trial(configurations)

    def _reach(self, rows: int, query: QueryRows, groups: list[Group], numbers: _Numbers, doubts: Doubts) -> Reach:
        """Intervals of the memory of rows; runs with known bytes reduce the uncertainty of unstated facts."""
        log_spread = np.zeros(rows)
        log_spread[query.rows] = numbers.memory_log_spread
        if self._knowledge.memory_measured:
            return memory_reach({}, log_spread, 0.0)
        changes = {
            fact: [Change(value.weight, value.rows, effect) for value, effect in change]
            for fact, change in doubts.memory.items()
        }
        framework = self._knowledge.framework
        beside = UNKNOWN if framework and not is_known(framework) else 0.0
        return memory_reach(changes | dict(self._by_scripts(query, groups, numbers)), log_spread, beside)

    def _by_scripts(
        self, query: QueryRows, groups: list[Group], numbers: _Numbers
    ) -> Iterator[tuple[str, Sequence[Change]]]:
        """Master weights and losses under PyTorch, which depend on the training script."""
        eager = [group for group in groups if group.software.eager_memory]
        training = self._knowledge.dimensions.training
        if not eager:
            return
        rows = np.concatenate([group.rows for group in eager])

        def change(weight: float, layout: Layout, model: PartitioningModel, which: NDArray[np.bool_]) -> Change:
            others = model._numbers(layout, eager, timed=False)  # of its own kind
            places = rows[which[rows] & (others.needed_bytes <= others.available_bytes)[rows]]
            ratio = np.log(others.memory_bytes[places] / numbers.memory_bytes[places])
            return Change(weight, as_ints(query.rows[places]), ratio)

        if training.master_weights is None:
            narrow = query.layout.narrow_states > 0.0
            other = replace(query.layout, narrow_states=np.where(narrow, 0.0, 1.0))
            weights = ((SIXTEEN_BITS, ~narrow), (MASTERS, narrow))
            changes = [change(weight, other, self, which) for weight, which in weights if which[rows].any()]
            yield "master_weights", changes
        if training.fused_loss is None:
            dimensions = replace(self._knowledge.dimensions, training=replace(training, fused_loss=True))
            fused = PartitioningModel(replace(self._knowledge, dimensions=dimensions))
            yield "fused_loss", [change(FUSED, query.layout, fused, np.ones(len(query.rows), dtype=bool))]

    def refusals(self, configurations: Configurations) -> tuple[RowRefusal, ...]:
        """Rows that are no partition of the model, or whose device or number format is not known, and the reason."""
        row_refusals = refusals_of(self._knowledge, least(configurations))
        rows = [row for each in row_refusals if each.refusal.reason != Reason.EVIDENCE_MISSING for row in each.rows]
        if not rows or self._runs is not None:
            return row_refusals
        whole = np.intersect1d(rows, np.flatnonzero(states_no_split(configurations))).tolist()
        split = {row for row in whole if is_splittable(self, configurations, row)}
        if not split:
            return row_refusals
        left = (replace(each, rows=tuple(row for row in each.rows if row not in split)) for each in row_refusals)
        return tuple(each for each in left if each.rows)

    def _choose_split(self, configurations: Configurations, stated_rows: Configurations) -> tuple[Configurations, Ints]:
        """The same with the fastest split of rows that state none and do not fit unsplit, and these rows' indexes."""
        whole = as_ints([] if self._runs is not None else np.flatnonzero(states_no_split(stated_rows)))
        if not len(whole):
            return configurations, whole
        query, groups, _ = rows_asked(self._knowledge, configurations.take(whole))
        numbers = self._numbers(query.layout, groups, timed=False)
        lacking = numbers.needed_bytes * numbers.factor - numbers.available_bytes
        unsplit = query.rows[(query.layout.zero_stage == 0.0) & (lacking <= 0.0)]
        searched = as_ints(np.delete(whole, unsplit))
        return quickest(self, stated_rows, searched.tolist(), configurations, self._splits), searched

    def _without(self, too_long: Ints, configurations: Configurations, options: Options) -> Predictions:
        """The other rows' answer, without rows of implausibly long steps."""
        rows = len(configurations)
        others = as_ints(np.setdiff1d(np.arange(rows), too_long))
        predictions = self.predict(configurations.take(others), options)
        return Predictions.joined(
            rows, ((others, predictions),), refusals=(RowRefusal(tuple(too_long.tolist()), _TOO_LONG),)
        )

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """Some of :data:`COLUMNS` for rows that are all valid partitions of the model, as in its space.

        Raises
        ------
        ValueError
            A column is unknown.
        NodewiseError
            EVIDENCE_MISSING for a device that the catalogue does not know.
        """
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"column {unknown[0]!r} is not known; known are {', '.join(COLUMNS)}")
        layout = layout_of(chunk, self._knowledge.network, self._knowledge.catalogue)
        groups, nowhere = group_rows(self._knowledge, chunk, as_ints(np.arange(len(chunk))), layout)
        if nowhere:
            raise NodewiseError.refused(nowhere[0].refusal)
        layout = settled_in(self._knowledge, layout, groups)
        timed = any(name == "step_s" or name in PARTS for name in columns)
        numbers = self._numbers(layout, groups, timed=timed)
        memory = numbers.memory_bytes
        values = {
            "step_s": sum_columns(numbers.parts_s),
            "memory_bytes": memory,
            "memory_upper_bytes": self._upper_bytes(numbers),
            "memory_capacity_bytes": numbers.available_bytes,
            "excess_memory_bytes": np.maximum(memory - numbers.available_bytes, 0.0),
            **dict(zip(PARTS, numbers.parts_s)),
            **dict(zip(MEMORY_COLUMNS, numbers.terms_bytes)),
        }
        return {name: freeze(values[name]) for name in columns}

    @property
    def memory_terms(self) -> Sequence[str]:
        """Terms of ``memory_bytes``."""
        return MEMORY_COLUMNS

    def space(self, constraints: PlanConstraints) -> PartitionSpace:
        """Every partition within the constraints that can run.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING for a device that the catalogue does not know; LIMIT_EXCEEDED.
        """
        dimensions = self._knowledge.dimensions
        links = [node_link_of(self._knowledge.catalogue, pool.device)[0] for pool in constraints.pools]
        if constraints.context_parallel is None and "deepspeed" in self._knowledge.framework.casefold():
            constraints = replace(constraints, context_parallel=(1,))  # it has none of its own: asked for, or not tried
        bounds = partial(self._bounds, constraints)
        return PartitionSpace(dimensions, constraints, links, bounds, zero_bubble=self._knowledge.zero_bubble)

    def _bounds(self, constraints: PlanConstraints, space: PartitionSpace) -> Mapping[str, Floats]:
        """Lower bounds of seconds and bytes over all completions of a prefix, and the available memory."""
        layouts, dimensions = space.layouts, self._knowledge.dimensions
        rows, ways = len(layouts), len(space.recomputations)
        layout = layout_of(layouts, self._knowledge.network, self._knowledge.catalogue)
        groups, unknown = group_rows(self._knowledge, layouts, as_ints(np.arange(rows)))
        if unknown:
            raise NodewiseError.refused(unknown[0].refusal)
        step_s, memory, capacity = np.zeros((ways, rows)), np.zeros((ways, rows)), np.zeros((ways, rows))
        for group in groups:
            device, members, software = group.device, group.rows, group.software
            capacity[:, members] = device.memory_bytes
            for chunk in chunks(len(members), ways * len(ZERO_STAGES)):
                part = as_ints(members[chunk])
                own = layout.take(part)
                level = self._knowledge.levels.least_of(device, own)
                least_s, least_bytes = least_of(dimensions, own, space.recomputations, device, software, constraints)
                step_s[:, part] = level * least_s
                memory[:, part] = least_bytes
        return {
            "step_s": step_s.ravel(),
            "memory_bytes": memory.ravel(),
            "memory_capacity_bytes": capacity.ravel(),
        }

    def _flops_utilisation(self, layout: Layout, numbers: _Numbers) -> Floats:
        """Share of the devices' peak that the model's own FLOPs reach, without recomputation (PaLM's MFU).

        A. Chowdhery et al., "PaLM", 2022, appendix B: all attention scores count; gradients of frozen weights do not.
        """
        dimensions = self._knowledge.dimensions
        of_sample = (3.0 - dimensions.training.frozen_share) * dimensions.forward_flops()
        flops = of_sample * layout.data * layout.micro_batch * layout.micro_batches
        utilisation = flops / (sum_columns(numbers.parts_s) * layout.devices * numbers.peak_flops_per_s)
        return np.asarray(np.minimum(utilisation, 1.0))

    def _upper_bytes(self, numbers: _Numbers) -> Floats:
        """Upper bound of the bytes in use: needed bytes, and a cache that is limited by the device's memory."""
        upper_bytes = np.maximum(
            numbers.memory_bytes, np.minimum(numbers.memory_bytes * numbers.factor, numbers.available_bytes)
        )
        return np.asarray(np.maximum(upper_bytes, numbers.needed_bytes * numbers.factor))

    def _numbers(self, layout: Layout, groups: list[Group], *, timed: bool = True, spread: bool = False) -> _Numbers:
        rows = len(layout)
        totals = _Numbers(
            *(np.zeros((len(names), rows)) for names in (PARTS, TERMS, OVER_STEP)), *(np.zeros(rows) for _ in range(5))
        )
        for group in groups:
            device, members, software = group.device, group.rows, group.software
            everything = len(members) == rows
            own = layout if everything else layout.take(members)
            totals.available_bytes[members] = device.memory_bytes
            totals.named_bytes[members] = device.named_memory_bytes
            totals.peak_flops_per_s[members] = device.flops_per_s
            totals.memory_log_spread[members] = software.memory_log_spread
            if spread:
                totals.log_spread[members] = self._knowledge.levels.log_spread_of(device, own)
            for chunk in chunks(len(members)):
                part = own.take(chunk)
                where = chunk if everything else members[chunk]
                if timed:
                    seconds = step_parts_s(self._knowledge.dimensions, part, device, software)
                    level = self._knowledge.levels.factor_of(device, part)
                    totals.parts_s[:, where] = level * seconds
                needed = needed_of_fullest_stage(self._knowledge.dimensions, part, device, software)
                memory = terms_of(needed, device, software)
                for place, term in enumerate(TERMS):
                    totals.terms_bytes[place, where] = memory[term]
                if spread:
                    columns = over_step(needed, part, self._knowledge.dimensions.training)
                    for place, name in enumerate(OVER_STEP):
                        totals.over_step[place, where] = columns[name]
        return totals


def memory_learned(knowledge: Knowledge, observed: Observations) -> Knowledge:
    """The same model with corrections by the measured memory of a job's runs."""
    if not len(observed):
        return knowledge
    query, groups, _ = rows_asked(
        replace(knowledge, ran=True), PartitioningModel(knowledge).cut(observed.configurations)
    )
    rows = len(query.rows)
    if not rows:
        return knowledge
    needed, cached, capacity = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    log_spread = 0.0
    for group in groups:
        device, members, software = group.device, group.rows, group.software
        log_spread = max(log_spread, software.memory_log_spread)
        terms = memory_of(knowledge.dimensions, query.layout.take(members), device, software)
        cached[members] = terms["cache"]
        needed[members] = sum_columns(terms.values()) - terms["cache"]
        capacity[members] = device.memory_bytes
    measured_bytes = observed.measured_memory_bytes[query.rows]
    level, spread = memory_level(
        MemoryRuns(
            needed_bytes=needed,
            cached_bytes=cached,
            capacity_bytes=capacity,
            held_bytes=measured_bytes,
            ran=(observed.steps_per_s[query.rows] + measured_bytes) > 0.0,
        ),
        log_spread,
    )
    return replace(knowledge, memory_level=level, memory_log_spread=spread, memory_measured=bool(measured_bytes.any()))

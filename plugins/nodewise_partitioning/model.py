"""The model of one job: step time and memory of every partition, from its dimensions and a corrected software stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from nodewise.plugin import (
    Catalogue,
    Configurations,
    Floats,
    Ints,
    Network,
    NodewiseError,
    Notice,
    Observations,
    Options,
    PlanConstraints,
    Predictions,
    Recomputation,
    Refusal,
    RowRefusal,
    added,
    as_ints,
    freeze,
)
from nodewise_partitioning.bounds import least_of
from nodewise_partitioning.evidence import Levels
from nodewise_partitioning.hardware import ASSUMED_NODE_LINK_BYTES_PER_S, DEFAULT_FORMAT, Device, device_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import LOG_SPREAD, TERMS, memory_of
from nodewise_partitioning.memory_evidence import MemoryRuns, memory_level
from nodewise_partitioning.rows import Asked, asked_of, layout_of
from nodewise_partitioning.software import Software, stack_of
from nodewise_partitioning.space import PartitionSpace
from nodewise_partitioning.step import PARTS, chunks, step_parts_s
from nodewise_partitioning.unsaid import OPEN, by_stack, kinds_of, settled, stack_notice
from nodewise_partitioning.workload import Dimensions

__all__ = ["COLUMNS", "Knowledge", "PartitioningModel", "memory_learned", "refusals_of"]

KNOWN_DEVICES: Final = 512.0
"""Devices of the largest runs that the defaults were fitted to."""

MEMORY_COLUMNS: Final = tuple(f"memory_{term}_bytes" for term in TERMS)
DEVIATIONS: Final = 1.645
"""From the middle to the bounds of a 90 % interval of a normal variable."""
COLUMNS: Final = ("step_s", "memory_bytes", "memory_capacity_bytes", "excess_memory_bytes", *PARTS, *MEMORY_COLUMNS)
"""What :meth:`PartitioningModel.evaluate` tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known of a job besides the question.

    Attributes
    ----------
    numbers : mapping of framework to tuple of float
        Values of ``software.FIELDS`` by the framework with what it leaves open (``unsaid.stack_name``); of others the
        stack's own hold.
    levels : Levels
        Factor on every step that runs ask for beyond what the stack's numbers explain, and deviation of ln(step time).
    memory_level, memory_log_spread : float
        Factor on what a device cannot do without, and deviation of ln(bytes held).
    """

    dimensions: Dimensions
    network: Network
    catalogue: Catalogue
    framework: str
    number_format: str
    numbers: Mapping[str, tuple[float, ...]]
    levels: Levels
    memory_level: float = 1.0
    memory_log_spread: float = LOG_SPREAD

    def software(self, name: str, device: Device) -> Software:
        """The corrected stack of a name on a device in its number format."""
        stack, _ = stack_of(name, device.number_format)
        numbers = self.numbers.get(name)
        corrected = stack if numbers is None else stack.corrected(numbers)
        return replace(corrected, memory_level=self.memory_level)

    @property
    def zero_bubble(self) -> bool:
        """The declared schedule of pipelines."""
        return stack_of(self.framework, DEFAULT_FORMAT)[0].zero_bubble


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Columns of rows that can be answered: (parts, rows) seconds, (terms, rows) bytes, and the rest (rows,)."""

    parts_s: Floats
    terms_bytes: Floats
    available_bytes: Floats
    named_bytes: Floats
    log_spread: Floats

    @property
    def memory_bytes(self) -> Floats:
        return added(self.terms_bytes)

    @property
    def needed_bytes(self) -> Floats:
        """What must be there: the allocator gives its cache back before it fails."""
        return added(term for name, term in zip(TERMS, self.terms_bytes) if name != "cache")


class PartitioningModel:
    """Partitions of one transformer."""

    def __init__(self, knowledge: Knowledge, notices: tuple[Notice, ...] = ()) -> None:
        self._knowledge = knowledge
        self._notices = notices

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - the protocol's
        """Predict every row; refuse row by row what is no partition of the model."""
        rows = len(configurations)
        asked, groups, refusals = _asked(self._knowledge, configurations)
        numbers = self._numbers(asked.layout, groups, spread=True)
        memory = numbers.memory_bytes
        answer = Predictions.assembled(
            dict(zip(PARTS, numbers.parts_s)),
            log_spread=numbers.log_spread,
            extrapolation=np.maximum(asked.layout.devices / KNOWN_DEVICES, 1.0),
            memory_bytes=memory,
            memory_capacity_bytes=numbers.available_bytes,
            memory_extra={**dict(zip(MEMORY_COLUMNS, numbers.terms_bytes)), **self._interval(memory)},
        )
        assumed = _assumed(self._knowledge, asked, groups, configurations)
        notices = (*self._notices, *assumed, *_said(asked, numbers, self._factor, rows))
        places = None if len(asked.rows) == rows else asked.rows
        return Predictions.joined(rows, ((places, answer),), refusals=refusals, notices=notices)

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """Some of :data:`COLUMNS` for rows that are all partitions of the model, as those of its space are.

        Raises
        ------
        ValueError
            A column is unknown.
        NodewiseError
            EVIDENCE_MISSING for a device that the catalogue does not know.
        """
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"column {unknown[0]!r} is unknown; known are {', '.join(COLUMNS)}")
        layout = layout_of(chunk, self._knowledge.network)
        groups, nowhere = _devices(self._knowledge, chunk, as_ints(np.arange(len(chunk))))
        if nowhere:
            raise NodewiseError.refused(nowhere[0].refusal)
        layout = _settled(self._knowledge, layout, groups)
        timed = any(name == "step_s" or name in PARTS for name in columns)
        numbers = self._numbers(layout, groups, timed=timed)
        memory = numbers.memory_bytes
        found = {
            "step_s": added(numbers.parts_s),
            "memory_bytes": memory,
            "memory_capacity_bytes": numbers.available_bytes,
            "excess_memory_bytes": np.maximum(memory - numbers.available_bytes, 0.0),
            **dict(zip(PARTS, numbers.parts_s)),
            **dict(zip(MEMORY_COLUMNS, numbers.terms_bytes)),
        }
        return {name: freeze(found[name]) for name in columns}

    @property
    def memory_terms(self) -> Sequence[str]:
        """What adds up to ``memory_bytes``."""
        return MEMORY_COLUMNS

    def space(self, constraints: PlanConstraints) -> PartitionSpace:
        """Every partition within the constraints that can run.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING for a device that the catalogue does not know; LIMIT_EXCEEDED.
        """
        dimensions, link = self._knowledge.dimensions, ASSUMED_NODE_LINK_BYTES_PER_S
        bounds = partial(self._bounds, constraints)
        return PartitionSpace(dimensions, constraints, link, bounds, zero_bubble=self._knowledge.zero_bubble)

    def _bounds(self, constraints: PlanConstraints, space: PartitionSpace) -> Mapping[str, Floats]:
        """Seconds and bytes that no completion of a prefix is below, and the memory that there is."""
        layouts = space.layouts
        rows, ways = len(layouts), len(space.recomputations)
        layout = layout_of(layouts, self._knowledge.network)
        groups, unknown = _devices(self._knowledge, layouts, as_ints(np.arange(rows)))
        if unknown:
            raise NodewiseError.refused(unknown[0].refusal)
        step_s, memory, capacity = np.zeros((ways, rows)), np.zeros((ways, rows)), np.zeros((ways, rows))
        for device, members, software in groups:
            capacity[:, members] = device.memory_bytes
            own = layout if len(members) == rows else layout.take(members)
            level = self._knowledge.levels.least_of(device, self._knowledge.dimensions, own)
            least = least_of(self._knowledge.dimensions, own, space.recomputations, device, software, constraints)
            for way, (least_s, least_bytes) in enumerate(least):
                step_s[way, members] = level * least_s
                memory[way, members] = least_bytes
        return {
            "step_s": step_s.ravel(),
            "memory_bytes": memory.ravel(),
            "memory_capacity_bytes": capacity.ravel(),
        }

    @property
    def _factor(self) -> float:
        """From bytes to the bounds of their 90 % interval."""
        return float(np.exp(DEVIATIONS * self._knowledge.memory_log_spread))

    def _interval(self, memory: Floats) -> Mapping[str, Floats]:
        return {"memory_lower_bytes": memory / self._factor, "memory_upper_bytes": memory * self._factor}

    def _numbers(self, layout: Layout, groups: list[_Group], *, timed: bool = True, spread: bool = False) -> _Numbers:
        rows = len(layout)
        found = _Numbers(
            np.zeros((len(PARTS), rows)), np.zeros((len(TERMS), rows)), np.zeros(rows), np.zeros(rows), np.zeros(rows)
        )
        for device, members, software in groups:
            everything = len(members) == rows
            own = layout if everything else layout.take(members)
            found.available_bytes[members] = device.memory_bytes
            found.named_bytes[members] = device.named_memory_bytes
            if spread:
                found.log_spread[members] = self._knowledge.levels.log_spread_of(
                    device, self._knowledge.dimensions, own
                )
            for chunk in chunks(len(members)):
                part = own.take(chunk)
                where = chunk if everything else members[chunk]
                if timed:
                    seconds = step_parts_s(self._knowledge.dimensions, part, device, software)
                    level = self._knowledge.levels.factor_of(device, self._knowledge.dimensions, part)
                    found.parts_s[:, where] = level * seconds
                memory = memory_of(self._knowledge.dimensions, part, device, software)
                for place, term in enumerate(TERMS):
                    found.terms_bytes[place, where] = memory[term]
        return found


_Group = tuple[Device, Ints, Software]
"""A device in a number format, the rows on it, and the stack there."""


def refusals_of(knowledge: Knowledge, configurations: Configurations) -> tuple[RowRefusal, ...]:
    """Rows that are refused."""
    return _asked(knowledge, configurations)[2]


def memory_learned(knowledge: Knowledge, observed: Observations) -> Knowledge:
    """The same with what a job's runs say of its memory."""
    asked, groups, _ = _asked(knowledge, observed.configurations)
    rows = len(asked.rows)
    if not rows:
        return knowledge
    needed, cached, capacity = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for device, members, software in groups:
        terms = memory_of(knowledge.dimensions, asked.layout.take(members), device, software)
        cached[members] = terms["cache"]
        needed[members] = added(terms.values()) - terms["cache"]
        capacity[members] = device.memory_bytes
    level, spread = memory_level(
        MemoryRuns(
            needed_bytes=needed,
            cached_bytes=cached,
            capacity_bytes=capacity,
            held_bytes=observed.measured_memory_bytes[asked.rows],
            ran=(observed.steps_per_s + observed.measured_memory_bytes)[asked.rows] > 0.0,
        )
    )
    return replace(knowledge, memory_level=level, memory_log_spread=spread)


def _asked(knowledge: Knowledge, configurations: Configurations) -> tuple[Asked, list[_Group], tuple[RowRefusal, ...]]:
    """Rows that can be answered, by device; the groups' rows count among these."""
    asked = asked_of(configurations, knowledge.dimensions, knowledge.network, zero_bubble=knowledge.zero_bubble)
    groups, unknown = _devices(knowledge, configurations, asked.rows)
    if unknown:
        lost = np.concatenate([np.array(refusal.rows) for refusal in unknown])
        kept = np.flatnonzero(~np.isin(asked.rows, lost))
        place = np.full(len(asked.rows), -1)
        place[kept] = np.arange(len(kept))
        groups = [(device, place[rows], software) for device, rows, software in groups]
        assumed = as_ints(np.setdiff1d(asked.assumed_link, lost))
        asked = Asked(as_ints(asked.rows[kept]), asked.layout.take(as_ints(kept)), assumed, asked.refusals)
    asked = replace(asked, layout=_settled(knowledge, asked.layout, groups))
    refusals = tuple(sorted((*asked.refusals, *unknown), key=lambda each: each.rows))
    return asked, groups, refusals


def _settled(knowledge: Knowledge, layout: Layout, groups: list[_Group]) -> Layout:
    """The layouts with what they leave open settled on their devices."""
    if (layout.recomputation > 0.0).all():
        return layout
    columns = {name: getattr(layout, name).copy() for name in OPEN}
    for device, members, software in groups:
        rows = layout.take(members)
        own = settled(rows, knowledge.dimensions, device, software, declared=knowledge.framework)
        for name, column in columns.items():
            column[members] = getattr(own, name)
    return replace(layout, **columns)


def _devices(knowledge: Knowledge, configurations: Configurations, rows: Ints) -> tuple[list[_Group], list[RowRefusal]]:
    """Devices of some rows, with places among these, and rows whose device or number format is not known."""
    groups: list[_Group] = []
    refused: list[RowRefusal] = []
    width = len(configurations.precisions)
    kinds = kinds_of(configurations)[rows]
    codes = configurations.device_index[rows] * width + configurations.precision_index[rows]
    for code in np.unique(codes).tolist():
        members = np.flatnonzero(codes == code)
        name = configurations.devices[code // width]
        number_format = configurations.precisions[code % width] or knowledge.number_format or DEFAULT_FORMAT
        device = device_of(knowledge.catalogue, name, number_format)
        if isinstance(device, Refusal):
            refused.append(RowRefusal(tuple(rows[members].tolist()), device))
        else:
            stacks = by_stack(knowledge.framework, knowledge.dimensions, device, as_ints(members), kinds)
            groups += [(device, part, knowledge.software(name, device)) for name, part in stacks]
    return groups, refused


def _assumed(
    knowledge: Knowledge, asked: Asked, groups: list[_Group], configurations: Configurations
) -> Iterator[Notice]:
    """What stands for what the job and single rows do not say."""
    framework, dimensions = knowledge.framework, knowledge.dimensions
    unsaid, kinds = configurations.recomputation[asked.rows] == 0, kinds_of(configurations)[asked.rows]
    names = (
        (device, name)
        for device, members, _ in groups
        for name, _ in by_stack(framework, dimensions, device, members, kinds)
    )
    found = (stack_notice(framework, dimensions, device, name) for device, name in names)
    yield from dict.fromkeys(notice for notice in found if notice is not None)
    for way, text in _TAKEN.items():
        rows = asked.rows[unsaid & (asked.layout.recomputation == way)]
        if len(rows):
            yield Notice("RECOMPUTATION_ASSUMED", f"what is recomputed is not stated: {text}", tuple(rows.tolist()))
    stated = (configurations.sequence_parallel[asked.rows], configurations.zero_stage[asked.rows])
    split = (asked.layout.sequence_parallel != stated[0]) | (asked.layout.zero_stage != stated[1])
    if split.any():
        text = (
            "nothing is stated of the stack, and these rows do not fit: what fits is taken, with sequence parallelism"
        )
        yield Notice("SPLIT_ASSUMED", f"{text} and a stage of ZeRO where needed", tuple(asked.rows[split].tolist()))


_TAKEN: Final = {
    Recomputation.NONE: "taken as nothing, which these rows have room for",
    Recomputation.FULL: "taken as every layer, for attention's scores are stored or not all activations fit",
}


def _said(asked: Asked, numbers: _Numbers, factor: float, rows: int) -> Iterator[Notice]:
    """What a reader should know of single rows."""

    def told(members: Ints) -> tuple[int, ...]:
        return () if len(members) == rows else tuple(members.tolist())

    if len(asked.assumed_link):
        yield Notice(
            "LINK_ASSUMED",
            f"the link of a node is not stated and taken as {ASSUMED_NODE_LINK_BYTES_PER_S / 1e9:.0f} GB/s in each "
            "direction, all its adapters together",
            told(asked.assumed_link),
        )
    needed = numbers.needed_bytes
    fits = needed <= numbers.available_bytes
    beyond = asked.rows[fits & (needed > numbers.named_bytes)]
    if len(beyond):
        yield Notice(
            "DEVICE_MEMORY_ASSUMED",
            "the device's name does not tell its memory: these rows need more than the smallest board of that name has",
            told(as_ints(beyond)),
        )
    tight = asked.rows[fits & (needed * factor > numbers.available_bytes)]
    if len(tight):
        yield Notice(
            "MEMORY_TIGHT",
            "the 90 % interval of what must be in the device's memory reaches beyond it: such runs may fail",
            told(as_ints(tight)),
        )

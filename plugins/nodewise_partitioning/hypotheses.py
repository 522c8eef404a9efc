"""Facts that a job does not state, their likely values, how far these move a step, and which fact matters most.

Every unstated fact is assumed to have its most likely value. Its other likely values are tried one at a time, with all
other facts as assumed; in logarithms their effects are added, as those of independent causes. The deviation by a fact
is defined in `nodewise_laws.alternatives`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Catalogue, Configurations, Floats, Ints, Notice, Recomputation, as_floats, as_ints
from nodewise_laws.alternatives import DEVIATIONS, deviation_of
from nodewise_partitioning.hardware import DEFAULT_FORMAT, node_link_of
from nodewise_partitioning.knowledge import Beliefs, Knowledge, Value
from nodewise_partitioning.layout import UNSTATED
from nodewise_partitioning.micro_batches import is_open
from nodewise_partitioning.software import is_known, stack_of
from nodewise_partitioning.unsaid import MODERN_YEAR, formats_of

__all__ = ["Doubts", "LikelyValue", "Trial", "doubts_of", "likely_values"]

LEAST_EFFECT: Final = 0.02
"""Least effect, in ln, from which a notice names a fact."""

Trial = Callable[[Configurations, Knowledge], tuple[Ints, Floats, Floats]]
"""Per row: whether it can run, and then (2, rows) seconds of a step and bytes of a device; and needed memory over
available memory."""


@dataclass(frozen=True, slots=True, eq=False)
class LikelyValue:
    """Another value of a fact: its weight, the rows that may have it, and these rows with it."""

    weight: float
    rows: Ints
    configurations: Configurations
    knowledge: Knowledge


@dataclass(frozen=True, slots=True, eq=False)
class _Doubt:
    """A fact that is not stated, the deviation of ln(step) of each row, and least and most times the step."""

    fact: str
    deviation: Floats
    least: float
    most: float


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """All facts that rows do not state.

    Attributes
    ----------
    deviation : float
        Deviation of ln(step) of each row, by all facts together.
    memory : mapping
        By fact its other values, and ln of the factor on the bytes of their rows.
    """

    deviation: Floats
    facts: Sequence[_Doubt]
    memory: Mapping[str, Sequence[tuple[LikelyValue, Floats]]]

    def notices(self, rows: Ints, log_spread: Floats) -> Iterator[Notice]:
        """Notices: facts that widen the interval, and the fact that would narrow it most.

        Parameters
        ----------
        rows : int
            Places of the answered rows.
        log_spread : float
            Deviation of ln(step) of these by the model alone.
        """
        deviations = {each.fact: each.deviation[rows] for each in self.facts}
        relevant = [each for each in self.facts if deviations[each.fact].max(initial=0.0) >= LEAST_EFFECT]
        if not relevant:
            return
        relevant.sort(key=lambda each: -float(np.square(deviations[each.fact]).mean()))
        every = np.square(self.deviation[rows])
        width = np.sqrt(np.square(log_spread) + every)
        without = np.sqrt(np.square(log_spread) + np.maximum(every - np.square(deviations[relevant[0].fact]), 0.0))
        texts = [f"{each.fact} ({each.least:.2f} to {each.most:.2f} times the step)" for each in relevant]
        widest = int(deviations[relevant[0].fact].argmax())
        before, after = (float(np.exp(2.0 * DEVIATIONS * each[widest])) for each in (width, without))
        text = f"not stated, so the interval allows for: {', '.join(texts)}"
        narrowed = f"at most from an upper bound of {before:.3g} times the lower one to {after:.3g} times"
        yield Notice("UNSAID", f"{text}. Stating {relevant[0].fact} would narrow the interval most: {narrowed}")


def doubts_of(
    knowledge: Knowledge,
    stated_rows: Configurations,
    complete_rows: Configurations,
    results: Floats,
    log_spread: Floats,
    trial: Trial,
    measured: int = 0,
    of_memory_alone: Iterable[LikelyValue] = (),
) -> Doubts:
    """Uncertainty of rows by unstated facts.

    Parameters
    ----------
    stated_rows, complete_rows : Configurations
        As they were asked, and with all open facts assumed.
    found : float
        (2, rows) seconds of the step of each row, and bytes of a device; 0 = it has no answer.
    log_spread : float
        Deviation of ln(step) of each row by the model alone.
    measured : int
        Number of last rows that are runs of the job: the job's level includes a value's effect on them already.
    of_memory_alone : LikelyValue
        Micro-batches that do not change the interval of a step.
    """
    rows, facts = len(stated_rows), []
    listed = (
        (fact, [each for each in every if len(each.rows)])
        for fact, every in _facts(knowledge, stated_rows, complete_rows)
    )
    values = {fact: others for fact, others in listed if others}
    beside = list(of_memory_alone)
    effects = iter(_effects_of([*chain.from_iterable(values.values()), *beside], results, trial))
    memory = defaultdict[str, list[tuple[LikelyValue, Floats]]](list)
    for fact, others in values.items():
        moved, bounds = [], [0.0]
        for value, (whole, of_memory) in zip(others, effects):
            memory[fact].append((value, of_memory))
            runs = value.rows >= rows - measured
            effect = whole - whole[runs].mean() if runs.any() else whole
            column = np.zeros(rows)
            column[value.rows] = effect
            moved.append((column, value.weight))
            bounds += [effect[~runs].min(initial=0.0), effect[~runs].max(initial=0.0)]
        deviation = deviation_of(moved, log_spread)
        facts.append(_Doubt(fact, deviation, float(np.exp(min(bounds))), float(np.exp(max(bounds)))))
    for value, (_, of_memory) in zip(beside, effects, strict=True):
        memory["micro_batch"].append((value, of_memory))
    squares = sum((np.square(each.deviation) for each in facts), start=np.zeros(rows))
    return Doubts(np.sqrt(squares), facts, memory)


def _effects_of(values: Sequence[LikelyValue], results: Floats, trial: Trial) -> Sequence[Floats]:
    """Ln of the factor (2, rows) of each value on step and bytes; 0 where rows cannot run or do not fit.

    Values under the same knowledge are tried at once.
    """
    effects = [np.zeros((len(results), len(value.rows))) for value in values]
    alike: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        alike.setdefault(id(value.knowledge), []).append(place)
    for places in alike.values():
        every = Configurations.concatenated([values[place].configurations for place in places])
        before = np.concatenate([results[:, values[place].rows] for place in places], axis=1)
        rows, quantities, shares = trial(every, values[places[0]].knowledge)
        changes = np.zeros(before.shape)
        right = (shares <= 1.0) & (before[:, rows] > 0.0).all(axis=0)
        changes[:, rows[right]] = np.log(quantities[:, right] / before[:, rows[right]])
        ends = np.cumsum([len(values[place].rows) for place in places])
        for place, own in zip(places, np.split(changes, ends[:-1], axis=1)):
            effects[place] = own
    return effects


@dataclass(frozen=True, slots=True, eq=False)
class _DeviceRows:
    """Rows of one device, as they were asked and with the assumed facts."""

    knowledge: Knowledge
    stated_rows: Configurations
    complete_rows: Configurations
    device: str
    of_device: NDArray[np.bool_]

    def where(self, unsaid: NDArray[np.bool_]) -> Ints:
        """Rows of the device that do not state some fact."""
        return as_ints(np.flatnonzero(self.of_device & unsaid))


def _facts(
    knowledge: Knowledge, stated_rows: Configurations, complete_rows: Configurations
) -> Iterator[tuple[str, Iterable[LikelyValue]]]:
    """Facts that some rows do not state, by the names of options, and their other values."""
    names = (
        np.array(complete_rows.devices, dtype=object)[complete_rows.device_index]
        if complete_rows.devices
        else np.zeros(0, dtype=object)
    )
    devices = [name for name in dict.fromkeys(names.tolist()) if knowledge.catalogue.device(name) is not None]
    device_rows = [_DeviceRows(knowledge, stated_rows, complete_rows, device, names == device) for device in devices]
    for fact, values in _FACTS.items():
        yield fact, chain.from_iterable(map(values, device_rows))


def _precisions(query: _DeviceRows) -> Iterator[LikelyValue]:
    """Number formats in which the device has a peak, by its year."""
    if all(query.stated_rows.precisions) or (
        query.knowledge.number_format and "precision" not in query.knowledge.assumptions
    ):
        return
    rows = query.where(np.array([not name for name in query.stated_rows.precisions])[query.stated_rows.precision_index])
    own = query.complete_rows.take(rows)
    _, likely = formats_of(query.knowledge.catalogue, query.device)
    for name, weight in query.knowledge.weights("precision", likely).items():
        formats = tuple(precision or str(name) for precision in own.precisions)
        yield LikelyValue(weight, rows, own.replaced(precisions=formats), query.knowledge)


def _links(query: _DeviceRows) -> Iterator[LikelyValue]:
    """Links of the machines with such devices."""
    if query.knowledge.network.link_bytes_per_s and "link_bytes_per_s" not in query.knowledge.assumptions:
        return
    rows = query.where((query.stated_rows.link_bytes_per_s <= 0.0) & (query.stated_rows.nodes > 1))
    if not len(rows):
        return
    own = query.complete_rows.take(rows)
    prior = _other_links(query.knowledge.catalogue, query.device)
    for bytes_per_s, weight in query.knowledge.weights("link_bytes_per_s", prior).items():
        links = as_floats(np.full(len(rows), bytes_per_s))
        yield LikelyValue(weight, rows, own.replaced(link_bytes_per_s=links), query.knowledge)


OTHER_LINKS: Final = ((12.5e9, 0.3), (400e9, 0.2))
"""For devices in no machine of the catalogue: one adapter of 100 Gb/s, and eight of 400 Gb/s."""


@lru_cache(maxsize=512)
def _other_links(catalogue: Catalogue, device: str) -> Sequence[tuple[float, float]]:
    """Links of a node beside the assumed one, with weights."""
    assumption, _ = node_link_of(catalogue, device)
    links = catalogue.node_links(device)
    return [(link, share) for link, share, _ in links if link != assumption] if links else OTHER_LINKS


SMALLER: Final = ((2, 0.2), (4, 0.15), (0, 0.15))
"""Divisors of the fastest micro-batch that fits (0 = down to one sample), with weights: users try powers of two up to
the largest that fits, and stop early where something else limits it."""


def _micro_batches(query: _DeviceRows) -> Iterator[LikelyValue]:
    """Smaller micro-batches than the fastest that fits, where none is stated."""
    sizes, open_rows = query.complete_rows.batch_per_worker, is_open(query.stated_rows)
    if not open_rows.any():
        return
    for divisor, weight in SMALLER:
        rows = query.where(open_rows & (sizes > 1) & (sizes % max(divisor, 1) == 0))
        ones = as_ints(np.ones(len(rows), dtype=np.int64))
        smaller = as_ints(sizes[rows] // divisor) if divisor else ones
        own = query.complete_rows.take(rows).replaced(batch_per_worker=smaller, accumulation=ones)
        yield LikelyValue(weight, rows, own, query.knowledge)


RECOMPUTED: Final = ((Recomputation.NONE, 0.4), (Recomputation.SELECTIVE, 0.2), (Recomputation.FULL, 0.4))
"""Keeping everything and recomputing every layer are equally likely where nothing is stated; selective ways are newer,
and there are several."""


def _recomputations(query: _DeviceRows) -> Iterator[LikelyValue]:
    """Recomputation in the backward pass, as far as it fits."""
    rows = query.where(query.stated_rows.recomputation == UNSTATED)
    if not len(rows):
        return
    own = query.complete_rows.take(rows)
    for way, weight in query.knowledge.weights("recompute", RECOMPUTED).items():
        column = as_ints(np.full(len(rows), way))
        yield LikelyValue(weight, rows, own.replaced(recomputation=column), query.knowledge)


STACKS: Final = (
    ("megatron-core flash-attention", 0.3),
    ("pytorch flash-attention", 0.3),
)
"""Weights of other stacks for jobs without a known framework."""
LATER_KERNEL: Final = 0.5
"""Weight of flash attention on an older device, where it is unknown whether the software has it."""


def _frameworks(query: _DeviceRows) -> Iterator[LikelyValue]:
    """Present stacks beside the assumed one; for a known framework its attention kernel, where that is open."""
    name, stacks = query.knowledge.framework, list[tuple[Value, float]]()
    facts = query.knowledge.catalogue.device(query.device) or {}
    if "framework" in query.knowledge.assumptions:
        stacks += query.knowledge.weights("framework", ()).items()
    elif not is_known(name):
        stacks += STACKS
    elif "flash" not in name.casefold() and facts.get("announced_year", 0.0) < MODERN_YEAR:
        stacks.append((f"{name} flash-attention", LATER_KERNEL))
    if not stacks:
        return
    rows = as_ints(np.flatnonzero(query.of_device))
    own = query.complete_rows.take(rows)
    for stack, weight in stacks:
        yield LikelyValue(weight, rows, own, replace(query.knowledge, framework=str(stack)))


def likely_values(knowledge: Knowledge, runs: Configurations) -> Mapping[str, Beliefs]:
    """Facts that no run of a job states, and that runs on one device can determine: all likely values with weights."""
    if len(runs.devices) != 1 or knowledge.catalogue.device(runs.devices[0]) is None:
        return {}
    device = runs.devices[0]
    beliefs: dict[str, Beliefs] = {}
    if not any(runs.precisions) and (not knowledge.number_format or "precision" in knowledge.assumptions):
        beliefs["precision"] = _with_taken(*formats_of(knowledge.catalogue, device))
    link, links = knowledge.network.link_bytes_per_s, _other_links(knowledge.catalogue, device)
    across = bool((runs.nodes > 1).any()) and not (runs.link_bytes_per_s > 0.0).any()
    if across and (not link or "link_bytes_per_s" in knowledge.assumptions):
        beliefs["link_bytes_per_s"] = _with_taken(node_link_of(knowledge.catalogue, device)[0], links)
    if (runs.recomputation == Recomputation.UNSPECIFIED).all():
        beliefs["recompute"] = _ways(knowledge)
    if "framework" not in knowledge.assumptions and not knowledge.framework:
        # A declared name that is not known is none of these stacks.
        beliefs["framework"] = _with_taken(knowledge.framework, STACKS)
    return beliefs


def _ways(knowledge: Knowledge) -> Beliefs:
    """Ways of recomputation that are possible: of attention scores only where they are stored, or by operation."""
    weights: dict[Value, float] = {int(way): weight for way, weight in RECOMPUTED}
    stack, known = stack_of(f"{knowledge.framework}{knowledge.switches}", DEFAULT_FORMAT)
    if known and stack.flash_attention and not stack.eager_memory:
        weights[int(Recomputation.NONE)] += weights.pop(int(Recomputation.SELECTIVE))
    return weights


def _with_taken(assumption: Value, others: Iterable[tuple[Value, float]]) -> Beliefs:
    """All values with weights: the value assumed without runs has the rest."""
    listed = dict(others)
    return {assumption: max(1.0 - sum(listed.values()), 0.0), **listed}


_FACTS: Final[Mapping[str, Callable[[_DeviceRows], Iterator[LikelyValue]]]] = {
    "precision": _precisions,
    "link_bytes_per_s": _links,
    "micro_batch": _micro_batches,
    "recompute": _recomputations,
    "framework": _frameworks,
}

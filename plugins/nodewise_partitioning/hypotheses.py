"""What a job leaves unsaid has likely values: how far each moves a step, and which fact would narrow the answer most.

Every fact that is not stated is taken as its most likely value. Its other likely values are tried one at a time, with
everything else as it is taken; in logarithms their effects are added, as those of independent causes. What a fact adds
to the deviation is a matter of `nodewise_laws.alternatives`.
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

TOLD: Final = 0.02
"""Ln of the effect from which a fact is told."""

Trial = Callable[[Configurations, Knowledge], tuple[Ints, Floats, Floats]]
"""Of rows: which can run, and of these (2, rows) seconds of a step and bytes of a device; and what is needed over the
memory that there is."""


@dataclass(frozen=True, slots=True, eq=False)
class LikelyValue:
    """Another value of a fact: its weight, the rows that may have it, and these with it."""

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
    """Everything that rows leave unsaid.

    Attributes
    ----------
    deviation : float
        Of ln(step) of each row, by all facts together.
    memory : mapping
        By fact its other values, and the ln of how many times the bytes of their rows they take.
    """

    deviation: Floats
    facts: Sequence[_Doubt]
    memory: Mapping[str, Sequence[tuple[LikelyValue, Floats]]]

    def notices(self, rows: Ints, log_spread: Floats) -> Iterator[Notice]:
        """What widens the interval, and which fact would narrow it most.

        Parameters
        ----------
        rows : int
            Places of the answered rows.
        log_spread : float
            Deviation of ln(step) of these without the doubts.
        """
        deviations = {each.fact: each.deviation[rows] for each in self.facts}
        told = [each for each in self.facts if deviations[each.fact].max(initial=0.0) >= TOLD]
        if not told:
            return
        told.sort(key=lambda each: -float(np.square(deviations[each.fact]).mean()))
        every = np.square(self.deviation[rows])
        width = np.sqrt(np.square(log_spread) + every)
        without = np.sqrt(np.square(log_spread) + np.maximum(every - np.square(deviations[told[0].fact]), 0.0))
        texts = [f"{each.fact} ({each.least:.2f} to {each.most:.2f} times the step)" for each in told]
        widest = int(deviations[told[0].fact].argmax())
        before, after = (float(np.exp(2.0 * DEVIATIONS * each[widest])) for each in (width, without))
        text = f"not stated, and so in the interval: {', '.join(texts)}"
        narrowed = f"at most from upper bounds {before:.3g} times the lower ones to {after:.3g} times"
        yield Notice("UNSAID", f"{text}. Stating {told[0].fact} narrows the interval most, {narrowed}")


def doubts_of(
    knowledge: Knowledge,
    stated: Configurations,
    taken: Configurations,
    found: Floats,
    log_spread: Floats,
    trial: Trial,
    measured: int = 0,
    of_memory_alone: Iterable[LikelyValue] = (),
) -> Doubts:
    """The doubts of rows.

    Parameters
    ----------
    stated, taken : Configurations
        As they were asked about, and with what they leave open settled.
    found : float
        (2, rows) seconds of the step of each row, and bytes of a device; 0 = it has no answer.
    log_spread : float
        Deviation of ln(step) of each row by the model alone.
    measured : int
        The last so many rows are runs of the job: what a value would change in them as well, their level tells already.
    of_memory_alone : LikelyValue
        Micro-batches that move no interval of a step.
    """
    rows, facts = len(stated), []
    listed = ((fact, [each for each in every if len(each.rows)]) for fact, every in _facts(knowledge, stated, taken))
    values = {fact: others for fact, others in listed if others}
    beside = list(of_memory_alone)
    effects = iter(_effects_of([*chain.from_iterable(values.values()), *beside], found, trial))
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


def _effects_of(values: Sequence[LikelyValue], found: Floats, trial: Trial) -> Sequence[Floats]:
    """Ln of how many times (2, rows) as much each value's rows take; 0 where they cannot run or do not fit.

    Values under the same knowledge are tried at once.
    """
    effects = [np.zeros((len(found), len(value.rows))) for value in values]
    alike: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        alike.setdefault(id(value.knowledge), []).append(place)
    for places in alike.values():
        every = Configurations.concatenated([values[place].configurations for place in places])
        before = np.concatenate([found[:, values[place].rows] for place in places], axis=1)
        rows, quantities, held = trial(every, values[places[0]].knowledge)
        changes = np.zeros(before.shape)
        right = (held <= 1.0) & (before[:, rows] > 0.0).all(axis=0)
        changes[:, rows[right]] = np.log(quantities[:, right] / before[:, rows[right]])
        ends = np.cumsum([len(values[place].rows) for place in places])
        for place, own in zip(places, np.split(changes, ends[:-1], axis=1)):
            effects[place] = own
    return effects


@dataclass(frozen=True, slots=True, eq=False)
class _DeviceRows:
    """Rows of one device, as they were asked about and as they are taken."""

    knowledge: Knowledge
    stated: Configurations
    taken: Configurations
    device: str
    of_device: NDArray[np.bool_]

    def where(self, unsaid: NDArray[np.bool_]) -> Ints:
        """Rows of the device that leave something unsaid."""
        return as_ints(np.flatnonzero(self.of_device & unsaid))


def _facts(
    knowledge: Knowledge, stated: Configurations, taken: Configurations
) -> Iterator[tuple[str, Iterable[LikelyValue]]]:
    """Facts that some rows leave unsaid, as options call them, and their other values."""
    names = np.array(taken.devices, dtype=object)[taken.device_index] if taken.devices else np.zeros(0, dtype=object)
    devices = [name for name in dict.fromkeys(names.tolist()) if knowledge.catalogue.device(name) is not None]
    asked = [_DeviceRows(knowledge, stated, taken, device, names == device) for device in devices]
    for fact, values in _FACTS.items():
        yield fact, chain.from_iterable(map(values, asked))


def _precisions(asked: _DeviceRows) -> Iterator[LikelyValue]:
    """Number formats that the device has a peak for, by its year."""
    if all(asked.stated.precisions) or (asked.knowledge.number_format and "precision" not in asked.knowledge.taken):
        return
    rows = asked.where(np.array([not name for name in asked.stated.precisions])[asked.stated.precision_index])
    own = asked.taken.take(rows)
    _, likely = formats_of(asked.knowledge.catalogue, asked.device)
    for name, weight in asked.knowledge.weights("precision", likely).items():
        formats = tuple(known or str(name) for known in own.precisions)
        yield LikelyValue(weight, rows, own.replaced(precisions=formats), asked.knowledge)


def _links(asked: _DeviceRows) -> Iterator[LikelyValue]:
    """Links of the machines that such devices come in."""
    if asked.knowledge.network.link_bytes_per_s and "link_bytes_per_s" not in asked.knowledge.taken:
        return
    rows = asked.where((asked.stated.link_bytes_per_s <= 0.0) & (asked.stated.nodes > 1))
    if not len(rows):
        return
    own = asked.taken.take(rows)
    prior = _other_links(asked.knowledge.catalogue, asked.device)
    for bytes_per_s, weight in asked.knowledge.weights("link_bytes_per_s", prior).items():
        links = as_floats(np.full(len(rows), bytes_per_s))
        yield LikelyValue(weight, rows, own.replaced(link_bytes_per_s=links), asked.knowledge)


OTHER_LINKS: Final = ((12.5e9, 0.3), (400e9, 0.2))
"""Of devices in no machine that the catalogue lists: one adapter of 100 Gb/s, and eight of 400 Gb/s."""


@lru_cache(maxsize=512)
def _other_links(catalogue: Catalogue, device: str) -> Sequence[tuple[float, float]]:
    """Links of a node beside the one that is taken, with weights."""
    taken, _ = node_link_of(catalogue, device)
    known = catalogue.node_links(device)
    return [(link, share) for link, share, _ in known if link != taken] if known else OTHER_LINKS


SMALLER: Final = ((2, 0.2), (4, 0.15), (0, 0.15))
"""What divides the quickest micro-batch that fits (0 = down to one sample), with weights: people try powers of two up
to what fits, and stop early where something else binds."""


def _micro_batches(asked: _DeviceRows) -> Iterator[LikelyValue]:
    """Smaller ones than the quickest that fits, where none is stated."""
    sizes, open_rows = asked.taken.batch_per_worker, is_open(asked.stated)
    if not open_rows.any():
        return
    for divisor, weight in SMALLER:
        rows = asked.where(open_rows & (sizes > 1) & (sizes % max(divisor, 1) == 0))
        ones = as_ints(np.ones(len(rows), dtype=np.int64))
        smaller = as_ints(sizes[rows] // divisor) if divisor else ones
        own = asked.taken.take(rows).replaced(batch_per_worker=smaller, accumulation=ones)
        yield LikelyValue(weight, rows, own, asked.knowledge)


RECOMPUTED: Final = ((Recomputation.NONE, 0.4), (Recomputation.SELECTIVE, 0.2), (Recomputation.FULL, 0.4))
"""Keeping everything and computing every layer again are as likely where nothing is said; the selective way is younger,
and one of several."""


def _recomputations(asked: _DeviceRows) -> Iterator[LikelyValue]:
    """What is computed again in the backward pass, as far as it fits."""
    rows = asked.where(asked.stated.recomputation == UNSTATED)
    if not len(rows):
        return
    own = asked.taken.take(rows)
    for way, weight in asked.knowledge.weights("recompute", RECOMPUTED).items():
        column = as_ints(np.full(len(rows), way))
        yield LikelyValue(weight, rows, own.replaced(recomputation=column), asked.knowledge)


STACKS: Final = (
    ("megatron-core flash-attention", 0.3),
    ("pytorch flash-attention", 0.3),
)
"""Of jobs that name none which is known, beside the one that is taken."""
LATER_KERNEL: Final = 0.5
"""Of flash attention on a device that is older than it: nothing tells whether the software is."""


def _frameworks(asked: _DeviceRows) -> Iterator[LikelyValue]:
    """Stacks of today beside the one that is taken; of a known one its attention kernel, where that is open."""
    name, stacks = asked.knowledge.framework, list[tuple[Value, float]]()
    facts = asked.knowledge.catalogue.device(asked.device) or {}
    if "framework" in asked.knowledge.taken:
        stacks += asked.knowledge.weights("framework", ()).items()
    elif not is_known(name):
        stacks += STACKS
    elif "flash" not in name.casefold() and facts.get("announced_year", 0.0) < MODERN_YEAR:
        stacks.append((f"{name} flash-attention", LATER_KERNEL))
    if not stacks:
        return
    rows = as_ints(np.flatnonzero(asked.of_device))
    own = asked.taken.take(rows)
    for stack, weight in stacks:
        yield LikelyValue(weight, rows, own, replace(asked.knowledge, framework=str(stack)))


def likely_values(knowledge: Knowledge, runs: Configurations) -> Mapping[str, Beliefs]:
    """Of facts that no run of a job states, and that runs on one device can settle: all likely values with weights."""
    if len(runs.devices) != 1 or knowledge.catalogue.device(runs.devices[0]) is None:
        return {}
    device = runs.devices[0]
    found: dict[str, Beliefs] = {}
    if not any(runs.precisions) and (not knowledge.number_format or "precision" in knowledge.taken):
        found["precision"] = _with_taken(*formats_of(knowledge.catalogue, device))
    link, links = knowledge.network.link_bytes_per_s, _other_links(knowledge.catalogue, device)
    across = bool((runs.nodes > 1).any()) and not (runs.link_bytes_per_s > 0.0).any()
    if across and (not link or "link_bytes_per_s" in knowledge.taken):
        found["link_bytes_per_s"] = _with_taken(node_link_of(knowledge.catalogue, device)[0], links)
    if (runs.recomputation == Recomputation.UNSPECIFIED).all():
        found["recompute"] = _ways(knowledge)
    if "framework" not in knowledge.taken and not knowledge.framework:
        # A declared name that is not known is none of these stacks.
        found["framework"] = _with_taken(knowledge.framework, STACKS)
    return found


def _ways(knowledge: Knowledge) -> Beliefs:
    """What may be recomputed: of attention's scores alone only where they are stored, or by operation."""
    found: dict[Value, float] = {int(way): weight for way, weight in RECOMPUTED}
    stack, known = stack_of(f"{knowledge.framework}{knowledge.switches}", DEFAULT_FORMAT)
    if known and stack.flash_attention and not stack.eager_memory:
        found[int(Recomputation.NONE)] += found.pop(int(Recomputation.SELECTIVE))
    return found


def _with_taken(taken: Value, others: Iterable[tuple[Value, float]]) -> Beliefs:
    """All values: what is taken without runs has the rest of the weight."""
    listed = dict(others)
    return {taken: max(1.0 - sum(listed.values()), 0.0), **listed}


_FACTS: Final[Mapping[str, Callable[[_DeviceRows], Iterator[LikelyValue]]]] = {
    "precision": _precisions,
    "link_bytes_per_s": _links,
    "micro_batch": _micro_batches,
    "recompute": _recomputations,
    "framework": _frameworks,
}

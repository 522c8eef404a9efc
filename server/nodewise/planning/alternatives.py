"""Alternatives to the winner: configurations that differ from it in one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.planning import DIMENSIONS
from nodewise.estimation.question import Answer
from nodewise.planning.checked_model import BoundedSpace, Values
from nodewise.planning.planner import Planner
from nodewise.planning.words import NAMES, gib, percent, value_text, values_of
from nodewise_values import PlanAlternative

__all__ = ["LISTED", "alternatives_of"]

LISTED: Final = {
    "tensor_parallel": "tensor_parallel",
    "pipeline_parallel": "pipeline_parallel",
    "data_parallel": "data_parallel",
    "context_parallel": "context_parallel",
    "expert_parallel": "expert_parallel",
    "micro_batches": "batch_per_worker",
    "interleave": "interleave",
    "recomputations": "recomputation",
    "zero_stages": "zero_stage",
    "sequence_parallel": "sequence_parallel",
    "sync_modes": "sync_mode",
    "parameter_servers": "parameter_servers",
}
"""Constraints that may list values, and the dimension that they list."""

_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "tensor_parallel": frozenset({"data_parallel", "sequence_parallel"}),
    "pipeline_parallel": frozenset({"data_parallel", "interleave", "zero_stage"}),
    "context_parallel": frozenset({"data_parallel", "interleave"}),
    "batch_per_worker": frozenset({"data_parallel", "interleave"}),
    "global_batch": frozenset({"data_parallel", "interleave"}),
    "nodes": frozenset({"workers", "data_parallel"}),
    "workers": frozenset({"data_parallel"}),
    "device_index": frozenset({"workers", "data_parallel"}),
    "sync_mode": frozenset({"parameter_servers", "tensor_parallel", "pipeline_parallel", "data_parallel"}),
}
"""Dimensions that change together with a dimension: the number of replicas, which fill the devices, and switches that
another degree allows or forbids. With every other dimension only the number of replicas changes."""
_REPLICAS: Final = frozenset({"data_parallel"})


def alternatives_of(
    planner: Planner, space: BoundedSpace, winner: Configurations, values: Values
) -> tuple[PlanAlternative, ...]:
    """The best row of every dimension that differs from the winner in it, if the space has one.

    Data parallelism follows from the other degrees and is not changed alone.
    """
    changed_rows: list[tuple[str, Configurations, Values]] = []
    # Where each replica takes a batch of its own, the global batch follows from the number of replicas.
    follows = _REPLICAS if planner.constraints.global_batches else frozenset({"global_batch"})
    for name in DIMENSIONS:
        if name in _REPLICAS | follows:
            continue
        best = _best(space, winner, name, follows | _FOLLOWS.get(name, _REPLICAS))
        if best is not None:
            changed_rows.append((name, *best))
    fitting = [rows for _, rows, its in changed_rows if its.fits()[0]]
    answer = planner.predict(Configurations.concatenated([winner, *fitting]), None)
    alternatives = []
    row = 0
    for name, rows, its in changed_rows:
        fits = bool(its.fits()[0])
        row += fits
        alternatives.append(_alternative(name, winner, values, rows, its, (answer, row) if fits else None))
    return tuple(alternatives)


def _best(
    space: BoundedSpace, winner: Configurations, name: str, follows: frozenset[str]
) -> tuple[Configurations, Values] | None:
    """The row with the least time per sample; the row with the least excess of memory if none fits."""
    prefixes = np.flatnonzero(_like(space.prefixes, winner, space.final - follows - {name}))
    if not len(prefixes):
        return None
    rows, values, _ = space.evaluate(prefixes)
    left = np.flatnonzero(_like(rows, winner, frozenset(DIMENSIONS) - follows - {name}))
    left = left[values_of(rows, name)[left] != values_of(winner, name)[0]]
    if not len(left):
        return None
    few, its = rows.take(left), values.take(left)
    best = int(np.lexsort((its.step_s / few.global_batch, its.excess_bytes))[0])
    best_row: Ints = np.array([best])
    return few.take(best_row), its.take(best_row)


def _like(rows: Configurations, winner: Configurations, columns: frozenset[str]) -> NDArray[np.bool_]:
    """Rows whose values in some columns are the winner's."""
    same = np.ones(len(rows), dtype=bool)
    for column in DIMENSIONS:
        if column in columns:
            same &= values_of(rows, column) == values_of(winner, column)[0]
    return same


def _alternative(
    name: str,
    winner: Configurations,
    values: Values,
    rows: Configurations,
    its: Values,
    prediction: tuple[Answer, int] | None,
) -> PlanAlternative:
    ours, theirs = float(values.step_s[0]), float(its.step_s[0])
    # Seconds for as many samples as the winner's step takes, so that different batches compare.
    factor = int(winner.global_batch[0]) / int(rows.global_batch[0])
    change = theirs * factor / ours - 1.0
    term, term_s = "", 0.0
    if prediction is not None:
        term, term_s = _leading(*prediction, factor, slower=change >= 0.0)
    word, excess = NAMES[name], float(its.excess_bytes[0])
    text = f"{word} {value_text(rows, name, 0)} instead of {value_text(winner, name, 0)} "
    if change == 0.0:
        term, term_s = "", 0.0
        text += "takes as long"
    else:
        text += f"is {percent(abs(change))} {'slower' if change > 0.0 else 'faster'}"
    if term:
        text += f": {term.replace('_', ' ')} {term_s:+.3g} s a step"
    if excess > 0.0:
        text += f", and needs {gib(excess)} more memory than each device has"
    return PlanAlternative(
        dimension=name,
        chosen_value=value_text(winner, name, 0),
        alternative_value=value_text(rows, name, 0),
        fits=excess <= 0.0,
        step_seconds=theirs,
        time_change_ratio=change,
        term=term,
        term_seconds=term_s,
        excess_memory_bytes=excess,
        why=text,
    )


def _leading(answer: Answer, row: int, factor: float, *, slower: bool) -> tuple[str, float]:
    """The part of the breakdown that changes most in the direction of the whole."""
    differences = {
        name: float(column[row]) * factor - float(column[0]) for name, column in answer.predictions.breakdown_s.items()
    }
    if not differences:
        return "", 0.0
    pick = max if slower else min
    name = pick(differences, key=lambda each: differences[each])
    return name, differences[name]

"""Intervals of memory for rows that do not state all facts: their other likely values hold less and more.

Each fact's other values are tried one at a time, as for a step's time (``hypotheses``), with more facts that memory
depends on: master weights and losses under PyTorch, and larger micro-batches. A value of weight w that changes
ln(bytes) by d extends the interval to |d| + z s in its direction, with s the equations' own deviation and z the
quantile of 1 - 0.05 / w of a normal variable; extensions beyond the equations' own bound add up as of independent
causes, separately in each direction. A value under which a row does not fit is excluded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Configurations, Floats, Ints, Notice, as_ints
from nodewise_laws.alternatives import BEYOND, DEVIATIONS, bound_deviations
from nodewise_partitioning.hypotheses import LikelyValue
from nodewise_partitioning.knowledge import Knowledge
from nodewise_partitioning.micro_batches import is_open

__all__ = ["FUSED", "MASTERS", "SIXTEEN_BITS", "UNKNOWN", "Change", "Reach", "larger_batches", "memory_reach"]

SIXTEEN_BITS: Final = 0.4
MASTERS: Final = 1.0 - SIXTEEN_BITS
"""Weight for jobs under PyTorch that do not state their master weights: Hugging Face's trainer loads weights in the
format of `torch_dtype`, and trains in it; FSDP's mixed precision and autocast keep 32 bits. There are no statistics of
these."""
FUSED: Final = 0.2
"""Weight of a loss that never holds all logits, for jobs that do not state their loss."""
LARGER: Final = ((2, 0.2), (4, 0.1))
"""Factors on the fastest micro-batch, where none is stated, with weights: with free memory users take larger ones."""
UNKNOWN: Final = 0.3
"""Deviation of ln(bytes) under an unknown framework: root of the mean square of OneFlow's 14 runs (DLPerf)."""

LEAST_SHARE: Final = 0.01
"""Least share of the squares of ln(bound / bytes) from which a notice names a fact: a tenth."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Another value of a fact: its weight, rows that may have it, and ln of the factor on their bytes."""

    weight: float
    rows: Ints
    log_ratio: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Intervals of the memory of rows.

    Attributes
    ----------
    down, up : float
        Ln from the memory of each row to the lower and to the upper bound of its 90 % interval.
    by_fact : mapping
        Contribution of each fact to the squares of both, of each row, and least and most factor on the bytes.
    """

    down: Floats
    up: Floats
    by_fact: Mapping[str, tuple[Floats, float, float]]

    def notices(self, rows: Ints) -> Iterator[Notice]:
        """Facts that widen the interval of these rows, and which of them most."""
        wider = {fact: float(squares[rows].mean()) for fact, (squares, _, _) in self.by_fact.items() if len(rows)}
        facts = sorted((fact for fact in wider if wider[fact] > LEAST_SHARE), key=lambda fact: -wider[fact])
        if not facts:
            return
        texts = [
            f"{fact} ({least:.2f} to {most:.2f} times)" for fact in facts for _, least, most in [self.by_fact[fact]]
        ]
        text = f"not stated, so the interval of the bytes per device allows for: {', '.join(texts)}"
        yield Notice("MEMORY_UNSAID", f"{text}. Stating {facts[0]} would narrow it most")


def memory_reach(changes: Mapping[str, Sequence[Change]], log_spread: Floats, beside: float) -> Reach:
    """Intervals of the memory of rows by the other values that their facts may have.

    Parameters
    ----------
    changes : mapping
        By fact; rows beyond those of ``log_spread`` are left out.
    log_spread : float
        Deviation of ln(bytes) of each row by the equations alone.
    beside : float
        Deviation of all rows that no fact explains.
    """
    rows = len(log_spread)
    own = DEVIATIONS * log_spread
    squares = {direction: np.square(own) + (DEVIATIONS * beside) ** 2 for direction in (-1.0, 1.0)}
    by_fact = {}
    for fact, every in changes.items():
        reached = {direction: own.copy() for direction in squares}
        bounds = [0.0]
        for change in every:
            if change.weight <= BEYOND:
                continue
            is_query = change.rows < rows
            places, ratio = change.rows[is_query], change.log_ratio[is_query]
            bounds += [ratio.min(initial=0.0), ratio.max(initial=0.0)]
            further = bound_deviations(change.weight) * log_spread[places]
            for direction, most in reached.items():
                moved = np.where(direction * ratio > 0.0, direction * ratio + further, 0.0)
                most[places] = np.maximum(most[places], moved)
        wider = {direction: np.square(most) - np.square(own) for direction, most in reached.items()}
        for direction, square in wider.items():
            squares[direction] += square
        by_fact[fact] = (wider[-1.0] + wider[1.0], float(np.exp(min(bounds))), float(np.exp(max(bounds))))
    return Reach(np.sqrt(squares[-1.0]), np.sqrt(squares[1.0]), by_fact)


def larger_batches(
    knowledge: Knowledge, stated_rows: Configurations, complete_rows: Configurations
) -> Iterator[LikelyValue]:
    """Micro-batches above the fastest, where none is stated."""
    open_rows = is_open(stated_rows)
    if not open_rows.any():
        return
    shares = complete_rows.global_batch / complete_rows.replicas()
    for factor, weight in LARGER:
        sizes = factor * np.maximum(complete_rows.batch_per_worker, 1)
        rows = as_ints(np.flatnonzero(open_rows & (shares % sizes == 0)))
        if len(rows):
            own = complete_rows.take(rows).replaced(batch_per_worker=as_ints(sizes[rows]))
            yield LikelyValue(weight, rows, own, knowledge)

"""Goodput: samples/s weighted by the statistical efficiency of the batch, and the batch with the highest goodput.

Goodput is samples/s x (noise scale + initial batch) / (noise scale + batch): Qiao et al., "Pollux", OSDI'21.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import invalid_field
from nodewise.domain.objective import BatchBounds, StatisticalEfficiency
from nodewise.domain.predictions import Predictions

__all__ = ["Candidates", "candidates_of", "goodput_per_s"]


def goodput_per_s(efficiency: StatisticalEfficiency, configurations: Configurations, samples_per_s: Floats) -> Floats:
    """Return the goodput of each row in samples/s: throughput times efficiency; 0 if the batch is unknown."""
    scale = efficiency.gradient_noise_scale_samples
    batch = np.maximum(configurations.rates.global_batch, 1.0)
    return samples_per_s * (scale + efficiency.initial_batch_samples) / (scale + batch)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The rows of a question, each repeated with every candidate batch.

    Attributes
    ----------
    configurations : Configurations
        Resolved rows with their batches.
    row_of : int
        The row of the question that each candidate belongs to, ascending.
    """

    configurations: Configurations
    row_of: Ints

    def best(self, efficiency: StatisticalEfficiency, predictions: Predictions) -> Ints:
        """Return the candidate with the highest goodput for each row; the first candidate if none is answered."""
        rates = self.configurations.rates
        step_s = predictions.step_s
        cycles_per_s = np.divide(rates.cycles_per_step, step_s, out=np.zeros(len(step_s)), where=predictions.answered)
        worth = goodput_per_s(efficiency, self.configurations, cycles_per_s * rates.samples_per_step)
        order = np.lexsort((np.arange(len(worth)), -worth, self.row_of))
        first = np.concatenate(([True], np.diff(self.row_of[order]) > 0))
        return as_ints(order[first])


def candidates_of(configurations: Configurations, bounds: BatchBounds) -> Candidates:
    """Repeat each resolved row that states no global batch with every candidate batch of the bounds.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if a row has more replicas than the largest batch has samples.
    """
    batches = np.array(bounds.candidates)
    free = configurations.global_batch == 0
    counts = np.where(free, len(batches), 1)
    row_of = as_ints(np.repeat(np.arange(len(configurations)), counts))
    rows = configurations.take(row_of)
    best_rows = free[row_of]
    replicas = rows.replicas()
    too_large = best_rows & (replicas > bounds.most)
    if too_large.any():
        place = int(too_large.argmax())
        text = f"must be at least the {replicas[place]} replicas of row {row_of[place]}, which train on a sample each"
        raise invalid_field("batch_bounds.max_global_batch_samples", text)
    starts = np.cumsum(counts) - counts
    batch = np.where(
        best_rows, batches[np.where(best_rows, np.arange(len(rows)) - starts[row_of], 0)], rows.global_batch
    )
    batch = np.where(best_rows, np.maximum(batch, replicas), batch)
    share = -(-batch // replicas)
    most = share if bounds.most_per_worker is None else np.minimum(share, bounds.most_per_worker)
    accumulation = np.maximum(rows.accumulation, -(-share // np.maximum(most, 1)))
    each = -(-share // np.maximum(accumulation, 1))
    return Candidates(
        rows.replaced(
            global_batch=freeze(batch),
            accumulation=freeze(np.where(best_rows, accumulation, rows.accumulation)),
            batch_per_worker=freeze(np.where(best_rows, each, rows.batch_per_worker)),
        ),
        row_of,
    )

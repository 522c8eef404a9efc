"""What turns the step time of a configuration into rates."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.columns import Floats

__all__ = ["Rates"]


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Columns that turn a step time into rates; they follow from resolved configurations alone.

    Attributes
    ----------
    cycles_per_step : float
        Steps per step time: workers (replicas where workers share one) if ASYNC or HYBRID, else 1.
    samples_per_step, minibatches_per_step : float
        Samples (0 = not known) and workers' mini-batches in one step.
    batch_known : bool
        Whether every row's batch is known.
    """

    cycles_per_step: Floats
    samples_per_step: Floats
    minibatches_per_step: Floats
    batch_known: bool

    @property
    def global_batch(self) -> Floats:
        """Samples of one mini-batch from everyone, of asynchronous replicas too; 0 where the batch is not known."""
        return self.samples_per_step * self.cycles_per_step

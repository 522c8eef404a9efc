"""Measurements of the test rows, against their predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Ints, as_ints
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.predictions import RowStatus
from nodewise.evaluation.decisions import batches_of
from nodewise.evaluation.memory_scores import MemoryOutcomes
from nodewise.evaluation.metrics import Outcomes
from nodewise.evaluation.ordering import configuration_ranks
from nodewise.evaluation.results import RowPredictions

__all__ = ["Truth"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Truth:
    """The test rows of a table, in its order, with everything that scoring needs."""

    table: MeasurementTable
    rows: Ints
    job: Ints
    sync_mode: Ints
    global_batch: Ints
    samples_per_step: Ints
    configuration: Ints

    @staticmethod
    def of(table: MeasurementTable) -> Truth:
        """All test rows of a table."""
        rows = as_ints(np.flatnonzero(~table.train))
        configurations = table.configurations.take(rows)
        global_batch, samples_per_step = batches_of(configurations)
        return Truth(
            table=table,
            rows=rows,
            job=table.job_index[rows],
            sync_mode=configurations.sync_mode,
            global_batch=global_batch,
            samples_per_step=samples_per_step,
            configuration=configuration_ranks(configurations),
        )

    def outcomes(self, predictions: RowPredictions) -> Outcomes:
        """Predicted rates, of the same rows, beside the measured ones."""
        return Outcomes(
            answered=predictions.status == RowStatus.ANSWERED,
            predicted_steps_per_s=predictions.steps_per_s,
            lower_steps_per_s=predictions.lower_steps_per_s,
            upper_steps_per_s=predictions.upper_steps_per_s,
            measured_steps_per_s=self.table.steps_per_s[self.rows],
            job=self.job,
            global_batch=self.global_batch,
            samples_per_step=self.samples_per_step,
            configuration=self.configuration,
        )

    def memory(self, predictions: RowPredictions) -> MemoryOutcomes:
        """Predicted memory, of the same rows, beside the measured memory; a row with a measured rate ran."""
        table = self.table
        fits, held_bytes = table.fitted[self.rows] != 0, table.measured_memory_bytes[self.rows]
        return MemoryOutcomes(
            predicted_bytes=predictions.memory_bytes,
            measured_bytes=held_bytes,
            said_to_fit=predictions.status == RowStatus.ANSWERED,
            ran=fits & ((held_bytes > 0.0) | (table.steps_per_s[self.rows] > 0.0)),
            ran_out=~fits,
        )

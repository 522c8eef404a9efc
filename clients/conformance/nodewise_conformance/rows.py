"""The rows that a client's row view must give, read here by the contract's comments alone."""

from __future__ import annotations

from typing import Any, Final

from nodewise_protos.v1 import options_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions

__all__ = ["rows_of"]

Row = dict[str, Any]
_NAMES: Final = {value.number: value.name for value in prediction_pb2.RowStatus.DESCRIPTOR.values}


def rows_of(reply: Any) -> list[Row]:
    """Rows of a PredictResponse or a BatchPredictResponse, keys as PROTOCOL.md says."""
    columns = reply.predictions
    if isinstance(reply, predictions.PredictResponse) or not reply.outcomes:
        return [_row(columns, index, None) for index in range(columns.rows_count)]
    rows: list[Row] = []
    for job, outcome in enumerate(reply.outcomes):
        if outcome.HasField("problem"):
            error = {"reason": outcome.problem.reason, "message": outcome.problem.message}
            rows.append({"job": job, "error": error})
        elif reply.row_offsets:
            places = range(reply.row_offsets[job], reply.row_offsets[job + 1])
            rows += [{"job": job, **_row(columns, index, outcome.columns)} for index in places]
    return rows


def _row(columns: Any, index: int, answered_columns: Any) -> Row:
    """One row; `kept` are the optional columns that its job has, None = all that were sent."""
    status = columns.statuses[index] if columns.statuses else prediction_pb2.ROW_STATUS_ANSWERED
    answered = status in {prediction_pb2.ROW_STATUS_ANSWERED, prediction_pb2.ROW_STATUS_UNSPECIFIED}

    def entry(name: str, column: int | None = None, *, always: bool = False) -> Any:
        column_values = getattr(columns, name)
        is_hidden = answered_columns is not None and column is not None and column not in answered_columns
        return None if is_hidden or not column_values or not (answered or always) else column_values[index]

    steps, samples = entry("steps_per_second"), entry("samples_per_second") or None
    share = samples / steps if steps and samples else None
    upper = entry("upper_steps_per_second", options_pb2.PREDICTION_COLUMN_INTERVAL) or None
    lower = entry("lower_steps_per_second", options_pb2.PREDICTION_COLUMN_INTERVAL) if upper else None
    place = entry("bottleneck_indexes", options_pb2.PREDICTION_COLUMN_BREAKDOWN)
    return {
        "nodes": columns.nodes[index] if columns.nodes else None,
        "workers": columns.workers[index] if columns.workers else None,
        "status": _NAMES.get(status or prediction_pb2.ROW_STATUS_ANSWERED, status),
        "step_seconds": entry("step_seconds") or None,
        "samples_per_second": samples,
        "lower_samples_per_second": None if share is None or lower is None else lower * share,
        "upper_samples_per_second": None if share is None or upper is None else upper * share,
        "memory_bytes": entry("memory_bytes", options_pb2.PREDICTION_COLUMN_MEMORY, always=True) or None,
        "bottleneck": None if place is None else columns.bottleneck_names[place] or None,
        "reason": next((each.problem.reason for each in columns.refusals if index in each.rows), None),
    }

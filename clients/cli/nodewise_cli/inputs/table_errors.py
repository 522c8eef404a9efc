"""Errors of the service about rows that came from a table, with the file's line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.inputs.tables import Table
from nodewise_client import FieldViolation, NodewiseError

__all__ = ["in_table"]

_ROW: Final = re.compile(r"(\w+)\[(\d+)\]$")


def in_table(error: NodewiseError, table: Table, rows: Sequence[int], path: str) -> CommandError | None:
    """The error with the file's line, where it is about a row that came from a table.

    Parameters
    ----------
    rows : sequence of int
        The table's row of each row that was sent.
    path : str
        Fields below this one hold these rows.
    """
    for violation in error.violations:
        row = _row(violation, path)
        if row is not None and row < len(rows):
            place = f"{table.path}:{table.lines[rows[row]]}"
            return InputError(f"{place}: {_column(violation.field)}: {violation.description}")
    return None


_COLUMNS: Final = {
    "batch_per_worker_samples": "batch_per_worker",
    "accumulation_steps": "accumulation",
    "global_batch_samples": "global_batch",
    "link_bytes_per_second": "link_bytes_per_s",
    "steps_per_second": "steps_per_s",
    "measured_at_unix_seconds": "measured_at",
    "exposed_sync_seconds": "exposed_sync_s",
    "download_seconds": "download_s",
    "compute_seconds": "compute_s",
    "upload_seconds": "upload_s",
    "update_seconds": "update_s",
    "compute_variation": "compute_cv",
    "transfer_variation": "transfer_cv",
    "hidden_seconds": "hidden_s",
    "step_variation": "step_cv",
    "steps_counts": "steps",
    "group_workers": "groups",
    "group_compute_factors": "groups",
    "hybrid_sync_fractions": "hybrid_sync_fraction",
    "hybrid_switch_seconds": "hybrid_switch_s",
    "worker_link_bytes_per_second": "worker_link_bytes_per_s",
    "per_message_seconds": "per_message_s",
    "round_trip_seconds": "round_trip_s",
    "tensors_count": "tensors",
    "placement_workers": "placement",
    "device_names": "device",
    "sync_modes": "sync",
    "precisions": "precision",
    "recomputations": "recompute",
    "zero_stages": "zero_stage",
    "interleave_degrees": "interleave",
    "tensor_parallel_degrees": "tensor_parallel",
    "pipeline_parallel_degrees": "pipeline_parallel",
    "data_parallel_degrees": "data_parallel",
    "expert_parallel_degrees": "expert_parallel",
    "context_parallel_degrees": "context_parallel",
}
"""Columns of a table by the last part of the field that carries them."""


def _column(field: str) -> str:
    """The field as the reader of a table knows it."""
    last = field.rsplit(".", 1)[-1].split("[", 1)[0]
    if last == "steps_counts" and "phase_timings." in field:
        return "column phase_steps"
    return f"column {_COLUMNS.get(last, last)}"


def _row(violation: FieldViolation, path: str) -> int | None:
    match = _ROW.search(violation.field)
    return int(match[2]) if match is not None and violation.field.startswith(path) else None

"""Cells that are right one by one and contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodewise_cli.inputs.columns import FACTS, OF_PHASES, PARAMETER_SERVER_MODES, PHASES, TRANSFORMER

__all__ = ["Contradiction", "contradictions"]

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row whose cell disagrees with others, and what would be right."""

    row: int
    column: str
    message: str


def contradictions(columns: Columns, lines: Sequence[int]) -> Iterator[Contradiction]:
    """What contradicts itself, row by row and then job by job.

    Parameters
    ----------
    columns : mapping
        Every column of the schema by name.
    lines : sequence of int
        The line of the file that each row begins in, for messages that name another row.
    """
    for row in range(len(lines)):
        for check in _CHECKS:
            found = check(columns, row)
            if found is not None:
                yield Contradiction(row, *found)
    yield from _facts(columns, lines)


_Found = tuple[str, str] | None


def _unmeasured(columns: Columns, row: int) -> _Found:
    if columns["split"][row] == "train" and columns["steps_per_s"][row] is None:
        return "steps_per_s", "must be given in a row of split train, found nothing (only test rows may leave it empty)"
    return None


def _scale(columns: Columns, row: int) -> _Found:
    nodes, workers = columns["nodes"][row], columns["workers"][row]
    if workers < nodes:
        return "workers", f"must be at least nodes ({nodes}): every node runs at least one, found {workers}"
    return None


def _placement(columns: Columns, row: int) -> _Found:
    layout = columns["placement"][row]
    if layout is None:
        return None
    nodes, workers = columns["nodes"][row], columns["workers"][row]
    if sum(layout) != workers:
        return "placement", f"must add up to workers ({workers}), found {sum(layout)}"
    if len(layout) != nodes:
        return "placement", f"must name as many nodes as column nodes ({nodes}), found {len(layout)}"
    return None


def _groups(columns: Columns, row: int) -> _Found:
    listed = columns["groups"][row]
    workers = columns["workers"][row]
    held = 0 if listed is None else sum(count for count, _, _ in listed)
    if listed is not None and held != workers:
        return "groups", f"must add up to workers ({workers}), found {held}"
    backup = columns["backup_workers"][row] or 0
    if backup >= workers:
        return "backup_workers", f"must be below workers ({workers}): a step needs the result of at least one"
    return None


def _hybrid(columns: Columns, row: int) -> _Found:
    sync = columns["sync"][row]
    for name in ("hybrid_sync_fraction", "hybrid_switch_s"):
        if columns[name][row] and sync != "hybrid":
            return name, f"must be empty or 0 with sync {sync}, found {columns[name][row]:g}"
    return None


def _servers(columns: Columns, row: int) -> _Found:
    servers = columns["parameter_servers"][row]
    if servers and columns["sync"][row] == "allreduce":
        return "parameter_servers", (
            f"must be 0 with sync allreduce (the default of sync), found {servers}; "
            "with servers sync is async, sync or hybrid"
        )
    return None


def _batches(columns: Columns, row: int) -> _Found:
    per_worker, micro = columns["batch_per_worker"][row], columns["micro_batch"][row]
    if per_worker is not None and micro is not None and per_worker != micro:
        return "micro_batch", f"must equal batch_per_worker ({per_worker}) where both are given, found {micro}"
    return None


def _degrees(columns: Columns, row: int) -> _Found:
    data = columns["data_parallel"][row]
    if data is None:
        return None
    workers, product = columns["workers"][row], data
    for name in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        product *= columns[name][row] or 1
    if product != workers:
        return "data_parallel", (
            f"must make the parallel degrees multiply to workers ({workers}); with {data} they multiply to {product}"
        )
    return None


def _phases(columns: Columns, row: int) -> _Found:
    given = [name for name in PHASES if columns[name][row] is not None]
    if not given:
        for name in OF_PHASES:
            if columns[name][row] is not None:
                return "compute_s", f"must be given where {name} is"
        return None
    needed = PHASES[:3] if columns["sync"][row] in PARAMETER_SERVER_MODES else PHASES[:1]
    for name in needed:
        if columns[name][row] is None:
            return name, f"must be given where {given[0]} is: a step's phases are known together or not at all"
    if not any(columns[name][row] for name in given):
        return given[0], "must be above 0 in at least one phase: nothing was timed"
    hidden_s = columns["hidden_s"][row] or 0.0
    transfers_s = (columns["download_s"][row] or 0.0) + (columns["upload_s"][row] or 0.0)
    if hidden_s > transfers_s:
        return "hidden_s", f"must be at most download_s + upload_s ({transfers_s:g}), found {hidden_s:g}"
    return None


def _transformer(columns: Columns, row: int) -> _Found:
    given = [name for name in TRANSFORMER if columns[name][row] is not None]
    missing = [name for name in TRANSFORMER if columns[name][row] is None]
    if given and missing:
        return missing[0], f"must be given where {given[0]} is: a transformer needs {', '.join(TRANSFORMER)}"
    return None


_CHECKS: Final[tuple[Callable[[Columns, int], _Found], ...]] = (
    _unmeasured,
    _scale,
    _placement,
    _groups,
    _hybrid,
    _servers,
    _batches,
    _degrees,
    _phases,
    _transformer,
)


def _facts(columns: Columns, lines: Sequence[int]) -> Iterator[Contradiction]:
    """Facts of a job that differ between its rows."""
    for name in FACTS:
        values = columns[name]
        first: dict[str, int] = {}
        for row, value in enumerate(values):
            if value is None:
                continue
            job = columns["job"][row]
            before = first.setdefault(job, row)
            if values[before] != value:
                yield Contradiction(
                    row,
                    name,
                    f"must be {values[before]} as in line {lines[before]}: it is a fact of job {job!r}, found {value}",
                )

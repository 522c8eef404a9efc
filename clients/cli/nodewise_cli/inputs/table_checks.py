"""Cells that are valid one by one but contradict each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from nodewise_cli.inputs.columns import PARAMETER_SERVER_MODES, PHASES, RATES, TRANSFORMER
from nodewise_cli.inputs.shared_samples import fractions
from nodewise_values import facts
from nodewise_values.fact import by_csv

__all__ = ["contradictions"]

OF_PHASES: Final = tuple(name for name in by_csv(facts.PHASE_TIMINGS) if name not in PHASES)
"""What may be known of phases besides their means."""
FACTS: Final = tuple(
    name for name in by_csv(facts.WORKLOAD, facts.NETWORK, facts.TRANSFORMER) if name != "link_bytes_per_s"
)
"""What a job trains and over what network: the same in all its rows, but for the link, which may differ."""

Columns = Mapping[str, Sequence[Any]]
_Cells = Callable[[str], Any]
_Faults = Iterator[tuple[str, str]]


def contradictions(columns: Columns, lines: Sequence[int]) -> Iterator[tuple[int, str, str]]:
    """Contradictions, row by row and then job by job: the row, the column, and what would be right.

    Parameters
    ----------
    columns : mapping
        Every column of the schema by name.
    lines : sequence of int
        The line of the file that each row begins in, for messages that name another row.
    """
    for row in range(len(lines)):
        cells = partial(_cell, columns, row)
        for check in _CHECKS:
            for column, message in check(cells):
                yield row, column, message
    yield from _facts(columns, lines)


def _cell(columns: Columns, row: int, name: str) -> Any:
    return columns[name][row]


def _layout(cells: _Cells) -> _Faults:
    has_memory = cells("measured_memory_bytes") is not None or cells("fitted") == 0
    if cells("split") == "train" and all(cells(name) is None for name in RATES) and not has_memory:
        text = "must be given in a train row (only test rows may leave it empty)"
        yield "steps_per_s", text
    nodes, workers, layout, groups = cells("nodes"), cells("workers"), cells("placement"), cells("groups")
    if workers < nodes:
        yield "workers", f"must be at least nodes ({nodes}): every node has at least one worker, found {workers}"
    if layout is not None and sum(layout) != workers:
        yield "placement", f"must add up to workers ({workers}), found {sum(layout)}"
    if layout is not None and len(layout) != nodes:
        yield "placement", f"must have one number for each of the nodes ({nodes}), found {len(layout)}"
    workers_in_groups = workers if groups is None else sum(count for count, _, _ in groups)
    if workers_in_groups != workers:
        yield "groups", f"must add up to workers ({workers}), found {workers_in_groups}"
    if (cells("backup_workers") or 0) >= workers:
        yield "backup_workers", f"must be below workers ({workers}): a step needs the result of at least one worker"


def _exchange(cells: _Cells) -> _Faults:
    sync, servers = cells("sync"), cells("parameter_servers")
    for name in ("hybrid_sync_fraction", "hybrid_switch_s"):
        if cells(name) and sync != "hybrid":
            yield name, f"must be empty or 0 if sync is {sync}, found {cells(name):g}"
    if servers and sync == "allreduce":
        text = f"must be 0 if sync is allreduce (the default), found {servers}"
        yield "parameter_servers", f"{text}; with servers, sync must be async, sync or hybrid"


def _batches(cells: _Cells) -> _Faults:
    per_worker, micro, data = cells("batch_per_worker"), cells("micro_batch"), cells("data_parallel")
    if None not in (per_worker, micro) and per_worker != micro:
        yield "micro_batch", f"must equal batch_per_worker ({per_worker}) if both are given, found {micro}"
    if (wrong := fractions(cells)) is not None:
        yield wrong
    if data is None:
        return
    degrees = [cells(name) or 1 for name in ("tensor_parallel", "pipeline_parallel", "context_parallel")]
    workers, product = cells("workers"), math.prod(degrees, start=data)
    if product != workers:
        text = f"must be such that the parallel degrees multiply to workers ({workers})"
        yield "data_parallel", f"{text}; with {data} they give {product}"


def _phases(cells: _Cells) -> _Faults:
    phases = [name for name in PHASES if cells(name) is not None]
    if not phases:
        yield from (("compute_s", f"must be given if {name} is") for name in OF_PHASES if cells(name) is not None)
        return
    required_phases = PHASES[:3] if cells("sync") in PARAMETER_SERVER_MODES else PHASES[:1]
    for name in required_phases:
        if cells(name) is None:
            yield name, f"must be given if {phases[0]} is: state all phases of a step or none"
    if not any(map(cells, phases)):
        yield phases[0], "must be above 0 in at least one phase"
    hidden_s, transfers_s = cells("hidden_s") or 0.0, (cells("download_s") or 0.0) + (cells("upload_s") or 0.0)
    if hidden_s > transfers_s:
        yield "hidden_s", f"must be at most download_s + upload_s ({transfers_s:g}), found {hidden_s:g}"


def _transformer(cells: _Cells) -> _Faults:
    names = [name for name in by_csv(facts.TRANSFORMER) if cells(name) is not None]
    missing = [name for name in TRANSFORMER if name not in names]
    if names == ["sequence_length"]:
        return  # it tells the tokens of a sample
    if names and missing:
        yield missing[0], f"must be given if {names[0]} is: a transformer needs {', '.join(TRANSFORMER)}"


_CHECKS: Final = (_layout, _exchange, _batches, _phases, _transformer)


def _facts(columns: Columns, lines: Sequence[int]) -> Iterator[tuple[int, str, str]]:
    """Facts of a job that differ between its rows."""
    for name in FACTS:
        values, first = columns[name], dict[str, int]()
        for row, (job, value) in enumerate(zip(columns["job"], values, strict=True)):
            before = row if value is None else first.setdefault(job, row)
            if values[before] != value:
                expectation = (
                    f"must be {values[before]} as in line {lines[before]}: a job has one value of it ({job!r})"
                )
                yield row, name, f"{expectation}, found {value}"

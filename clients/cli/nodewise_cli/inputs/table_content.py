"""From a table to what the service takes: the table as a whole, or the profile of one of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodewise_cli.inputs.columns import NETWORK, PARAMETER_SERVER_MODES, PHASES, TRANSFORMER
from nodewise_cli.inputs.configurations import configurations_by_csv
from nodewise_cli.inputs.tables import Table
from nodewise_client import (
    Configurations,
    MeasurementTable,
    Network,
    Observations,
    PhaseTimings,
    ProfileContent,
    Transformer,
    WorkerGroup,
    Workload,
    observations,
    phase_timings,
)
from nodewise_client import measurement_table as table_of
from nodewise_values.fact import by_csv
from nodewise_values.facts import NETWORK as NETWORK_FACTS
from nodewise_values.facts import TRANSFORMER as TRANSFORMER_FACTS

__all__ = [
    "configurations_of",
    "measurement_table",
    "observations_of",
    "profile_content",
    "timed_rows",
    "timings_of",
    "train_rows",
]

# Columns that the wire holds as they are, with what it holds where a row does not say.
_PLAIN: Final[dict[str, Any]] = {
    "accumulation": 1,
    "global_batch": 0,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "data_parallel": 0,
    "expert_parallel": 1,
    "context_parallel": 1,
    "sequence_parallel": False,
    "interleave": 1,
    "zero_stage": 0,
    "backup_workers": 0,
    "hybrid_sync_fraction": 0.0,
    "hybrid_switch_s": 0.0,
}
_TRANSFORMER: Final = {name: fact.field for name, fact in by_csv(TRANSFORMER_FACTS).items()}
_NETWORK: Final = {name: fact.field for name, fact in by_csv(NETWORK_FACTS).items()}
# What the contract says of a transformer's table that does not say it itself.
_PRECISION: Final = "fp16"
_OPTIMIZER: Final = "adam"
_RECOMPUTE: Final = "full"


def measurement_table(table: Table) -> MeasurementTable:
    """All rows, for a backtest."""
    rows = range(len(table))
    columns = table.columns
    phase_rows = timed_rows(table, rows)
    return table_of(
        jobs=columns["job"],
        configurations=configurations_of(table, rows),
        steps_per_second=columns["steps_per_s"],
        train=table.train,
        measured_at_unix_seconds=_moments(table, rows),
        exposed_sync_seconds=columns["exposed_sync_s"],
        steps_counts=columns["steps"],
        step_variation=columns["step_cv"],
        phase_timings=_phases(table, phase_rows, None) if phase_rows else None,
        phase_rows=tuple(phase_rows),
        workloads={job: _workload(table, job) for job in table.jobs},
        networks={job: _network(table, job) for job in table.jobs},
    )


def profile_content(table: Table, job: str) -> ProfileContent:
    """What an estimator may know of a job: its facts and its train rows."""
    train = train_rows(table, job)
    timed = timed_rows(table, train)
    return ProfileContent(
        workload=_workload(table, job),
        network=_network(table, job),
        phase_timings=timings_of(table, timed) if timed else None,
        observations=observations_of(table, train) if train else None,
    )


def train_rows(table: Table, job: str) -> list[int]:
    """Rows of a job that an estimator may see."""
    visible = table.train
    return [row for row in table.rows_by_job[job] if visible[row]]


def timed_rows(table: Table, rows: Sequence[int]) -> list[int]:
    """Those of some rows that hold phase timings."""
    return [row for row in rows if any(table.columns[name][row] is not None for name in PHASES)]


def timings_of(table: Table, rows: Sequence[int]) -> PhaseTimings:
    """Phase timings of rows that hold them."""
    return _phases(table, rows, configurations_of(table, rows))


def observations_of(table: Table, rows: Sequence[int]) -> Observations:
    """Rows as measured runs."""
    return observations(
        configurations=configurations_of(table, rows),
        steps_per_second=_of(table, "steps_per_s", rows),
        measured_at_unix_seconds=_moments(table, rows),
        exposed_sync_seconds=_of(table, "exposed_sync_s", rows),
        steps_counts=_of(table, "steps", rows),
        step_variation=_of(table, "step_cv", rows),
    )


def configurations_of(table: Table, rows: Sequence[int]) -> Configurations:
    """What ran in some rows. A column that no row states is left out: then the service's own default holds."""
    given: dict[str, Any] = {}
    for name, otherwise in _PLAIN.items():
        values = _of(table, name, rows)
        if any(value is not None and value != otherwise for value in values):
            given[name] = [otherwise if value is None else value for value in values]
    batches = [table.columns["batch_per_worker"][row] or table.columns["micro_batch"][row] or 0 for row in rows]
    placements = [layout or () for layout in _of(table, "placement", rows)]
    links = _differing(table, "link_bytes_per_s", rows, 0.0)
    precisions = _differing(table, "precision", rows, "")
    recomputes = [
        word or (_RECOMPUTE if table.columns["layers"][row] else None)
        for row, word in zip(rows, _of(table, "recompute", rows), strict=True)
    ]
    syncs, servers = _of(table, "sync", rows), _of(table, "parameter_servers", rows)
    if any(servers):
        # No number of servers means one where there must be one, as everywhere in the service.
        servers = [count or int(sync in PARAMETER_SERVER_MODES) for count, sync in zip(servers, syncs, strict=True)]
    optional: dict[str, list[Any]] = {
        "batch_per_worker": batches,
        "placement": placements,
        "groups": [_groups(table, row) for row in rows],
        "link_bytes_per_s": links,
        "precision": precisions,
        "recompute": recomputes,
        "parameter_servers": servers,
    }
    given.update({name: values for name, values in optional.items() if any(values)})
    stated = {name: _of(table, name, rows) for name in ("nodes", "workers", "device")}
    return configurations_by_csv({**stated, "sync": syncs, **given})


def _workload(table: Table, job: str) -> Workload:
    def fact(name: str) -> Any:
        return _fact(table, job, name)

    transformer = None
    if all(fact(name) for name in TRANSFORMER):
        transformer = Transformer(**{_TRANSFORMER[name]: fact(name) for name in TRANSFORMER})
    return Workload(
        parameter_bytes=fact("parameter_bytes"),
        tensors_count=fact("tensors"),
        transformer=transformer,
        framework=fact("framework") or "",
        optimizer=_OPTIMIZER if transformer else "",
        precision=fact("precision") or (_PRECISION if transformer else ""),
    )


def _phases(table: Table, rows: Sequence[int], configurations: Configurations | None) -> PhaseTimings:
    # Without servers nothing is received from or applied at one: those phases are 0, not unknown.
    compute, download, upload, update = ([value or 0.0 for value in _of(table, name, rows)] for name in PHASES)
    return phase_timings(
        configurations=configurations,
        compute_seconds=compute,
        download_seconds=download,
        upload_seconds=upload,
        update_seconds=update,
        compute_variation=_of(table, "compute_cv", rows),
        transfer_variation=_of(table, "transfer_cv", rows),
        hidden_seconds=[seconds or 0.0 for seconds in _of(table, "hidden_s", rows)],
        steps_counts=_of(table, "phase_steps", rows),
    )


def _network(table: Table, job: str) -> Network:
    return Network(**{_NETWORK[name]: _fact(table, job, name) for name in ("link_bytes_per_s", *NETWORK)})


def _groups(table: Table, row: int) -> tuple[WorkerGroup, ...]:
    device = table.columns["device"][row]
    listed = table.columns["groups"][row] or ()
    return tuple(
        WorkerGroup(workers=workers, device_name=other or device, compute_factor=factor)
        for workers, other, factor in listed
    )


def _moments(table: Table, rows: Sequence[int]) -> list[float | None]:
    return [None if moment is None else moment.timestamp() for moment in _of(table, "measured_at", rows)]


def _of(table: Table, name: str, rows: Sequence[int]) -> list[Any]:
    column = table.columns[name]
    return [column[row] for row in rows]


def _fact(table: Table, job: str, name: str) -> Any:
    """The only value in a job's rows; None where none is stated or where they differ."""
    column = table.columns[name]
    values = {column[row] for row in table.rows_by_job[job]} - {None}
    return values.pop() if len(values) == 1 else None


def _differing(table: Table, name: str, rows: Sequence[int], otherwise: Any) -> list[Any]:
    """A column's values in the rows of jobs for which it is no fact."""
    jobs = {table.columns["job"][row] for row in rows}
    facts = {job: _fact(table, job, name) for job in jobs}
    column = table.columns[name]
    return [
        otherwise if facts[table.columns["job"][row]] is not None or column[row] is None else column[row]
        for row in rows
    ]

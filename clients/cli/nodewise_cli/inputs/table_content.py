"""Messages of the service from a table: the table as a whole, or the profile of one of its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nodewise_cli.inputs.columns import PARAMETER_SERVER_MODES, PHASES, TRANSFORMER
from nodewise_cli.inputs.configurations import FACTS as CONFIGURATION_FACTS
from nodewise_cli.inputs.configurations import configurations_by_csv
from nodewise_cli.inputs.tables import Table
from nodewise_client import (
    Configurations,
    Encoder,
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
from nodewise_values import facts
from nodewise_values.fact import Fact, by_csv

__all__ = [
    "configurations_of",
    "measurement_table",
    "observations_of",
    "profile_content",
    "timed_rows",
    "timings_of",
    "train_rows",
]

_ALWAYS: Final = frozenset({"nodes", "workers", "device", "sync"})
_OWN_WAY: Final = frozenset({
    *("placement", "groups", "batch_per_worker", "link_bytes_per_s", "precision", "recompute", "parameter_servers")
})  # fmt: skip
"""Columns of configurations that are more than what their cells hold: 0 states nothing."""
# What the contract says of a transformer's table that does not say it itself.
_OPTIMIZER: Final = "adam"


def measurement_table(table: Table) -> MeasurementTable:
    """All rows, for a backtest."""
    rows = range(len(table))
    phase_rows = timed_rows(table, rows)
    return table_of(
        jobs=table.columns["job"],
        configurations=configurations_of(table, rows),
        train=table.train,
        phase_timings=timings_of(table, phase_rows, of_configurations=False) if phase_rows else None,
        phase_rows=tuple(phase_rows),
        workloads={job: _workload(table, job) for job in table.jobs},
        networks={job: Network(**_facts(table, job, facts.NETWORK)) for job in table.jobs},
        **_runs(table, rows, facts.MEASUREMENT_TABLE),
    )


def profile_content(table: Table, job: str) -> ProfileContent:
    """The profile of a job: its facts and its train rows."""
    train = train_rows(table, job)
    rows_with_phases = timed_rows(table, train)
    return ProfileContent(
        workload=_workload(table, job),
        network=Network(**_facts(table, job, facts.NETWORK)),
        phase_timings=timings_of(table, rows_with_phases) if rows_with_phases else None,
        observations=observations_of(table, train) if train else None,
    )


def train_rows(table: Table, job: str) -> list[int]:
    """Train rows of a job whose rate is known: a profile holds no others."""
    visible, rates = table.train, table.columns["steps_per_s"]
    return [row for row in table.rows_by_job[job] if visible[row] and rates[row] is not None]


def timed_rows(table: Table, rows: Sequence[int]) -> list[int]:
    """Those of some rows that hold phase timings."""
    return [row for row in rows if any(table.columns[name][row] is not None for name in PHASES)]


def timings_of(table: Table, rows: Sequence[int], *, of_configurations: bool = True) -> PhaseTimings:
    """Phase timings of rows that hold them, with the configurations of these rows unless they are stated elsewhere."""
    columns: dict[str, Any] = {"configurations": configurations_of(table, rows)} if of_configurations else {}
    for name, fact in by_csv(facts.PHASE_TIMINGS).items():
        # Without servers nothing is received from or applied at one: those phases are 0, not unknown.
        unknown = 0.0 if name in PHASES else None
        columns[fact.field] = [unknown if value is None else value for value in _of(table, name, rows)]
    return phase_timings(**columns)


def observations_of(table: Table, rows: Sequence[int]) -> Observations:
    """Rows as measured runs."""
    return observations(configurations=configurations_of(table, rows), **_runs(table, rows, facts.OBSERVATIONS))


def _runs(table: Table, rows: Sequence[int], of: Mapping[str, Fact]) -> dict[str, list[Any]]:
    """Measurements of some rows, by field."""
    columns = {fact.field: _of(table, name, rows) for name, fact in by_csv(of).items()}
    moments = (None if moment is None else moment.timestamp() for moment in _of(table, "measured_at", rows))
    return columns | {"measured_at_unix_seconds": list(moments)}


def configurations_of(table: Table, rows: Sequence[int]) -> Configurations:
    """Configurations of some rows. A column that no row states is left out, so the service's default holds."""
    columns = {name: _of(table, name, rows) for name in CONFIGURATION_FACTS}
    columns |= {name: _differing(table, name, rows) for name in ("link_bytes_per_s", "precision")}
    columns["groups"] = [_groups(table, row) for row in rows]
    for row, batch in enumerate(_of(table, "micro_batch", rows)):
        columns["batch_per_worker"][row] = columns["batch_per_worker"][row] or batch
    if any(columns["parameter_servers"]):
        # No number of servers means one where there must be one, as everywhere in the service.
        for row, sync in enumerate(columns["sync"]):
            columns["parameter_servers"][row] = columns["parameter_servers"][row] or int(sync in PARAMETER_SERVER_MODES)
    return configurations_by_csv({name: values for name, values in columns.items() if _states(name, values)})


def _states(name: str, values: Sequence[Any]) -> bool:
    if name in _OWN_WAY:
        return any(values)
    default = None if name in _ALWAYS else CONFIGURATION_FACTS[name].default
    return any(value is not None and value != default for value in values)


def _workload(table: Table, job: str) -> Workload:
    dimensions = _facts(table, job, facts.TRANSFORMER)
    is_transformer = all(_fact(table, job, name) is not None for name in TRANSFORMER)
    transformer = Transformer(**dimensions) if is_transformer else None
    usual = {"optimizer": _OPTIMIZER} if transformer else {}
    workload_facts = _facts(table, job, {**facts.WORKLOAD, "precision": facts.CONFIGURATION_SETTINGS["precision"]})
    encoder = _facts(table, job, facts.ENCODER)
    if encoder:
        workload_facts["encoder"] = Encoder(**encoder)
    return Workload(transformer=transformer, **usual | workload_facts)


def _groups(table: Table, row: int) -> tuple[WorkerGroup, ...]:
    device = table.columns["device"][row]
    groups = table.columns["groups"][row] or ()
    return tuple(
        WorkerGroup(workers=workers, device_name=other or device, compute_factor=factor)
        for workers, other, factor in groups
    )


def _of(table: Table, name: str, rows: Sequence[int]) -> list[Any]:
    column = table.columns[name]
    return [column[row] for row in rows]


def _facts(table: Table, job: str, of: Mapping[str, Fact]) -> dict[str, Any]:
    """The facts of a job that its rows state, by the fields that carry them."""
    facts_of_job = {fact.field: _fact(table, job, name) for name, fact in by_csv(of).items()}
    return {name: value for name, value in facts_of_job.items() if value is not None}


def _fact(table: Table, job: str, name: str) -> Any:
    """The only value in a job's rows; None if none is stated or they differ."""
    column = table.columns[name]
    values = {column[row] for row in table.rows_by_job[job]} - {None}
    return values.pop() if len(values) == 1 else None


def _differing(table: Table, name: str, rows: Sequence[int]) -> list[Any]:
    """A column's values in the rows of jobs for which it is no fact."""
    jobs = _of(table, "job", rows)
    facts = {job: _fact(table, job, name) for job in set(jobs)}
    return [value if facts[job] is None else None for job, value in zip(jobs, _of(table, name, rows), strict=True)]

"""What `nodewise predict` asks: which job, and which configurations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.configurations import configurations_by_csv
from nodewise_cli.inputs.counts import parse_counts
from nodewise_cli.inputs.documents import read_profile
from nodewise_cli.inputs.table_content import profile_content
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_client import (
    ConfigurationRange,
    PlacementRule,
    ProfileContent,
    ProfileSource,
    node_range,
    profile_source,
    worker_range,
)

__all__ = ["AskedJob", "asked_job", "asked_ranges"]

_HOW: Final = (
    "device",
    "sync",
    "parameter_servers",
    "batch_per_worker",
    "global_batch",
    "accumulation",
    "backup_workers",
    "hybrid_sync_fraction",
    "hybrid_switch_s",
)
"""Columns that say how a job runs, without its scale."""


@dataclass(frozen=True, slots=True)
class AskedJob:
    """The job asked about: what the service is told of it, its name for people, and its table if it has one."""

    profile: str | ProfileContent
    name: str
    table: Table | None = None

    @property
    def source(self) -> ProfileSource:
        """The same, for a request."""
        return profile_source(self.profile)

    @property
    def rows(self) -> tuple[int, ...]:
        """Its rows in the table."""
        return () if self.table is None else self.table.rows_by_job[self.name]


def asked_job(
    source: Path | None, job: str | None, profile: str | None, server: str | None, sequence_length: int | None = None
) -> AskedJob:
    """The job that some options name; ``sequence_length`` is of a model's `config.json`, in tokens.

    Raises
    ------
    InputError
        Naming the option or the file and what would be right.
    """
    if profile is not None:
        if source is not None or job is not None:
            raise InputError("--profile: must stand alone: it names a stored profile, instead of a file and --job")
        if server is None:
            raise InputError("--server: must name the server that holds the profile: an embedded one holds none")
        return AskedJob(profile, profile)
    if source is None:
        raise InputError("must be asked about a TABLE.csv, a PROFILE.json or a --profile of the server; found none")
    if source.suffix.lower() == ".json":
        if job is not None:
            raise InputError(f"--job: must be left out: {source} holds one profile")
        return AskedJob(read_profile(source, sequence_length), source.stem)
    if sequence_length is not None:
        raise InputError(f"--sequence-length: must come with the config.json of a model, {source} is a table")
    table = read_table(source)
    if job is None and len(table.jobs) == 1:
        job = table.jobs[0]
    if job is None or job not in table.rows_by_job:
        found = "found none" if job is None else f"found {job!r}"
        raise InputError(f"--job: must be a job of {source} ({', '.join(table.jobs)}), {found}")
    return AskedJob(profile_content(table, job), job, table)


def asked_ranges(
    asked: AskedJob,
    *,
    nodes: str | None,
    workers: str | None,
    workers_per_node: int | None,
    placement: PlacementRule,
    template: Mapping[str, Any],
) -> tuple[ConfigurationRange, ...]:
    """The configurations that some options name, in their order.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    if (nodes is None) == (workers is None):
        raise InputError("--nodes: must be given, or --workers, and only one of them, such as --nodes 1-16")
    link = template.get("link_bytes_per_s")
    if link is not None and not (math.isfinite(link) and link > 0):
        raise InputError(f"--link: must be a finite number above 0 (bytes per second), found {link:g}")
    stated = {name: value for name, value in template.items() if value is not None}
    columns = {**_without_evidence(asked), **stated}
    common: dict[str, Any] = {
        "workers_per_node": workers_per_node or 0,
        "placement_rule": placement,
        "template": configurations_by_csv(columns) if columns else None,
    }
    made = node_range if nodes is not None else worker_range
    return tuple(
        made(counts.first, counts.last, step=counts.step, powers_of_two=counts.powers_of_two, **common)
        for counts in parse_counts(nodes or workers or "", "--nodes" if nodes else "--workers")
    )


def _without_evidence(asked: AskedJob) -> dict[str, Any]:
    """How a job runs of which no run may be seen: what all its rows say alike."""
    table = asked.table
    if table is None or any(table.columns["split"][row] == "train" for row in asked.rows):
        return {}
    columns: dict[str, Any] = {}
    for name in _HOW:
        values = {table.columns[name][row] for row in asked.rows}
        only = values.pop() if len(values) == 1 else None
        if only:
            columns[name] = only
    return columns

"""Where jobs come from, as in ``--leave-out``: a part of their names, or the value of a column."""

from __future__ import annotations

import re
from typing import Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.columns import COLUMNS
from nodewise_cli.inputs.tables import Table

__all__ = ["job_sources"]

_PART: Final = re.compile(r"job:([1-9]\d?)")


def job_sources(table: Table, rule: str, option: str) -> tuple[str, ...]:
    """The source of each job of a table, in the order of its jobs.

    Parameters
    ----------
    rule : str
        ``job``: every job is its own source; ``job:N``: the Nth part of its name between slashes, the whole name where
        it has fewer; a column: what it holds in the job's rows.

    Raises
    ------
    InputError
        For another rule.
    """
    part = _PART.fullmatch(rule)
    if part is not None:
        return tuple(_part(job, int(part[1])) for job in table.jobs)
    if rule not in COLUMNS or rule == "steps_per_s":
        raise InputError(f"{option}: must be job, job:N (a part of its name) or a column, found {rule!r}")
    texts = ["not said" if cell is None else str(cell) for cell in table.columns[rule]]
    return tuple(" + ".join(sorted({texts[row] for row in rows})) for rows in table.rows_by_job.values())


def _part(job: str, number: int) -> str:
    parts = job.split("/")
    return parts[number - 1] if number <= len(parts) else job

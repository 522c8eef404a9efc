"""Differences between the runs of a table and those of a stored profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from nodewise_cli.inputs.columns import PARAMETER_SERVER_MODES
from nodewise_cli.inputs.configurations import csv_row
from nodewise_cli.inputs.table_content import timed_rows, train_rows
from nodewise_cli.inputs.tables import Table
from nodewise_client import Configurations, Observations, PhaseTimings, Profile, ProfileContent, configuration_rows
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

__all__ = ["Difference", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the rows of a table's job differ from what a profile holds.

    Attributes
    ----------
    timed, train : list of int
        Rows whose timed phases, and those whose throughput, the profile does not hold.
    stale_phases, stale_observations : list of int
        Numbers of what it holds beside the table's rows.
    stale_facts : list of str
        Paths of facts that the table states otherwise.
    there : int
        Rows of which it holds everything.
    adds_facts : bool
        Whether the table states facts that the profile does not hold.
    """

    timed: list[int]
    train: list[int]
    stale_phases: list[int]
    stale_observations: list[int]
    stale_facts: list[str]
    there: int
    adds_facts: bool

    @property
    def is_nothing(self) -> bool:
        """Whether the profile holds everything in the table."""
        return not (self.timed or self.train or self.adds_facts)


def difference(table: Table, job: str, content: ProfileContent, stored: Profile | None) -> Difference:
    """Compare a job with its profile; ``content`` comes from the table; None = there is no profile yet."""
    stored_content = (stored and stored.content) or ProfileContent()
    train = train_rows(table, job)
    timed = timed_rows(table, train)
    new_timed, stale_phases = _apart(
        timed, _keys(content.phase_timings, PHASE_TIMINGS), stored_content.phase_timings, PHASE_TIMINGS
    )
    new_train, stale_observations = _apart(
        train, _keys(content.observations, OBSERVATIONS), stored_content.observations, OBSERVATIONS
    )
    adds_facts, stale_facts = False, []
    for part in ("workload", "network"):
        facts_of_table, facts_of_profile = getattr(content, part), getattr(stored_content, part)
        for name, value in _facts(facts_of_table).items():
            before = _facts(facts_of_profile).get(name)
            adds_facts |= value != before
            stale_facts += [f"{part}.{name}"] if before is not None and value != before else []
    return Difference(
        timed=new_timed,
        train=new_train,
        stale_phases=stale_phases,
        stale_observations=stale_observations,
        stale_facts=stale_facts,
        there=len(train) - len({*new_timed, *new_train}),
        adds_facts=adds_facts,
    )


def _facts(part: Any) -> dict[str, Any]:
    values = {} if part is None else {each.name: getattr(part, each.name) for each in fields(part)}
    return {name: value for name, value in values.items() if value not in (None, "", ())}


def _apart(
    rows: Sequence[int], keys: Sequence[Hashable], runs: Any, of: Mapping[str, Fact]
) -> tuple[list[int], list[int]]:
    """The rows that are not stored, and the numbers of other stored runs; each copy counts."""
    stored_keys = _keys(runs, of)
    left = Counter(stored_keys)
    new = []
    for row, key in zip(rows, keys, strict=True):
        if left[key]:
            left[key] -= 1
        else:
            new.append(row)
    stale = []
    numbers = () if runs is None else runs.numbers
    for key, number in zip(reversed(stored_keys), reversed(numbers), strict=True):
        if left[key]:
            left[key] -= 1
            stale.append(number)
    return new, sorted(stale)


def _keys(runs: Observations | PhaseTimings | None, of: Mapping[str, Fact]) -> list[Hashable]:
    """A normal form of each run, so that equal runs compare equal."""
    if runs is None:
        return []
    ran = configuration_rows(runs.configurations or Configurations())
    cell_columns = [_column(runs, name, fact, len(ran)) for name, fact in of.items()]
    return [(_how(row), *cells) for row, cells in zip(ran, zip(*cell_columns, strict=True), strict=True)]


def _how(row: Mapping[str, Any]) -> Hashable:
    settings = csv_row(row)
    settings["parameter_servers"] = settings["parameter_servers"] or int(settings["sync"] in PARAMETER_SERVER_MODES)
    groups = tuple((group.workers, group.device_name, group.compute_factor) for group in row.get("groups") or ())
    return (*settings.values(), tuple(row.get("placements") or ()), groups)


def _column(runs: Any, name: str, fact: Fact, rows: int) -> Sequence[Any]:
    """A column with an entry for every row; None = not known."""
    column = tuple(getattr(runs, name))
    column = column if len(column) == rows else (*column, None)[:1] * rows
    flags = getattr(runs, name.replace("_seconds", "") + "_known", ())
    flags = flags if len(flags) == rows else (True,) * rows
    return [None if not there or value == fact.default else value for value, there in zip(column, flags, strict=True)]

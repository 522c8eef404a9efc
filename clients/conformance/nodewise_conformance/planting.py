"""Planted regressions: with each of them in the server between, every client must turn red."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodewise_conformance.running import Results, Run
from nodewise_conformance.scenarios import Scenario
from nodewise_conformance.statuses import PLANTS

__all__ = ["NOTICING", "planted_runs", "unnoticed"]

NOTICING: Final = frozenset({"overloaded", "profile-not-found", "ingest", "ingest-batch"})
"""Scenarios that notice between them: few, as the others look at the same."""


def planted_runs(scenarios: Sequence[Scenario]) -> list[Run]:
    """Those that notice, under each regression."""
    return [(scenario, plant) for plant in PLANTS for scenario in scenarios if scenario.name in NOTICING]


def unnoticed(results: Mapping[str | None, Results]) -> list[str]:
    """Which client does not notice which regression."""
    problems: list[str] = []
    for plant in PLANTS:
        red_columns = {column for _, column in results[plant].red}
        problems += [
            f"{column} does not notice {plant}" for column in results[plant].columns if column not in red_columns
        ]
    return problems

"""Planted regressions: with each of them in the server between, every client must turn red."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodewise_conformance.languages import Column
from nodewise_conformance.running import run_all
from nodewise_conformance.scenarios import Scenario
from nodewise_conformance.stage import Stage
from nodewise_conformance.statuses import PLANTS

__all__ = ["unnoticed"]

NOTICING: Final = frozenset({"overloaded", "profile-not-found", "ingest", "ingest-batch"})
"""Scenarios that notice between them: few, as the others look at the same."""


async def unnoticed(columns: Sequence[Column], scenarios: Sequence[Scenario], stage: Stage) -> list[str]:
    """Which client does not notice which regression."""
    found: list[str] = []
    chosen = [scenario for scenario in scenarios if scenario.name in NOTICING]
    for plant in PLANTS:
        results = await run_all(columns, chosen, stage, plant=plant)
        red = {column for _, column in results.red}
        found += [f"{column.name} does not notice {plant}" for column in columns if column.name not in red]
    return found

"""Suggested runs as JSON and for people."""

from __future__ import annotations

from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.plain import plain
from nodewise_cli.views.table import figures, print_table
from nodewise_client import Basis, SuggestMeasurementsResponse

__all__ = ["document", "show"]


def document(result: SuggestMeasurementsResponse) -> dict[str, Any]:
    """The JSON of suggestions."""
    basis = result.basis or Basis()
    return {
        "suggestions": plain(result.suggestions),
        "expected_regret": result.expected_regret,
        "estimator": basis.estimator,
        "estimator_version": basis.estimator_version,
        # An inline profile's revision is its digest.
        "revision": basis.profile_revision or basis.profile_digest,
        "warnings": plain(result.warnings),
    }


def show(name: str, result: SuggestMeasurementsResponse) -> None:
    """Print the runs with what they teach and cost, and why."""
    basis = result.basis or Basis()
    if result.suggestions:
        columns = [figures(heading) for heading in ("", "nodes", "workers", "node-seconds", "regret", "ln width")]
        cells = [
            [
                str(number),
                f"{found.nodes:,}",
                f"{found.workers:,}",
                shown(found.cost_node_seconds),
                f"-{shown(100 * found.expected_regret_fall, 3)} %" if found.expected_regret_fall else "-",
                f"-{shown(found.expected_width_fall, 3)}",
            ]
            for number, found in enumerate(result.suggestions, 1)
        ]
        title = f"{name}, to be measured next by {basis.estimator} {basis.estimator_version}".rstrip()
        print_table(columns, cells, title=title)
    say(f"Expected regret of deciding now: {100 * result.expected_regret:.3g} % of the best throughput.")
    for number, found in enumerate(result.suggestions, 1):
        say(f"{number}: {found.why}.")
    for warning in result.warnings:
        say(f"Note: {warning.message}")

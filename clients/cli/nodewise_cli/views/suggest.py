"""Suggested runs as JSON and for people."""

from __future__ import annotations

import math
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.notes import show_notes
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.predict import revision_of
from nodewise_cli.views.table import figures, print_columns
from nodewise_client import Basis, SuggestMeasurementsResponse

__all__ = ["document", "show"]


def document(result: SuggestMeasurementsResponse) -> dict[str, Any]:
    """The JSON of suggestions."""
    basis = result.basis or Basis()
    by = {"estimator": basis.estimator, "estimator_version": basis.estimator_version, "revision": revision_of(basis)}
    return fields_of(result, "basis") | by


def show(name: str, result: SuggestMeasurementsResponse, *, verbose: bool) -> None:
    """Print the runs with their gains and costs, and why."""
    basis = result.basis or Basis()
    if result.suggestions:
        runs = result.suggestions
        falls = [suggestion.expected_regret_fall for suggestion in runs]
        title = f"{name}: runs to measure next, by {basis.estimator} {basis.estimator_version}".rstrip()
        print_columns(
            (figures(""), [str(number) for number in range(1, len(runs) + 1)]),
            (figures("nodes"), [f"{suggestion.nodes:,}" for suggestion in runs]),
            (figures("workers"), [f"{suggestion.workers:,}" for suggestion in runs]),
            (figures("node-seconds"), [format_number(suggestion.cost_node_seconds) for suggestion in runs]),
            (figures("regret"), [f"-{format_number(100 * fall, 3)} %" if fall else "-" for fall in falls]),
            (figures("upper / lower"), [f"-{-100 * math.expm1(-each.expected_width_fall):.3g} %" for each in runs]),
            title=title,
        )
    say(f"Expected regret of deciding now: {100 * result.expected_regret:.3g} % of the best throughput.")
    for number, suggestion in enumerate(result.suggestions, 1):
        say(f"{number}: {suggestion.why}.")
    show_notes(((notice.reason, notice.message) for notice in result.warnings), verbose=verbose)

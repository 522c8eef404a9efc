"""Generations of plugins as JSON and for people."""

from __future__ import annotations

from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import EstimatorDifference, ReloadOutcome, ReloadResponse, Tracks

__all__ = ["reload_document", "show_generations", "show_reload", "show_tracks"]


def reload_document(response: ReloadResponse) -> dict[str, Any]:
    """As JSON."""
    return fields_of(response)


def show_reload(response: ReloadResponse) -> None:
    """The outcome, and how answers differ."""
    match response.outcome:
        case ReloadOutcome.TAKEN:
            say(f"generation {response.generation} serves; before it, generation {response.generation_before} did")
        case ReloadOutcome.UNCHANGED:
            say(f"generation {response.generation} serves already, and nothing has changed since")
        case ReloadOutcome.RESTARTING:
            say(f"generation {response.generation} needs new workers: the server replaces them one by one")
    if response.trial is None:
        return
    for notice in response.trial.notices:
        say(notice)
    if response.trial.checks_passed_count:
        left = response.trial.checks_left_out_count
        say(f"{response.trial.checks_passed_count} conformance checks passed" + (f", {left} not run" if left else ""))
    _show_differences(response.trial.differences)


def show_tracks(tracks: Tracks | None) -> None:
    """Which generation serves which jobs."""
    if tracks is None:
        return
    say(f"stable: generation {tracks.stable_generation}")
    if tracks.canary is not None:
        say(f"canary: generation {tracks.canary.generation}, {tracks.canary.share:.1%} of the jobs")
    for worker in tracks.workers:
        if worker.problem:
            say(f"process {worker.process_id} serves generation {worker.stable_generation}: {worker.problem}")


def show_generations(entries: list[dict[str, Any]]) -> None:
    """As a table."""
    print_columns(
        (figures("generation"), [str(each["generation"]) for each in entries]),
        (words("serves"), [each["serves"] or "-" for each in entries]),
        (words("distributions"), [_distributions(each) for each in entries]),
        (words("origin"), [each["why"] for each in entries]),
    )


def _distributions(entry: dict[str, Any]) -> str:
    return ", ".join(f"{each['name']} {each['version']}" for each in entry["distributions"]) or "-"


def _show_differences(differences: tuple[EstimatorDifference, ...]) -> None:
    if not differences:
        return
    print_columns(
        (words("estimator"), [each.estimator for each in differences]),
        (words("before"), [each.version_before or "-" for each in differences]),
        (words("after"), [each.version_after or "-" for each in differences]),
        (figures("requests"), [str(each.requests_count) for each in differences]),
        (figures("median |ln|"), [f"{each.median_log_ratio:.4f}" for each in differences]),
        (figures("largest"), [f"{each.largest_log_ratio:.4f}" for each in differences]),
        (figures("refusals changed"), [str(each.changed_refusals_count) for each in differences]),
        (figures("ms before"), [f"{1e3 * each.median_seconds_before:.2f}" for each in differences]),
        (figures("ms after"), [f"{1e3 * each.median_seconds_after:.2f}" for each in differences]),
    )

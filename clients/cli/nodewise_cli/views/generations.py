"""Generations of plugins as JSON and for people."""

from __future__ import annotations

from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import EstimatorDifference, ReloadOutcome, ReloadResponse, Tracks

__all__ = ["reload_document", "show_generations", "show_reload", "show_tracks"]


def reload_document(found: ReloadResponse) -> dict[str, Any]:
    """As JSON."""
    return fields_of(found)


def show_reload(found: ReloadResponse) -> None:
    """What came of it, and how answers differ."""
    match found.outcome:
        case ReloadOutcome.TAKEN:
            say(f"generation {found.generation} serves, after {found.generation_before}")
        case ReloadOutcome.UNCHANGED:
            say(f"nothing differs from generation {found.generation}, which serves")
        case ReloadOutcome.RESTARTING:
            say(f"generation {found.generation} changes what runs in the workers: they are replaced one by one")
    if found.trial is None:
        return
    for notice in found.trial.notices:
        say(notice)
    if found.trial.checks_passed_count:
        left = found.trial.checks_left_out_count
        say(f"{found.trial.checks_passed_count} conformance checks passed" + (f", {left} left out" if left else ""))
    _show_differences(found.trial.differences)


def show_tracks(tracks: Tracks | None) -> None:
    """Who serves whom."""
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
        (words("why"), [each["why"] for each in entries]),
    )


def _distributions(entry: dict[str, Any]) -> str:
    return ", ".join(f"{each['name']} {each['version']}" for each in entry["distributions"]) or "-"


def _show_differences(found: tuple[EstimatorDifference, ...]) -> None:
    if not found:
        return
    print_columns(
        (words("estimator"), [each.estimator for each in found]),
        (words("before"), [each.version_before or "-" for each in found]),
        (words("after"), [each.version_after or "-" for each in found]),
        (figures("requests"), [str(each.requests_count) for each in found]),
        (figures("median |ln|"), [f"{each.median_log_ratio:.4f}" for each in found]),
        (figures("largest"), [f"{each.largest_log_ratio:.4f}" for each in found]),
        (figures("refusals changed"), [str(each.changed_refusals_count) for each in found]),
        (figures("ms before"), [f"{1e3 * each.median_seconds_before:.2f}" for each in found]),
        (figures("ms after"), [f"{1e3 * each.median_seconds_after:.2f}" for each in found]),
    )

"""Completion on machines that can be taken away, as JSON and as tables for people."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number, lasting, percent
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import (
    CompletionRow,
    EstimateCompletionResponse,
    HybridAnswer,
    OnDemandAnswer,
    Problem,
    RowStatus,
)

__all__ = ["document", "hours", "show"]

SHOWN_NOTES: Final = 12
NAMED: Final = 3
"""Offers that a note names; of more it says how many."""
HOUR_S: Final = 3600.0


def document(result: EstimateCompletionResponse) -> dict[str, Any]:
    """The JSON of an answer. What is not known is null."""
    chosen = result.choice
    rows = [
        fields_of(row) | {"frontier": at in result.frontier_rows, "chosen": chosen is not None and at == chosen.row}
        for at, row in enumerate(result.rows)
    ]
    known = fields_of(result, "rows", "frontier_rows", "choice", "no_choice_why")
    choice = None if chosen is None else fields_of(chosen) | {"name": result.rows[chosen.row].name}
    return {"offers": rows, "choice": choice, "no_choice_why": result.no_choice_why or None} | known


def hours(seconds: float | None) -> str:
    """A time in hours."""
    return format_number(None if seconds is None else seconds / HOUR_S)


def show(result: EstimateCompletionResponse) -> None:
    """Print the offers, the one to take and why, and what else was asked."""
    _offers(result)
    if result.on_demand is not None:
        _on_demand(result.on_demand)
    if result.hybrid is not None:
        _hybrid(result.hybrid)


def _offers(result: EstimateCompletionResponse) -> None:
    answered = [(at, row) for at, row in enumerate(result.rows) if row.status is RowStatus.ANSWERED]
    chosen = None if result.choice is None else result.choice.row
    if answered:
        rows = [row for _, row in answered]
        times, costs = ([getattr(row, name) for row in rows] for name in ("time_seconds", "cost"))
        print_columns(
            (words(""), [_mark(at, chosen, result) for at, _ in answered]),
            (words("offer"), [row.name for row in rows]),
            (words("devices", 9), [_devices(row) for row in rows]),
            (figures("hours", 1), [hours(found and found.mean) for found in times]),
            (figures("p90 hours", 2), [hours(found and found.p90) for found in times]),
            (figures("cost", 1), [format_number(found and found.mean) for found in costs]),
            (figures("p90 cost", 4), [format_number(found and found.p90) for found in costs]),
            (figures("losses", 5), [format_number(row.revocations_mean, 3) for row in rows]),
            (figures("in time", 2), [percent(row.deadline_probability) for row in rows]),
            (figures("never", 3), [percent(row.failure_probability) for row in rows]),
            (figures("saves every", 8), [_saves(row) for row in rows]),
            title=f"Completion, by {result.estimator} {result.estimator_version}",
        )
        say("* nothing else beats it in cost, time and risk; > the one to take.")
    for row in result.rows:
        if row.status is not RowStatus.ANSWERED:
            say(f"{row.name}: refused, {(row.problem or Problem()).message}.")
    if result.choice is not None:
        say(f"Take {result.choice.why}.")
    elif result.no_choice_why:
        say(f"No offer is chosen: {result.no_choice_why}.")
    _notes(result)


def _mark(at: int, chosen: int | None, result: EstimateCompletionResponse) -> str:
    return ("*" if at in result.frontier_rows else "") + (">" if at == chosen else "")


def _devices(row: CompletionRow) -> str:
    nodes = "" if row.nodes == row.workers else f" on {row.nodes} nodes"
    return f"{row.workers} {' + '.join(row.device_names) or 'workers'}{nodes}"


def _saves(row: CompletionRow) -> str:
    saves = row.checkpoints
    if saves is None:
        return "-"
    return (
        "at the end" if saves.interval_seconds >= row.ideal_seconds * (1.0 - 1e-9) else lasting(saves.interval_seconds)
    )


def _notes(result: EstimateCompletionResponse) -> None:
    """Each once, with the offers that it is of where these are not all."""
    told: dict[str, list[str]] = {}
    for row in result.rows:
        for warning in row.warnings:
            told.setdefault(warning.message, []).append(row.name)
    for message, names in list(told.items())[:SHOWN_NOTES]:
        few = ", ".join(names) if len(names) <= NAMED else f"{len(names)} of {len(result.rows)} offers"
        whose = "" if len(names) == len(result.rows) else f" ({few})"
        say(f"Note: {message}{whose}.")
    if len(told) > SHOWN_NOTES:
        say(f"{len(told) - SHOWN_NOTES} more notes are in the JSON.")


def _on_demand(found: OnDemandAnswer) -> None:
    say()
    names = [
        each.rule if each.until_seconds is None else f"timed, {lasting(each.until_seconds)}" for each in found.rules
    ]
    print_columns(
        (words("rule"), names),
        (figures("cost", 1), [format_number(each.cost_mean) for each in found.rules]),
        (figures("p90 cost", 3), [format_number(each.cost_p90) for each in found.rules]),
        (figures("of on demand", 2), [percent(each.cost_ratio) for each in found.rules]),
        (figures("late", 1), [percent(each.late_ratio) for each in found.rules]),
        (figures("hours", 4), [hours(each.time_mean_seconds) for each in found.rules]),
        (figures("on spot", 5), [hours(each.spot_mean_seconds) for each in found.rules]),
        (figures("on demand", 6), [hours(each.on_demand_mean_seconds) for each in found.rules]),
        title=f"When to pay for on demand: spot is there {percent(found.available_ratio)} of the time",
    )
    say(f"Take {found.rule}: {found.why}.")
    latest = lasting(found.latest_switch_seconds)
    say(f"Ask for on demand {latest} after the start at the latest, if nothing was done by then.")


def _hybrid(found: HybridAnswer) -> None:
    say()
    if found.problem is not None:
        say(f"When to switch: refused, {found.problem.message}.")
        return
    print_columns(
        (figures("synchronous share"), [f"{each.fraction:.4g}" for each in found.points]),
        (figures("hours", 1), [hours(each.time_seconds) for each in found.points]),
        (words("in time", 2), ["-" if each.in_time is None else _yes(each.in_time) for each in found.points]),
        (figures("accuracy seen", 3), [format_number(each.measured_accuracy) for each in found.points]),
        title="Synchronous first, then asynchronous",
    )
    if found.latest_fraction is not None:
        say(f"In time up to a share of {format_number(found.latest_fraction, 3)}.")
    if found.feasible_fractions:
        listed = ", ".join(f"{share:g}" for share in found.feasible_fractions)
        take = "none of them in time" if found.chosen_fraction is None else f"take {found.chosen_fraction:g}"
        say(f"Runs reached the accuracy with {listed}: {take}.")
    if found.next_fraction is not None:
        say(f"Next time try {found.next_fraction:.3g}.")
    for policy in found.straggler_policies:
        dropped = f" the slowest {policy.dropped_count}" if policy.dropped_count else ""
        say(f"Slow workers, {policy.policy}{dropped}: {lasting(policy.time_seconds)}.")
    for warning in found.warnings:
        say(f"Note: {warning.message}.")


def _yes(value: bool) -> str:
    return "yes" if value else "no"

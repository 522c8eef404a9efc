"""Completion on machines that can be taken away, as JSON and as tables for people."""

from __future__ import annotations

from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.notes import show_notes
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

NAMED_OFFERS: Final = 3
"""Offers that a note names; of more it says how many."""
HOUR_S: Final = 3600.0


def document(result: EstimateCompletionResponse) -> dict[str, Any]:
    """The JSON of an answer. What is not known is null."""
    choice_of_row = result.choice
    rows = [
        fields_of(row)
        | {"frontier": at in result.frontier_rows, "chosen": choice_of_row is not None and at == choice_of_row.row}
        for at, row in enumerate(result.rows)
    ]
    fields = fields_of(result, "rows", "frontier_rows", "choice", "no_choice_why")
    choice = None if choice_of_row is None else fields_of(choice_of_row) | {"name": result.rows[choice_of_row.row].name}
    return {"offers": rows, "choice": choice, "no_choice_why": result.no_choice_why or None} | fields


def hours(seconds: float | None) -> str:
    """A time in hours."""
    return format_number(None if seconds is None else seconds / HOUR_S)


def headline(result: EstimateCompletionResponse) -> str:
    """The recommendation in one sentence."""
    if result.choice is None:
        return f"None of {len(result.rows)} offers is recommended."
    return f"Recommended: {result.choice.why}."


def show(result: EstimateCompletionResponse, *, verbose: bool) -> None:
    """Print the offers, the recommended one and why, and the answers to other parts of the question."""
    _offers(result, verbose=verbose)
    if result.on_demand is not None:
        _on_demand(result.on_demand)
    if result.hybrid is not None:
        _hybrid(result.hybrid)


def _offers(result: EstimateCompletionResponse, *, verbose: bool) -> None:
    answered = [(at, row) for at, row in enumerate(result.rows) if row.status is RowStatus.ANSWERED]
    chosen_row = None if result.choice is None else result.choice.row
    if answered:
        rows = [row for _, row in answered]
        times, costs = ([getattr(row, name) for row in rows] for name in ("time_seconds", "cost"))
        print_columns(
            (words(""), [_mark(at, chosen_row, result) for at, _ in answered]),
            (words("offer"), [row.name for row in rows]),
            (words("devices", 9), [_devices(row) for row in rows]),
            (figures("hours", 1), [hours(quantity and quantity.mean) for quantity in times]),
            (figures("p90 hours", 2), [hours(quantity and quantity.p90) for quantity in times]),
            (figures("cost", 1), [format_number(quantity and quantity.mean) for quantity in costs]),
            (figures("p90 cost", 4), [format_number(quantity and quantity.p90) for quantity in costs]),
            (figures("losses", 5), [format_number(row.revocations_mean, 3) for row in rows]),
            (figures("in time", 2), [percent(row.deadline_probability) for row in rows]),
            (figures("never", 3), [percent(row.failure_probability) for row in rows]),
            (figures("saves every", 8), [_saves(row) for row in rows]),
            title=f"Completion, by {result.estimator} {result.estimator_version}",
        )
        say("*: no other offer is better in cost, time and risk; >: recommended.")
    for row in result.rows:
        if row.status is not RowStatus.ANSWERED:
            say(f"{row.name}: refused: {(row.problem or Problem()).message}.")
    if result.choice is not None:
        say(f"Take {result.choice.why}.")
    elif result.no_choice_why:
        say(f"No offer is recommended: {result.no_choice_why}.")
    _notes(result, verbose=verbose)


def _mark(at: int, chosen_row: int | None, result: EstimateCompletionResponse) -> str:
    return ("*" if at in result.frontier_rows else "") + (">" if at == chosen_row else "")


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


def _notes(result: EstimateCompletionResponse, *, verbose: bool) -> None:
    """Each once, with the offers that it is of where these are not all."""
    offers_by_note: dict[tuple[str, str], list[str]] = {}
    for row in result.rows:
        for warning in row.warnings:
            offers_by_note.setdefault((warning.reason, warning.message), []).append(row.name)
    notes = []
    for (reason, message), names in offers_by_note.items():
        few = ", ".join(names) if len(names) <= NAMED_OFFERS else f"{len(names)} of {len(result.rows)} offers"
        whose = "" if len(names) == len(result.rows) else f" ({few})"
        notes.append((reason, f"{message}{whose}."))
    show_notes(notes, verbose=verbose)


def _on_demand(answer: OnDemandAnswer) -> None:
    say()
    names = [
        each.rule if each.until_seconds is None else f"timed, {lasting(each.until_seconds)}" for each in answer.rules
    ]
    print_columns(
        (words("rule"), names),
        (figures("cost", 1), [format_number(each.cost_mean) for each in answer.rules]),
        (figures("p90 cost", 3), [format_number(each.cost_p90) for each in answer.rules]),
        (figures("of on demand", 2), [percent(each.cost_ratio) for each in answer.rules]),
        (figures("late", 1), [percent(each.late_ratio) for each in answer.rules]),
        (figures("hours", 4), [hours(each.time_mean_seconds) for each in answer.rules]),
        (figures("on spot", 5), [hours(each.spot_mean_seconds) for each in answer.rules]),
        (figures("on demand", 6), [hours(each.on_demand_mean_seconds) for each in answer.rules]),
        title=f"When to use on demand: spot is available {percent(answer.available_ratio)} of the time",
    )
    say(f"Take {answer.rule}: {answer.why}.")
    latest = lasting(answer.latest_switch_seconds)
    say(f"If nothing is done by then, switch to on demand at the latest {latest} after the start.")


def _hybrid(answer: HybridAnswer) -> None:
    say()
    if answer.problem is not None:
        say(f"When to switch: refused: {answer.problem.message}.")
        return
    print_columns(
        (figures("synchronous share"), [f"{each.fraction:.4g}" for each in answer.points]),
        (figures("hours", 1), [hours(each.time_seconds) for each in answer.points]),
        (words("in time", 2), ["-" if each.in_time is None else _yes(each.in_time) for each in answer.points]),
        (figures("accuracy", 3), [format_number(each.measured_accuracy) for each in answer.points]),
        title="Synchronous first, then asynchronous",
    )
    if answer.latest_fraction is not None:
        say(f"In time up to a synchronous share of {format_number(answer.latest_fraction, 3)}.")
    if answer.feasible_fractions:
        fractions = ", ".join(f"{share:g}" for share in answer.feasible_fractions)
        take = "none of them in time" if answer.chosen_fraction is None else f"take {answer.chosen_fraction:g}"
        say(f"Runs reached the accuracy with shares of {fractions}: {take}.")
    if answer.next_fraction is not None:
        say(f"Try a share of {answer.next_fraction:.3g} next.")
    for policy in answer.straggler_policies:
        drop_count = f" the slowest {policy.dropped_count}" if policy.dropped_count else ""
        say(f"Slow workers, {policy.policy}{drop_count}: {lasting(policy.time_seconds)}.")
    for warning in answer.warnings:
        say(f"Note: {warning.message}.")


def _yes(value: bool) -> str:
    return "yes" if value else "no"

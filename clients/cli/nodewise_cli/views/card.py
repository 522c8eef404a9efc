"""The card of a run, as JSON, as a table for people, and as Markdown for tickets and pull requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from nodewise_cli.console import print_line, say
from nodewise_cli.views.numbers import format_number, gibibytes, lasting, percent
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.spot import hours
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import (
    CompletionRow,
    CompletionSpread,
    EstimateRunRequest,
    EstimateRunResponse,
    MemoryFit,
    Problem,
    RowStatus,
    RunQuantity,
)

__all__ = ["Line", "document", "headline", "lines_of", "problem_of", "show", "show_markdown"]

JOULES_PER_KWH: Final = 3.6e6
SHOWN_NOTES: Final = 3
FITS: Final = {
    MemoryFit.FITS: "yes",
    MemoryFit.UNSURE: "probably: the upper bound does not",
    MemoryFit.EXCEEDED: "no",
}


class Line(NamedTuple):
    """A figure with its value, its 90 % interval, and what is unsure about it."""

    figure: str
    value: str
    interval: str = ""
    unsure: str = ""


def document(result: EstimateRunResponse) -> dict[str, Any]:
    """The JSON of a card. What is not known is null."""
    return fields_of(result)


def problem_of(result: EstimateRunResponse) -> Problem | None:
    """Why the run cannot be estimated; None = it can."""
    completion = result.completion or CompletionRow()
    return None if completion.status is RowStatus.ANSWERED else completion.problem or Problem()


def show(name: str, request: EstimateRunRequest, result: EstimateRunResponse, currency: str) -> None:
    """Print the card."""
    say(headline(name, request, result, currency), bold=True)
    lines = list(lines_of(request, result, currency))
    print_columns(
        (words("figure", 0), [line.figure for line in lines]),
        (figures("value", 0), [line.value for line in lines]),
        (figures("90 % interval", 1), [line.interval for line in lines]),
        (words("unsure", 2), [line.unsure for line in lines]),
    )
    for each in result.assumptions:
        say(f"Assumed: {each.field} {each.value:,.6g}: {each.why}.")
    for message in _notes(result):
        say(f"Note: {message}")


def show_markdown(name: str, request: EstimateRunRequest, result: EstimateRunResponse, currency: str) -> None:
    """Print the card as Markdown."""
    print_line(f"**{headline(name, request, result, currency)}**\n")
    print_line("| figure | value | 90 % interval | unsure |\n|---|---:|---:|---|")
    for line in lines_of(request, result, currency):
        print_line(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |")
    print_line()
    for each in result.assumptions:
        print_line(f"- Assumed: `{each.field}` {each.value:,.6g}: {each.why}.")
    for message in _notes(result):
        print_line(f"- Note: {message}")


def _notes(result: EstimateRunResponse) -> list[str]:
    """The first warnings, each once."""
    warnings = (*(result.predictions.warnings if result.predictions else ()), *_completion(result).warnings)
    messages = list(dict.fromkeys(warning.message for warning in warnings))
    more = f"{len(messages) - SHOWN_NOTES} more notes are in the JSON."
    return messages if len(messages) <= SHOWN_NOTES else [*messages[:SHOWN_NOTES], more]


def _completion(result: EstimateRunResponse) -> CompletionRow:
    return result.completion or CompletionRow()


def headline(name: str, request: EstimateRunRequest, result: EstimateRunResponse, currency: str) -> str:
    """The card in one sentence."""
    completion, time = _completion(result), _completion(result).time_seconds
    problem = problem_of(result)
    if problem is not None or time is None:
        return f"{name}: {(problem or Problem()).message}."
    devices = f"{completion.workers:,} {' + '.join(completion.device_names) or 'workers'}"
    parts = [f"{lasting(time.mean)} on average, 90 % of the runs by {lasting(time.p90)}"]
    if completion.cost is not None:
        parts.append(f"cost {format_number(completion.cost.mean)} {currency}".rstrip())
    if completion.deadline_probability is not None:
        parts.append(f"{percent(completion.deadline_probability)} by {lasting(request.deadline_seconds)}")
    if result.energy is not None and result.energy.joules is not None:
        parts.append(f"{format_number(result.energy.joules.value / JOULES_PER_KWH)} kWh")
        if result.energy.co2_grams is not None:
            parts.append(f"{format_number(result.energy.co2_grams.value / 1e3)} kg of CO2")
    nodes = "1 node" if completion.nodes == 1 else f"{completion.nodes:,} nodes"
    return f"{name} on {nodes} with {devices}: {'; '.join(parts)}."


def lines_of(request: EstimateRunRequest, result: EstimateRunResponse, currency: str) -> Iterator[Line]:
    """The figures of the card."""
    doubts = {each.figure: each.why for each in result.doubts}
    yield _memory_line(result, doubts.get("memory", ""))
    completion = _completion(result)
    if problem_of(result) is not None:
        return
    yield _spread_line("time, h", completion.time_seconds, doubts.get("time", ""), 3600.0)
    yield Line("time at the predicted speed without failures, h", hours(completion.ideal_seconds))
    if completion.deadline_probability is not None:
        deadline = f"chance to be done by {lasting(request.deadline_seconds)}"
        yield Line(deadline, percent(completion.deadline_probability), unsure=doubts.get("deadline", ""))
    if completion.cost is not None:
        yield _spread_line(f"cost {currency}".rstrip(), completion.cost, doubts.get("cost", ""))
    yield Line("failures", format_number(completion.revocations_mean, 3))
    saves = completion.checkpoints
    if saves is not None:
        often = saves.interval_seconds < completion.ideal_seconds * (1.0 - 1e-9)
        every = f"every {lasting(saves.interval_seconds)}" if often else "at the end"
        yield Line(
            f"checkpoints of {lasting(saves.seconds)}", every, unsure="the best interval" if saves.chosen else ""
        )
    energy = result.energy
    if energy is None:
        yield Line("energy", "-", unsure=doubts.get("energy", ""))
        return
    yield _quantity_line(f"power of a device that computes {percent(energy.compute_ratio)}, W", energy.device_watts)
    yield _quantity_line("energy of devices, J a sample", energy.device_joules_per_sample)
    yield _quantity_line("energy, kWh", energy.joules, doubts.get("energy", ""), JOULES_PER_KWH)
    if energy.co2_grams is not None:
        yield _quantity_line("CO2, kg", energy.co2_grams, doubts.get("co2", ""), 1e3)


def _memory_line(result: EstimateRunResponse, unsure: str) -> Line:
    memory = result.memory
    if memory is None:
        return Line("fits into memory", "not known", unsure=unsure)
    of = "" if memory.capacity_bytes is None else f" of {gibibytes(memory.capacity_bytes)}"
    bounds = (memory.lower_bytes, memory.upper_bytes)
    interval = "" if None in bounds else " to ".join(map(gibibytes, bounds))
    return Line(
        f"fits into memory: {FITS[memory.fit or MemoryFit.FITS]}",
        f"{gibibytes(memory.bytes)}{of} GiB",
        interval,
        unsure,
    )


def _spread_line(figure: str, spread: CompletionSpread | None, unsure: str, unit: float = 1.0) -> Line:
    if spread is None or spread.mean is None:
        return Line(figure, "-", unsure="more runs never end than end")
    p90 = "" if spread.p90 is None else f"90 % by {format_number(spread.p90 / unit)}"
    return Line(figure, format_number(spread.mean / unit), p90, unsure)


def _quantity_line(figure: str, quantity: RunQuantity | None, unsure: str = "", unit: float = 1.0) -> Line:
    if quantity is None:
        return Line(figure, "-")
    lower, upper = (format_number(value / unit) for value in (quantity.lower, quantity.upper))
    return Line(figure, format_number(quantity.value / unit), f"{lower} to {upper}", unsure)

"""Plans as JSON and for people: one screen that says what is best, why, what binds, what would change it, what else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.inputs.configurations import csv_row
from nodewise_cli.views.notes import show_notes
from nodewise_cli.views.numbers import format_number, gibibytes, lasting
from nodewise_cli.views.plain import fields_of, plain
from nodewise_cli.views.predict import revision_of, row_document, share_used
from nodewise_cli.views.table import Column, figures, print_columns, words
from nodewise_client import (
    PlanAlternative,
    PlanAnswer,
    PlanExplanation,
    Planned,
    PlanRejection,
    Prediction,
    numbers_by_name,
)

__all__ = ["Capacities", "describe", "document", "figures_of", "headline", "plan_row", "show"]

Capacities = Mapping[str, float]
"""Bytes of memory by device name, as the question has it."""

SHOWN_POINTS: Final = 10
"""Points of the frontier that a reader is shown; all of them are in the JSON."""
SHOWN_ALTERNATIVES: Final = 6
SHOWN_REJECTIONS: Final = 4
LEAST_SHARE: Final = 0.005
"""Parts of a step below half a percent are not listed."""

_HEADINGS: Final = {
    "device": "device",
    "nodes": "nodes",
    "workers": "devices",
    "parameter_servers": "servers",
    "sync": "sync",
    "global_batch": "batch",
    "tensor_parallel": "t",
    "pipeline_parallel": "p",
    "context_parallel": "c",
    "expert_parallel": "x",
    "data_parallel": "d",
    "batch_per_worker": "micro",
    "interleave": "chunks",
    "recompute": "recompute",
    "sequence_parallel": "SP",
    "zero_stage": "ZeRO",
    "precision": "precision",
}
_CONFIGURATION_NAMES: Final = (*_HEADINGS, "accumulation")
"""What the JSON says of a configuration."""
_OTHERWISE: Final = ("configurations", "predictions", "recommendation", "frontier_rows", "frontier_count", "basis")
"""What the JSON says of a plan in another way than the contract."""
_ALWAYS: Final = frozenset({"nodes", "workers", "data_parallel"})
_WORDS: Final = frozenset({"device", "recompute", "sync", "precision"})
_NOTHING: Final = csv_row({})
_DEGREES: Final = {f"{word}_parallel": word for word in ("tensor", "pipeline", "context", "expert", "data")}


def document(result: PlanAnswer, capacities: Capacities) -> dict[str, Any]:
    """The JSON of a plan. What is not known is null."""
    recommendation, fields = result.recommendation, fields_of(result, *_OTHERWISE)
    return fields | {
        "best": None if result.best is None else plan_row(result.best, capacities),
        "rule": None if recommendation is None else recommendation.rule,
        "why": None if recommendation is None else recommendation.why,
        "numbers": {} if recommendation is None else numbers_by_name(recommendation.numbers),
        "frontier": [plan_row(entry, capacities) for entry in result.frontier],
        "frontier_count": result.frontier_count,
        "rejections": [_rejection(entry) for entry in result.rejections],
        "explanation": None if result.explanation is None else _explain(result.explanation),
        "warnings": plain(result.warnings),
        "revision": None if result.basis is None else revision_of(result.basis),
    }


def _rejection(rejection: PlanRejection) -> dict[str, Any]:
    return fields_of(rejection, "configurations_count") | {"count": rejection.configurations_count}


def _explain(explanation: PlanExplanation) -> dict[str, Any]:
    return fields_of(explanation) | {
        "alternatives": [_alternative(each) for each in explanation.alternatives],
        "binding": [_rejection(each) for each in explanation.binding],
    }


def _alternative(alternative: PlanAlternative) -> dict[str, Any]:
    renamed_fields = {"change": alternative.time_change_ratio}
    return (
        fields_of(alternative, "time_change_ratio")
        | renamed_fields
        | ({} if alternative.term else {"term": None, "term_s": None})
    )


def headline(result: PlanAnswer) -> str:
    """The best configuration in one sentence."""
    if result.best is None:
        return "No configuration is feasible."
    return f"{describe(result.best)}: {format_number(result.best.prediction.samples_per_second)} samples/s."


def show(result: PlanAnswer, capacities: Capacities, tokens: float | None = None, *, verbose: bool) -> None:
    """Print the best, the reasons and the frontier; ``tokens`` are the work, where it was stated in tokens."""
    say(
        f"{result.space_count:,} configurations: {result.evaluated_count:,} evaluated, "
        f"{result.feasible_count:,} of these feasible, {result.pruned_count:,} left out with a reason; "
        f"{format_number(result.search_seconds, 3)} s, by {result.estimator} {result.estimator_version}."
    )
    if not result.complete:
        say("The time limit ended the search: this is the best so far.")
    if result.best is not None:
        _best(result, result.best, capacities, tokens)
    _explanation(result)
    _frontier(result, capacities)
    for rejection in result.rejections[:SHOWN_REJECTIONS]:
        say(f"Left out ({rejection.constraint}): {rejection.message}.")
    if len(result.rejections) > SHOWN_REJECTIONS:
        say(f"Left out: {len(result.rejections) - SHOWN_REJECTIONS} more reasons in the JSON.")
    notices = [each for each in result.warnings if not each.rows or (result.best is not None and 0 in each.rows)]
    show_notes(((each.reason, f"{each.message}.") for each in notices), verbose=verbose)


def _memory(prediction: Prediction, capacity: float | None) -> str:
    """GiB of a device, with the 90 % interval where there is one, and what the device has."""
    bounds = [prediction.extra.get(f"memory_{end}_bytes") for end in ("lower", "upper")]
    interval = "" if None in bounds else f" (90 %: {gibibytes(bounds[0])} to {gibibytes(bounds[1])})"
    whole = "" if capacity is None else f" of {gibibytes(capacity)}"
    return f"{gibibytes(prediction.memory_bytes)}{interval}{whole} GiB on each device"


def _tokens_per_s(prediction: Prediction) -> float | None:
    tokens = prediction.extra.get("sample_tokens")
    return tokens * prediction.samples_per_second if tokens and prediction.samples_per_second else None


def figures_of(plan: Planned, capacities: Capacities, tokens: float | None = None) -> str:
    """Rates, memory and time of a layout in one sentence."""
    prediction = plan.prediction
    rate = f"{format_number(prediction.samples_per_second)} samples/s" if prediction.samples_per_second else ""
    lower, upper = prediction.lower_samples_per_second, prediction.upper_samples_per_second
    if lower is not None and upper is not None:
        interval = f"{format_number(lower, 3)} to {format_number(upper, 3)}"
        rate += f" ({100 * (prediction.interval_coverage or 0):.3g} %: {interval})"
    speed, mfu, work = _tokens_per_s(prediction), share_used(prediction), "done"
    if tokens is not None:
        work = f"{tokens:.4g} tokens"
    parts = [
        rate,
        ""
        if speed is None
        else f"{format_number(speed)} tokens/s, {format_number(speed / prediction.workers)} on each device",
        "" if mfu == "-" else f"MFU {mfu}",
        "" if prediction.memory_bytes is None else _memory(prediction, _capacity(plan, capacities)),
        "" if prediction.finish_seconds is None else f"{work} in {lasting(prediction.finish_seconds)}",
        "" if prediction.cost is None else f"cost {format_number(prediction.cost)}",
    ]
    return f"{', '.join(filter(None, parts))}."


def _capacity(plan: Planned, capacities: Capacities) -> float | None:
    return capacities.get(str(plan.configuration.get("devices", "")))


def _best(result: PlanAnswer, best: Planned, capacities: Capacities, tokens: float | None) -> None:
    prediction = best.prediction
    rule = "" if result.recommendation is None else f" ({result.recommendation.rule})"
    say()
    say(f"Best{rule}: {describe(best)}.")
    say(f"  {figures_of(best, capacities, tokens)}")
    total = prediction.step_seconds
    if prediction.breakdown_seconds and total:
        parts = sorted(prediction.breakdown_seconds.items(), key=lambda part: -part[1])
        shares = [
            f"{name.replace('_', ' ')} {100 * each / total:.0f} %" for name, each in parts if each > LEAST_SHARE * total
        ]
        say(f"  A step of {format_number(total)} s: {', '.join(shares)}.")
    if result.recommendation is not None:
        say(f"  Why: {result.recommendation.why}.")


def _explanation(result: PlanAnswer) -> None:
    explanation = result.explanation
    if explanation is None:
        return
    if explanation.alternatives:
        say()
        say("Alternatives that differ in one dimension, the closest first:")
        closest = sorted(explanation.alternatives, key=lambda each: (not each.fits, each.time_change_ratio))
        for alternative in closest[:SHOWN_ALTERNATIVES]:
            say(f"  {alternative.why}.")
        if len(closest) > SHOWN_ALTERNATIVES:
            say(f"  {len(closest) - SHOWN_ALTERNATIVES} more in the JSON.")
    say()
    for binding in explanation.binding:
        say(f"{_sentence(binding.message)}.")
    if not explanation.binding and explanation.complete:
        say("No constraint binds: none of those examined excludes a better configuration.")
    for each in explanation.sensitivities:
        speedup, change = each.speedup_ratio, _CHANGES.get(each.change, each.change)
        if speedup == 1.0:
            say(f"With {change}: no faster ({each.obstacle or 'the same configuration is still the best'}).")
        else:
            gain = "no configuration is feasible" if speedup is None else f"{100 * (speedup - 1):+.1f} % throughput"
            say(f"With {change}: {gain}; best is {each.best}.")
    if not explanation.complete:
        say("The time limit ended the explanation before it was complete.")


_CHANGES: Final = {
    "link_x2": "links twice as fast",
    "memory_x2": "twice the memory",
    "one_more_node": "one more node",
    "nodes_x2": "twice the nodes",
}
"""What was changed, for people."""


def _sentence(text: str) -> str:
    """With a capital, unless it begins with a field's name."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def _frontier(result: PlanAnswer, capacities: Capacities) -> None:
    """Of time, devices and memory: the fastest of each number of devices, evenly thinned."""
    if not result.frontier:
        return
    fastest: dict[int, Planned] = {}
    for point in result.frontier:
        configuration = csv_row(point.configuration)
        # Points are in order of devices and time.
        fastest.setdefault(configuration["workers"] + configuration["parameter_servers"], point)
    rows = list(fastest.values())
    if len(rows) > SHOWN_POINTS:
        rows = [rows[place * (len(rows) - 1) // (SHOWN_POINTS - 1)] for place in range(SHOWN_POINTS)]
    say()
    _table(
        f"Frontier: the fastest for each number of devices ({len(rows)} of {result.frontier_count} points)",
        rows,
        capacities,
    )


def describe(plan: Planned) -> str:
    """A layout and its devices in words."""
    configuration = csv_row(plan.configuration)
    degrees = " x ".join(f"{word} {configuration[name]}" for name, word in _DEGREES.items() if configuration[name] > 1)
    batch = f" of {configuration['global_batch']}" if configuration["global_batch"] else ""
    parts = [
        degrees or "one device",
        f"micro-batch {configuration['batch_per_worker']}{batch}",
        configuration["interleave"] > 1 and f"{configuration['interleave']} chunks in each stage",
        configuration["recompute"] and f"recomputation {configuration['recompute']}",
        configuration["sequence_parallel"] and "sequence parallel",
        configuration["zero_stage"] and f"ZeRO {configuration['zero_stage']}",
        configuration["precision"],
    ]
    where = f"on {_count(configuration['nodes'], 'node')} with {configuration['workers']} {configuration['device']}"
    if configuration["parameter_servers"]:
        where += f" and {_count(configuration['parameter_servers'], 'parameter server')}, {configuration['sync']}"
    return f"{', '.join(filter(None, parts))}, {where}"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _table(title: str, rows: Sequence[Planned], capacities: Capacities) -> None:
    """Columns in which all rows hold the default are left out."""
    configurations = [csv_row(row.configuration) for row in rows]
    names = [
        name for name in _HEADINGS if name in _ALWAYS or any(each[name] != _NOTHING[name] for each in configurations)
    ]
    if all(each["sync"] == "allreduce" for each in configurations):
        names.remove("sync")
    predictions = [row.prediction for row in rows]
    sizes = {_capacity(row, capacities) for row in rows} - {None}
    if len(sizes) == 1:
        title += f"; a device has {gibibytes(sizes.pop())} GiB"
    print_columns(
        *(
            ((words if name in _WORDS else figures)(_HEADINGS[name]), [_cell(each[name]) for each in configurations])
            for name in names
        ),
        (figures("step s", 2), [format_number(row.step_seconds) for row in predictions]),
        (figures("samples/s", 1), [format_number(row.samples_per_second) for row in predictions]),
        *_figures_column("tokens/s/device", [_per_device(row) for row in predictions]),
        *_figures_column("MFU", [share_used(row) for row in predictions]),
        (figures("GiB", 1), [gibibytes(row.memory_bytes) for row in predictions]),
        *_figures_column("time", [lasting(row.finish_seconds) for row in predictions]),
        (words("bottleneck"), [(row.bottleneck or "-").replace("_", " ") for row in predictions]),
        title=title,
    )


def _figures_column(heading: str, cells: list[str]) -> list[tuple[Column, list[str]]]:
    """A column of figures, where some row has one."""
    return [(figures(heading, 3), cells)] if set(cells) - {"-"} else []


def _per_device(prediction: Prediction) -> str:
    tokens = _tokens_per_s(prediction)
    return "-" if tokens is None else format_number(tokens / prediction.workers)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value or "-")


def plan_row(plan: Planned, capacities: Capacities) -> dict[str, Any]:
    """The JSON of a layout and its prediction."""
    configuration, tokens = csv_row(plan.configuration), _tokens_per_s(plan.prediction)
    return (
        row_document(plan.prediction)
        | {name: configuration[name] for name in _CONFIGURATION_NAMES}
        | {
            "tokens_per_s": tokens,
            "tokens_per_s_per_device": None if tokens is None else tokens / plan.prediction.workers,
            "device_memory_bytes": _capacity(plan, capacities),
        }
    )

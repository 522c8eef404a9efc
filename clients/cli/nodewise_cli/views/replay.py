"""Replays as JSON and for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodewise_cli.console import complain, say
from nodewise_cli.views.numbers import format_number, milliseconds
from nodewise_cli.views.plain import fields_of, plain, short
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, EdgeCounts, ReplayAnswer, ReplayedCollective

__all__ = ["document", "recorded_of", "say_truncated", "show", "truncated_traces", "warn"]


def document(result: ReplayAnswer) -> dict[str, Any]:
    """The JSON of a replay. What is not known is null."""
    clocks = zip(result.clock_offset_seconds, result.clock_uncertainty_seconds, _clock_ties(result))
    left_out = ("edges", "clock_offset_seconds", "clock_uncertainty_seconds", "clock_tied")
    return fields_of(result, *left_out, "warnings", "basis", "timeline", "recorded") | {
        **recorded_of(result),
        "clocks": [
            {"rank": rank, "offset_s": offset, "uncertainty_s": uncertainty if is_tied else None}
            for rank, (offset, uncertainty, is_tied) in zip((result.basis or DiagnosisBasis()).ranks, clocks)
        ],
    }


def recorded_of(result: ReplayAnswer | DiagnosisAnswer) -> dict[str, Any]:
    """The traces that were read, the diagnoser, and the evidence behind the graph's edges."""
    basis = result.basis or DiagnosisBasis()
    return fields_of(basis, "profile_id", "profile_revision", "peak_memory_bytes") | {
        "peak_rss_bytes": int(basis.peak_memory_bytes),
        "traces": [
            fields_of(trace) | {"warnings": [warning.message for warning in trace.warnings]} for trace in basis.traces
        ],
        "edges": {counts.kind: fields_of(counts, "kind") for counts in result.edges},
        "truncated": truncated_traces(result),
        "collectives": [_collective(warning) for warning in result.collectives],
        "warnings": [warning.message for warning in result.warnings],
    }


def truncated_traces(result: ReplayAnswer | DiagnosisAnswer) -> list[str]:
    """The traces behind an answer that end early, each with what was read of it."""
    return [
        f"the trace of rank {trace.rank} ends early, after {trace.events_count:,} events in {trace.steps_count:,} steps"
        for trace in (() if result.basis is None else result.basis.traces)
        if trace.counts.get("truncated")
    ]


def say_truncated(result: ReplayAnswer | DiagnosisAnswer) -> None:
    """Print first which traces are truncated."""
    for trace in truncated_traces(result):
        say(f"Limited: {trace}; later events are missing.")


def _clock_ties(result: ReplayAnswer) -> Sequence[bool]:
    """Of each rank, whether something ties its clock to the first one's."""
    return result.clock_tied or (True,) * len(result.clock_uncertainty_seconds)


def _collective(collective: ReplayedCollective) -> dict[str, Any]:
    names = (
        *("step_ordinal", "name", "kind", "group", "transfer_seconds", "end_spread_seconds", "arrival_seconds"),
        *("wait_seconds", "late_ranks", "margin_seconds"),
    )
    values = {short(name): plain(getattr(collective, name)) for name in names}
    return values | {
        "bytes": None if collective.bytes is None else int(collective.bytes),
        "ranks": list(collective.rank_numbers),
    }


def show(result: ReplayAnswer) -> None:
    """Print the verdict, the steps, and what it rests on."""
    say_truncated(result)
    say(_verdict(result))
    say()
    _steps(result)
    basis = result.basis or DiagnosisBasis()
    of = f" of {basis.world_size}" if basis.world_size else ""
    load, build, replay = (
        format_number(seconds, 3) for seconds in (basis.load_seconds, result.build_seconds, result.replay_seconds)
    )
    say(
        f"From {basis.events_count:,} events of {len(basis.ranks)}{of} ranks: {result.nodes_count:,} nodes; "
        f"read in {load} s, built in {build} s, replayed in {replay} s; by {basis.diagnoser} {basis.diagnoser_version}."
    )
    worst = max(
        (each for each, is_tied in zip(result.clock_uncertainty_seconds, _clock_ties(result)) if is_tied), default=0.0
    )
    if worst > 0:
        say(f"Clocks aligned to rank {basis.ranks[0]} within {_short(worst)}.")
    _edges(result.edges)
    warn(result)


def _verdict(result: ReplayAnswer) -> str:
    host, device = result.host_error_ratio, result.device_error_ratio
    if host is None and device is None:
        predictions = [step.predicted_host_seconds for step in result.steps if step.predicted_host_seconds]
        mean = sum(predictions) / len(predictions) if predictions else None
        return f"The changed step takes {milliseconds(mean)} ms{_open(result)}; its error is not known."
    parts = [
        f"{100 * error:.2g} % {what}"
        for error, what in ((host, "of the step"), (device, "on the devices"))
        if error is not None
    ]
    steps = "one step" if len(result.steps) == 1 else f"mean of {len(result.steps)} steps"
    errors = f"{' and '.join(parts)}, {steps}"
    if result.in_sample:
        return f"In-sample: the replay reproduces the recorded steps within {errors}. This does not measure accuracy."
    text = f"Steps that were not learned from are predicted within {errors}."
    if result.persistence_error_ratio is not None:
        text += f" The mean of the other steps is off by {100 * result.persistence_error_ratio:.2g} %."
    return text


def _open(result: ReplayAnswer) -> str:
    """What ranks that were not recorded leave open."""
    lower = [step.lower_host_seconds for step in result.steps if step.lower_host_seconds is not None]
    upper = [step.upper_host_seconds for step in result.steps if step.upper_host_seconds is not None]
    if not lower or not upper:
        return ""
    least, most = sum(lower) / len(lower), sum(upper) / len(upper)
    return f", {milliseconds(least)} to {milliseconds(most)} ms depending on the ranks that were not recorded"


def _steps(result: ReplayAnswer) -> None:
    columns = [(figures("step"), [str(step.step_ordinal) for step in result.steps])]
    # A step ends when its host and its devices end; the devices' part is shown if there is one.
    for what, label in (("host", ""), ("device", " device")):
        measured_s = [getattr(step, f"measured_{what}_seconds") for step in result.steps]
        predicted_s = [getattr(step, f"predicted_{what}_seconds") for step in result.steps]
        columns += [
            (figures(f"measured{label} ms"), [milliseconds(each) for each in measured_s]),
            (figures(f"predicted{label} ms"), [milliseconds(each) for each in predicted_s]),
            (figures(f"{label.strip() or 'step'} error"), [_error(*each) for each in zip(measured_s, predicted_s)]),
        ]
    print_columns(*columns)


def _error(measured_s: float | None, predicted_s: float | None) -> str:
    return "-" if not measured_s or predicted_s is None else f"{100 * (predicted_s / measured_s - 1):+.2f} %"


def _edges(edges: Sequence[EdgeCounts]) -> None:
    """Where the edges of the graph come from."""
    if edges:
        print_columns(
            (words("edges"), [each.kind.replace("_", " ") for each in edges]),
            (figures("found"), [f"{each.found_count:,}" for each in edges]),
            (figures("inferred"), [f"{each.inferred_count:,}" for each in edges]),
            (figures("missing"), [f"{each.missing_count:,}" for each in edges]),
        )


def warn(result: ReplayAnswer | DiagnosisAnswer) -> None:
    """Print the warnings on standard error."""
    for trace in () if result.basis is None else result.basis.traces:
        for warning in trace.warnings:
            complain(f"rank {trace.rank}: {warning.message}")
    for warning in result.warnings:
        complain(warning.message)


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"

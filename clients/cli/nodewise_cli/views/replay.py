"""Replays as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nodewise_cli.console import complain, say
from nodewise_cli.views.numbers import milliseconds, shown
from nodewise_cli.views.plain import fields_of, plain
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import DiagnosisBasis, EdgeCounts, Notice, ReplayAnswer, ReplayedCollective

__all__ = ["collectives_of", "document", "edges_of", "edges_table", "read_traces", "show", "warn"]


def document(result: ReplayAnswer) -> dict[str, Any]:
    """The JSON of a replay. What is not known is null."""
    basis = result.basis or DiagnosisBasis()
    return {
        "steps": plain(result.steps),
        "host_error": result.host_error_ratio,
        "device_error": result.device_error_ratio,
        "persistence_error": result.persistence_error_ratio,
        "kernel_start_p50_error_s": result.kernel_start_p50_error_seconds,
        "kernel_start_p95_error_s": result.kernel_start_p95_error_seconds,
        "in_sample": result.in_sample,
        "events": basis.events_count,
        "nodes": result.nodes_count,
        "ranks": list(basis.ranks),
        "world_size": basis.world_size,
        "load_s": basis.load_seconds,
        "build_s": result.build_seconds,
        "replay_s": result.replay_seconds,
        "peak_rss_bytes": int(basis.peak_memory_bytes),
        "edges": edges_of(result.edges),
        "clocks": [
            {"rank": rank, "offset_s": offset, "uncertainty_s": uncertainty if tied else None}
            for rank, offset, uncertainty, tied in zip(
                *(basis.ranks, result.clock_offset_seconds, result.clock_uncertainty_seconds), _tied(result)
            )
        ],
        "collectives": collectives_of(result.collectives),
        "counts": dict(result.counts),
        "traces": read_traces(basis),
        "warnings": [found.message for found in result.warnings],
        "diagnoser": basis.diagnoser,
        "diagnoser_version": basis.diagnoser_version,
    }


def read_traces(basis: DiagnosisBasis) -> list[dict[str, Any]]:
    """What was read, by rank."""
    return [fields_of(trace) | {"warnings": [found.message for found in trace.warnings]} for trace in basis.traces]


def _tied(result: ReplayAnswer) -> Sequence[bool]:
    """Of each rank, whether something ties its clock to the first one's."""
    return result.clock_tied or (True,) * len(result.clock_uncertainty_seconds)


def edges_of(edges: Iterable[EdgeCounts]) -> dict[str, Any]:
    """Edges by their kind."""
    return {counts.kind: fields_of(counts, "kind") for counts in edges}


def collectives_of(collectives: Iterable[ReplayedCollective]) -> list[dict[str, Any]]:
    """Exchanges, one after the other."""
    return [
        {
            "step": found.step_ordinal,
            "name": found.name,
            "kind": found.kind,
            "bytes": None if found.bytes is None else int(found.bytes),
            "group": found.group,
            "transfer_s": found.transfer_seconds,
            "end_spread_s": found.end_spread_seconds,
            "ranks": list(found.rank_numbers),
            "arrival_s": list(found.arrival_seconds),
            "wait_s": list(found.wait_seconds),
            "late_ranks": list(found.late_ranks),
            "margin_s": found.margin_seconds,
        }
        for found in collectives
    ]


def show(result: ReplayAnswer) -> None:
    """Print the verdict, the steps, and what it rests on."""
    say(_verdict(result))
    say()
    _steps(result)
    basis = result.basis or DiagnosisBasis()
    of = f" of {basis.world_size}" if basis.world_size else ""
    say(
        f"From {basis.events_count:,} events of {len(basis.ranks)}{of} ranks: {result.nodes_count:,} nodes; "
        f"read in {shown(basis.load_seconds, 3)} s, built in {shown(result.build_seconds, 3)} s, replayed in "
        f"{shown(result.replay_seconds, 3)} s; by {basis.diagnoser} {basis.diagnoser_version}."
    )
    worst = max((each for each, tied in zip(result.clock_uncertainty_seconds, _tied(result)) if tied), default=0.0)
    if worst > 0:
        say(f"Clocks aligned to rank {basis.ranks[0]} within {_short(worst)}.")
    edges_table(result.edges)
    warn(basis, result.warnings)


def _verdict(result: ReplayAnswer) -> str:
    host, device = result.host_error_ratio, result.device_error_ratio
    if host is None and device is None:
        predicted = [step.predicted_host_seconds for step in result.steps if step.predicted_host_seconds]
        mean = sum(predicted) / len(predicted) if predicted else None
        return f"The changed step takes {milliseconds(mean)} ms{_open(result)}; it was not measured: there is no error."
    parts = [
        f"{100 * error:.2g} % on the {what}"
        for error, what in ((host, "hosts"), (device, "devices"))
        if error is not None
    ]
    steps = "one step" if len(result.steps) == 1 else f"mean of {len(result.steps)} steps"
    errors = f"{' and '.join(parts)}, {steps}"
    if result.in_sample:
        return f"In-sample: the replay reproduces the recorded steps within {errors}. It says nothing of accuracy."
    text = f"Steps that were not learned from are predicted within {errors}."
    if result.persistence_error_ratio is not None:
        text += f" Taking each as the mean of the others errs by {100 * result.persistence_error_ratio:.2g} %."
    return text


def _open(result: ReplayAnswer) -> str:
    """What ranks that were not recorded leave open."""
    lower = [step.lower_host_seconds for step in result.steps if step.lower_host_seconds is not None]
    upper = [step.upper_host_seconds for step in result.steps if step.upper_host_seconds is not None]
    if not lower or not upper:
        return ""
    least, most = sum(lower) / len(lower), sum(upper) / len(upper)
    return f", {milliseconds(least)} to {milliseconds(most)} ms by what the ranks do that were not recorded"


def _steps(result: ReplayAnswer) -> None:
    print_table(
        [
            figures("step"),
            figures("measured host ms"),
            figures("predicted host ms"),
            figures("host error"),
            figures("measured device ms"),
            figures("predicted device ms"),
            figures("device error"),
        ],
        [
            [
                str(step.step_ordinal),
                milliseconds(step.measured_host_seconds),
                milliseconds(step.predicted_host_seconds),
                _error(step.measured_host_seconds, step.predicted_host_seconds),
                milliseconds(step.measured_device_seconds),
                milliseconds(step.predicted_device_seconds),
                _error(step.measured_device_seconds, step.predicted_device_seconds),
            ]
            for step in result.steps
        ],
    )


def _error(measured: float | None, predicted: float | None) -> str:
    return "-" if not measured or predicted is None else f"{100 * (predicted / measured - 1):+.2f} %"


def edges_table(edges: Sequence[EdgeCounts]) -> None:
    """Print where the edges of the graph come from."""
    if edges:
        print_table(
            [words("edges"), figures("found"), figures("inferred"), figures("missing")],
            [
                [
                    counts.kind.replace("_", " "),
                    f"{counts.found_count:,}",
                    f"{counts.inferred_count:,}",
                    f"{counts.missing_count:,}",
                ]
                for counts in edges
            ],
        )


def warn(basis: DiagnosisBasis, warnings: Sequence[Notice]) -> None:
    """Say on standard error what the reader should know."""
    for trace in basis.traces:
        for found in trace.warnings:
            complain(f"rank {trace.rank}: {found.message}")
    for found in warnings:
        complain(found.message)


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"

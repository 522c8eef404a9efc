"""Replays as JSON and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nodewise_cli.console import complain, print_table, say, shown
from nodewise_client import DiagnosisBasis, EdgeCounts, ReplayResult

__all__ = ["document", "edges_table", "milliseconds", "read_traces", "show", "warn"]


def document(result: ReplayResult) -> dict[str, Any]:
    """The JSON of a replay. What is not known is null."""
    basis = result.basis
    return {
        "steps": [asdict(step) for step in result.steps],
        "host_error": result.host_error,
        "device_error": result.device_error,
        "persistence_error": result.persistence_error,
        "kernel_start_p50_error_s": result.kernel_start_p50_error_s,
        "kernel_start_p95_error_s": result.kernel_start_p95_error_s,
        "in_sample": result.in_sample,
        "events": basis.events,
        "nodes": result.nodes,
        "ranks": list(basis.ranks),
        "world_size": basis.world_size or None,
        "load_s": basis.load_s,
        "build_s": result.build_s,
        "replay_s": result.replay_s,
        "peak_rss_bytes": basis.peak_memory_bytes,
        "edges": {kind: asdict(counts) for kind, counts in result.edges.items()},
        "clocks": [
            {"rank": rank, "offset_s": offset, "uncertainty_s": uncertainty if uncertainty >= 0 else None}
            for rank, offset, uncertainty in zip(basis.ranks, result.clock_offset_s, result.clock_uncertainty_s)
        ],
        "collectives": [asdict(found) for found in result.collectives],
        "counts": dict(result.counts),
        "traces": read_traces(basis),
        "warnings": list(result.warnings),
        "diagnoser": basis.diagnoser,
        "diagnoser_version": basis.diagnoser_version,
    }


def read_traces(basis: DiagnosisBasis) -> list[dict[str, Any]]:
    """What was read, by rank."""
    return [asdict(trace) for trace in basis.traces]


def show(result: ReplayResult) -> None:
    """Print the verdict, the steps, and what it rests on."""
    say(_verdict(result))
    say()
    _steps(result)
    basis = result.basis
    of = f" of {basis.world_size}" if basis.world_size else ""
    say(
        f"From {basis.events:,} events of {len(basis.ranks)}{of} ranks: {result.nodes:,} nodes; "
        f"read in {shown(basis.load_s, 3)} s, built in {shown(result.build_s, 3)} s, replayed in "
        f"{shown(result.replay_s, 3)} s; by {basis.diagnoser} {basis.diagnoser_version}."
    )
    if any(result.clock_uncertainty_s):
        worst = max(result.clock_uncertainty_s)
        if worst > 0:
            say(f"Clocks aligned to rank {basis.ranks[0]} within {_short(worst)}.")
    edges_table(result.edges)
    warn(basis, result.warnings)


def _verdict(result: ReplayResult) -> str:
    host, device = result.host_error, result.device_error
    if host is None and device is None:
        predicted = [step.predicted_host_s for step in result.steps if step.predicted_host_s]
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
    if result.persistence_error is not None:
        text += f" Taking each as the mean of the others errs by {100 * result.persistence_error:.2g} %."
    return text


def _open(result: ReplayResult) -> str:
    """What ranks that were not recorded leave open."""
    lower = [step.lower_host_s for step in result.steps if step.lower_host_s is not None]
    upper = [step.upper_host_s for step in result.steps if step.upper_host_s is not None]
    if not lower or not upper:
        return ""
    least, most = sum(lower) / len(lower), sum(upper) / len(upper)
    return f", {milliseconds(least)} to {milliseconds(most)} ms by what the ranks do that were not recorded"


def _steps(result: ReplayResult) -> None:
    print_table(
        [
            ("step", True),
            ("measured host ms", True),
            ("predicted host ms", True),
            ("error", True),
            ("measured device ms", True),
            ("predicted device ms", True),
            ("error", True),
        ],
        [
            [
                str(step.step),
                milliseconds(step.measured_host_s),
                milliseconds(step.predicted_host_s),
                _error(step.measured_host_s, step.predicted_host_s),
                milliseconds(step.measured_device_s),
                milliseconds(step.predicted_device_s),
                _error(step.measured_device_s, step.predicted_device_s),
            ]
            for step in result.steps
        ],
    )


def milliseconds(seconds: float | None) -> str:
    """A time for people; a dash where it is not known."""
    return shown(None if seconds is None else 1e3 * seconds)


def _error(measured: float | None, predicted: float | None) -> str:
    return "-" if not measured or predicted is None else f"{100 * (predicted / measured - 1):+.2f} %"


def edges_table(edges: Mapping[str, EdgeCounts]) -> None:
    """Print where the edges of the graph come from."""
    if edges:
        print_table(
            [("edges", False), ("found", True), ("inferred", True), ("missing", True)],
            [
                [kind.replace("_", " "), f"{counts.found:,}", f"{counts.inferred:,}", f"{counts.missing:,}"]
                for kind, counts in edges.items()
            ],
        )


def warn(basis: DiagnosisBasis, warnings: tuple[str, ...]) -> None:
    """Say on standard error what the reader should know."""
    for trace in basis.traces:
        for text in trace.warnings:
            complain(f"rank {trace.rank}: {text}")
    for text in warnings:
        complain(text)


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"

"""The cost of stragglers, as JSON and for people: the verdict, the shares, and a map of the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from nodewise_cli.console import print_line, say, width_of_output
from nodewise_cli.views.numbers import milliseconds
from nodewise_cli.views.plain import short
from nodewise_cli.views.table import figures, names, print_columns, words
from nodewise_job_traces.stragglers import PartSlowdown, StragglerAnalysis, Worker

__all__ = ["document", "show"]

SHOWN_ROWS: Final = 10
SHADES: Final = " ░▒▓█"
"""From no slowdown to that of the slowest worker."""


def document(analysis: StragglerAnalysis) -> dict[str, Any]:
    """The JSON of an analysis. What is not known is null."""
    return _fields(analysis)


def _fields(part: StragglerAnalysis | PartSlowdown | Worker) -> dict[str, Any]:
    entries = ((each.name, getattr(part, each.name)) for each in fields(part))
    return {short(name): list(map(_fields, value)) if isinstance(value, tuple) else value for name, value in entries}


def show(analysis: StragglerAnalysis) -> None:
    """Print the verdict, what explains the slowdown, and the map."""
    say(analysis.verdict)
    left_out = f", {analysis.steps_left_out} incomplete steps left out" if analysis.steps_left_out else ""
    step, ideal = milliseconds(analysis.step_seconds), milliseconds(analysis.ideal_step_seconds)
    say(
        f"A step takes {step} ms, an ideal step {ideal} ms (mean of {analysis.steps} steps{left_out}); delays between "
        f"operations slow it down by a factor of {analysis.launch_slowdown_ratio:.3f}."
    )
    if analysis.foreseen_error_ratio is not None and analysis.persistence_error_ratio is not None:
        say(
            f"Prediction of a step from the others: {analysis.foreseen_error_ratio:.1%} error; their mean: "
            f"{analysis.persistence_error_ratio:.1%} error."
        )
    say()
    correlation = analysis.forward_backward_correlation
    causes = [
        ("slowest 3 % of workers", analysis.slowest_workers_share),
        ("last stage", analysis.last_stage_share),
        ("micro-batches of different lengths", analysis.sequence_length_share),
        ("garbage collection", analysis.garbage_collection_share),
    ]
    print_columns(
        (words("cause"), [cause for cause, _ in causes]),
        (figures("% of slowdown"), [f"{100 * share:.1f}" for _, share in causes]),
        title="Share of the slowdown that each cause explains (causes overlap)",
    )
    if correlation is not None:
        say(
            f"Forward and backward times of micro-batches have a correlation of {correlation:.2f}; from 0.9 on, their "
            "lengths differ."
        )
        say()
    _scores("Operations", "operation", analysis.operations)
    _scores("Stages", "stage", sorted(analysis.stages, key=lambda one: -one.slowdown_ratio))
    print_columns(
        (figures("rank"), [str(one.rank) for one in analysis.workers[:SHOWN_ROWS]]),
        (figures("stage"), [str(one.stage) for one in analysis.workers[:SHOWN_ROWS]]),
        (figures("data-parallel"), [str(one.data_parallel_index) for one in analysis.workers[:SHOWN_ROWS]]),
        (figures("slowdown"), [f"{one.slowdown_ratio:.3f}" for one in analysis.workers[:SHOWN_ROWS]]),
        (
            figures("among peers"),
            [
                "-" if one.peer_slowdown_ratio is None else f"{one.peer_slowdown_ratio:.3f}"
                for one in analysis.workers[:SHOWN_ROWS]
            ],
        ),
        title=f"Workers ({min(SHOWN_ROWS, len(analysis.workers))} of {len(analysis.workers)})",
    )
    _map(analysis)


def _scores(title: str, what: str, scores: Sequence[PartSlowdown]) -> None:
    shown_scores = scores[:SHOWN_ROWS]
    print_columns(
        (names(what), [one.what for one in shown_scores]),
        (figures("slowdown"), [f"{one.slowdown_ratio:.3f}" for one in shown_scores]),
        title=f"{title}: slowdown of an ideal step by their recorded times ({len(shown_scores)} of {len(scores)})",
    )


def _map(analysis: StragglerAnalysis) -> None:
    """Stages downwards, data-parallel indices to the right; where room lacks, a cell shows its slowest worker."""
    most = max(max(one.slowdown_ratio for one in analysis.workers) - 1.0, 1e-9)
    lanes = len(analysis.data_parallel)
    together = -(-lanes // (width_of_output() - 10))
    cells: dict[tuple[int, int], float] = {}
    for one in analysis.workers:
        at = (one.stage, one.data_parallel_index // together)
        cells[at] = max(cells.get(at, 0.0), (one.slowdown_ratio - 1.0) / most)
    say(
        f"Workers by stage and data-parallel index ({together} in each cell; █ = {1.0 + most:.3f} times the ideal)",
        bold=True,
    )
    for stage in range(len(analysis.stages)):
        shades = (cells[stage, place] for place in range(-(-lanes // together)))
        print_line(f"{stage:>7}  " + "".join(SHADES[round(shade * (len(SHADES) - 1))] for shade in shades) + "|")
    print_line()

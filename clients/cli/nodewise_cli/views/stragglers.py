"""What stragglers cost, as JSON and for people: the verdict, the shares, and a map of the workers."""

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

SHOWN: Final = 10
SHADES: Final = " ░▒▓█"
"""From no slowdown to that of the slowest worker."""


def document(found: StragglerAnalysis) -> dict[str, Any]:
    """The JSON of an analysis. What is not known is null."""
    return _fields(found)


def _fields(found: StragglerAnalysis | PartSlowdown | Worker) -> dict[str, Any]:
    held = ((each.name, getattr(found, each.name)) for each in fields(found))
    return {short(name): list(map(_fields, value)) if isinstance(value, tuple) else value for name, value in held}


def show(found: StragglerAnalysis) -> None:
    """Print the verdict, what explains the slowdown, and the map."""
    say(found.verdict)
    left_out = f", {found.steps_left_out} incomplete ones left out" if found.steps_left_out else ""
    say(
        f"A step takes {milliseconds(found.step_seconds)} ms, an ideal one {milliseconds(found.ideal_step_seconds)} ms "
        f"(mean of {found.steps}{left_out}); delays between operations "
        f"make it {found.launch_slowdown_ratio:.3f} times that."
    )
    if found.foreseen_error_ratio is not None and found.persistence_error_ratio is not None:
        say(
            f"A step foreseen from the others is {found.foreseen_error_ratio:.1%} off, taken as their mean "
            f"{found.persistence_error_ratio:.1%}."
        )
    say()
    correlation = found.forward_backward_correlation
    causes = [
        ("slowest 3 % of workers", found.slowest_workers_share),
        ("last stage", found.last_stage_share),
        ("micro-batches that differ", found.sequence_length_share),
        ("garbage collection", found.garbage_collection_share),
    ]
    print_columns(
        (words("cause"), [cause for cause, _ in causes]),
        (figures("% of it"), [f"{100 * share:.1f}" for _, share in causes]),
        title="What the slowdown loses without each (causes overlap)",
    )
    if correlation is not None:
        say(f"Micro-batches' forward and backward times correlate by {correlation:.2f}; from 0.9 their lengths differ.")
        say()
    _scores("Operations", "operation", found.operations)
    _scores("Stages", "stage", sorted(found.stages, key=lambda one: -one.slowdown_ratio))
    print_columns(
        (figures("rank"), [str(one.rank) for one in found.workers[:SHOWN]]),
        (figures("stage"), [str(one.stage) for one in found.workers[:SHOWN]]),
        (figures("data-parallel"), [str(one.data_parallel_index) for one in found.workers[:SHOWN]]),
        (figures("slowdown"), [f"{one.slowdown_ratio:.3f}" for one in found.workers[:SHOWN]]),
        (
            figures("among peers"),
            [
                "-" if one.peer_slowdown_ratio is None else f"{one.peer_slowdown_ratio:.3f}"
                for one in found.workers[:SHOWN]
            ],
        ),
        title=f"Workers ({min(SHOWN, len(found.workers))} of {len(found.workers)})",
    )
    _map(found)


def _scores(title: str, what: str, scores: Sequence[PartSlowdown]) -> None:
    listed = scores[:SHOWN]
    print_columns(
        (names(what), [one.what for one in listed]),
        (figures("slowdown"), [f"{one.slowdown_ratio:.3f}" for one in listed]),
        title=f"{title}: an ideal step with their recorded times ({len(listed)} of {len(scores)})",
    )


def _map(found: StragglerAnalysis) -> None:
    """Stages downwards, data-parallel indices to the right; where room lacks, a cell shows its slowest worker."""
    most = max(max(one.slowdown_ratio for one in found.workers) - 1.0, 1e-9)
    lanes = len(found.data_parallel)
    together = -(-lanes // (width_of_output() - 10))
    cells: dict[tuple[int, int], float] = {}
    for one in found.workers:
        at = (one.stage, one.data_parallel_index // together)
        cells[at] = max(cells.get(at, 0.0), (one.slowdown_ratio - 1.0) / most)
    say(
        f"Workers by stage and data-parallel index ({together} a cell; █ = {1.0 + most:.3f} times the ideal)", bold=True
    )
    for stage in range(len(found.stages)):
        shades = (cells[stage, place] for place in range(-(-lanes // together)))
        print_line(f"{stage:>7}  " + "".join(SHADES[round(shade * (len(SHADES) - 1))] for shade in shades) + "|")
    print_line()

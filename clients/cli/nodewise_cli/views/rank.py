"""Rankings of architectures as JSON and as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.views.notes import show_notes
from nodewise_cli.views.numbers import format_number, milliseconds
from nodewise_cli.views.plain import plain
from nodewise_cli.views.predict import refusal_of
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import ArchitectureRanking, Basis, BatchPredictResult, Prediction, Predictions, Problem

__all__ = ["Ranking", "document", "show"]

SHOWN_ROWS: Final = 20
"""Rows that people see unless they ask for so many."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Architectures by rank, those that were refused last.

    Attributes
    ----------
    places : tuple of int
        Rows of the file in that order; `answered` is how many of them have a rank.
    most_shown : int or None
        Rows that people asked for.
    """

    names: Sequence[str]
    rows: Sequence[Prediction]
    places: tuple[int, ...]
    answered: int
    ranking: ArchitectureRanking
    basis: Basis
    result: BatchPredictResult
    call_s: float
    most_shown: int | None

    @staticmethod
    def of(names: Sequence[str], result: BatchPredictResult, *, call_s: float, top: int | None) -> Ranking:
        """Of the answer on one configuration; `top` leaves out all but so many of the fastest."""
        ranking = result.rankings[0]
        order = ranking.architecture_indexes
        ranks = set(order)
        places = order[:top] if top else (*order, *(place for place in range(len(names)) if place not in ranks))
        basis = result.response.bases[0] if result.response.bases else Basis()
        answered = min(len(order), len(places))
        return Ranking(names, result.rows, tuple(places), answered, ranking, basis, result, call_s, top)


def document(ranking: Ranking) -> dict[str, Any]:
    """The JSON of a ranking. What is not known is null."""
    predictions = ranking.result.response.predictions
    return {
        "architectures": [_entry(ranking, rank, place) for rank, place in enumerate(ranking.places, 1)],
        "expected_kendall_tau": ranking.ranking.expected_kendall_tau,
        "refused_share": ranking.ranking.refused_share,
        "estimator": ranking.basis.estimator or None,
        "estimator_version": ranking.basis.estimator_version or None,
        "choice": ranking.basis.choice or None,
        "evidence": list(ranking.basis.evidence),
        "warnings": [] if predictions is None else plain(predictions.warnings),
        "call_s": ranking.call_s,
    }


def _entry(ranking: Ranking, rank: int, place: int) -> dict[str, Any]:
    row = ranking.rows[place]
    lower, upper = _range(row)
    problem = refusal_of(row)
    return {
        "architecture": ranking.names[place],
        "row": place,
        "rank": rank if rank <= ranking.answered else None,
        "status": row.status,
        "step_s": row.step_seconds,
        "lower_step_s": lower,
        "upper_step_s": upper,
        "coverage": row.interval_coverage,
        "samples_per_s": row.samples_per_second,
        "extrapolation": row.extrapolation_ratio,
        "refusal": None if problem is None else plain(problem),
    }


def _range(row: Prediction) -> tuple[float | None, float | None]:
    """Ends of the step's range, seconds."""
    step, rate = row.step_seconds, row.steps_per_second
    low, high = row.lower_steps_per_second, row.upper_steps_per_second
    if not step or not rate or not low or not high:
        return None, None
    return step * rate / high, step * rate / low


def show(ranking: Ranking, *, verbose: bool) -> None:
    """Print the fastest, how sure the order is, and what was refused."""
    most = ranking.most_shown or SHOWN_ROWS
    rows = [_entry(ranking, rank, place) for rank, place in enumerate(ranking.places[: min(most, ranking.answered)], 1)]
    if rows:
        coverage = next((row["coverage"] for row in rows if row["coverage"] is not None), None)
        heading = "range ms" if coverage is None else f"{100 * coverage:g} % range ms"
        print_columns(
            (figures("rank"), [str(row["rank"]) for row in rows]),
            (words("architecture"), [row["architecture"] for row in rows]),
            (figures("step ms"), [milliseconds(row["step_s"]) for row in rows]),
            (words(heading), [_tell_row(row) for row in rows]),
            (figures("samples/s"), [format_number(row["samples_per_s"]) for row in rows]),
            (figures("extrapolation"), [format_number(row["extrapolation"], 3) for row in rows]),
            title=f"By {ranking.basis.estimator} {ranking.basis.estimator_version}".rstrip(),
        )
    ranked_count = len(ranking.ranking.architecture_indexes)
    if ranked_count > len(rows):
        say(f"{ranked_count - len(rows):,} more rows are ranked; --top sets the number of rows to list.")
    tau = ranking.ranking.expected_kendall_tau
    sure = "" if tau is None else f"; expected Kendall's tau with the measured order: {tau:.3f}"
    say(f"{ranked_count:,} of {len(ranking.names):,} ranked in {format_number(ranking.call_s, 3)} s{sure}.")
    predictions = ranking.result.response.predictions or Predictions()
    for refusal in predictions.refusals if ranked_count else ():
        problem = refusal.problem or Problem()
        names = ", ".join(ranking.names[row] for row in refusal.rows[:3])
        more = f" and {len(refusal.rows) - 3} more" if len(refusal.rows) > 3 else ""
        say(f"Refused: {names}{more}: {problem.message}")
    show_notes(((notice.reason, notice.message) for notice in predictions.warnings), verbose=verbose)


def _tell_row(row: dict[str, Any]) -> str:
    low, high = row["lower_step_s"], row["upper_step_s"]
    return "-" if low is None else f"{milliseconds(low)} to {milliseconds(high)}"

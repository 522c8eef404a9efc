"""Rows that were measured, cut anywhere and gathered again, say what they said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodewise_client import Observations, PhaseTimings, configurations, observations, phase_timings
from nodewise_client._columns import masks
from nodewise_client._measured_rows import FACTS, GatheredRows, gathered_rows, pieces
from nodewise_values.wire import from_message, to_message

numbers = st.floats(0.5, 1e6)
counts = st.integers(1, 1000)
CONFIGURED = {
    "nodes": counts,
    "batch_per_worker_samples": st.none() | counts.map(float),
    "sync_modes": st.none() | st.sampled_from(["async", "allreduce"]),
    "devices": st.none() | st.sampled_from(["V100", "K80"]),
    "offers": st.none() | st.sampled_from(["spot", "firm"]),
    "placements": st.none() | st.lists(counts, min_size=1, max_size=3).map(tuple),
}
MADE: dict[type, Any] = {Observations: observations, PhaseTimings: phase_timings}


@st.composite
def measured(draw: st.DrawFn) -> tuple[type, list[dict[str, Any]], list[int]]:
    """A kind of rows, rows with what they state, and where they are cut."""
    kind = draw(st.sampled_from([Observations, PhaseTimings]))
    facts = FACTS[kind]
    row = {
        name: numbers if fact.required else st.none() | counts | (st.just(0) if name in masks(kind) else st.none())
        for name, fact in facts.items()
    }
    rows = draw(st.lists(st.fixed_dictionaries(CONFIGURED | row), min_size=1, max_size=8))
    cuts = draw(st.sets(st.integers(1, len(rows)), max_size=4))
    return kind, rows, sorted({0, *cuts, len(rows)})


def value_of(kind: type, rows: list[dict[str, Any]]) -> Any:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    configured = {name: columns.pop(name) for name in CONFIGURED}
    return MADE[kind](configurations=configurations(**configured), **columns)


@given(measured())
def test_pages_say_what_the_whole_says(drawn: tuple[type, list[dict[str, Any]], list[int]]) -> None:
    kind, rows, cuts = drawn
    pages = [value_of(kind, rows[begin:end]) for begin, end in pairwise(cuts)]
    sent = [from_message(to_message(page), kind) for page in pages]
    assert said(gathered_rows(kind, sent)) == said(value_of(kind, rows))


@given(measured(), st.integers(1, 3))
def test_pieces_of_any_size_say_what_the_whole_says(
    drawn: tuple[type, list[dict[str, Any]], list[int]], most: int
) -> None:
    kind, rows, _ = drawn
    gathered = GatheredRows()
    for piece in pieces(value_of(kind, rows), most):
        assert piece.end - piece.begin <= most
        gathered.add(piece, piece.begin, piece.end)
    assert gathered.count == len(rows)
    assert said(gathered.value(kind)) == said(value_of(kind, rows))


def said(value: Any) -> list[dict[str, Any]]:
    """What each row says. 0 says something only where a column beside it could say that the row is not known."""
    (piece,) = pieces(value, 1 << 31)
    return [
        {
            name: column[row]
            for name, column in piece.columns.items()
            if column[row] not in (None, "", ()) and (column[row] or name in masks(piece.kind))
        }
        for row in range(piece.end)
    ]

from __future__ import annotations

import pytest

from nodewise_cli.views.notes import show_notes

NOTES = [
    ("LINK_ASSUMED", "a link is assumed"),
    ("scaling", "what a plugin states"),
    ("UNSAID", "not stated"),
    ("EXTRAPOLATES", "8 rows extrapolate"),
    ("RUNS_CONTRADICT", "runs contradict each other"),
    ("EXTRAPOLATES", "8 rows extrapolate"),
]


def test_the_first_three_by_importance(capsys: pytest.CaptureFixture[str]) -> None:
    show_notes(NOTES, verbose=False)
    assert capsys.readouterr().out.splitlines() == [
        "Note: runs contradict each other",
        "Note: 8 rows extrapolate",
        "Note: what a plugin states",
        "2 more notes: see --verbose.",
    ]


def test_all_where_they_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    show_notes(NOTES, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[-2:] == ["Note: a link is assumed", "Note: not stated"]


def test_few_notes_leave_nothing_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_notes(NOTES[:2], verbose=False)
    assert capsys.readouterr().out.splitlines() == ["Note: what a plugin states", "Note: a link is assumed"]

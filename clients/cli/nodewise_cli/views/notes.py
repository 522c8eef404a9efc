"""Notes after an answer: the first three by importance, the rest where they are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodewise_cli.console import say
from nodewise_client import Notice

__all__ = ["by_importance", "show_notes"]

SHOWN_NOTES: Final = 3
_DOUBTS: Final = frozenset(
    {
        *("BATCH_NOT_STATED", "EVIDENCE_DISAGREES", "FASTER_THAN_PEAK", "MORE_THAN_LINEAR", "OBJECTIVE_UNREACHABLE"),
        *("RANKS_MISSING", "RUNS_CONTRADICT", "STEPS_TOO_SHORT", "THROUGHPUT_COLLAPSES"),
    }
)
"""Reasons that doubt what was measured or asked."""
_LIMITS: Final = frozenset({"DRIFTED", "EXTRAPOLATES", "ILL_CONDITIONED", "MEAN_IS_DOUBTFUL", "NO_SPREAD"})
"""Reasons that limit the answer."""
_ASSUMPTION: Final = ("_ASSUMED", "_CHOSEN", "UNSAID")
"""How reasons end that say what was taken for something that is not stated."""


def show_notes(notes: Iterable[tuple[str, str]], *, verbose: bool) -> None:
    """Print notes, one a line: of each its reason and its text.

    Doubts of the evidence come first, then limits of the answer, then what a plugin states, then assumptions.
    """
    texts = [text for _, text in sorted(notes, key=lambda note: _rank(note[0]))]
    unique = list(dict.fromkeys(texts))
    shown = unique if verbose else unique[:SHOWN_NOTES]
    for text in shown:
        say(f"Note: {text}")
    left = len(unique) - len(shown)
    if left:
        say(f"{left} more note{'' if left == 1 else 's'}: see --verbose.")


def _rank(reason: str) -> int:
    if reason in _DOUBTS:
        return 0
    if reason in _LIMITS:
        return 1
    return 3 if reason.endswith(_ASSUMPTION) else 2


def by_importance(notices: Iterable[Notice]) -> list[Notice]:
    """Warnings in the order in which people are shown them."""
    return sorted(notices, key=lambda notice: _rank(notice.reason))

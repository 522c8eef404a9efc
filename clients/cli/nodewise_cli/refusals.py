"""Answers that answer nothing: they are shown all the same, and the exit status says so."""

from __future__ import annotations

from collections.abc import Iterable

from nodewise_cli.failures import RefusedAnswer
from nodewise_client import Problem

__all__ = ["refuse_unanswered"]


def refuse_unanswered(problems: Iterable[Problem | None], what: str) -> None:
    """End a command with the status of a refusal where none of the rows that it has shown was answered.

    Parameters
    ----------
    problems : iterable of Problem or None
        Why each row has no answer; None = it has one.
    what : str
        What a row is, in the singular.

    Raises
    ------
    RefusedAnswer
        With the first reason.
    """
    all_problems = list(problems)
    refusals = [problem for problem in all_problems if problem is not None]
    if refusals and len(refusals) == len(all_problems):
        first = next((problem for problem in refusals if problem.message), refusals[0])
        raise RefusedAnswer(
            f"no {what} was answered: {first.message or 'the server gave no reason'}", reason=first.reason
        )

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
    found = list(problems)
    told = [problem for problem in found if problem is not None]
    if told and len(told) == len(found):
        first = next((problem for problem in told if problem.message), told[0])
        raise RefusedAnswer(f"no {what} was answered: {first.message or 'no reason is given'}", reason=first.reason)

"""Fits that nobody waits for, begun for questions that did not: each once at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from nodewise.estimation.question import Freshness, Question

__all__ = ["Ahead"]


class Ahead:
    """Begins fits.

    Parameters
    ----------
    soon : callable or None
        Does work that no answer waits for, soon and elsewhere; None = nothing is begun that nobody waits for.
    prepare : callable
        Fits what a question needs.
    """

    def __init__(
        self, soon: Callable[[Callable[[], None]], None] | None, prepare: Callable[[Question], object]
    ) -> None:
        self._soon = soon
        self._prepare = prepare
        self._begun: set[tuple[object, ...]] = set()
        self._beginning = threading.Lock()

    def begin(self, question: Question) -> None:
        """Have fitted, by somebody else, what this question does not wait for."""
        if self._soon is None or not question.profile.digest:
            return
        key = (question.profile.digest, question.terms.estimator, question.terms.options.seed)
        with self._beginning:
            if key in self._begun:
                return
            self._begun.add(key)
        # It goes on when the call that it was begun for is over.
        options = replace(question.terms.options, budget=None)
        waiting = replace(question, terms=replace(question.terms, freshness=Freshness.WAIT, options=options))

        def fit() -> None:
            try:
                self._prepare(waiting)
            finally:
                with self._beginning:
                    self._begun.discard(key)

        self._soon(fit)

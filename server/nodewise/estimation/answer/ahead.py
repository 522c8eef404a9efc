"""Start fits in the background for questions that do not wait for them. Each fit runs once at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from nodewise.estimation.question import Freshness, Question

__all__ = ["Ahead"]


class Ahead:
    """Starts fits in the background.

    Parameters
    ----------
    soon : callable or None
        Runs a function in the background; None = no background fits.
    prepare : callable
        Fits the models that a question needs.
    """

    def __init__(
        self, soon: Callable[[Callable[[], None]], None] | None, prepare: Callable[[Question], object]
    ) -> None:
        self._soon = soon
        self._prepare = prepare
        self._begun: set[tuple[object, ...]] = set()
        self._beginning = threading.Lock()

    def begin(self, question: Question) -> None:
        """Start the fits of a question in the background, unless they are running already."""
        if self._soon is None or not question.profile.digest:
            return
        key = (question.profile.digest, question.terms.estimator, question.terms.options.seed)
        with self._beginning:
            if key in self._begun:
                return
            self._begun.add(key)
        # Without the budget of the call, since the fit may outlast the call.
        options = replace(question.terms.options, budget=None)
        waiting = replace(question, terms=replace(question.terms, freshness=Freshness.WAIT, options=options))

        def fit() -> None:
            try:
                self._prepare(waiting)
            finally:
                with self._beginning:
                    self._begun.discard(key)

        self._soon(fit)

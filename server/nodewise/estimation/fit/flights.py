"""Fits in progress: each model is fitted by one thread at a time, and a deadlock between fits is an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.fit.fitted_model import FittedModel, ModelKey

__all__ = ["Flights", "circle", "fitting"]

fitting: ContextVar[tuple[ModelKey, ...]] = ContextVar("fitting", default=())
"""Keys of the models that this context is fitting. Each fit after the first was requested by the one before it."""


def circle(chain: tuple[ModelKey, ...], estimator: str) -> NodewiseError:
    """Return the error for estimators that build on each other in a circle."""
    names = " -> ".join((*(key.estimator for key in chain), estimator))
    return NodewiseError(
        Reason.ESTIMATOR_FAILED, f"estimators build on each other in a circle: {names}", {"estimator": estimator}
    )


class Flights:
    """Fits in progress. A second caller of the same model waits for the running fit instead of starting another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[ModelKey, Future[FittedModel]] = {}
        self._waiting: dict[ModelKey, ModelKey] = {}

    def join(self, key: ModelKey, fit: Callable[[], FittedModel]) -> FittedModel:
        """Return or raise the outcome of the running fit for ``key``; call ``fit`` if none is running.

        Raises
        ------
        NodewiseError
            ESTIMATOR_FAILED if fits in two threads would wait for each other; any error that the fit raises.
        """
        own = fitting.get()
        with self._lock:
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
            else:
                ahead: ModelKey | None = key
                while ahead is not None:
                    if ahead in own:
                        raise circle(own, key.estimator)
                    ahead = self._waiting.get(ahead)
                self._waiting.update(dict.fromkeys(own, key))
        if mine:
            return self._fly(key, flight, fit)
        try:
            return flight.result()
        finally:
            with self._lock:
                for waiting in own:
                    self._waiting.pop(waiting, None)

    def _fly(self, key: ModelKey, flight: Future[FittedModel], fit: Callable[[], FittedModel]) -> FittedModel:
        try:
            result = fit()
        except BaseException as error:
            with self._lock:
                del self._flights[key]
            flight.set_exception(error)
            raise
        with self._lock:
            del self._flights[key]
        flight.set_result(result)
        return result

"""Fits that are under way: of one model one at a time, and no two that wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.fit.fitted_model import FittedModel, ModelKey

__all__ = ["Flights", "circle", "fitting"]

fitting: ContextVar[tuple[ModelKey, ...]] = ContextVar("fitting", default=())
"""Models that are being fitted here, each for the one before it."""


def circle(chain: tuple[ModelKey, ...], estimator: str) -> NodewiseError:
    """Estimators that build on each other without end."""
    names = " -> ".join((*(key.estimator for key in chain), estimator))
    return NodewiseError(
        Reason.ESTIMATOR_FAILED, f"estimators build on each other in a circle: {names}", {"estimator": estimator}
    )


class Flights:
    """Fits that are under way: whoever asks for the same model meanwhile waits for it instead of fitting it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[ModelKey, Future[FittedModel]] = {}
        self._waiting: dict[ModelKey, ModelKey] = {}

    def join(self, key: ModelKey, fit: Callable[[], FittedModel]) -> FittedModel:
        """What the fit under way returns or raises; ``fit`` is called where there is none.

        Raises
        ------
        NodewiseError
            ESTIMATOR_FAILED where models of two threads would wait for each other, else what the fit raises.
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

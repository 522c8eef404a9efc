"""Whoever has objects of plugins: what its estimators are asked and answer, whatever lies between."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Options
from nodewise.hosting.processes.connection import Connection, predict_request
from nodewise.hosting.processes.remote import Following, Remote, foreign
from nodewise.hosting.processes.values import UndecodableError, read_value
from nodewise.hosting.processes.wire import read_assessment, read_predictions
from nodewise.hosting.processes.words import ATTRIBUTES, METHODS
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2, value_pb2

__all__ = ["ESTIMATOR", "KNOWN", "Listing", "Peer", "read_answer"]

ESTIMATOR: Final = "estimator/"
"""How the targets of estimators begin."""
MOST_EARLY: Final = 8
"""Answers that wait for their questions, which come next if they come at all: one for each thread that asks at once."""
KNOWN: Final = METHODS | ATTRIBUTES
"""What is asked of objects."""
Listing = tuple[list[Any], list[Any]]
"""Records and problems of a host's plugins, as plain values."""
Invoke = Callable[[Any, Any], Any]
"""Calls a method of a service with a request, and gives its response."""


class Peer(ABC):
    """A process or an address that has objects of plugins. Threads share it.

    Attributes
    ----------
    distribution : str
        Whose plugins, with the version.
    generation : int
        Number of the process that has the objects now.
    """

    def __init__(self, distribution: str) -> None:
        self.distribution = distribution
        self.generation = 0
        self._released: deque[tuple[int, int]] = deque()
        self._early: OrderedDict[tuple[Any, ...], tuple[Following, pb.PredictResponse]] = OrderedDict()
        self._early_lock = threading.Lock()

    plugin_names: tuple[str, ...]
    patience_s: float

    @abstractmethod
    def begin(self) -> None:
        """Find out what it brings, without waiting for it."""

    @abstractmethod
    def settled(self, wait_s: float) -> bool:
        """Whether it is known within so many seconds what it brings, or that it cannot be loaded."""

    @abstractmethod
    def listing(self) -> Listing:
        """Records and problems. Raises HostFaultError, HostBusyError."""

    @property
    @abstractmethod
    def known(self) -> Listing | None:
        """The same, as it is known now; None = it is not."""

    @abstractmethod
    def close(self) -> None:
        """Ask it no more, and end what was started for it."""

    @abstractmethod
    def asked(self, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None = None) -> Any:
        """What a method of an object answers, or the value of an attribute.

        ``following`` is asked with it, in one call; its answer is kept until it is asked for.

        Raises
        ------
        NodewiseError
            What the plugin refuses with.
        HostFaultError
            If it fails.
        HostBusyError
            If it could not be asked now.
        GoneError
            If the object is not there any more.
        """

    def released(self, generation: int, number: int) -> None:
        """Nobody holds that object any more; told with a later call."""
        self._released.append((generation, number))

    def _forgotten(self) -> list[int]:
        """Numbers of objects of this generation that nobody holds any more."""
        found = []
        while self._released:
            generation, number = self._released.popleft()
            if generation == self.generation:
                found.append(number)
        return found

    # --- estimators

    def _assessed(
        self,
        connection: Connection,
        remote: Remote,
        arguments: tuple[Any, ...],
        following: Following | None,
        ask: Invoke,
    ) -> Any:
        estimator = str(remote.target).removeprefix(ESTIMATOR)
        profile, query = arguments
        model = 0 if following is None else following[0].target
        response: pb.AssessResponse = connection.remembered(
            lambda: ask(connection.assess, connection.assess_request(estimator, profile, query, model))
        )
        if following is not None and response.HasField("predicted"):
            with self._early_lock:
                self._early[_identity(*following)] = following, response.predicted
                while len(self._early) > MOST_EARLY:
                    self._early.popitem(last=False)
        if not response.HasField("assessment"):
            return read_answer(response.other)
        return _read(lambda: read_assessment(response.assessment))

    def _predicted(
        self, connection: Connection, remote: Remote, arguments: tuple[Any, ...], call: int, ask: Invoke
    ) -> Any:
        rows, options = arguments
        assert isinstance(remote.target, int)
        request = predict_request(remote.target, rows, options or Options(), call)
        return self._predictions(ask(connection.predict, request), len(rows))

    def _predicted_early(self, remote: Remote, name: str, arguments: tuple[Any, ...]) -> tuple[Any] | None:
        """What was answered with the call before, in a tuple; None = nothing was."""
        if not self._early:
            return None
        with self._early_lock:
            early = self._early.pop(_identity(remote, name, arguments), None)
        return None if early is None else (self._predictions(early[1], len(arguments[0])),)

    def _predictions(self, response: pb.PredictResponse, rows: int) -> Any:
        if not response.HasField("predictions"):
            return read_answer(response.other)
        return _read(lambda: read_predictions(response.predictions, rows))

    def _object(self, kept: plugin_service_pb2.KeptObject, generation: int, known: frozenset[str]) -> Any:
        """A handle of what was answered and stays there."""
        names = known.intersection(kept.abilities)
        if kept.number <= 0:
            raise UndecodableError("no object")
        return Remote(self, kept.number, generation, names) if names else foreign(kept.type[:100])


def _identity(remote: Remote, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is the same for the same question only, as long as its arguments live."""
    return remote.generation, remote.target, name, *map(id, arguments)


def read_answer(message: value_pb2.Value) -> Any:
    """A value that a plugin answered with. Raises UndecodableError."""
    return read_value(message, {"unsendable": foreign})


def _read(read: Callable[[], Any]) -> Any:
    """What is read; whatever reading raises is the sender's fault."""
    try:
        return read()
    except (NodewiseError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise UndecodableError(f"values that cannot be ({type(error).__name__})") from None

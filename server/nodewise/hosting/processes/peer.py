"""A process or server with objects of plugins, and the calls to its estimators."""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final

import grpc

from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Options
from nodewise.hosting.processes.callbacks import Call
from nodewise.hosting.processes.connection import Connection, ForgottenError
from nodewise.hosting.processes.faults import HostFaultError
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.members import KNOWN
from nodewise.hosting.processes.remote import Following, GoneError, Remote, foreign
from nodewise.hosting.processes.statuses import FAILED, FORGOTTEN, GONE, read_error
from nodewise.hosting.processes.values import Opaque, UndecodableError, read_value
from nodewise.hosting.processes.wire import (
    read_assessment,
    read_predictions,
    write_configurations,
    write_options,
    write_prior,
)
from nodewise.hosting.records import Listing
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2, value_pb2

__all__ = ["ESTIMATOR", "Peer", "read_answer"]

ESTIMATOR: Final = "estimator/"
"""Prefix of the targets of estimators."""
_numbers = itertools.count(1)
Ask = Callable[[str, Any], Any]
"""Calls a method of a service with a request, and returns the response."""


class Peer(ABC):
    """A process or an address that has objects of plugins. Threads share it.

    Attributes
    ----------
    distribution : str
        Name and version of the plugins' distribution.
    plugin_names : tuple of str
        Names of the plugins that it should provide.
    known_listing : Listing or None
        Its last listing; None = not known yet.
    generation : int
        Number of the process that holds the objects now.
    number : int
        Number of this peer among all of this process.
    """

    def __init__(
        self, distribution: str, plugin_names: tuple[str, ...], limits: HostLimits, listing: Listing | None
    ) -> None:
        self.distribution = distribution
        self.plugin_names = plugin_names
        self.limits = limits
        self.known_listing = listing
        self.generation = 0
        self.number = next(_numbers)
        self._looks = listing is None
        self._is_known = threading.Event()
        if listing is not None:
            self._is_known.set()
        self._leases: set[object] | None = set()
        self._lock = threading.Lock()
        self._numbers_to_release: deque[tuple[int, int]] = deque()

    def begin(self) -> None:
        """Start to list its records without waiting, so that several peers do so at the same time."""
        if self._looks:
            self._looks = False
            threading.Thread(target=self._look, name="nodewise-host-loading", daemon=True).start()

    @abstractmethod
    def _look(self) -> None:
        """List its records, and set ``_is_known``."""

    @abstractmethod
    def wait_until_known(self, wait_s: float) -> bool:
        """Wait for its listing, or its failure to load; False = neither within so many seconds."""

    @abstractmethod
    def listing(self) -> Listing:
        """Its records and problems, once known. Raises HostFaultError, HostBusyError."""

    @abstractmethod
    def close(self) -> None:
        """Refuse later calls, and end the processes that were started for it."""

    def lease(self) -> object:
        """A lease for one more registry; None = the last lease was returned."""
        lease = object()
        with self._lock:
            if self._leases is None:
                return None
            self._leases.add(lease)
        return lease

    def end(self, lease: object) -> bool:
        """Return a lease; True = it was the last one, which closes the peer. A second call does nothing."""
        with self._lock:
            if self._leases is None:
                return False
            self._leases.discard(lease)
            if self._leases:
                return False
            self._leases = None
        self.close()
        return True

    @abstractmethod
    def _connect(self) -> AbstractContextManager[Connection]:
        """The connection, for one call. Raises HostFaultError, HostBusyError."""

    @abstractmethod
    def _lost_error(self, connection: Connection, name: str, code: grpc.StatusCode) -> Exception:
        """The error for a status that no plugin has set."""

    @abstractmethod
    def _overrun(self, connection: Connection, budget_s: float) -> Exception:
        """The error of a call that took longer than it may."""

    def _abandon(self, connection: Connection) -> None:  # noqa: B027  # nothing to do at an address
        """Stop using the connection: its messages are invalid, or no caller waits for them."""

    def _may_ask(self, arguments: tuple[Any, ...]) -> AbstractContextManager[Call | None]:  # noqa: ARG002
        """A call during which the plugin may call objects among the arguments; None = it cannot."""
        return nullcontext()

    def _call_method(self, remote: Remote, name: str, arguments: tuple[Any, ...], call: Call | None, ask: Ask) -> Any:  # noqa: ARG002
        """The answer of a method that has no messages of its own."""
        raise AttributeError(name)

    def ask(self, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None = None) -> Any:
        """The answer of a method of an object, or the value of an attribute.

        ``following`` is made together with it; its answer is kept until that call comes.

        Raises
        ------
        NodewiseError
            The plugin's refusal.
        HostFaultError
            If it fails.
        HostBusyError
            If it could not be called now.
        GoneError
            If the object no longer exists.
        """
        early = remote.early_prediction(arguments) if name == "predict" else None
        if early is not None:
            return _predictions(early, len(arguments[0]))
        with self._connect() as connection:
            if remote.generation not in (0, self.generation):
                raise GoneError
            if following is not None and following[0].generation != self.generation:
                following = None
            budget_s = self.limits.budget_s(name, arguments)
            try:
                return self._answer(connection, remote, name, arguments, following, budget_s)
            except UndecodableError as error:
                self._abandon(connection)
                raise HostFaultError(f"its host sent {error}") from None
            except ForgottenError:
                self._abandon(connection)
                raise HostFaultError("its host does not keep an object that it was just sent") from None
            except HostFaultError as fault:
                if following is not None and fault.what:
                    fault.method = following[1]  # both were running: the fault names the one that does the work
                raise

    def _answer(
        self,
        connection: Connection,
        remote: Remote,
        name: str,
        arguments: tuple[Any, ...],
        following: Following | None,
        budget_s: float,
    ) -> Any:
        ask = partial(self._exchange, connection, name, budget_s)
        target = remote.target
        estimator = target.removeprefix(ESTIMATOR) if isinstance(target, str) and target.startswith(ESTIMATOR) else ""
        if estimator and name == "assess":
            return self._assess(connection, estimator, arguments, following, ask)
        if name == "predict" and isinstance(target, int) and not remote.asks:
            return self._predict(target, arguments, None, ask)
        with self._may_ask(arguments) as call:
            if name == "predict" and isinstance(target, int):
                return self._predict(target, arguments, call, partial(ask, call=call))
            self._release(connection)
            if estimator and name == "fit":
                return self._fit(connection, estimator, arguments, call, partial(ask, call=call))
            return self._call_method(remote, name, arguments, call, partial(ask, call=call))

    def _exchange(
        self, connection: Connection, name: str, budget_s: float, method: str, request: Any, call: Call | None = None
    ) -> Any:
        """The response to a request; raises as :meth:`ask`, and ForgottenError."""
        try:
            if call is None:
                return connection.methods[method](request, timeout=max(0.0, budget_s))
            return _wait(connection.methods[method].future(request), budget_s, call)
        except TimeoutError:
            raise self._overrun(connection, budget_s) from None
        except grpc.RpcError as error:
            raise self._fault(connection, name, budget_s, error) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise HostFaultError(f"an argument of the call cannot be sent ({type(error).__name__})") from None
        except BaseException:
            self._abandon(connection)
            raise

    def _fault(self, connection: Connection, name: str, budget_s: float, error: grpc.RpcError) -> Exception:
        """The error of a call that ended with a status."""
        status, code = read_error(error), error.code()
        if isinstance(status, NodewiseError):
            return status
        if status["reason"] == FAILED:
            return HostFaultError("", status.get("raised", ""), status.get("detail", ""))
        if status["reason"] == GONE or code == grpc.StatusCode.NOT_FOUND:
            return GoneError()
        if status["reason"] == FORGOTTEN or code == grpc.StatusCode.FAILED_PRECONDITION:
            return ForgottenError()
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._overrun(connection, budget_s)
        return self._lost_error(connection, name, code)

    # --- objects that stay there

    def release_later(self, generation: int, number: int) -> None:
        """Release an object that no caller uses any more, with a later call."""
        self._numbers_to_release.append((generation, number))

    def _release(self, connection: Connection) -> None:
        """Release the objects that no caller uses any more."""
        numbers = []
        while self._numbers_to_release:
            generation, number = self._numbers_to_release.popleft()
            if generation == self.generation:
                numbers.append(number)
        if numbers:
            with suppress(grpc.RpcError):  # the next call reports what is wrong
                request = pb.ReleaseRequest(models=numbers)
                connection.methods["Release"](request, timeout=self.limits.call_budget_s)

    def _object(self, object_message: plugin_service_pb2.KeptObject) -> Any:
        """A handle of an answer that stays in the peer."""
        names = KNOWN.intersection(object_message.abilities)
        if object_message.number <= 0:
            raise UndecodableError("not an object")
        return (
            Remote(self, object_message.number, self.generation, names) if names else foreign(object_message.type[:100])
        )

    # --- estimators

    def _assess(
        self,
        connection: Connection,
        estimator: str,
        arguments: tuple[Any, ...],
        following: Following | None,
        ask: Ask,
    ) -> Any:
        profile, query = arguments
        request = pb.AssessRequest(
            estimator=estimator,
            configurations=write_configurations(query.configurations),
            options=write_options(query.options),
            model=0 if following is None else following[0].target,
        )
        response = connection.with_evidence(partial(ask, "Assess"), request, profile, query.catalogue)
        if following is not None and response.HasField("predicted"):
            following[0].early = following[2], response.predicted
        if not response.HasField("assessment"):
            return read_answer(response.other)
        return _read(lambda: read_assessment(response.assessment))

    def _fit(
        self, connection: Connection, estimator: str, arguments: tuple[Any, ...], call: Call | None, ask: Ask
    ) -> Any:
        profile, context = arguments
        request = pb.FitRequest(estimator=estimator, prior=write_prior(context.prior, _content), seed=context.seed)
        if call is not None:
            request.call, request.context = call.number, call.objects.give("context", context)
        response = connection.with_evidence(partial(ask, "Fit"), request, profile, context.catalogue)
        if not response.model.abilities:
            response.model.abilities.append("predict")
        model = self._object(response.model)
        if isinstance(model, Remote):
            model.asks = call is not None and call.gave_a_model
        return model

    def _predict(self, model: int, arguments: tuple[Any, ...], call: Call | None, ask: Ask) -> Any:
        rows, options = arguments
        request = pb.PredictRequest(
            model=model,
            configurations=write_configurations(rows),
            options=write_options(options or Options()),
            call=0 if call is None else call.number,
        )
        return _predictions(ask("Predict", request), len(rows))


def _wait(future: Any, budget_s: float, call: Call) -> Any:
    """The result of a call; time of other plugins that it calls does not count, unless its calls never end."""
    end_s = time.monotonic() + budget_s
    while True:
        left_s = end_s + min(call.others_s(), budget_s) - time.monotonic()
        if left_s <= 0.0:
            future.cancel()
            raise TimeoutError
        with suppress(grpc.FutureTimeoutError):
            return future.result(timeout=left_s)


def _content(content: Any) -> bytes:
    """The host's own bytes of a prior; a prior of an inline estimator has none."""
    if not isinstance(content, Opaque):
        raise UndecodableError("a prior that this host did not learn")
    return content.content


def _predictions(response: pb.PredictResponse, rows: int) -> Any:
    if not response.HasField("predictions"):
        return read_answer(response.other)
    return _read(lambda: read_predictions(response.predictions, rows))


def read_answer(message: value_pb2.Value) -> Any:
    """The value of a plugin's answer. Raises UndecodableError."""
    return read_value(message, {"unsendable": foreign})


def _read(read: Callable[[], Any]) -> Any:
    """The result of reading a message; any exception is the sender's fault."""
    try:
        return read()
    except (NodewiseError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise UndecodableError(f"invalid values ({type(error).__name__})") from None

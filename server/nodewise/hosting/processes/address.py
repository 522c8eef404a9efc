"""An estimator at an address: a server of its own, in any language, that speaks ``EstimatorService``."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.connection import OPTIONS, Connection
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.peer import ESTIMATOR, Listing, Peer
from nodewise.hosting.processes.remote import Following, GoneError, Remote
from nodewise.hosting.processes.statuses import FAILED, FORGOTTEN, GONE, read_error
from nodewise.hosting.processes.values import UndecodableError
from nodewise.plugin import BASIC_COLUMNS
from nodewise.plugin.records import PLUGIN_API_RANGE
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb

__all__ = ["Address", "AddressedEstimator"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 1.0
"""Seconds between looks at what a server has: one small call."""
LOOK_BUDGET_S: Final = 5.0
RETRY_S: Final = 1.0
_METHODS: Final = frozenset({"assess", "fit", "predict"})
MOST_BYTES: Final = 64 << 20
"""Of a message of a server: columns of 65,536 rows take a few MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where an estimator answers.

    Attributes
    ----------
    target : str
        ``unix:///path`` or ``host:port``.
    ca, certificate, key : str
        Files in PEM: who signs the server's certificate (empty = the system's roots), and the worker's own
        certificate with its key, where the server asks for one.
    plain : bool
        Whether a ``host:port`` is spoken to without TLS.
    """

    target: str
    ca: str = ""
    certificate: str = ""
    key: str = ""
    plain: bool = False

    def channel(self) -> grpc.Channel:
        """To the server; it connects by and by. Raises OSError for a file that cannot be read."""
        options = (*OPTIONS, ("grpc.max_receive_message_length", MOST_BYTES))
        if self.plain or self.target.startswith("unix:"):
            return grpc.insecure_channel(self.target, options)
        files = [Path(each).read_bytes() if each else None for each in (self.ca, self.key, self.certificate)]
        return grpc.secure_channel(self.target, grpc.ssl_channel_credentials(*files), options)


class AddressedEstimator(Peer):
    """The estimator of one name at an address. Threads ask it at the same time.

    A thread looks from time to time what the server has: another version is another estimator, and models of a server
    that has started anew are fitted again.

    Parameters
    ----------
    name : str
    address : Address
    limits : HostLimits
    known : Listing or None
        What another process has seen already; then it looks no more.
    """

    def __init__(self, name: str, address: Address, limits: HostLimits, known: Listing | None = None) -> None:
        super().__init__(f"{name} at {address.target}")
        self._name = name
        self._limits = limits
        self._channel = address.channel()
        self._connection = Connection(self._channel, remembers=False)
        self._instance: str | None = None
        self._known = known
        self._looks = known is None
        self._looked = threading.Event()
        self._closed = threading.Event()
        self.generation = 1
        self.pid = None
        self.patience_s = limits.auto_patience_s
        self.plugin_names = (name,)

    # --- what a registry asks

    def begin(self) -> None:
        """Look what the server has, from now on."""
        if self._looks:
            self._looks = False
            threading.Thread(target=self._look, name=f"nodewise-address-{self._name}", daemon=True).start()

    def settled(self, wait_s: float) -> bool:
        """Whether the server was reached; False also once it is known that it cannot be reached now."""
        self._looked.wait(min(wait_s, LOOK_BUDGET_S) if wait_s < math.inf else LOOK_BUDGET_S)
        return self._known is not None

    @property
    def known(self) -> Listing | None:
        """The listing as it was seen last; None = the server was not reached yet."""
        return self._known

    def listing(self) -> Listing:
        """The same. Raises HostBusyError where the server was not reached."""
        self.begin()
        if self._known is None:
            raise HostBusyError("its server cannot be reached", RETRY_S)
        return self._known

    def close(self) -> None:
        """Ask it no more."""
        self._closed.set()
        self._channel.close()

    def _look(self) -> None:
        while not self._closed.is_set():
            try:
                self._saw(self._connection.list_estimators(pb.ListEstimatorsRequest(), timeout=LOOK_BUDGET_S))
            except (grpc.RpcError, ValueError) as error:  # ValueError: closed meanwhile
                if not self._looked.is_set():
                    _log.warning("estimator_not_reached", estimator=self.distribution, error=_code_of(error))
            self._looked.set()
            self._closed.wait(LOOK_S)

    def _saw(self, response: pb.ListEstimatorsResponse) -> None:
        found = next((each for each in response.estimators if each.name == self._name), None)
        if self._instance not in (None, response.instance):
            self.generation += 1
            self._connection.forget()
        self._instance = response.instance
        self._connection.remembers = response.remembers
        if found is None:
            names = ", ".join(each.name for each in response.estimators) or "none"
            problem = f"its server has no estimator of that name; it has: {names[:500]}"
            listing: Listing = ([], [[self._name, "estimator", "PLUGIN_INVALID", problem]])
        else:
            plain = {
                "name": found.name,
                "version": found.version,
                "description": found.description,
                "plugin_api": found.plugin_api or PLUGIN_API_RANGE,
                "capabilities": frozenset(found.capabilities),
                "columns": frozenset(found.columns) or BASIC_COLUMNS,
            }
            listing = ([["estimator", plain, ["assess", "fit"]]], [])
        if listing != self._known:
            self._known = listing
            _log.info("estimator_reached", estimator=self.distribution, version="" if found is None else found.version)

    # --- calls

    def asked(self, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None = None) -> Any:
        """As the base says."""
        early = self._predicted_early(remote, name, arguments)
        if early is not None:
            return early[0]
        if self._closed.is_set():
            raise HostBusyError("the server stops", RETRY_S)
        generation = self.generation
        if remote.generation and remote.generation != generation:
            raise GoneError
        connection, ask = self._connection, partial(self._exchanged, self._limits.budget_s(name, arguments))
        try:
            if name == "assess":
                return self._assessed(connection, remote, arguments, following, ask)
            if name == "predict":
                return self._predicted(connection, remote, arguments, 0, ask)
            return self._fitted(connection, remote, arguments, generation, ask)
        except UndecodableError as error:
            raise HostFaultError(f"its server sent {error}") from None
        except grpc.RpcError:
            raise HostFaultError("its server forgets what it was just sent") from None

    def _fitted(
        self,
        connection: Connection,
        remote: Remote,
        arguments: tuple[Any, ...],
        generation: int,
        ask: Callable[[Any, Any], Any],
    ) -> Any:
        profile, context = arguments
        estimator = str(remote.target).removeprefix(ESTIMATOR)
        released = self._forgotten()
        if released:
            ask(connection.release, pb.ReleaseRequest(models=released))
        response: pb.FitResponse = connection.remembered(
            lambda: ask(connection.fit, connection.fit_request(estimator, profile, context))
        )
        if not response.model.abilities:
            response.model.abilities.append("predict")
        return self._object(response.model, generation, _METHODS)

    def _exchanged(self, budget_s: float, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=budget_s)
        except grpc.RpcError as error:
            raise self._fault(budget_s, error) from None
        except (ValueError, TypeError) as error:  # ValueError also where the channel was closed meanwhile
            raise HostFaultError(f"it was asked what cannot be sent ({type(error).__name__})") from None

    def _fault(self, budget_s: float, error: grpc.RpcError) -> Exception:
        """What the end of a call means."""
        told, code = read_error(error), error.code()
        if isinstance(told, NodewiseError):
            return told
        reason = "" if told is None else told["reason"]
        if reason == FAILED and told is not None:
            return HostFaultError("", told.get("raised", ""), told.get("detail", ""))
        if reason == GONE or code == grpc.StatusCode.NOT_FOUND:
            return GoneError()
        if reason == FORGOTTEN or code == grpc.StatusCode.FAILED_PRECONDITION:
            return error
        if code == grpc.StatusCode.UNAVAILABLE:
            return HostBusyError("its server cannot be reached", RETRY_S)
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return HostBusyError("its server has too much to do", RETRY_S)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s")
        return HostFaultError(f"its server answered with status {_code_of(error)}")


def _code_of(error: Exception) -> str:
    return error.code().name if isinstance(error, grpc.RpcError) else type(error).__name__

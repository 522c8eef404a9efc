"""An estimator at an address: a server of its own, in any language, that speaks ``EstimatorService``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import grpc
import structlog

from nodewise.hosting.processes.address import Address
from nodewise.hosting.processes.connection import OPTIONS, Connection
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.peer import Peer
from nodewise.hosting.records import Listing
from nodewise.plugin import BASIC_COLUMNS
from nodewise.plugin.records import PLUGIN_API_RANGE
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb

__all__ = ["AddressedEstimator"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 1.0
"""Seconds between two listings of a server's estimators, one small call each."""
LOOK_BUDGET_S: Final = 5.0
RETRY_S: Final = 1.0
MOST_BYTES: Final = 64 << 20
"""Largest message of a server: columns of 65,536 rows take a few MiB."""


class AddressedEstimator(Peer):
    """The estimator of one name at an address. Threads call it at the same time.

    A thread lists the server's estimators at intervals: another version is another estimator, and models of a server
    that was restarted are fitted again.

    Parameters
    ----------
    name : str
    address : Address
    limits : HostLimits
    listing : Listing or None
        The listing by another process; then this one makes none.
    """

    def __init__(self, name: str, address: Address, limits: HostLimits, listing: Listing | None = None) -> None:
        super().__init__(f"{name} at {address.target}", (name,), limits, listing)
        self._name = name
        self._channel = _channel(address)
        self._connection = Connection(self._channel)
        self._connection.remembers = False
        self._instance: str | None = None
        self._is_closed = threading.Event()
        self.generation = 1

    def wait_until_known(self, wait_s: float) -> bool:
        """Whether the server was reached; False also once it is known that it cannot be reached now."""
        self._is_known.wait(min(wait_s, LOOK_BUDGET_S))
        return self.known_listing is not None

    def listing(self) -> Listing:
        """The last listing of the server."""
        self.begin()
        if self.known_listing is None:
            raise HostBusyError("its server cannot be reached", RETRY_S)
        return self.known_listing

    def close(self) -> None:
        """Close the connection; later calls are refused."""
        self._is_closed.set()
        self._channel.close()

    def _look(self) -> None:
        look = self._connection.methods["ListEstimators"]
        while not self._is_closed.is_set():
            try:
                self._note_listing(look(pb.ListEstimatorsRequest(), timeout=LOOK_BUDGET_S))
            except (grpc.RpcError, ValueError) as error:  # ValueError: closed meanwhile
                if not self._is_known.is_set():
                    code = error.code().name if isinstance(error, grpc.RpcError) else type(error).__name__
                    _log.warning("estimator_not_reached", estimator=self.distribution, error=code)
            self._is_known.set()
            self._is_closed.wait(LOOK_S)

    def _note_listing(self, response: pb.ListEstimatorsResponse) -> None:
        if self._instance not in (None, response.instance):
            self.generation += 1
        self._instance = response.instance
        self._connection.remembers = response.remembers
        estimator = next((each for each in response.estimators if each.name == self._name), None)
        listing: Listing
        if estimator is None:
            names = ", ".join(each.name for each in response.estimators) or "none"
            problem = f"its server has no estimator of that name; it has: {names[:500]}"
            listing = [], [[self._name, "estimator", "PLUGIN_INVALID", problem]]
        else:
            plain = {
                **{name: getattr(estimator, name) for name in ("name", "version", "description")},
                "plugin_api": estimator.plugin_api or PLUGIN_API_RANGE,
                "capabilities": frozenset(estimator.capabilities),
                "columns": frozenset(estimator.columns) or BASIC_COLUMNS,
            }
            listing = [["estimator", plain, ["assess", "fit"]]], []
        if listing != self.known_listing:
            self.known_listing = listing
            _log.info(
                "estimator_reached", estimator=self.distribution, version="" if estimator is None else estimator.version
            )

    # --- calls

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        if self._is_closed.is_set():
            raise HostBusyError("the server is stopping", RETRY_S)
        yield self._connection

    def _lost_error(self, connection: Connection, name: str, code: grpc.StatusCode) -> Exception:  # noqa: ARG002
        if code == grpc.StatusCode.UNAVAILABLE:
            return HostBusyError("its server cannot be reached", RETRY_S)
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return HostBusyError("its server is overloaded", RETRY_S)
        return HostFaultError(f"its server answered with status {code.name}")

    def _overrun(self, connection: Connection, budget_s: float) -> Exception:  # noqa: ARG002
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s")


def _channel(address: Address) -> grpc.Channel:
    """A channel to the server, which connects at its first call. Raises OSError for a file that cannot be read."""
    options = (*OPTIONS, ("grpc.max_receive_message_length", MOST_BYTES))
    if address.plain or address.target.startswith("unix:"):
        return grpc.insecure_channel(address.target, options)
    files = [Path(each).read_bytes() if each else None for each in (address.ca, address.key, address.certificate)]
    return grpc.secure_channel(address.target, grpc.ssl_channel_credentials(*files), options)

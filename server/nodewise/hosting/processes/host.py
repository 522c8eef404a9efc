"""A plugin host from the worker's side: a process that is started, called, watched, ended and replaced."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

import grpc
import structlog

from nodewise.hosting.background import impatient
from nodewise.hosting.processes.callbacks import Call, ContextObjects
from nodewise.hosting.processes.connection import MOST_BYTES, Connection
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.host_process import HostProcess, start
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.members import ATTRIBUTES, OBJECT_ARGUMENTS
from nodewise.hosting.processes.peer import Ask, Peer, read_answer
from nodewise.hosting.processes.remote import Remote
from nodewise.hosting.records import Listing
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb

__all__ = ["Host"]

_log = structlog.get_logger(__name__)

WAIT_S: Final = 0.1
"""Seconds between checks of the call that occupies the host."""
_hosts_in_use: ContextVar[tuple[int, ...]] = ContextVar("hosts_in_use", default=())
"""Hosts that the caller occupies already: its calls within a call do not wait for that call."""
_LOST_CODES: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN})


class Host(Peer):
    """A process for one distribution. It runs one call at a time, so that the call that kills a host is known.

    Parameters
    ----------
    distribution : str
        Name and version.
    entry_points : tuple of pairs
        Name and value of each.
    limits : HostLimits
    listing : pair of lists or None
        The listing, where another process has it already: this host starts at its first call.
    folder : str
        Folder of its modules, if not in this process's search path: two versions are installed in two folders.
    """

    def __init__(
        self,
        distribution: str,
        entry_points: tuple[tuple[str, str], ...],
        limits: HostLimits,
        listing: Listing | None = None,
        folder: str = "",
    ) -> None:
        super().__init__(distribution, tuple(name for name, _ in entry_points), limits, listing)
        self._entry_points = entry_points
        self._folder = folder
        self._turn = threading.Lock()
        self._since_s = 0.0
        self._process: HostProcess | None = None
        self._failure: BaseException | None = None
        self._objects = ContextObjects(self._kept_there)
        self._is_closed = False

    # --- life

    def _look(self) -> None:
        try:
            with self._connect():
                pass
        except BaseException as error:  # noqa: BLE001  # the caller that wants the listing gets it
            self._failure = error
        finally:
            self._is_known.set()

    def wait_until_known(self, wait_s: float) -> bool:
        """As the base says."""
        return self._is_known.wait(wait_s if wait_s < math.inf else None)

    def listing(self) -> Listing:
        """As the base says; starts the host unless it runs."""
        self.begin()
        self._is_known.wait()
        if self.known_listing is None:
            assert self._failure is not None
            raise self._failure
        return self.known_listing

    def close(self) -> None:
        """End the process; no other is started."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()

    @property
    def pid(self) -> int | None:
        """Id of its process; None = no process runs."""
        process = self._process
        return None if process is None or process.has_ended else process.pid

    def _running_process(self) -> HostProcess:
        """The process; started and loaded where none runs."""
        process = self._process
        if process is not None and not process.has_ended:
            return process
        if process is not None:
            process.kill()  # its own child processes may live
        self._refuse_if_closed()
        process = self._process = start(
            self.distribution, self._entry_points, self.limits, self._objects.serve, self._folder
        )
        self.generation += 1
        budget_s = self.limits.load_budget_s
        end_s = time.monotonic() + budget_s
        try:
            self._refuse_if_closed()  # meanwhile
            process.wait(budget_s)
            response = self._exchange(
                process, "loading", end_s - time.monotonic(), "ListPlugins", pb.ListPluginsRequest()
            )
            self.known_listing = self.known_listing or _listing(response)
        except TimeoutError:
            raise self._overrun(process, budget_s) from None
        except ConnectionError:
            raise self._lost_error(process, "loading", grpc.StatusCode.UNAVAILABLE) from None
        except BaseException:
            process.kill()
            raise
        _log.info("host_started", distribution=self.distribution, pid=process.pid, generation=self.generation)
        return process

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise HostBusyError("the server is stopping", 1.0)

    # --- calls

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """Exclusive use of the host; calls within a call do not wait for it."""
        hosts = _hosts_in_use.get()
        if id(self) in hosts:
            yield self._running_process()
            return
        turn = self._turn
        if not turn.acquire(blocking=False):
            wanted_s = time.monotonic() + self.limits.call_budget_s
            # Callers that can do without it stop waiting where another call takes long.
            held_s = self.limits.auto_patience_s if impatient.get() else math.inf
            while not turn.acquire(timeout=min(WAIT_S, held_s)):
                now_s = time.monotonic()
                if now_s > wanted_s or now_s - self._since_s > held_s:
                    raise HostBusyError("its host is busy with another call", WAIT_S)
        self._since_s = time.monotonic()
        token = _hosts_in_use.set((*hosts, id(self)))
        try:
            yield self._running_process()
        finally:
            _hosts_in_use.reset(token)
            turn.release()

    def _may_ask(self, arguments: tuple[Any, ...]) -> AbstractContextManager[Call | None]:
        return self._objects.call(arguments)

    def _call_method(self, remote: Remote, name: str, arguments: tuple[Any, ...], call: Call | None, ask: Ask) -> Any:
        kinds = OBJECT_ARGUMENTS.get(name, {})
        request = pb.CallRequest(
            method=name,
            reads_attribute=name in ATTRIBUTES,
            arguments=[
                self._objects.write(kinds[place], each) if place in kinds else self._objects.value(each)
                for place, each in enumerate(arguments)
            ],
            call=0 if call is None else call.number,
        )
        if isinstance(remote.target, str):
            request.record = remote.target
        else:
            request.kept = remote.target
        response = ask("Call", request)
        if not response.HasField("kept"):
            return read_answer(response.answer)
        answer = self._object(response.kept)
        if isinstance(answer, Remote):
            answer.asks = remote.asks
        return answer

    def _kept_there(self, remote: Remote) -> int:
        is_here = remote.peer is self and remote.generation == self.generation and isinstance(remote.target, int)
        return int(remote.target) if is_here else 0

    # --- faults

    def _abandon(self, connection: Connection) -> None:
        assert isinstance(connection, HostProcess)
        connection.kill()

    def _overrun(self, connection: Connection, budget_s: float) -> Exception:
        assert isinstance(connection, HostProcess)
        if connection.is_over:
            return HostBusyError("its host was ended by another call", WAIT_S)
        connection.kill()
        _log.warning("host_killed", distribution=self.distribution, pid=connection.pid, budget_s=budget_s)
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s and was ended")

    def _lost_error(self, connection: Connection, name: str, code: grpc.StatusCode) -> Exception:
        assert isinstance(connection, HostProcess)
        if connection.is_over:
            return HostBusyError("its host was ended by another call", WAIT_S)
        if code in _LOST_CODES:
            fault = connection.fault()
            _log.warning("host_died", distribution=self.distribution, pid=connection.pid, method=name, how=fault.what)
            return fault
        connection.kill()
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return HostFaultError(f"its host sent more than {MOST_BYTES >> 20} MiB")
        return HostFaultError(f"its host sent an invalid status ({code.name})")


def _listing(response: pb.ListPluginsResponse) -> Listing:
    """The records and problems of a host, as plain values."""
    records = [[each.kind, read_answer(each.fields), list(each.abilities)] for each in response.records]
    problems = [[each.name, each.kind, each.reason, each.message] for each in response.problems]
    return records, problems

"""A plugin host, as the worker has it: a process that is started, asked, watched, ended and replaced."""

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

from nodewise.hosting.processes.callbacks import Call, GivenObjects
from nodewise.hosting.processes.connection import MOST_BYTES, Connection
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.life import Life, start
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.peer import Ask, Listing, Peer, read_answer
from nodewise.hosting.processes.remote import Remote
from nodewise.hosting.processes.words import ATTRIBUTES, GIVEN
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb

__all__ = ["Host", "Listing", "impatient"]

_log = structlog.get_logger(__name__)

WAIT_S: Final = 0.1
"""Seconds between looks at what holds the host."""
impatient: ContextVar[bool] = ContextVar("impatient", default=False)
"""Whether the caller can do without this plugin, and rather does than wait for one that is stuck."""
_held: ContextVar[tuple[int, ...]] = ContextVar("held", default=())
"""Hosts that the caller has for itself already: what it asks within a call does not wait for the call."""
_LOST: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN})


class Host(Peer):
    """A process for one distribution. One call at a time: what kills a host is then the call that was on.

    Parameters
    ----------
    distribution : str
        Name and version.
    entry_points : tuple of pairs
        Name and value of each.
    limits : HostLimits
    known : pair of lists or None
        The listing, where another process has it already: this host starts when it is first asked something.
    folder : str
        Where its modules lie, if not among those of this process: two versions live side by side in two folders.
    """

    def __init__(
        self,
        distribution: str,
        entry_points: tuple[tuple[str, str], ...],
        limits: HostLimits,
        known: Listing | None = None,
        folder: str = "",
    ) -> None:
        super().__init__(distribution, tuple(name for name, _ in entry_points), limits, known)
        self._entry_points = entry_points
        self._folder = folder
        self._turn = threading.Lock()
        self._since_s = 0.0
        self._life: Life | None = None
        self._failure: BaseException | None = None
        self._given = GivenObjects(self._kept_there)
        self._is_closed = False

    # --- life

    def _look(self) -> None:
        try:
            with self._reached():
                pass
        except BaseException as error:  # noqa: BLE001  # the caller that wants the listing is told
            self._failure = error
        finally:
            self._looked.set()

    def settled(self, wait_s: float) -> bool:
        """As the base says."""
        return self._looked.wait(wait_s if wait_s < math.inf else None)

    def listing(self) -> Listing:
        """As the base says; starts the host unless it runs."""
        self.begin()
        self._looked.wait()
        if self.known is None:
            assert self._failure is not None
            raise self._failure
        return self.known

    def close(self) -> None:
        """End the process; none is started any more."""
        self._is_closed = True
        life = self._life
        if life is not None:
            life.kill()

    @property
    def pid(self) -> int | None:
        """Of its process; None = there is none now."""
        life = self._life
        return None if life is None or life.has_ended else life.pid

    def _living(self) -> Life:
        """The process, started and loaded anew where there is none."""
        life = self._life
        if life is not None and not life.has_ended:
            return life
        if life is not None:
            life.kill()  # what it forked may live
        self._refuse_if_closed()
        life = self._life = start(self.distribution, self._entry_points, self.limits, self._given.serve, self._folder)
        self.generation += 1
        budget_s = self.limits.load_budget_s
        end_s = time.monotonic() + budget_s
        try:
            self._refuse_if_closed()  # meanwhile
            life.wait(budget_s)
            response = self._exchanged(
                life, "loading", end_s - time.monotonic(), "ListPlugins", pb.ListPluginsRequest()
            )
            self.known = self.known or _listing(response)
        except TimeoutError:
            raise self._overrun(life, budget_s) from None
        except ConnectionError:
            raise self._lost(life, "loading", grpc.StatusCode.UNAVAILABLE) from None
        except BaseException:
            life.kill()
            raise
        _log.info("host_started", distribution=self.distribution, pid=life.pid, generation=self.generation)
        return life

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise HostBusyError("the server stops", 1.0)

    # --- calls

    @contextmanager
    def _reached(self) -> Iterator[Connection]:
        """The host for oneself; what is asked within a call does not wait for it."""
        held = _held.get()
        if id(self) in held:
            yield self._living()
            return
        turn = self._turn
        if not turn.acquire(blocking=False):
            wanted_s = time.monotonic() + self.limits.call_budget_s
            # Callers that can do without it go on where another call has held it for long.
            held_s = self.limits.auto_patience_s if impatient.get() else math.inf
            while not turn.acquire(timeout=min(WAIT_S, held_s)):
                now_s = time.monotonic()
                if now_s > wanted_s or now_s - self._since_s > held_s:
                    raise HostBusyError("its host does something else", WAIT_S)
        self._since_s = time.monotonic()
        token = _held.set((*held, id(self)))
        try:
            yield self._living()
        finally:
            _held.reset(token)
            turn.release()

    def _may_ask(self, arguments: tuple[Any, ...]) -> AbstractContextManager[Call | None]:
        return self._given.call(arguments)

    def _called(self, remote: Remote, name: str, arguments: tuple[Any, ...], call: Call | None, ask: Ask) -> Any:
        given = GIVEN.get(name, {})
        request = pb.CallRequest(
            method=name,
            reads_attribute=name in ATTRIBUTES,
            arguments=[
                self._given.written(given[place], each) if place in given else self._given.value(each)
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
        found = self._object(response.kept)
        if isinstance(found, Remote):
            found.asks = remote.asks
        return found

    def _kept_there(self, remote: Remote) -> int:
        is_here = remote.peer is self and remote.generation == self.generation and isinstance(remote.target, int)
        return int(remote.target) if is_here else 0

    # --- faults

    def _abandon(self, connection: Connection) -> None:
        assert isinstance(connection, Life)
        connection.kill()

    def _overrun(self, connection: Connection, budget_s: float) -> Exception:
        assert isinstance(connection, Life)
        if connection.is_over:
            return HostBusyError("its host was ended by another call", WAIT_S)
        connection.kill()
        _log.warning("host_killed", distribution=self.distribution, pid=connection.pid, budget_s=budget_s)
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s and was ended")

    def _lost(self, connection: Connection, name: str, code: grpc.StatusCode) -> Exception:
        assert isinstance(connection, Life)
        if connection.is_over:
            return HostBusyError("its host was ended by another call", WAIT_S)
        if code in _LOST:
            how = connection.how_it_ended()
            _log.warning("host_died", distribution=self.distribution, pid=connection.pid, method=name, how=how)
            return HostFaultError(f"its process {how}")
        connection.kill()
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return HostFaultError(f"its host sent more than {MOST_BYTES >> 20} MiB")
        return HostFaultError(f"its host sent a status that is none ({code.name})")


def _listing(response: pb.ListPluginsResponse) -> Listing:
    """What a host brings, as plain values."""
    records = [[each.kind, read_answer(each.fields), list(each.abilities)] for each in response.records]
    problems = [[each.name, each.kind, each.reason, each.message] for each in response.problems]
    return records, problems

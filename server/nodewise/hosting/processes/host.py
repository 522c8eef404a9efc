"""A plugin host, as the worker has it: a process that is started, asked, watched, ended and replaced."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import grpc
import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.processes.callbacks import Call, Callbacks, GivenObjects
from nodewise.hosting.processes.connection import MOST_BYTES
from nodewise.hosting.processes.faults import HostBusyError, HostFaultError
from nodewise.hosting.processes.life import Life, started
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.peer import ESTIMATOR, KNOWN, Listing, Peer, read_answer
from nodewise.hosting.processes.remote import Following, GoneError, Remote
from nodewise.hosting.processes.statuses import FAILED, FORGOTTEN, GONE, read_error
from nodewise.hosting.processes.values import UndecodableError
from nodewise.hosting.processes.words import ATTRIBUTES, GIVEN
from nodewise_protos.plugin.v1 import estimator_service_pb2 as estimators
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb

__all__ = ["Host", "Listing", "impatient"]

_log = structlog.get_logger(__name__)

WAIT_S: Final = 0.1
"""Seconds between looks at who holds the host."""
impatient: ContextVar[bool] = ContextVar("impatient", default=False)
"""Whether who asks can do without this plugin, and rather does than wait for one that is stuck."""
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
        super().__init__(distribution)
        self._folder = folder
        self._entry_points = entry_points
        self._limits = limits
        self._turn = threading.Lock()
        self._since_s = 0.0
        self._life: Life | None = None
        self._known = known
        self._loading: Future[Listing] | None = None
        self._loaded = False
        self._given = GivenObjects(self._kept_there)
        self._closed = threading.Event()
        self.plugin_names = tuple(name for name, _ in entry_points)
        self.patience_s = limits.auto_patience_s

    # --- life

    def begin(self) -> None:
        """Start the process, and load it, without waiting for either, so that several do so at the same time."""
        if self._loading is None and self._known is None and not self._closed.is_set():
            self._loading = Future()
            threading.Thread(
                target=self._load, args=(self._loading,), name="nodewise-host-loading", daemon=True
            ).start()

    def _load(self, loading: Future[Listing]) -> None:
        try:
            with self._taken():
                self._living()
            assert self._known is not None
            loading.set_result(self._known)
        except BaseException as error:  # noqa: BLE001  # it is told to whoever wants the listing
            loading.set_exception(error)

    def settled(self, wait_s: float) -> bool:
        """Whether it is known within so many seconds what it brings, or that it cannot be loaded."""
        return self._loading is None or not wait([self._loading], wait_s if wait_s < math.inf else None).not_done

    def listing(self) -> Listing:
        """Records and problems, as plain values; starts the host unless it runs, and waits for it.

        Raises
        ------
        HostFaultError, HostBusyError
            If it cannot be loaded; if it was closed meanwhile.
        """
        self.begin()
        if self._known is None and self._loading is not None:
            return self._loading.result()
        if self._known is None:
            raise HostBusyError("the server stops", 1.0)
        return self._known

    def close(self) -> None:
        """End the process; none is started any more."""
        self._closed.set()
        life = self._life
        if life is not None:
            life.kill()

    @property
    def known(self) -> Listing | None:
        """The listing; None = it was never loaded."""
        return self._known

    @property
    def pid(self) -> int | None:
        """Of its process; None = there is none now."""
        life = self._life
        return None if life is None else life.pid

    def _living(self) -> Life:
        """The process, started and loaded anew where there is none."""
        life = self._life
        if life is not None and self._loaded and not life.ended:
            return life
        if life is not None:
            life.kill()  # what it forked may live
        self._refuse_if_closed()
        life = self._life = started(self.distribution, self._limits, self._folder)
        if self._closed.is_set():  # meanwhile
            life.kill()
        self._refuse_if_closed()
        self.generation += 1
        self._loaded = False
        end_s = time.monotonic() + self._limits.load_budget_s
        try:
            if not life.wait(self._limits.load_budget_s):
                raise self._overrun(life, self._limits.load_budget_s)
            left_s = end_s - time.monotonic()
            response = self._exchanged(life, "loading", left_s, None, life.connection.load, self._load_request(life))
            if self._known is None:
                self._known = _listing(response)
        except ConnectionError:
            raise self._dead(life, "loading") from None
        except (HostFaultError, UndecodableError, ValueError):
            life.kill()
            raise
        self._loaded = True
        _log.info("host_started", distribution=self.distribution, pid=life.pid, generation=self.generation)
        return life

    def _refuse_if_closed(self) -> None:
        if self._closed.is_set():
            raise HostBusyError("the server stops", 1.0)

    def _load_request(self, life: Life) -> pb.LoadRequest:
        return pb.LoadRequest(
            paths=life.paths,
            entry_points=[pb.EntryPoint(name=name, value=value) for name, value in self._entry_points],
            distribution=self.distribution,
            memory_bytes=self._limits.memory_bytes,
            context_target=Callbacks.of_this_process().target,
        )

    # --- calls

    def asked(self, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None = None) -> Any:
        """As the base says; what the plugin does in another call is not waited for by who can do without."""
        early = self._predicted_early(remote, name, arguments)
        if early is not None:
            return early[0]
        with self._taken():
            life = self._living()
            if remote.generation and remote.generation != self.generation:
                raise GoneError
            if following is not None and following[0].generation != self.generation:
                following = None
            try:
                return self._answered(life, remote, name, arguments, following)
            except UndecodableError as error:
                life.kill()
                raise HostFaultError(f"its host sent {error}") from None
            except grpc.RpcError:
                life.kill()
                raise HostFaultError("its host forgets what it was just sent") from None
            except HostFaultError as fault:
                if following is not None and fault.what:
                    fault.method = following[1]  # both were on: the one that does the work is told of
                raise

    def _answered(
        self, life: Life, remote: Remote, name: str, arguments: tuple[Any, ...], following: Following | None
    ) -> Any:
        budget_s, connection = self._limits.budget_s(name, arguments), life.connection
        of_estimator = isinstance(remote.target, str) and remote.target.startswith(ESTIMATOR)
        if of_estimator and name == "assess":
            ask = partial(self._exchanged, life, name, budget_s, None)
            return self._assessed(connection, remote, arguments, following, ask)
        is_prediction = name == "predict" and isinstance(remote.target, int)
        may_ask = remote.asks or not is_prediction
        with self._given.call(arguments) if may_ask else nullcontext((0, None)) as (number, call):
            ask = partial(self._exchanged, life, name, budget_s, call)
            if is_prediction:
                return self._predicted(connection, remote, arguments, number, ask)
            self._release(life)
            if of_estimator and name == "fit":
                return self._fitted(life, remote, arguments, number, ask)
            return self._called(life, remote, name, arguments, number, ask)

    def _fitted(
        self, life: Life, remote: Remote, arguments: tuple[Any, ...], call: int, ask: Callable[..., Any]
    ) -> Any:
        profile, context = arguments
        estimator, connection = str(remote.target).removeprefix(ESTIMATOR), life.connection
        watched = _WatchedContext(context)
        number = self._given.give("context", watched)
        response: estimators.FitResponse = connection.remembered(
            lambda: ask(connection.fit, connection.fit_request(estimator, profile, context, number, call))
        )
        model = self._object(response.model, self.generation, KNOWN)
        if isinstance(model, Remote):
            model.asks = watched.gave_a_model
        return model

    def _called(
        self, life: Life, remote: Remote, name: str, arguments: tuple[Any, ...], call: int, ask: Callable[..., Any]
    ) -> Any:
        """A method without messages of its own."""
        given, objects = GIVEN.get(name, {}), self._given
        request = pb.CallRequest(
            method=name,
            reads_attribute=name in ATTRIBUTES,
            arguments=[
                objects.written(given[place], each) if place in given else objects.value(each)
                for place, each in enumerate(arguments)
            ],
            call=call,
        )
        if isinstance(remote.target, str):
            request.record = remote.target
        else:
            request.kept = remote.target
        response: pb.CallResponse = ask(life.connection.call, request)
        if response.HasField("kept"):
            found = self._object(response.kept, self.generation, KNOWN)
            if isinstance(found, Remote):
                found.asks = remote.asks
            return found
        return read_answer(response.answer)

    def _release(self, life: Life) -> None:
        """Tell of objects that nobody holds any more."""
        forgotten = self._forgotten()
        if forgotten:
            with suppress(grpc.RpcError):  # the call that comes next tells what is wrong
                life.connection.release(estimators.ReleaseRequest(models=forgotten), timeout=self._limits.call_budget_s)

    def _kept_there(self, remote: Remote) -> int:
        here = remote.peer is self and remote.generation == self.generation and isinstance(remote.target, int)
        return int(remote.target) if here else 0

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """The host for oneself; what is asked within a call does not wait for it."""
        held = _held.get()
        if id(self) in held:
            yield
            return
        turn = self._turn
        if not turn.acquire(blocking=False):
            wanted_s = time.monotonic() + self._limits.call_budget_s
            # Those who can do without it go on where another call has held it for long.
            held_s = self._limits.auto_patience_s if impatient.get() else math.inf
            while not turn.acquire(timeout=min(WAIT_S, held_s)):
                now_s = time.monotonic()
                if now_s > wanted_s or now_s - self._since_s > held_s:
                    raise HostBusyError("its host does something else", WAIT_S)
        self._since_s = time.monotonic()
        token = _held.set((*held, id(self)))
        try:
            yield
        finally:
            _held.reset(token)
            turn.release()

    def _exchanged(self, life: Life, name: str, budget_s: float, call: Call | None, method: Any, request: Any) -> Any:
        """The response to a request; raises as :meth:`asked`."""
        try:
            if call is None:
                return method(request, timeout=max(0.0, budget_s))
            return _watched(method.future(request), budget_s, call)
        except TimeoutError:
            raise self._overrun(life, budget_s) from None
        except grpc.RpcError as error:
            raise self._fault(life, name, budget_s, error) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise HostFaultError(f"it was asked what cannot be sent ({type(error).__name__})") from None
        except BaseException:
            life.kill()
            raise

    def _fault(self, life: Life, name: str, budget_s: float, error: grpc.RpcError) -> Exception:
        """What the end of a call means."""
        told = read_error(error)
        if isinstance(told, NodewiseError):
            return told
        if told is not None and told["reason"] == FAILED:
            return HostFaultError("", told.get("raised", ""), told.get("detail", ""))
        if told is not None and told["reason"] == GONE:
            return GoneError()
        if told is not None and told["reason"] == FORGOTTEN:
            return error
        if life.over:
            return HostBusyError("its host was ended by another call", WAIT_S)
        code = error.code()
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._overrun(life, budget_s)
        if code in _LOST:
            return self._dead(life, name)
        life.kill()
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return HostFaultError(f"its host sent more than {MOST_BYTES >> 20} MiB")
        return HostFaultError(f"its host sent a status that is none ({code.name})")

    def _overrun(self, life: Life, budget_s: float) -> HostFaultError:
        life.kill()
        _log.warning("host_killed", distribution=self.distribution, pid=life.pid, budget_s=budget_s)
        return HostFaultError(f"it exceeded its budget of {budget_s:.3g} s and was ended")

    def _dead(self, life: Life, name: str) -> HostFaultError:
        how = life.how_it_ended()
        _log.warning("host_died", distribution=self.distribution, pid=life.pid, method=name, how=how)
        return HostFaultError(f"its process {how}")


class _WatchedContext:
    """What a fit is given, and whether it asked for another's model, which its own will ask later."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.gave_a_model = False

    def traces(self) -> Any:
        return self._context.traces()

    def model(self, estimator: str) -> Any:
        self.gave_a_model = True
        return self._context.model(estimator)


def _watched(future: Any, budget_s: float, call: Call) -> Any:
    """The result of a call that may ask: what others take is not the plugin's time, unless it asks without an end."""
    end_s = time.monotonic() + budget_s
    while True:
        left_s = end_s + min(call.others_s(), budget_s) - time.monotonic()
        if left_s <= 0.0:
            future.cancel()
            raise TimeoutError
        with suppress(grpc.FutureTimeoutError):
            return future.result(timeout=left_s)


def _listing(response: pb.LoadResponse) -> Listing:
    """What a host brings, as plain values."""
    records = [[each.kind, read_answer(each.fields), list(each.abilities)] for each in response.records]
    problems = [[each.name, each.kind, each.reason, each.message] for each in response.problems]
    return records, problems

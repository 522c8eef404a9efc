"""Objects of the worker that a host may call during a call, by number."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import structlog

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.connection import OPTIONS
from nodewise.hosting.processes.members import ATTRIBUTES, KNOWN, OBJECT_METHODS
from nodewise.hosting.processes.proxies import PROFILES_AT_ONCE
from nodewise.hosting.processes.remote import Remote
from nodewise.hosting.processes.statuses import status_of
from nodewise.hosting.processes.values import read_value, refuse, write_value
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2_grpc, value_pb2

__all__ = ["MOST_READ_BYTES", "MOST_ROWS", "Call", "ContextObjects", "answer_of_object"]

_log = structlog.get_logger(__name__)

MOST_ROWS: Final = 65_536
"""Most rows of a call to another estimator's model, or the rows of the host's own call, where these are more: the
default limit of a caller's question."""
MOST_READ_BYTES: Final = 1 << 20
"""Most bytes of a file per call, the size of a host's buffer; a host that asks for more gets less, and asks again."""
MOST_GIVEN: Final = 1_024
"""Most models of other estimators that a host may call; the oldest are dropped first."""
THREADS: Final = 64
"""Most concurrent calls of a host; a call within a call takes one more."""


@dataclass(slots=True)
class Call:
    """A call to a host during which the host may call the worker.

    Attributes
    ----------
    context : Context
        Context variables of the caller, in which the host's calls run.
    gave_a_model : bool
        Whether the host got another estimator's model.
    """

    objects: ContextObjects
    number: int
    most_rows: int
    context: Context
    gave_a_model: bool = False
    spent_s: float = 0.0
    asking: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def count_as_asking(self) -> Iterator[None]:
        """Within the block, time counts as that of other plugins."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self.lock:
            self.asking += change
            self.spent_s -= change * time.monotonic()

    def others_s(self) -> float:
        """Seconds that other plugins took so far."""
        with self.lock:
            return self.spent_s + self.asking * time.monotonic()


class ContextObjects(plugin_service_pb2_grpc.ContextServiceServicer):
    """Objects that one host may call, by number, and the service that it calls them by.

    Parameters
    ----------
    number_in_host : callable
        The host's own number of an object; 0 = the object is not the host's.
    """

    def __init__(self, number_in_host: Callable[[Remote], int]) -> None:
        self._number_in_host = number_in_host
        self._objects: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._calls: dict[int, Call] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def serve(self, folder: Path) -> grpc.Server:
        """A started server of this service, in a folder that only the host can open."""
        server = grpc.server(ThreadPoolExecutor(THREADS, thread_name_prefix="nodewise-context"), options=OPTIONS)
        plugin_service_pb2_grpc.add_ContextServiceServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{folder}/context")
        server.start()
        return server

    @contextmanager
    def call(self, arguments: Iterable[Any]) -> Iterator[Call]:
        """A call with these arguments. Numbers given within it end with it, but those of models, which others use."""
        number = next(self._numbers)
        self._calls[number] = call = Call(self, number, max(MOST_ROWS, rows_of(arguments)), copy_context())
        try:
            yield call
        finally:
            del self._calls[number]
            with self._lock:
                for each in [each for each, (kind, _) in self._objects.items() if each > number and kind != "model"]:
                    del self._objects[each]
                while len(self._objects) > MOST_GIVEN:
                    self._objects.popitem(last=False)

    def give(self, kind: str, value: Any) -> int:
        """Register an object that the host may call; returns its number."""
        with self._lock:
            number = next(self._numbers)
            self._objects[number] = kind, value
        return number

    def write(self, kind: str, value: Any) -> value_pb2.Value:
        """Register an object as an argument, with the facts that need no call."""
        facts: list[Any] = []
        if kind == "run":
            left_s = value.remaining_s()
            facts = [value.catalogue, left_s if left_s < float("inf") else None]
        elif kind == "corpus":
            value = tuple(value)
            facts = [len(value)]
        elif kind == "model":
            has = value.names.__contains__ if isinstance(value, Remote) else lambda name: hasattr(value, name)
            facts = [sorted(filter(has, KNOWN))]
        message = value_pb2.Given(number=self.give(kind, value), kind=kind, facts=map(self.value, facts))
        return value_pb2.Value(given=message)

    def value(self, value: Any) -> value_pb2.Value:
        """Any value as a message."""
        return write_value(value, lambda other: self.model(other) if isinstance(other, Remote) else refuse(other))

    def model(self, value: Any) -> value_pb2.Value:
        """A model of this process or of a host."""
        number = self._number_in_host(value) if isinstance(value, Remote) else 0
        return value_pb2.Value(kept=number) if number else self.write("model", value)

    def _call(self, number: int) -> Call:
        call = self._calls.get(number)
        if call is None:
            raise NodewiseError(Reason.NOT_IMPLEMENTED, "the call that this belongs to has ended")
        return call

    def Ask(self, request: pb.AskRequest, context: grpc.ServicerContext) -> pb.AskResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        try:
            call = self._call(request.call)
            with call.count_as_asking():
                return call.context.copy().run(self._answer, call, request)
        except NodewiseError as error:
            context.abort_with_status(status_of(error))
        except Exception as error:  # noqa: BLE001  # the plugin gets an error instead of an answer
            _log.warning("given_failed", method=request.method[:100], exc_info=error)
            context.abort_with_status(status_of(NodewiseError(Reason.ESTIMATOR_FAILED, "the server failed to answer")))
        raise AssertionError

    def _answer(self, call: Call, request: pb.AskRequest) -> pb.AskResponse:
        """Call an object that the host was given; only the methods of its kind can be called."""
        kind, value = self._objects[request.number]
        arguments = [
            read_value(each, {"given": lambda reference: self._objects[reference.number][1]})
            for each in request.arguments
        ]
        answer = answer_of_object(kind, value, request.method, arguments, call.most_rows)
        if kind != "context" or request.method != "model":
            return pb.AskResponse(answer=self.value(answer))
        call.gave_a_model = True
        return pb.AskResponse(answer=self.model(answer))


def _too_much(what: str, count: int, most: int) -> NodewiseError:
    """The refusal of a request that is too large; the plugin may pass it on to its caller."""
    return NodewiseError(Reason.LIMIT_EXCEEDED, f"a plugin asked for {count} {what}; it may ask for 0 to {most}")


def rows_of(arguments: Iterable[Any]) -> int:
    """Most rows of the configurations among the arguments of a call."""
    return sum(len(each) for each in arguments if isinstance(each, Configurations))


def answer_of_object(kind: str, value: Any, method: str, arguments: list[Any], most_rows: int) -> Any:
    """Call a method of an object that a host was given; a model answers for so many rows at most."""
    if method not in OBJECT_METHODS[kind]:
        raise NodewiseError(Reason.NOT_IMPLEMENTED, f"a {kind} has no such method")
    if kind == "corpus":
        begin, end = map(int, arguments)
        if not 0 <= end - begin <= PROFILES_AT_ONCE:
            raise _too_much("profiles", end - begin, PROFILES_AT_ONCE)
        return value[begin:end]
    if kind == "stream":
        (size,) = map(int, arguments)
        if size < 0:
            raise _too_much("bytes", size, MOST_READ_BYTES)
        return value.read(min(size, MOST_READ_BYTES))
    rows = rows_of(arguments)
    if rows > most_rows:
        raise _too_much("rows", rows, most_rows)
    if method in ATTRIBUTES:
        return getattr(value, method)
    return getattr(value, method)(*arguments)

"""Objects that a call may use: they stay in the worker under a number, by which the host calls them."""

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
"""Of a question to another's model, or as many as the host itself is asked about, where that is more: as many as a
caller's question has unless it is set otherwise."""
MOST_READ_BYTES: Final = 1 << 20
"""Of a file at a time, as much as a host's buffer has: a host that asks for more is given less, and asks again."""
MOST_GIVEN: Final = 1_024
"""Models of others that a host may ask, those it was given first dropped first."""
THREADS: Final = 64
"""That answer at once: questions within questions take one each."""


@dataclass(slots=True)
class Call:
    """A call that may ask.

    Attributes
    ----------
    context : Context
        Variables of the caller's: what it asks for is done as if by the caller.
    gave_a_model : bool
        Whether it was given another's model.
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
        """Within the block, the time counts as that of others."""
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
        """Seconds that others took so far."""
        with self.lock:
            return self.spent_s + self.asking * time.monotonic()


class ContextObjects(plugin_service_pb2_grpc.ContextServiceServicer):
    """What one host may ask, by number, and the service where it asks.

    Parameters
    ----------
    number_in_host : callable
        The number by which the host has an object itself; 0 = it does not have it.
    """

    def __init__(self, number_in_host: Callable[[Remote], int]) -> None:
        self._number_in_host = number_in_host
        self._objects: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._calls: dict[int, Call] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def serve(self, folder: Path) -> grpc.Server:
        """A server of it, started, in a folder that the host alone can open."""
        server = grpc.server(ThreadPoolExecutor(THREADS, thread_name_prefix="nodewise-context"), options=OPTIONS)
        plugin_service_pb2_grpc.add_ContextServiceServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{folder}/context")
        server.start()
        return server

    @contextmanager
    def call(self, arguments: Iterable[Any]) -> Iterator[Call]:
        """A call that may ask. What is given within ends with it, but for models: others build on them."""
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
        """The number of something that may be asked from now on."""
        with self._lock:
            number = next(self._numbers)
            self._objects[number] = kind, value
        return number

    def write(self, kind: str, value: Any) -> value_pb2.Value:
        """The same as an argument, with what is known of it without asking."""
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
        """The answer of an object that a call was given; only the methods of its kind can be called."""
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
    """Of all configurations among the arguments of a call."""
    return sum(len(each) for each in arguments if isinstance(each, Configurations))


def answer_of_object(kind: str, value: Any, method: str, arguments: list[Any], most_rows: int) -> Any:
    """Call a method of an object that a call was given; a model answers about so many rows at most."""
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

"""What a call was given to ask: it stays in the worker under a number, and its host asks by that number."""

from __future__ import annotations

import itertools
import os
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
import structlog

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.processes.connection import MOST_BYTES
from nodewise.hosting.processes.given import PROFILES_AT_ONCE
from nodewise.hosting.processes.remote import Remote
from nodewise.hosting.processes.statuses import status_of
from nodewise.hosting.processes.values import UndecodableError, read_value, write_value
from nodewise.hosting.processes.words import ATTRIBUTES, GIVEN_METHODS, METHODS
from nodewise_protos.plugin.v1 import plugin_service_pb2 as pb
from nodewise_protos.plugin.v1 import plugin_service_pb2_grpc, value_pb2

__all__ = ["MOST_READ_BYTES", "MOST_ROWS", "Callbacks", "GivenObjects", "answer_of_given"]

_log = structlog.get_logger(__name__)

MOST_ROWS: Final = 65_536
"""Of a question to another's model, or as many as the host itself is asked about, where that is more: as many as a
caller's question has unless it is set otherwise."""
MOST_READ_BYTES: Final = 1 << 20
"""Of a file at a time, as much as a host's buffer has: who asks for more is given less, and asks again."""
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
    """

    objects: GivenObjects
    most_rows: int
    context: Context
    spent_s: float = 0.0
    since_s: float = 0.0
    asking: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Within, the time is that of others."""
        with self.lock:
            if not self.asking:
                self.since_s = time.monotonic()
            self.asking += 1
        try:
            yield
        finally:
            with self.lock:
                self.asking -= 1
                if not self.asking:
                    self.spent_s += time.monotonic() - self.since_s

    def others_s(self) -> float:
        """Seconds that others took so far."""
        with self.lock:
            return self.spent_s + (time.monotonic() - self.since_s if self.asking else 0.0)


class GivenObjects:
    """What one host may ask, by number.

    Parameters
    ----------
    kept : callable
        The number by which the host has an object itself; 0 = it does not have it.
    """

    def __init__(self, kept: Callable[[Remote], int]) -> None:
        self._kept = kept
        self._given: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @contextmanager
    def call(self, arguments: Iterable[Any]) -> Iterator[tuple[int, Call]]:
        """Number of a call that may ask. What is given within ends with it, but for models: others build on them."""
        number, before = secrets.randbits(63) | 1, next(self._numbers)
        callbacks = Callbacks.of_this_process()
        call = Call(self, max(MOST_ROWS, rows_of(arguments)), copy_context())
        callbacks.calls[number] = call
        try:
            yield number, call
        finally:
            del callbacks.calls[number]
            with self._lock:
                for each in [each for each, (kind, _) in self._given.items() if each > before and kind != "model"]:
                    del self._given[each]
                while len(self._given) > MOST_GIVEN:
                    self._given.popitem(last=False)

    def give(self, kind: str, value: Any) -> int:
        """The number of something that may be asked from now on."""
        with self._lock:
            number = next(self._numbers)
            self._given[number] = kind, value
        return number

    def written(self, kind: str, value: Any) -> value_pb2.Value:
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
            facts = [sorted(filter(has, METHODS | ATTRIBUTES))]
        given = value_pb2.Given(number=self.give(kind, value), kind=kind, facts=map(self.value, facts))
        return value_pb2.Value(given=given)

    def value(self, value: Any) -> value_pb2.Value:
        """Any value as a message."""
        return write_value(value, self._other)

    def _other(self, value: Any) -> value_pb2.Value:
        if isinstance(value, Remote):
            return self.model(value)
        raise UndecodableError(f"a {type(value).__name__}, which cannot be sent to a host")

    def model(self, value: Any) -> value_pb2.Value:
        """A model, wherever it lives."""
        kept = self._kept(value) if isinstance(value, Remote) else 0
        return value_pb2.Value(kept=kept) if kept else self.written("model", value)

    def get(self, number: int) -> tuple[str, Any]:
        """Its kind and itself. Raises KeyError."""
        with self._lock:
            return self._given[number]


class Callbacks(plugin_service_pb2_grpc.ContextServiceServicer):
    """The service that the hosts of this process ask.

    Attributes
    ----------
    target : str
        Where it is.
    calls : dict
        Calls that are on, by their numbers, which nobody can guess.
    """

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self._place = tempfile.TemporaryDirectory(prefix="nodewise-context-")
        self.target = f"unix:{self._place.name}/context"
        options = (("grpc.max_receive_message_length", MOST_BYTES), ("grpc.max_send_message_length", MOST_BYTES))
        self._server = grpc.server(ThreadPoolExecutor(THREADS, thread_name_prefix="nodewise-context"), options=options)
        plugin_service_pb2_grpc.add_ContextServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(self.target)
        self._server.start()

    @staticmethod
    def of_this_process() -> Callbacks:
        """The one of this process, started when it is first asked for."""
        with _lock:
            found = _by_process.get(os.getpid())
            if found is None:
                found = _by_process[os.getpid()] = Callbacks()
            return found

    def _call(self, number: int) -> Call:
        call = self.calls.get(number)
        if call is None:
            raise NodewiseError(Reason.NOT_IMPLEMENTED, "the call that this belongs to has ended")
        return call

    def Ask(self, request: pb.AskRequest, context: grpc.ServicerContext) -> pb.AskResponse:  # noqa: N802  # gRPC's
        """As the contract says."""
        try:
            call = self._call(request.call)
            with call.asked():
                return call.context.copy().run(_answered, call, request)
        except NodewiseError as error:
            context.abort_with_status(status_of(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the plugin is told that it has no answer
            _log.warning("given_failed", method=request.method[:100], exc_info=error)
            context.abort_with_status(status_of(NodewiseError(Reason.ESTIMATOR_FAILED, "what was asked for failed")))
        raise AssertionError


_by_process: dict[int, Callbacks] = {}
_lock = threading.Lock()


def _answered(call: Call, request: pb.AskRequest) -> pb.AskResponse:
    """What something that a call was given answers; only what it is given for can be asked of it."""
    objects = call.objects
    kind, value = objects.get(request.number)
    arguments = [read_value(each, {"given": lambda given: objects.get(given.number)[1]}) for each in request.arguments]
    found = answer_of_given(kind, value, request.method, arguments, call.most_rows)
    if kind == "context" and request.method == "model":
        return pb.AskResponse(answer=objects.model(found))
    return pb.AskResponse(answer=objects.value(found))


def _too_much(what: str, found: int, most: int) -> NodewiseError:
    """Why a host is not given what it asks for; the plugin may tell its caller so."""
    return NodewiseError(Reason.LIMIT_EXCEEDED, f"a plugin asked for {found} {what}, where 0 to {most} can be")


def rows_of(arguments: Iterable[Any]) -> int:
    """Of all configurations among the arguments of a call."""
    return sum(len(each) for each in arguments if isinstance(each, Configurations))


def answer_of_given(kind: str, value: Any, method: str, arguments: list[Any], most_rows: int) -> Any:
    """Ask what a call was given; of a model, about so many rows at most."""
    if method not in GIVEN_METHODS[kind]:
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

"""What threads need of their own: channels, streams, waiting. `_async.seam` says what each is for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias, TypeVar

import grpc

from nodewise_client._connection import (
    HEALTH_CHECK,
    Connection,
    decode_health_response,
    encode_health_request,
    methods_of,
)
from nodewise_client._ingest_core import Given, GivenPhases
from nodewise_protos.v1 import profile_service_pb2 as wire

Item = TypeVar("Item")
Request = TypeVar("Request")
Reply = TypeVar("Reply")

RpcError: Final = grpc.RpcError
Failure: TypeAlias = grpc.RpcError
UnaryCall: TypeAlias = "grpc.UnaryUnaryMultiCallable[Request, Reply]"
Many: TypeAlias = Iterable[Item]
ManyObservations: TypeAlias = Given
ManyPhases: TypeAlias = GivenPhases

sleep: Final = time.sleep
collect: Final = list


class Services:
    """The channel and its methods."""

    def __init__(self, connection: Connection) -> None:
        target, options, credentials = connection.target, connection.options, connection.credentials
        self._channel: Final = (
            grpc.insecure_channel(target, options)
            if credentials is None
            else grpc.secure_channel(target, credentials, options)
        )
        self.methods: Final = methods_of(self._channel)
        self.health: Final = self._channel.unary_unary(
            HEALTH_CHECK, request_serializer=encode_health_request, response_deserializer=decode_health_response
        )

    def close(self) -> None:
        """End every call and the connection."""
        self._channel.close()


def each(items: Many[Item]) -> Iterator[Item]:
    """Yield the items."""
    yield from items


def parts(source: ManyObservations | ManyPhases) -> Iterator[Given | GivenPhases]:
    """Yield rows as they were given."""
    yield source


class IngestCall(Protocol):
    """A stream that was opened."""

    def __iter__(self) -> Iterator[wire.IngestProfileResponse]: ...
    def cancel(self) -> object: ...


OpenStream = Callable[[Iterator[wire.IngestProfileRequest]], IngestCall]


def replies(call: IngestCall) -> Iterator[wire.IngestProfileResponse]:
    """Yield what the server says."""
    yield from call


Notifier: Final = threading.Condition


class Runner:
    """Runs the writer's stream beside its user."""

    def __init__(self, run: Callable[[], None], name: str) -> None:
        self._thread: Final = threading.Thread(target=run, name=name, daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, or the time is over."""
        self._thread.join(timeout_s)

    end = join

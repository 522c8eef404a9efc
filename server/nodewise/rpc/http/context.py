"""What handlers ask of gRPC's context, answered for an HTTP request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import grpc
from aiohttp.web import BaseRequest
from google.rpc import status_pb2

from nodewise.rpc.calls import REQUEST_ID, named_in

__all__ = ["EndedError", "HttpContext"]

_DETAILS: Final = "grpc-status-details-bin"
_AUTHORIZATION: Final = "authorization"


class EndedError(Exception):
    """A call was ended by a status.

    Attributes
    ----------
    status : Status
        Code, message and details.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


class HttpContext:
    """Implements the part of ``grpc.aio.ServicerContext`` that the house's handlers use.

    Attributes
    ----------
    request_id : str
        As the caller stated it, or a new one.
    """

    __slots__ = ("_end_s", "_metadata", "_peer", "request", "request_id")

    def __init__(self, request: BaseRequest) -> None:
        self.request = request
        self._end_s: float | None = None
        headers = request.headers
        stated = headers.get(REQUEST_ID)
        usable = stated is not None and stated.isascii() and stated.isprintable()
        self.request_id = named_in(((REQUEST_ID, stated),) if usable and stated is not None else ())
        self._metadata: tuple[tuple[str, str], ...] = ((REQUEST_ID, self.request_id),)
        if _AUTHORIZATION in headers:
            self._metadata += ((_AUTHORIZATION, headers[_AUTHORIZATION]),)
        # At once: a connection that is closed has none any more, and its calls are put down all the same.
        transport = request.transport
        self._peer = None if transport is None else transport.get_extra_info("peername")

    def ends_within(self, timeout_s: float | None) -> None:
        """The call's time from now on, as its caller stated it."""
        self._end_s = None if timeout_s is None else time.monotonic() + timeout_s

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """Headers that handlers look at."""
        return self._metadata

    def time_remaining(self) -> float | None:
        """Seconds; None = the caller stated no time."""
        return None if self._end_s is None else max(0.0, self._end_s - time.monotonic())

    def peer(self) -> str:
        """The connection, as gRPC names it."""
        host, port = self._peer[:2] if self._peer else ("", 0)
        return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What a certificate of the connection says, as gRPC tells it."""
        transport = self.request.transport
        held = transport.get_extra_info("peercert") if transport is not None else None
        return {} if not held else _told(held)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """At once: what is not read of a reply over HTTP is the connection's."""
        callback(self)

    def set_trailing_metadata(self, trailers: Iterable[tuple[str, str | bytes]]) -> None:
        """Nothing but the request id stands there, which is told in a header."""

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """End the call."""
        raise EndedError(_status(status.code, status.details, status.trailing_metadata or ()))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """End the call."""
        raise EndedError(_status(code, details, trailing_metadata))


def _status(code: grpc.StatusCode, message: str, trailers: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status:
    for name, value in trailers:
        if name == _DETAILS and isinstance(value, bytes):
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=code.value[0], message=message)


def _told(certificate: Mapping[str, Any]) -> dict[str, list[bytes]]:
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for _, value in certificate.get("subjectAltName", ())]
    return {
        "x509_pem_cert": [b"as the connection's handshake showed it"],
        "x509_common_name": [each.encode() for each in names],
        "x509_subject_alternative_name": [each.encode() for each in others],
    }

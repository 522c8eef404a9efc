"""The server between for HTTP/JSON: the same as the one for gRPC, in front of the real server's other listener."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Final, Self

import aiohttp
from aiohttp import web
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.rpc import status_pb2

from nodewise_conformance.between import Attempt, Upstream
from nodewise_conformance.contract import message_of, methods
from nodewise_conformance.http_statuses import connect_error, read_error, rest_error
from nodewise_conformance.scenarios import Fault, Scenario, filled_in
from nodewise_conformance.statuses import planted, status_of
from nodewise_protos.v1 import profile_service_pb2 as profiles

__all__ = ["HttpBetween"]

_HOP: Final = frozenset({"connection", "content-length", "host", "transfer-encoding", "keep-alive", "content-encoding"})
_INGEST_BATCH: Final = "nodewise.v1.ProfileService/IngestBatch"
_PREFIX_BYTES: Final = 5
_END: Final = 2


class HttpBetween:
    """One run of a scenario over HTTP: where its client calls."""

    def __init__(self, scenario: Scenario, places: Mapping[str, str], upstream: Upstream, plant: str | None) -> None:
        self.attempts: Final[list[Attempt]] = []
        self.target = ""
        self._scenario: Final = scenario
        self._places: Final = places
        self._upstream: Final = upstream
        self._plant: Final = plant
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        # What a client has not asked for must not be packed on the way, and what it asked for not be unpacked.
        self._session = aiohttp.ClientSession(auto_decompress=True, skip_auto_headers=("User-Agent", "Accept-Encoding"))
        self._runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.target = "{}:{}".format(*self._runner.addresses[0][:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        assert self._runner is not None
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.method == "OPTIONS":
            return await self._forward(request, body, None)
        method_of_path = methods().get(request.path.removeprefix("/"))
        method = method_of_path or methods()[self._scenario.method]
        metadata = {key.lower(): value for key, value in request.headers.items()}
        timeout = metadata.get("connect-timeout-ms")
        attempt = Attempt(
            method, metadata, None if timeout is None else int(timeout) / 1e3, over_rest=method_of_path is None
        )
        fault = self._scenario.fault_of(len(self.attempts))
        self.attempts.append(attempt)
        if method_of_path is not None:
            attempt.requests += _messages(metadata.get("content-type", ""), body, method.request)
        try:
            return await self._answer(request, body, attempt, fault)
        except asyncio.CancelledError:
            attempt.ended_by_caller = True
            raise

    async def _answer(
        self, request: web.BaseRequest, body: bytes, attempt: Attempt, fault: Fault
    ) -> web.StreamResponse:
        await asyncio.sleep(fault.delay_seconds)
        if fault.hang:
            await asyncio.Event().wait()
        if fault.status is not None:
            return self._failed(attempt, status_of(fault.status), self._origins(request))
        if fault.reply is not None:
            reply = fault.reply[0]
            message = message_of(attempt.method.reply, filled_in(reply, self._places), variant=fault.variant)
            attempt.replies.append(message.SerializeToString())
            return self._told(request, attempt, message)
        if self._plant == "lost-acknowledgement" and attempt.method.name == _INGEST_BATCH:
            if attempt.requests:
                request_of_batch = profiles.IngestBatchRequest.FromString(attempt.requests[-1])
            else:
                request_of_batch = json_format.Parse(body, profiles.IngestBatchRequest())
            number = request_of_batch.batch.sequence_number
            state = profiles.IngestState(durable_sequence_number=number, committed_sequence_number=number, revision=1)
            return self._told(request, attempt, profiles.IngestBatchResponse(state=state))
        return await self._forward(request, body, attempt)

    def _told(self, request: web.BaseRequest, attempt: Attempt, message: Message) -> web.Response:
        """A reply of our own, as the caller speaks."""
        kind = attempt.metadata.get("content-type", "application/json")
        as_json = attempt.over_rest or kind.endswith("json")
        body = json_format.MessageToJson(message).encode() if as_json else message.SerializeToString()
        return web.Response(body=body, headers={**self._origins(request), "Content-Type": kind})

    async def _forward(self, request: web.BaseRequest, body: bytes, attempt: Attempt | None) -> web.StreamResponse:
        assert self._session is not None
        await self._upstream.there.wait()
        headers = {
            key: value for key, value in request.headers.items() if key.lower() not in _HOP - {"content-encoding"}
        }
        url = f"http://{self._upstream.server.http_target}{request.raw_path}"
        async with self._session.request(request.method, url, headers=headers, data=body) as reply:
            reply_headers = {key: value for key, value in reply.headers.items() if key.lower() not in _HOP}
            if attempt is None or not attempt.method.server_streaming or reply.status >= 400:
                return self._whole(attempt, reply.status, reply_headers, await reply.read())
            response = web.StreamResponse(status=reply.status, headers=reply_headers)
            await response.prepare(request)
            buffer = b""
            async for piece in reply.content.iter_any():
                buffer += piece
                attempt.replies[:] = _messages(reply_headers.get("Content-Type", ""), buffer, attempt.method.reply)
                await response.write(piece)
            await response.write_eof()
            return response

    def _whole(self, attempt: Attempt | None, code: int, headers: dict[str, str], body: bytes) -> web.Response:
        if attempt is not None and code < 400:
            attempt.replies += _messages(headers.get("Content-Type", ""), body, attempt.method.reply)
        if attempt is not None and code >= 400:
            try:
                status = read_error(json.loads(body))
            except ValueError:
                status = None
            if status is not None:
                return self._failed(attempt, status, {key: headers[key] for key in headers if key != "Content-Type"})
        return web.Response(status=code, headers=headers, body=body)

    def _failed(self, attempt: Attempt, status: status_pb2.Status, headers: Mapping[str, str]) -> web.Response:
        status_sent = planted(status, self._plant)
        attempt.status = status_sent
        code, body = (rest_error if attempt.over_rest else connect_error)(status_sent)
        if attempt.method.server_streaming and not attempt.over_rest:
            end = json.dumps({"error": body}).encode()
            kind = attempt.metadata.get("content-type", "application/connect+json")
            frame = bytes((_END,)) + len(end).to_bytes(4, "big") + end
            return web.Response(body=frame, headers={**headers, "Content-Type": kind})
        return web.json_response(body, status=code, headers=headers)

    def _origins(self, request: web.BaseRequest) -> dict[str, str]:
        """What lets a page of another origin read an answer that is made here."""
        origin = request.headers.get("Origin")
        return {} if origin is None else {"Access-Control-Allow-Origin": origin}


def _messages(kind: str, body: bytes, descriptor: Descriptor) -> list[bytes]:
    """The messages of a body, on the wire's form; what cannot be read is left out, the client will say so."""
    kind = kind.partition(";")[0].strip().lower()
    parts = _frames(body) if "connect+" in kind else body.splitlines() if "ndjson" in kind else (body,)
    all_parts: list[bytes] = []
    for part in parts:
        if kind.endswith("proto"):
            all_parts.append(part)
            continue
        try:
            document = json.loads(part or b"{}")
            document = document["result"] if "ndjson" in kind else document
            message = json_format.ParseDict(document, message_of(descriptor, {}), ignore_unknown_fields=True)
            all_parts.append(message.SerializeToString())
        except (ValueError, KeyError, json_format.ParseError):
            continue
    return all_parts


def _frames(body: bytes) -> Iterator[bytes]:
    """Messages of a stream, not the end that says how it ended."""
    place = 0
    while place + _PREFIX_BYTES <= len(body):
        size = int.from_bytes(body[place + 1 : place + _PREFIX_BYTES], "big")
        if not body[place] & _END and place + _PREFIX_BYTES + size <= len(body):
            yield body[place + _PREFIX_BYTES : place + _PREFIX_BYTES + size]
        place += _PREFIX_BYTES + size

"""What HTTP refuses before a service is called: the text of every such error, over real sockets."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import ServerProcess

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings

pytestmark = pytest.mark.wheel

REST = "/v1/predictions:predict"
PREDICT = "/nodewise.v1.PredictionService/Predict"
BATCH = "/nodewise.v1.PredictionService/BatchPredict"
STREAM = "/nodewise.v1.PredictionService/StreamPredict"
BACKTEST = "/nodewise.v1beta1.EvaluationService/Backtest"
JSON = {"Content-Type": "application/json"}
GZIP = JSON | {"Content-Encoding": "gzip"}
ENVELOPES = {"Content-Type": "application/connect+json"}
PACKED = gzip.compress(b'{"configurations":{"workers":[1,2]}}', mtime=0)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0")) as server:
        yield server.http_target


def answer(target: str, verb: str, path: str, body: bytes, headers: dict[str, str]) -> str:
    with closing(http.client.HTTPConnection(target, timeout=PATIENCE_S)) as connection:
        connection.request(verb, path, body, headers)
        return connection.getresponse().read().decode(errors="replace")


def body_of(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("verb", "path", "body", "headers", "text"),
    [
        ("GET", "/nothing", b"", {}, "nothing is served at /nothing; /openapi.json lists all paths"),
        ("OPTIONS", "/nothing", b"", {}, "nothing is served at /nothing; /openapi.json lists all paths"),
        ("PUT", "/v1/profiles/a", b"", {}, "/v1/profiles/a takes DELETE, GET"),
        (
            *("POST", PREDICT, b"{}", JSON | {"Host": "example.com"}),
            "the request is for 'example.com'; this listener answers to localhost and 127.0.0.1 alone",
        ),
        (
            *("POST", PREDICT, b"{}", JSON | {"Origin": "https://example.com"}),
            "pages of 'https://example.com' may not call; add the origin to the setting http_origins",
        ),
        ("POST", PREDICT, b"x", JSON | {"Content-Encoding": "br"}, "a body must be gzip or identity, found 'br'"),
        ("POST", PREDICT, b"this is not gzip", GZIP, "the header says that the body is gzip, but it is not"),
        ("POST", PREDICT, PACKED[:-9], GZIP, "the header says that the body is gzip, but its end is missing"),
        ("POST", PREDICT, b"{}", JSON | {"Connect-Protocol-Version": "2"}, "must be 1, found '2'"),
        ("POST", PREDICT, b"{}", JSON | {"Connect-Timeout-Ms": "a"}, "must be milliseconds, of up to 10 digits"),
        ("POST", STREAM, b"{}", ENVELOPES, "which HTTP/1.1 does not support; use gRPC, or BatchPredict"),
        ("POST", BACKTEST, b"{}", ENVELOPES, "the body must be one message of a stream: a byte of flags"),
        ("POST", PREDICT, b"{", JSON, "the body is not valid JSON of PredictRequest: "),
        ("POST", PREDICT, b"[]", JSON, "the body must be a JSON object of PredictRequest"),
        ("POST", PREDICT, b"[" * 300_000, JSON, "300000 objects and lists of the body exceed the 100000 "),
        ("POST", PREDICT, b"\xff", {"Content-Type": "application/proto"}, f"not a valid request of {PREDICT}"),
        ("GET", "/v1/profiles", b"{}", {}, "GET takes no body at this path; state all fields in the query"),
        ("GET", "/v1/profiles?page=1", b"", {}, "is not a field of ListProfilesRequest; the nearest is pageSize"),
        ("GET", "/v1/profiles?page_size=1&pageSize=2", b"", {}, "must be in the query once, found twice"),
        ("GET", "/v1/profiles?" + "a=1&" * 1001, b"", {}, "the query has more than 1000 parameters"),
        ("POST", f"{REST}?a=1", b"{}", JSON, "this call takes no query parameters; use the body"),
        (
            *("POST", "/v1/profiles/a:append", body_of({"profileId": "b"}), JSON),
            "is 'a' in the path, but the body has 'b'",
        ),
        (
            *("POST", "/v1/profiles/a:predict", body_of({"profile": {"content": {}}}), JSON),
            "is 'a' in the path, but the body has content",
        ),
        (
            *("POST", PREDICT, body_of({"work": {"samples": 1, "epochs": 1}}), JSON),
            "must be absent with samples: state one of them",
        ),
        ("POST", PREDICT, body_of({"work": 1}), JSON, "must be an object of Work, found 1"),
        ("POST", PREDICT, body_of({"configurations": {"workers": 1}}), JSON, "must be a list"),
        ("POST", PREDICT, body_of({"configurations": {"workers": [0.5]}}), JSON, "must be a whole number from "),
        ("POST", REST, body_of({"options": {"model": {"parameters": 1}}}), JSON, "must be an object of names"),
        ("POST", REST, body_of({"options": {"fidelity": "x"}}), JSON, "must be one of FIDELITY_UNSPECIFIED, "),
        ("POST", PREDICT, body_of({"options": {"model": {"allowFallback": 1}}}), JSON, "must be true or false"),
        ("POST", "/v1/schedules:schedule", body_of({"now": "x"}), JSON, "must be a time such as 2026-01-31T08:30:00Z"),
    ],
)  # fmt: skip
def test_the_text_says_what_is_wrong(
    target: str, verb: str, path: str, body: bytes, headers: dict[str, str], text: str
) -> None:
    assert text in answer(target, verb, path, body, headers)


def received_until(connection: socket.socket, text: bytes) -> bytes:
    received = b""
    while text not in received and (piece := connection.recv(65_536)):
        received += piece
    return received


def connected(target: str) -> socket.socket:
    host, _, port = target.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def test_a_request_that_is_not_http_is_refused(target: str) -> None:
    text = b"the request is not valid HTTP/1.1, or its headers are too large"
    with connected(target) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nbroken\r\n\r\n")
        assert text in received_until(connection, text)


def test_a_body_that_is_not_chunked_as_stated_is_refused() -> None:
    """aiohttp's parser in C leaves such a body to the call's deadline; the one in Python reports it."""
    text = b"the body does not have the chunks that its headers state"
    head = f"POST {REST} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    arguments = ("--store", "memory:", "--http", "127.0.0.1:0")
    with (
        ServerProcess(*arguments, environment={"AIOHTTP_NO_EXTENSIONS": "1"}) as server,
        connected(server.http_target) as connection,
    ):
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert b"100 Continue" in received_until(connection, b"\r\n\r\n")
        connection.sendall(b"5\r\nabcdefgh\r\n")
        assert text in received_until(connection, text)

"""HTTP over real sockets: Connect, REST, what is refused, and that all goes the way that gRPC goes."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import shlex
import signal
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from google.protobuf import json_format
from google.rpc import error_details_pb2
from patience import PATIENCE_S
from programs import needs
from serving import ServerProcess, Stubs, inline

from nodewise.profiles.opening import open_store
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.tokens import new_token
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2

PAGE = "https://app.example.com"
PREDICT = "/nodewise.v1.PredictionService/Predict"
WATCH = "/nodewise.v1.ProfileService/WatchProfiles"
ROOT = Path(__file__).resolve().parents[2]
JSON = {"Content-Type": "application/json"}
QUESTION: dict[str, Any] = {"configurations": {"workers": [1, 2, 4]}, "objective": {"knee": {}}}


class Reply:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """Of the error, whichever way it is told."""
        error = self.value.get("error", self.value)
        shown = (each.get("debug", each) for each in error["details"])
        return str(next(each["reason"] for each in shown if "reason" in each))


class Caller:
    def __init__(self, target: str, context: ssl.SSLContext | None = None, **headers: str) -> None:
        self._target, self._context, self._headers = target, context, headers

    def open(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._target, timeout=PATIENCE_S)
        host, _, port = self._target.rpartition(":")
        return http.client.HTTPSConnection(host, int(port), context=self._context, timeout=PATIENCE_S)

    def __call__(self, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        connection = self.open()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(verb, path, data, {**self._headers, **(headers or {})})
        reply = Reply(connection.getresponse())
        connection.close()
        return reply


def append(stubs: Stubs, profile_id: str) -> None:
    stubs.profile.AppendProfile(
        profile_service_pb2.AppendProfileRequest(profile_id=profile_id, request_id="1", content=inline().content)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    settings = Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0", http_origins=(PAGE,))
    with EmbeddedServer(settings) as server:
        with Stubs(server.target) as stubs:
            append(stubs, "team-a/a1")
        yield server


@pytest.fixture
def call(server: EmbeddedServer) -> Caller:
    return Caller(server.http_target)


@pytest.fixture
def stubs(server: EmbeddedServer) -> Iterator[Stubs]:
    with Stubs(server.target) as stubs:
        yield stubs


def question() -> pb.PredictRequest:
    return json_format.ParseDict({**QUESTION, "profile": {"profileId": "team-a/a1"}}, pb.PredictRequest())


def enveloped(message: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(message)) + message


def envelopes(body: bytes) -> list[tuple[int, bytes]]:
    found = []
    while body:
        flags, size = struct.unpack(">BI", body[:5])
        found.append((flags, body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def test_rest_answers_what_grpc_answers(call: Caller, stubs: Stubs) -> None:
    # As `curl -d` sends it.
    reply = call(
        "POST", "/v1/profiles/team-a/a1:predict", QUESTION, {"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert reply.status == 200, reply.body
    assert json_format.ParseDict(reply.value, pb.PredictResponse()) == stubs.prediction.Predict(question())


@pytest.mark.parametrize("packed", [False, True])
def test_connect_answers_in_json_and_binary(call: Caller, stubs: Stubs, packed: bool) -> None:
    pack, headers = (gzip.compress, {"Content-Encoding": "gzip"}) if packed else (bytes, {})
    asked, expected = question(), stubs.prediction.Predict(question())
    text = json_format.MessageToJson(asked).encode()
    for version in ({}, {"Connect-Protocol-Version": "1"}):
        found = call("POST", PREDICT, pack(text), JSON | headers | version)
        assert json_format.ParseDict(found.value, pb.PredictResponse()) == expected
        binary = {"Content-Type": "application/proto"} | headers | version
        assert (
            pb.PredictResponse.FromString(call("POST", PREDICT, pack(asked.SerializeToString()), binary).body)
            == expected
        )


def test_long_replies_are_packed_for_who_asks(call: Caller) -> None:
    asked = {**QUESTION, "configurations": {"workers": list(range(1, 200))}}
    plain = call("POST", "/v1/profiles/team-a/a1:predict", asked)
    found = call("POST", "/v1/profiles/team-a/a1:predict", asked, {"Accept-Encoding": "gzip"})
    assert found.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(found.body) == plain.body
    assert "Content-Encoding" not in plain.headers


def test_errors_are_told_as_connect_and_as_rest_have_them(call: Caller) -> None:
    asked = {**QUESTION, "profile": {"profileId": "nobody"}}
    found = call("POST", PREDICT, asked, JSON | {"x-request-id": "mine"})
    assert (found.status, found.value["code"], found.reason) == (404, "not_found", "PROFILE_NOT_FOUND")
    assert found.headers["x-request-id"] == "mine"
    detail = found.value["details"][0]
    assert detail["type"] == error_details_pb2.ErrorInfo.DESCRIPTOR.full_name
    found = call("POST", "/v1/profiles/nobody:predict", QUESTION)
    assert (found.status, found.value["error"]["status"], found.reason) == (404, "NOT_FOUND", "PROFILE_NOT_FOUND")
    assert found.value["error"]["code"] == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"configuration": {}}, "configuration"),
        ({"configurations": {"workers": [1, 2.5]}}, "configurations.workers[1]"),
        ({"configurations": {"syncModes": ["SYNC_MODE_NONE_SUCH"]}}, "configurations.sync_modes[0]"),
        ({"profile": {"profileId": "other"}}, "profile.profile_id"),
        ({"configurations": {"workers": [-1]}}, "configurations.workers[0]"),
        (
            {"configurations": {"workers": [1], "hybridSyncFractions": [True]}},
            "configurations.hybrid_sync_fractions[0]",
        ),
        ({"objective": {"knee": {"share": False}}}, "objective.knee.share"),
    ],
)
def test_a_wrong_field_is_named(call: Caller, body: Any, field: str) -> None:
    found = call("POST", "/v1/profiles/team-a/a1:predict", body)
    assert (found.status, found.reason) == (400, "INVALID_FIELD")
    (bad,) = [each for each in found.value["error"]["details"] if "fieldViolations" in each]
    assert bad["fieldViolations"][0]["field"] == field


def test_queries_say_what_bodies_do_not(call: Caller) -> None:
    found = call("GET", "/v1/profiles?pageSize=1&name_prefix=team-a/")
    assert [each["profileId"] for each in found.value["profiles"]] == ["team-a/a1"]
    for query, field in (("page=1", "page"), ("page_size=x", "page_size"), ("page_size=1&pageSize=2", "page_size")):
        found = call("GET", f"/v1/profiles?{query}")
        assert (found.status, found.value["error"]["details"][0]["metadata"]["field"]) == (400, field)
    assert call("GET", "/v1/profiles/team-a/a1").value["profile"]["profileId"] == "team-a/a1"


def test_profiles_are_written_and_deleted(call: Caller) -> None:
    content = json_format.MessageToDict(inline().content)
    assert call("POST", "/v1/profiles/team-b/b1:append", {"requestId": "1", "content": content}).status == 200
    etag = call("GET", "/v1/profiles/team-b/b1").value["profile"]["etag"]
    assert call("DELETE", f"/v1/profiles/team-b/b1?etag={etag}").status == 200
    assert call("GET", "/v1/profiles/team-b/b1").status == 404
    assert call("POST", "/v1/profiles/team-b/b1:undelete").status == 200


def test_what_there_is_not_is_told(call: Caller) -> None:
    assert call("GET", "/nothing").status == 404
    found = call("PUT", "/v1/profiles/team-a/a1")
    assert (found.status, found.headers["Allow"]) == (405, "DELETE, GET")
    assert call("GET", PREDICT).status == 405
    assert call("POST", PREDICT, QUESTION, {"Content-Type": "text/plain"}).status == 415
    assert call("POST", PREDICT, b"", JSON | {"Content-Encoding": "br"}).value["code"] == "unimplemented"
    assert call("POST", PREDICT, b"{}", JSON | {"Connect-Protocol-Version": "2"}).value["code"] == "invalid_argument"
    assert call("POST", PREDICT, b"{}", JSON | {"Connect-Timeout-Ms": "soon"}).value["code"] == "invalid_argument"
    assert call("POST", PREDICT, b"\xff\xff", {"Content-Type": "application/proto"}).reason == "MALFORMED_MESSAGE"


def test_streams_of_replies_end_with_their_error(call: Caller) -> None:
    kind = {"Content-Type": "application/connect+json"}
    found = call("POST", "/nodewise.v1beta1.EvaluationService/Backtest", enveloped(b"{}"), kind)
    ((flags, end),) = envelopes(found.body)
    assert (found.status, flags, json.loads(end)["error"]["code"]) == (200, 2, "invalid_argument")
    found = call("POST", "/nodewise.v1.PredictionService/StreamPredict", enveloped(b"{}"), kind)
    assert json.loads(envelopes(found.body)[-1][1])["error"]["code"] == "unimplemented"
    found = call("POST", WATCH, b"\x00\x00", kind)
    assert json.loads(envelopes(found.body)[-1][1])["error"]["code"] == "invalid_argument"


def test_a_watch_streams_and_ends_in_time(call: Caller) -> None:
    headers = {"Content-Type": "application/connect+json", "Connect-Timeout-Ms": "300"}
    *messages, (flags, end) = envelopes(call("POST", WATCH, enveloped(b"{}"), headers).body)
    assert messages
    assert (flags, json.loads(end)["error"]["code"]) == (2, "deadline_exceeded")
    lines = call("GET", "/v1/profiles:watch", headers={"Connect-Timeout-Ms": "300"}).body.splitlines()
    assert "result" in json.loads(lines[0])
    assert json.loads(lines[-1])["error"]["status"] == "DEADLINE_EXCEEDED"


def test_an_answer_that_comes_too_late_is_none(call: Caller) -> None:
    """Though the loop that computes it cannot be interrupted meanwhile."""
    source = {"profileId": "team-a/a1"}
    many = {"profile": source, "configurations": {"workers": list(range(1, 2001))}}
    for milliseconds, question in (("1", many), ("0", {"profile": source, **QUESTION})):
        found = call("POST", PREDICT, question, JSON | {"Connect-Timeout-Ms": milliseconds})
        assert (found.status, found.value["code"], found.reason) == (504, "deadline_exceeded", "DEADLINE_EXCEEDED")


def test_too_large_a_body_is_refused_before_it_comes(call: Caller) -> None:
    connection = call.open()
    connection.putrequest("POST", PREDICT)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(1 << 34))
    connection.endheaders()
    assert Reply(connection.getresponse()).reason == "LIMIT_EXCEEDED"
    connection.close()
    bomb = gzip.compress(b" " * (64 << 20))
    assert call("POST", PREDICT, bomb, JSON | {"Content-Encoding": "gzip"}).reason == "LIMIT_EXCEEDED"
    jobs = b'{"jobs":[' + b"{}," * 70_000 + b"{}]}"
    assert call("POST", "/v1/predictions:batchPredict", jobs).reason == "LIMIT_EXCEEDED"
    assert call("POST", PREDICT, b"[" * 1_000_000, JSON).reason == "LIMIT_EXCEEDED"
    assert call("POST", PREDICT, b"[" * 10_000, JSON).reason == "MALFORMED_MESSAGE"


def test_pages_may_not_call_unless_they_are_named(call: Caller) -> None:
    found = call("POST", "/v1/profiles/team-a/a1:predict", QUESTION, {"Origin": "https://evil.example.com"})
    assert (found.status, found.headers["Access-Control-Allow-Origin"]) == (403, None)
    found = call("POST", "/v1/profiles/team-a/a1:predict", QUESTION, {"Origin": PAGE})
    assert (found.status, found.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    found = call("OPTIONS", PREDICT, headers=asking | {"Origin": PAGE})
    assert (found.status, found.headers["Access-Control-Allow-Methods"]) == (204, "POST")
    found = call("OPTIONS", PREDICT, headers=asking | {"Origin": "https://evil.example.com"})
    assert (found.status, found.headers["Access-Control-Allow-Methods"]) == (403, None)
    # A name of the page's own that was made to lead here.
    assert call("GET", "/v1/profiles", headers={"Host": "evil.example.com"}).status == 403


def test_the_document_names_every_path(call: Caller) -> None:
    document = call("GET", "/openapi.json").value
    assert document["openapi"] == "3.1.0"
    assert "post" in document["paths"]["/v1/profiles/{profile_id}:predict"]
    assert call("GET", "/healthz").value == {"status": "SERVING"}


def curl_lines() -> dict[str, list[str]]:
    """Lines of pages that call curl, by page."""
    pages = (page for where in ("*.md", "docs/**/*.md", "*/*/README.md", "*/README.md") for page in ROOT.glob(where))
    lines = {
        page.relative_to(ROOT).as_posix(): re.findall(r"^(?:.*\$\()?curl .*", page.read_text("utf-8"), re.MULTILINE)
        for page in pages
    }
    return {page: found for page, found in lines.items() if found}


RUN_ELSEWHERE = {"README.md": "test_snippets.py", "docs/integrations/recipes.md": "test_recipes.py"}
"""Pages whose calls go over several lines."""


@needs("curl")
def test_every_call_by_curl_is_answered() -> None:
    lines = curl_lines()
    assert lines.keys() - RUN_ELSEWHERE == {"docs/guides/http.md"}
    assert lines.keys() >= RUN_ELSEWHERE.keys()
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as server:
        for line in (line for page in sorted(lines.keys() - RUN_ELSEWHERE)[::-1] for line in lines[page]):
            words = shlex.split(re.sub(r"(localhost|127\.0\.0\.1):50552", server.http_target, line))
            found = subprocess.run([*words, "--fail-with-body"], capture_output=True, check=False)
            assert found.returncode == 0, (line, found.stdout)
            assert json.loads(found.stdout)


@pytest.fixture(scope="module")
def lone() -> Iterator[Caller]:
    """A server that lets no pages in, and lets a caller have one stream open."""
    settings = Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0", quotas={"streams_per_caller": 1})
    with EmbeddedServer(settings) as server:
        yield Caller(server.http_target)


def test_no_page_may_call_unless_it_is_told(lone: Caller) -> None:
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for found in (
        lone("GET", "/v1/estimators", headers={"Origin": PAGE}),
        lone("OPTIONS", PREDICT, headers=asking | {"Origin": PAGE}),
    ):
        assert found.status == 403
        assert not [name for name in found.headers if name.lower().startswith("access-control-")]
    assert lone("GET", "/v1/estimators").status == 200


def test_who_goes_away_ends_his_call(lone: Caller) -> None:
    """Of streams a caller may have only so many open: each that was left gives its place back."""
    headers = {"Content-Type": "application/connect+json"}
    for _ in range(3):
        ends_s = time.monotonic() + PATIENCE_S
        answered = False
        while not answered:
            assert time.monotonic() < ends_s, "the place of who went was not given back"
            connection = lone.open()
            connection.request("POST", WATCH, enveloped(b"{}"), headers)
            answered = connection.getresponse().read(1) == b"\x00"  # and not the end, which tells a refusal
            connection.close()


@pytest.mark.long
def test_tls_tokens_and_workers_are_those_of_grpc(tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = authority.signed("server")
    for name, pem in (("roots", authority.pem), ("tls.pem", certificate), ("tls.key", key)):
        (tmp_path / name).write_bytes(pem)
    url = f"sqlite:{tmp_path}/store.db"
    store = open_store(url)
    assert store.tokens is not None
    text, kept = new_token("test", ["read", "ingest"], ["team-a/"], None)
    store.tokens.add(kept)
    store.close()
    environment = {
        "NODEWISE_AUTHENTICATION": "tokens",
        "NODEWISE_TLS__CERTIFICATE": str(tmp_path / "tls.pem"),
        "NODEWISE_TLS__KEY": str(tmp_path / "tls.key"),
        "NODEWISE_HTTP": "127.0.0.1:0",
    }
    context = ssl.create_default_context(cafile=str(tmp_path / "roots"))
    with ServerProcess("--store", url, "--workers", "2", environment=environment) as server:
        target = server.http_target
        stranger = Caller(target, context)
        known = Caller(target, context, Authorization=f"Bearer {text}")
        for _ in range(4):
            refused = stranger("GET", "/v1/estimators")
            assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert known("GET", "/v1/estimators").status == 200
            assert known("GET", "/v1/profiles/team-b/b1").reason == "PERMISSION_DENIED"
            assert known("GET", "/v1/profiles/team-a/a1").reason == "PROFILE_NOT_FOUND"
        status, _ = server.terminate()
    assert status == 0


def test_the_holder_of_a_certificate_is_known_over_http(tmp_path: Path) -> None:
    authority = Authority()
    for name, pair in (("server", authority.signed("server")), ("holder", authority.signed("holder"))):
        (tmp_path / f"{name}.pem").write_bytes(pair[0])
        (tmp_path / f"{name}.key").write_bytes(pair[1])
    roots = tmp_path / "roots"
    roots.write_bytes(authority.pem)
    settings = Settings(
        store="memory:",
        grace_s=1.0,
        http="127.0.0.1:0",
        authentication=("certificates",),
        certificates={"holder": {"roles": ["read"], "prefixes": ["team-a/"]}},
        tls={
            "certificate": str(tmp_path / "server.pem"),
            "key": str(tmp_path / "server.key"),
            "client_authorities": str(roots),
        },
    )
    with EmbeddedServer(settings) as server:
        context = ssl.create_default_context(cafile=str(roots))
        context.load_cert_chain(tmp_path / "holder.pem", tmp_path / "holder.key")
        call = Caller(server.http_target, context)
        assert call("GET", "/v1/profiles/team-a/a1").reason == "PROFILE_NOT_FOUND"
        assert call("GET", "/v1/profiles/team-b/b1").reason == "PERMISSION_DENIED"
        # What is put in place of the files is shown to whoever connects next.
        renewed, key = authority.signed("renewed")
        (tmp_path / "server.key").write_bytes(key)
        (tmp_path / "server.pem").write_bytes(renewed)
        connection = call.open()
        connection.connect()
        subject = connection.sock.getpeercert()["subject"]
        connection.close()
        assert ((("commonName", "renewed"),)) in subject
        context = ssl.create_default_context(cafile=str(roots))
        with pytest.raises((ssl.SSLError, ConnectionError)):  # who shows none is let go of
            Caller(server.http_target, context)("GET", "/v1/profiles")


@pytest.mark.long
def test_what_is_asked_when_the_server_drains_is_answered(tmp_path: Path) -> None:
    environment = {"NODEWISE_GRACE_S": str(PATIENCE_S)}
    store = f"sqlite:{tmp_path}/store.db"
    with ServerProcess("--store", store, "--http", "127.0.0.1:0", environment=environment) as server:
        call = Caller(server.http_target)
        headers = {"Content-Type": "application/connect+json"}
        connection = call.open()
        connection.request("POST", WATCH, enveloped(b"{}"), headers)
        response = connection.getresponse()
        first = response.read(1)
        # A unary call is let in, and its body comes while the server drains.
        body = json.dumps(QUESTION | {"profile": {"content": json_format.MessageToDict(inline().content)}}).encode()
        unary = call.open()
        unary.putrequest("POST", PREDICT)
        unary.putheader("Content-Type", "application/json")
        unary.putheader("Content-Length", str(len(body)))
        unary.endheaders(body[:-1])
        assert call("GET", "/healthz").status == 200  # what came before this was read
        ended = threading.Thread(target=server.terminate)
        ended.start()
        while call_is_answered(call):
            time.sleep(0.01)
        unary.send(body[-1:])
        found = Reply(unary.getresponse())
        rest = response.read()
        connection.close()
        unary.close()
        ended.join()
    assert (found.status, len(found.value["predictions"]["stepSeconds"])) == (200, 3)
    assert envelopes(first + rest)[-1][0] == 2


@pytest.mark.long
def test_every_worker_answers_and_what_one_takes_along_the_next_one_answers(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store.db"
    with ServerProcess("--workers", "2", "--store", store, "--http", "127.0.0.1:0") as server:
        call = Caller(server.http_target)
        # The kernel spreads connections: each worker has some of so many.
        connections = [call.open() for _ in range(24)]
        assert all(still_answers(each) for each in connections)
        os.kill(server.workers()[0], signal.SIGKILL)
        server.log_until("worker_died")
        answered = [still_answers(each) for each in connections]
        assert any(answered)
        assert not all(answered)
        assert (
            call(
                "POST", PREDICT, QUESTION | {"profile": {"content": json_format.MessageToDict(inline().content)}}, JSON
            ).status
            == 200
        )
        for each in connections:
            each.close()


def still_answers(connection: http.client.HTTPConnection) -> bool:
    """On this connection, which stays open."""
    try:
        connection.request("GET", "/healthz")
        return Reply(connection.getresponse()).status == 200
    except (ConnectionError, http.client.HTTPException):
        return False
    finally:
        connection.auto_open = 0


def call_is_answered(call: Caller) -> bool:
    """Whether the server is healthy, and takes what comes."""
    try:
        return call("GET", "/healthz").status == 200
    except OSError:
        return False

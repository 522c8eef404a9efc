"""The examples of the OpenAPI document: each is sent as it stands to a server, after what its scenario needs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from patience import PATIENCE_S

import openapi_document
from nodewise.profiles.opening import open_store
from nodewise.rpc.http.rest import Route, routes_of
from nodewise.rpc.services import METHODS
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.tokens import new_token
from nodewise.runtime.settings import Settings
from nodewise_conformance.scenarios import filled_in

DOCUMENT: Final[dict[str, Any]] = json.loads(openapi_document.FILE.read_bytes())
ROUTES: Final = dict(openapi_document.operation_ids(routes_of(METHODS)))
OPERATIONS: Final = [
    (verb, path, operation) for path, verbs in DOCUMENT["paths"].items() for verb, operation in verbs.items()
]
MISSING: Final = [f"AdminService_{name}" for name in ("Reload", "SetCanary", "Promote", "Rollback", "SetPrior")]
"""Methods on generations and priors: the server has no second one."""


@dataclass(frozen=True)
class Target:
    """A server, and the token of an administrator."""

    address: str
    token: str


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    url = f"sqlite:{tmp_path_factory.mktemp('store') / 'store.db'}"
    text, token = new_token("administrator", ["admin"], [], None)
    store = open_store(url)
    assert store.tokens is not None
    store.tokens.add(token)
    store.close()
    settings = Settings(
        store=url, grace_s=1.0, http="127.0.0.1:0", admin=True, safe_mode=True, authentication=("tokens",)
    )
    with EmbeddedServer(settings) as server:
        yield Target(server.http_target, text)


def send(target: Target, verb: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """The status, and the reply or its first line."""
    connection = http.client.HTTPConnection(target.address, timeout=PATIENCE_S)
    try:
        content = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}
        connection.request(verb.upper(), path, content, headers)
        response = connection.getresponse()
        is_stream = response.headers.get_content_type() == "application/x-ndjson"
        return response.status, json.loads(response.readline() if is_stream else response.read())
    finally:
        connection.close()


def prepare(target: Target, route: Route, run: str) -> Any:
    """Make the calls that the scenario of the method makes before; the last reply."""
    scenario = openapi_document.scenario_of(route.method)
    steps = [] if scenario is None else [(each.method, each.request) for each in scenario.setup]
    reply: Any = None
    if "profile.profile_id" in route.template.variables:
        content = openapi_document.example_of(ROUTES["PredictionService_Predict"])["profile"]["content"]
        steps = [
            ("nodewise.v1.ProfileService/AppendProfile", {"profileId": "<run>/a", "requestId": "r", "content": content})
        ]
    for method, request in steps:
        status, reply = send(target, "post", f"/{method}", filled_in(request, {"run": run}))
        assert status == 200, reply
    return reply


@pytest.mark.parametrize(("verb", "path", "operation"), OPERATIONS, ids=lambda each: each if "/" in each else "")
def test_an_example_is_answered(verb: str, path: str, operation: dict[str, Any], target: Target) -> None:
    name = operation["operationId"]
    run = name.lower().replace("_", "-")
    reply = prepare(target, ROUTES[name], run)
    text = json.dumps(operation).replace("team-a/", f"{run}/")
    if name == "AdminService_RevokeToken":
        text = text.replace('"ci"', json.dumps(reply["token"]["tokenId"]))
    example = json.loads(text)
    query = {}
    for each in example.get("parameters", ()):
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote(each["example"]))
        elif "example" in each:
            query[each["name"]] = each["example"]
    body = example["requestBody"]["content"]["application/json"]["example"] if "requestBody" in example else None
    status, reply = send(target, verb, f"{path}?{urlencode(query)}" if query else path, body)
    if name in MISSING:
        assert reply["error"]["status"] == "NOT_FOUND", reply
    else:
        assert status == 200, reply
        assert "error" not in reply


def test_every_body_and_every_variable_of_a_path_has_an_example() -> None:
    for _, path, operation in OPERATIONS:
        assert "example" in operation.get("requestBody", {}).get("content", {}).get("application/json", {"example": 0})
        assert all("example" in each for each in operation.get("parameters", ()) if each["in"] == "path"), path

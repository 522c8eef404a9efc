"""What holds for every call: health, tokens, limits, TLS, and clients that are closed."""

from __future__ import annotations

import asyncio
import re

import pytest
from canned_answers import TABLE, two_rows
from fake_nodewise import SERVICES
from grpc_health.v1 import health_pb2

from nodewise_client import (
    AsyncClient,
    BacktestRequest,
    Client,
    Code,
    Configurations,
    HealthStatus,
    InvalidArgumentError,
    NotFoundError,
    PredictRequest,
    ResourceExhaustedError,
    UnavailableError,
    profile_source,
    version,
)
from nodewise_protos.v1 import prediction_service_pb2


def test_what_the_contract_does_not_allow_is_said_before_it_is_sent(client, server):
    wrong = PredictRequest(
        profile=profile_source("r"), configurations=Configurations(nodes=(1, 1 << 40), sync_modes=("ring",))
    )
    with pytest.raises(InvalidArgumentError) as caught:
        client.predict(wrong)
    assert [violation.field for violation in caught.value.violations] == [
        "configurations.nodes[1]",
        "configurations.sync_modes[0]",
    ]
    assert not server.requests["Predict"]


def test_health(client, server):
    assert client.health() is HealthStatus.SERVING
    server.health.set("nodewise.v1.PredictionService", health_pb2.HealthCheckResponse.NOT_SERVING)
    assert client.health("nodewise.v1.PredictionService") is HealthStatus.NOT_SERVING
    with pytest.raises(NotFoundError):
        client.health("nobody")


def test_token_and_user_agent_accompany_every_call(server, make_client):
    client = make_client(server.target, token="secret")
    client.predict(PredictRequest(profile=profile_source("r")))
    assert server.metadata["authorization"] == "Bearer secret"
    assert server.metadata["user-agent"].startswith(f"nodewise-python/{version()} ")
    assert "secret" not in repr(client._connection)


def test_a_larger_message_than_allowed_says_what_to_do(server, make_client):
    server.answer("Predict", prediction_service_pb2.PredictResponse(predictions=two_rows()))
    with pytest.raises(ResourceExhaustedError, match="max_receive_bytes") as caught:
        make_client(server.target, max_receive_bytes=100).predict(PredictRequest(profile=profile_source("r")))
    assert caught.value.code is Code.RESOURCE_EXHAUSTED


def test_a_client_that_wants_tls_does_not_speak_plain_text(server, make_client):
    for roots in (True, b"no certificate at all"):
        with pytest.raises(UnavailableError, match="TLS"):
            make_client(server.target, tls=roots, retry=False).health()


def test_a_closed_client_says_so(server, make_client):
    client = make_client(server.target)
    client.predict(PredictRequest(profile=profile_source("r")))
    client.close()
    for call in (
        lambda: client.predict(PredictRequest(profile=profile_source("r"))),
        lambda: client.stream_predict([]),
        lambda: client.backtest(BacktestRequest(table=TABLE)),
    ):
        with pytest.raises(RuntimeError, match="the client is closed"):
            call()


def test_a_client_that_never_called_closes(server):
    with Client(server.target) as client:
        assert repr(client) == f"Client('{server.target}')"

    async def nothing():
        async with AsyncClient(server.target) as client:
            assert repr(client) == f"AsyncClient('{server.target}')"

    asyncio.run(nothing())


@pytest.mark.parametrize(
    "keywords", [{"target": ""}, {"target": "t", "timeout_s": 0.0}, {"target": "t", "timeout_s": float("nan")}]
)
def test_what_cannot_work_is_refused_at_once(keywords):
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="give"):
            kind(**keywords)


def test_both_clients_offer_the_same():
    public = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)]
    assert public[0] == public[1]


def test_every_method_of_the_contract_can_be_called():
    methods = [method.name for service in SERVICES for method in service.methods]
    assert len(set(methods)) == len(methods)
    named = {re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in methods} - {"ingest_profile"} | {"ingest"}
    assert named <= set(dir(Client))

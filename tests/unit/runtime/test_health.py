"""Health of estimators on both tracks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nodewise.hosting.breaker import FAILURES, Breaker
from nodewise.runtime.generations.traffic_router import Tracks
from nodewise.runtime.health import Health

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def serving_state(breakers: dict[str, Breaker | None]) -> Any:
    estimators = {name: SimpleNamespace(breaker=breaker) for name, breaker in breakers.items()}
    return SimpleNamespace(loaded_plugins=SimpleNamespace(registry=SimpleNamespace(estimators=estimators)))


def opened() -> Breaker:
    breaker = Breaker(later=lambda _, __: lambda: None)
    for _ in range(FAILURES):
        breaker.record_failure("predict")
    assert not breaker.is_closed
    return breaker


async def test_an_estimator_that_only_a_canary_has_is_told_of_by_its_own_breaker() -> None:
    stable = serving_state({"both": None, "kept": Breaker()})
    canary = serving_state({"both": opened(), "kept": opened(), "new": opened()})
    health, server = Health(), grpc.aio.server()
    health.offer(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await health.follow(Tracks(stable, canary, 0.5))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        told = {
            name: (await check(health_pb2.HealthCheckRequest(service=f"estimator/{name}"))).status
            for name in ("both", "kept", "new")
        }
    await server.stop(None)
    assert told == {"both": SERVING, "kept": SERVING, "new": NOT_SERVING}

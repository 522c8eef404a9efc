"""A fake server for each test, and clients of both kinds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_nodewise import Face, FakeServer
from patience import PATIENCE_S

from nodewise_client import AsyncClient, Client, ResumePolicy


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.stop()


@pytest.fixture(params=["sync", "async"])
def make_client(request: pytest.FixtureRequest) -> Iterator[Callable[..., Face]]:
    """Makes clients of either kind; every test that asks for it runs with both."""
    with asyncio.Runner() as runner:
        made: list[Any] = []

        def make(target: str, **keywords: Any) -> Face:
            if request.param == "sync":
                client: Client | AsyncClient = Client(target, **keywords)
                made.append(client)
                return Face(client, None)
            client = AsyncClient(target, **keywords)
            made.append(client)
            return Face(client, runner)

        yield make
        for client in made:
            if isinstance(client, Client):
                client.close()
            else:
                runner.run(client.close())


@pytest.fixture
def client(server: FakeServer, make_client: Callable[..., Face]) -> Face:
    return make_client(server.target)


@pytest.fixture
def quick() -> ResumePolicy:
    """Pauses short enough for tests, with a seeded jitter."""
    return ResumePolicy(
        initial_pause_s=0.001, max_pause_s=0.002, deadline_s=PATIENCE_S, uniform=random.Random(5).random
    )

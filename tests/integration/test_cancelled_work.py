"""Work that nobody waits for any more ends, in threads of the server too, which nothing can kill."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import Stubs, inline

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2, options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

pytestmark = pytest.mark.long

BEGUN_S = 0.3
"""Of a processor: the call is at work."""
QUIET_S = 0.2
MOST_AFTER_S = 0.5
"""Of a processor, on any machine; ``bench/long_calls.py`` has the figure."""
WHOLE = pb.BatchPredictRequest(
    jobs=[pb.BatchJob(profile=inline())],
    configurations=configuration_pb2.Configurations(
        nodes=[1], workers=[60_000], parameter_servers=[1], sync_modes=[configuration_pb2.SYNC_MODE_SYNC]
    ),
    options=options_pb2.PredictOptions(
        model=options_pb2.ModelOptions(estimator="queueing"), fidelity=options_pb2.FIDELITY_SIMULATE
    ),
)
"""Simulations of a job, some ten seconds of a processor."""


class OverHttp:
    """A call over a connection of its own, which is cancelled by closing it."""

    def __init__(self, target: str) -> None:
        self._connection = http.client.HTTPConnection(target, timeout=PATIENCE_S)
        headers = {"Content-Type": "application/proto"}
        self._connection.request(
            "POST", "/nodewise.v1.PredictionService/BatchPredict", WHOLE.SerializeToString(), headers
        )
        self._connection.sock.setblocking(False)

    def done(self) -> bool:
        """Whether anything was answered."""
        try:
            self._connection.sock.recv(1)
        except BlockingIOError:
            return False
        return True

    def cancel(self) -> None:
        """Go away."""
        self._connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0")) as server:
        yield server


@pytest.fixture(scope="module")
def stubs(server: EmbeddedServer) -> Iterator[Stubs]:
    with Stubs(server.target) as found:
        # Compiled code is loaded with the first.
        few = pb.BatchPredictRequest()
        few.CopyFrom(WHOLE)
        few.configurations.workers[:] = [2]
        found.prediction.BatchPredict(few, timeout=PATIENCE_S)
        yield found


CALLS: dict[str, Callable[[Stubs, EmbeddedServer], Any]] = {
    "BatchPredict, simulated": lambda stubs, _: stubs.prediction.BatchPredict.future(WHOLE, timeout=PATIENCE_S),
    "BatchPredict, simulated, over HTTP": lambda _, server: OverHttp(server.http_target),
    "Predict, simulated": lambda stubs, _: stubs.prediction.Predict.future(
        pb.PredictRequest(profile=inline(), configurations=WHOLE.configurations, options=WHOLE.options),
        timeout=PATIENCE_S,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_work_in_threads_ends_soon_after_its_caller_went(stubs: Stubs, server: EmbeddedServer, name: str) -> None:
    before_s = time.process_time()
    call = CALLS[name](stubs, server)
    while time.process_time() - before_s < BEGUN_S:
        assert not call.done()
        time.sleep(0.005)
    call.cancel()
    cancelled_s = seen_s = time.process_time()
    while True:
        time.sleep(QUIET_S)
        now_s = time.process_time()
        assert now_s - cancelled_s < MOST_AFTER_S
        if now_s - seen_s < 0.5 * QUIET_S:
            return
        seen_s = now_s

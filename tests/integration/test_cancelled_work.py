"""Work that nobody waits for any more ends, in threads of the server too, which nothing can kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import Stubs, inline

from nodewise.runtime.embedded import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2, options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

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


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer(Settings(store="memory:")) as server, Stubs(server.target) as found:
        # Compiled code is loaded with the first.
        few = pb.BatchPredictRequest()
        few.CopyFrom(WHOLE)
        few.configurations.workers[:] = [2]
        found.prediction.BatchPredict(few, timeout=PATIENCE_S)
        yield found


CALLS: dict[str, Callable[[Stubs], Any]] = {
    "BatchPredict, simulated": lambda stubs: stubs.prediction.BatchPredict.future(WHOLE, timeout=PATIENCE_S),
    "Predict, simulated": lambda stubs: stubs.prediction.Predict.future(
        pb.PredictRequest(profile=inline(), configurations=WHOLE.configurations, options=WHOLE.options),
        timeout=PATIENCE_S,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_work_in_threads_ends_soon_after_its_caller_went(stubs: Stubs, name: str) -> None:
    before_s = time.process_time()
    call = CALLS[name](stubs)
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

"""Callers that go on while a server is restarted, and what became of their calls."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field

import grpc
from patience import PATIENCE_S
from serving import Failure, ServerProcess, inline, workers

from nodewise_client._connection import service_config
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import prediction_service_pb2_grpc

__all__ = ["Callers", "restart"]

PAUSE_S = 0.005
"""Of each loop between two calls."""


@dataclass
class Callers:
    """Loops of Predict with a pause, each on a connection of its own, with the retries that clients are shipped with.

    Parameters
    ----------
    target : str
        HOST:PORT.
    count : int
        Of loops.
    wait_for_ready : bool
        Whether calls wait for a connection.
    retry : bool
        Whether failed calls are tried again as the shipped policy says.
    """

    target: str
    count: int
    wait_for_ready: bool
    retry: bool = True
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """By status and text."""

    def __enter__(self) -> Callers:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._call) for _ in range(self.count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _call(self) -> None:
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.enable_retries", int(self.retry)),
            *([("grpc.service_config", service_config())] if self.retry else []),
        ]
        request = predictions.PredictRequest(profile=inline(), configurations=workers(1, 2, 4, 8))
        with grpc.insecure_channel(self.target, options=options) as channel:
            predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
            while not self._over.wait(PAUSE_S):  # or the callers would have the cores that a start needs
                try:
                    reply = predict(request, wait_for_ready=self.wait_for_ready, timeout=PATIENCE_S)
                    assert len(reply.predictions.step_seconds) == 4
                except grpc.RpcError as error:
                    failure = Failure(error)
                    with self._lock:
                        self.failed[f"{failure.code.name}: {failure.message}"] += 1
                else:
                    with self._lock:
                        self.answered += 1


def restart(server: ServerProcess) -> None:
    """Restart its workers, one after the other; returns when all are new."""
    os.kill(server.pid, signal.SIGHUP)
    server.log_until("restarted")

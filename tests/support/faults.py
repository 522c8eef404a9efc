"""A server under one fault after the other, for tests of what its operator sees."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc
from logged_server import LoggedServer
from patience import PATIENCE_S, wait_until
from serving import Failure, Stubs, inline, observed, one_worker_phases, stored, workers, workers_of
from tiny_wheels import wheel

from nodewise_protos.v1 import options_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["CALL_BUDGET_S", "SETTINGS", "Faults", "one_worker_phases_content", "plugin_wheels"]

SETTINGS: Final = {"workers": 2, "cache_bytes": 16 << 20, "queue_wait_s": 0.2, "crash_budget": 100}
CALL_BUDGET_S: Final = 2.0


def plugin_wheels(folder: Path, triggers: Path) -> list[Path]:
    """Wheels of plugins that misbehave while a file of their name exists in the folder ``triggers``."""
    plugins = {"exits": "__import__('os')._exit(3)", "hangs": "__import__('time').sleep(1000)", "raises": "1 / 0"}
    return [
        wheel(
            folder,
            "1.0",
            distribution=f"{name}-plugin",
            name=name,
            inside=f"__import__('os').path.exists({str(triggers / name)!r}) and {does}",
        )
        for name, does in plugins.items()
    ]


class Faults:
    """A server with two plugins that misbehave once they are told to, and what goes wrong with it."""

    credentials: grpc.ChannelCredentials | None = None
    """Of callers; none = plaintext."""

    def __init__(self, folder: Path, **changes: float) -> None:
        self._folder, self._store = folder, folder / "store.db"
        site = folder / "site"
        for made in plugin_wheels(folder / "wheels", folder):
            with zipfile.ZipFile(made) as archive:
                archive.extractall(site)
        self._paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._settings = folder / "nodewise.toml"
        self._listen, self.http = "127.0.0.1:0", "127.0.0.1:0"
        self.write_settings(**changes)
        self.start()

    def start(self) -> None:
        """Start the server; the next one, once this one has ended, has the same addresses."""
        if self.http != "127.0.0.1:0":
            self.server.__exit__()
        self.server = LoggedServer(
            self._folder,
            *("--store", f"sqlite:{self._store}", "--http", self.http, "--config", str(self._settings)),
            environment={"PYTHONPATH": self._paths},
            listen=self._listen,
        )
        self._listen, self.http = self.server.target, self.server.http_target

    def write_settings(self, **changes: float) -> None:
        """Write the settings: those of all faults, and changes."""
        lines = [f"{name} = {value}" for name, value in (SETTINGS | changes).items()]
        self._settings.write_text("\n".join([*lines, "[hosts]", f"call_budget_s = {CALL_BUDGET_S}", ""]))

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    @property
    def target(self) -> str:
        """HOST:PORT of gRPC."""
        return self._listen

    def events(self) -> Counter[str]:
        """How often each event was logged so far."""
        return Counter(line.get("event") for line in self.server.logged()[0])

    def append(self, job: str, content: profile_pb2.ProfileContent) -> None:
        request = profile_service_pb2.AppendProfileRequest(
            profile_id=job, request_id=str(random.random()), content=content
        )
        with Stubs(self.target, credentials=self.credentials) as stubs:
            stubs.profile.AppendProfile(request, timeout=PATIENCE_S)

    def observe(self, job: str, factor: float) -> None:
        """More runs of a job, so many times as fast as those before."""
        counts = list(range(1, 9))
        rates = [factor * count / (1.0 + 0.02 * count) for count in counts]
        self.append(job, profile_pb2.ProfileContent(observations=observed(counts, rates)))

    def predict(self, estimator: str = "") -> str:
        """Ask an estimator; returns why it did not answer, empty = it did."""
        options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))
        request = pb.PredictRequest(profile=inline(), configurations=workers(1, 2), options=options)
        with Stubs(self.target, credentials=self.credentials) as stubs:
            try:
                stubs.prediction.Predict(request, timeout=PATIENCE_S)
            except grpc.RpcError as error:
                failure = Failure(error)
                return failure.reason or failure.code.name
        return ""

    def predicted_rate(self, job: str) -> float:
        """Steps per second of a job on eight workers, as predicted."""
        with Stubs(self.target, credentials=self.credentials) as stubs:
            request = pb.PredictRequest(profile=stored(job), configurations=workers(8))
            return float(stubs.prediction.Predict(request, timeout=PATIENCE_S).predictions.steps_per_second[0])

    def lock_store(self) -> None:
        """For longer than a write may take and shorter than the server bears."""
        other = sqlite3.connect(self._store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = threading.Thread(target=self.append, args=("locked", one_worker_phases_content()))
        writing.start()
        time.sleep(1.2)  # the fault itself: how long the lock is held
        other.execute("ROLLBACK")
        other.close()
        writing.join()

    def take_store_away(self) -> None:
        if self._store.exists():
            self._store.rename(self._store.with_suffix(".aside"))

    def put_store_back(self) -> None:
        self._store.with_suffix(".aside").rename(self._store)

    def break_plugin(self, name: str) -> None:
        (self._folder / name).touch()

    def repair_plugin(self, name: str) -> None:
        (self._folder / name).unlink()

    def kill_a_worker(self) -> None:
        with suppress(ProcessLookupError, IndexError):
            os.kill(workers_of(self.server.pid)[0], signal.SIGKILL)

    def reload(self, **changes: float) -> None:
        """Change settings and replace the workers."""
        self.write_settings(**changes)
        restarted = self.events()["restarted"]
        self.server.send(signal.SIGHUP)
        wait_until(lambda: self.events()["restarted"] > restarted)

    def flood(self, batches: int = 150, estimator: str = "") -> int:
        """So many batches at once, each about sixty other jobs, to both workers; returns how many failed."""

        async def ask() -> int:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            channels = [self._channel(options) for _ in range(16)]
            methods = [each.unary_unary("/nodewise.v1.PredictionService/BatchPredict") for each in channels]
            calls = [methods[turn % 16](batch(estimator), timeout=PATIENCE_S) for turn in range(batches)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            for channel in channels:
                await channel.close()
            return sum(isinstance(each, BaseException) for each in outcomes)

        return asyncio.run(ask())

    def _channel(self, options: Sequence[tuple[str, int]]) -> grpc.aio.Channel:
        if self.credentials is None:
            return grpc.aio.insecure_channel(self.target, options=options)
        return grpc.aio.secure_channel(self.target, self.credentials, options=options)


def one_worker_phases_content() -> profile_pb2.ProfileContent:
    return one_worker_phases(compute_s=random.uniform(0.1, 1.0))


def batch(estimator: str) -> bytes:
    jobs = [
        pb.BatchJob(profile=inline(one_worker_phases_content()), configurations=workers(*range(1, 17)))
        for _ in range(60)
    ]
    options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator))
    return pb.BatchPredictRequest(jobs=jobs, options=options).SerializeToString()
